/** A line to a PostgreSQL server that can fall silent: nothing is refused or closed, nothing arrives either way. */
import { Effect, type Scope } from "effect"
import { connect, createServer, type Server, type Socket } from "node:net"

export interface SilentLine {
  /** The server's URL by way of this line. */
  readonly url: string
  readonly silence: Effect.Effect<void>
  /** What was sent meanwhile arrives. */
  readonly restore: Effect.Effect<void>
  /** What is connected now stays silent for good, as on a route that is gone; new connections come about. */
  readonly lose: Effect.Effect<void>
}

/** A line to the server of the URL; gone when the scope closes. */
export const make = (url: string): Effect.Effect<SilentLine, never, Scope.Scope> =>
  Effect.gen(function* () {
    const target = new URL(url)
    const sockets = new Set<Socket>()
    const lost = new Set<Socket>()
    let silent = false
    const join = (from: Socket, to: Socket) => {
      sockets.add(from)
      if (silent) from.pause()
      from.on("data", (bytes) => void to.write(bytes))
      from.on("error", () => to.destroy())
      from.on("close", () => {
        sockets.delete(from)
        lost.delete(from)
        to.destroy()
      })
    }
    const server = yield* Effect.acquireRelease(
      listening(
        createServer((near) => {
          const far = connect(Number(target.port), target.hostname)
          join(near, far)
          join(far, near)
        })
      ),
      (server) =>
        Effect.sync(() => {
          server.close()
          for (const socket of [...sockets, ...lost]) socket.destroy()
        })
    )
    const address = server.address()
    const here = new URL(url)
    here.hostname = "127.0.0.1"
    here.port = String(typeof address === "object" ? address?.port : address)
    return {
      url: here.href,
      silence: Effect.sync(() => {
        silent = true
        for (const socket of sockets) socket.pause()
      }),
      restore: Effect.sync(() => {
        silent = false
        for (const socket of sockets) socket.resume()
      }),
      lose: Effect.sync(() => {
        for (const socket of sockets) {
          socket.pause()
          lost.add(socket)
        }
        sockets.clear()
      })
    }
  })

const listening = (server: Server): Effect.Effect<Server> =>
  Effect.async((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  })
