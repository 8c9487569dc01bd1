/**
 * Hosts of their own on this machine: network namespaces, each with a link to here that can be cut, and a relay on it to
 * the service that the plane's processes share. Linux, as root, by `ip`.
 */
import { Effect, type Scope } from "effect"
import { spawnSync } from "node:child_process"
import { connect, createServer, type Server } from "node:net"
import { Inapplicable } from "./Needs.js"

export interface Host {
  readonly name: string
  /** What a command is put behind to run there. */
  readonly prefix: ReadonlyArray<string>
  /** Where the service is, seen from there. */
  readonly service: string
  /** Nothing passes any more; connections do not learn of it. */
  readonly cut: Effect.Effect<void>
  readonly heal: Effect.Effect<void>
}

const ip = (...args: ReadonlyArray<string>): string | undefined => {
  const { error, status, stderr } = spawnSync("ip", args, { encoding: "utf8" })
  return status === 0 ? undefined : `ip ${args.join(" ")}: ${error?.message ?? stderr.trim()}`
}

let made = 0

/** Makes a host; it is gone when the scope closes. Inapplicable, with the reason, where the machine does not allow it. */
export const make = (name: string, service: string): Effect.Effect<Host, Inapplicable, Scope.Scope> =>
  Effect.gen(function* () {
    if (process.platform !== "linux")
      return yield* new Inapplicable({ verdict: "not applicable", reason: "network namespaces need Linux" })
    const n = ++made
    const space = `fc-${process.pid}-${n}`
    const [here, there] = [`fc${process.pid}h${n}`, `fc${process.pid}t${n}`]
    const net = `10.213.${(process.pid + n * 7) % 250}`
    const remove = Effect.sync(() => {
      ip("link", "del", here)
      ip("netns", "del", space)
    })
    yield* Effect.addFinalizer(() => remove)
    const commands = [
      ["netns", "add", space],
      ["link", "add", here, "type", "veth", "peer", "name", there],
      ["link", "set", there, "netns", space],
      ["addr", "add", `${net}.1/30`, "dev", here],
      ["link", "set", here, "up"],
      ["-n", space, "addr", "add", `${net}.2/30`, "dev", there],
      ["-n", space, "link", "set", there, "up"],
      ["-n", space, "link", "set", "lo", "up"]
    ]
    for (const command of commands) {
      const problem = ip(...command)
      if (problem !== undefined)
        return yield* new Inapplicable({
          verdict: "not applicable",
          reason: `this machine allows no network namespaces (${problem})`
        })
    }
    const port = yield* relay(`${net}.1`, service)
    return {
      name,
      prefix: ["ip", "netns", "exec", space],
      service: `${net}.1:${port}`,
      cut: Effect.sync(() => void ip("link", "set", here, "down")),
      heal: Effect.sync(() => void ip("link", "set", here, "up"))
    }
  })

/** Passes connections on to the service. Bound to the link's address alone: nobody but that host reaches it. */
const relay = (address: string, service: string): Effect.Effect<number, Inapplicable, Scope.Scope> => {
  const { hostname, port } = new URL(`tcp://${service}`)
  const open = Effect.async<Server, Inapplicable>((resume) => {
    const server = createServer((near) => {
      const far = connect(Number(port), hostname)
      near.pipe(far).pipe(near)
      // The end of one is the end of the other, however it came.
      for (const [one, other] of [
        [near, far],
        [far, near]
      ] as const) {
        one.on("error", () => other.destroy())
        one.on("close", () => other.destroy())
      }
    })
    server.once("error", ({ message }) =>
      resume(new Inapplicable({ verdict: "not applicable", reason: `no relay to the service: ${message}` }))
    )
    server.listen(0, address, () => resume(Effect.succeed(server)))
  })
  return Effect.map(
    Effect.acquireRelease(open, (server) => Effect.sync(() => void server.close())),
    (server) => {
      server.unref()
      const bound = server.address()
      return typeof bound === "object" && bound !== null ? bound.port : 0
    }
  )
}
