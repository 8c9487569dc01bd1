/** A driver that is a command: each process of the plane is a child that speaks the protocol, and may be killed. */
import { Deferred, Effect, Either, Exit, FiberId, Schema, type Scope } from "effect"
import { spawn } from "node:child_process"
import { Socket } from "node:net"
import {
  checkHello,
  decodeReply,
  defaultTimeLimit,
  type Driver,
  type DriverError,
  DriverFault,
  type Limits,
  within
} from "./Driver.js"
import { Declined, type Operation, protocolVersion } from "./Plane.js"
import { lines, WireReply } from "./Protocol.js"

/** A command, its arguments apart. */
export type Command = readonly [program: string, ...args: ReadonlyArray<string>]

export interface ChildOptions extends Limits {
  /** What `--plane` names it by. */
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A driver whose processes are started by the command. */
export const childProcess = (command: Command, options: ChildOptions = {}): Driver => {
  const timeLimit = options.timeLimit ?? defaultTimeLimit
  // What belongs to no session is asked of one process that stays. It does not keep this one from ending.
  let steward: Child | undefined
  const once = <A>(use: (child: Child) => Effect.Effect<A, DriverError>) =>
    Effect.suspend(() => {
      if (steward === undefined) {
        steward = run(command, options, timeLimit)
        steward.unref()
      }
      const asked = steward
      return Effect.onError(use(asked), () =>
        Effect.suspend(() => {
          if (steward === asked) steward = undefined
          return asked.kill
        })
      )
    })
  const driver: Driver = {
    name: options.name ?? command.join(" "),
    hello: once((child) => Effect.flatMap(child.request("hello", { protocol: protocolVersion }), checkHello)),
    open: (place) =>
      Effect.gen(function* () {
        const child = yield* start(command, options, timeLimit)
        yield* Effect.flatMap(child.request("hello", { protocol: protocolVersion }), checkHello)
        yield* child.request("open", place)
        return {
          who: place.who,
          ask: (operation, request) =>
            Effect.flatMap(child.request(operation, request), (reply) => decodeReply(operation, reply)),
          kill: child.kill,
          ended: child.ended,
          freeze: child.signal("SIGSTOP"),
          thaw: child.signal("SIGCONT")
        }
      }),
    copy: (store, to) => once((child) => Effect.asVoid(child.request("copy", { store, to }))),
    onHost: ([first, ...rest]) => (first === undefined ? driver : childProcess([first, ...rest, ...command], options)),
    drop: (store) => once((child) => Effect.asVoid(child.request("drop", { store })))
  }
  return driver
}

interface Child {
  readonly request: (
    op: Operation | "hello" | "open" | "copy" | "drop",
    request: unknown
  ) => Effect.Effect<unknown, DriverError>
  readonly kill: Effect.Effect<void>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  readonly ended: Effect.Effect<never, DriverFault>
  /** Lets this process end although the child is there; the child ends with it. */
  readonly unref: () => void
}

const decode = Schema.decodeUnknownEither(Schema.parseJson(WireReply))

/** All children now alive: the last resort, if this process ends without closing its scopes. */
const alive = new Set<() => void>()
process.once("exit", () => alive.forEach((kill) => kill()))

const start = (command: Command, options: ChildOptions, timeLimit: number): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => run(command, options, timeLimit)),
    ({ kill }) => kill
  )

const run = ([program, ...args]: Command, { env, name }: ChildOptions, timeLimit: number): Child => {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] })
  const called = name ?? [program, ...args].join(" ")
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = `${stderr}${text}`.slice(-2000)))
  // A child that is gone reads no more; whoever waits for it learns that from its end.
  child.stdin.on("error", () => {})

  let nextId = 0
  const waiting = new Map<number, (exit: Exit.Exit<unknown, DriverError>) => void>()
  const gone = Deferred.unsafeMake<void>(FiberId.none)
  const broken = Deferred.unsafeMake<never, DriverFault>(FiberId.none)
  let fault: DriverFault | undefined
  let killed = false
  const fail = (kind: DriverFault["kind"], message: string): void => {
    if (fault !== undefined) return
    fault = new DriverFault({ kind, message })
    if (!killed) Deferred.unsafeDone(broken, Exit.fail(fault))
    for (const done of waiting.values()) done(Exit.fail(fault))
    waiting.clear()
  }
  child.stdout.setEncoding("utf8").on(
    "data",
    lines((line) => {
      const decoded = decode(line)
      if (Either.isLeft(decoded))
        return fail("nonsense", `${called} wrote ${JSON.stringify(line.slice(0, 200))}, which is no reply`)
      const { right: reply } = decoded
      const done = waiting.get(reply.id)
      // An answer that nobody waits for any more came late; one to a request that never was is nonsense.
      if (done === undefined) {
        if (reply.id < 1 || reply.id > nextId)
          fail("nonsense", `${called} answered request ${reply.id}, which was never made`)
        return
      }
      waiting.delete(reply.id)
      done("error" in reply ? Exit.fail(new Declined(reply.error)) : Exit.succeed(reply.reply))
    })
  )
  const end = (how: string) => {
    alive.delete(kill)
    fail("crashed", `${called} ended (${how})${stderr.trim() === "" ? "" : `; it wrote: ${stderr.trim()}`}`)
    Deferred.unsafeDone(gone, Exit.void)
  }
  // "close", not "exit": all that it wrote has been read by then.
  child.once("close", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`))
  child.once("error", (cause) => end(`it could not be started: ${cause.message}`))
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) child.kill(name)
  }
  const kill = (): void => {
    killed = true
    signal("SIGKILL")
  }
  alive.add(kill)
  return {
    request: (op, request) =>
      Effect.async<unknown, DriverError>((resume) => {
        if (fault !== undefined) return resume(fault)
        const id = ++nextId
        waiting.set(id, (exit) => resume(exit))
        child.stdin.write(`${JSON.stringify({ id, op, request })}\n`)
        return Effect.sync(() => waiting.delete(id))
      }).pipe(within(timeLimit, op)),
    kill: Effect.suspend(() => {
      kill()
      return Deferred.await(gone)
    }),
    signal: (name) => Effect.sync(() => signal(name)),
    ended: Deferred.await(broken),
    unref: () => {
      child.unref()
      for (const stream of [child.stdin, child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref()
    }
  }
}
