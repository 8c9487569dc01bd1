/**
 * A real child process of a test: started, stopped at points of its course, killed, frozen, and never
 * outliving the scope that it was started in. The script's side is `Inside.ts`.
 */
import { Data, Deferred, Effect, Exit, FiberId, Schema, type Scope } from "effect"
import { type ChildProcess, execFileSync, spawn as spawnProcess } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { Socket } from "node:net"
import * as PidNamespace from "./PidNamespace.js"
import * as Program from "./Program.js"
import * as Reports from "./Reports.js"
import { environmentVariable, type Letter, lettersFd, lines, type Orders, Report, reportsFd } from "./Wire.js"

/** How a process ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stderr: string
}

/** The child ended while the test still waited for something from it. */
export class ChildEnded extends Data.TaggedError("ChildEnded")<
  Ending & { readonly script: string; readonly waitedFor: string }
> {
  override get message(): string {
    return `${this.script} ended (code ${this.code}, signal ${this.signal}) before ${this.waitedFor}\n${this.stderr}`
  }
}

/** A point at which the child stands. */
export interface Stop {
  readonly point: string
  readonly n: number
  readonly held: boolean
}

export interface Child {
  /** As this process sees it. */
  readonly pid: number
  /** Waits until the child stands at the point (any point, if none is named) and takes that stop. */
  readonly stopped: (point?: string) => Effect.Effect<Stop, ChildEnded>
  /** Lets the child go on from a stop. */
  readonly release: (stop: Stop) => Effect.Effect<void>
  /** The points passed without a stop, in order (`trace`). */
  readonly passed: Effect.Effect<ReadonlyArray<string>>
  /** Waits until the child is at the start line of its race. */
  readonly ready: Effect.Effect<void, ChildEnded>
  /** Takes the child's next message; one that is not as described is a defect. */
  readonly receive: <A, I>(schema: Schema.Schema<A, I>) => Effect.Effect<A, ChildEnded>
  readonly send: (message: unknown) => Effect.Effect<void>
  /** SIGKILL, and waits until it is gone. */
  readonly kill: Effect.Effect<Ending>
  /** SIGTERM, as an operator's stop. Does not wait. */
  readonly terminate: Effect.Effect<void>
  /** SIGSTOP, and waits until every thread stands still. */
  readonly freeze: Effect.Effect<void>
  /** SIGCONT. */
  readonly thaw: Effect.Effect<void>
  readonly exit: Effect.Effect<Ending>
  /** Waits for an exit with code 0; anything else is `ChildEnded`. */
  readonly success: Effect.Effect<void, ChildEnded>
  readonly stdout: Effect.Effect<string>
  readonly stderr: Effect.Effect<string>
}

export interface Options {
  /** What `Inside.input` gives; JSON. */
  readonly input?: unknown
  /** Where to stop: `point` at each passing, `point#n` at the nth only. */
  readonly stopAt?: ReadonlyArray<string>
  /** Record every point that is passed. */
  readonly trace?: boolean
  /** The start line, of `Race.make`. */
  readonly race?: string
  readonly env?: Readonly<Record<string, string>>
  /** Arguments for node itself, before the script. */
  readonly nodeOptions?: ReadonlyArray<string>
  /** In a PID namespace of its own; a defect where `PidNamespace.available` says that there are none. */
  readonly ownPidNamespace?: boolean
}

/**
 * Starts `script`, a path in `test/src` without extension ("crash/worker", say) or an absolute path of compiled code,
 * and waits until it has loaded `Inside.ts`, which it must import. It is killed when the scope closes.
 */
export const spawn = (script: string, options: Options = {}): Effect.Effect<Child, ChildEnded, Scope.Scope> =>
  Effect.gen(function* () {
    const file = compiled(script)
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => start(file, options)),
      (child) => child.kill
    )
    yield* child.hello
    return child
  })

const compiled = (script: string): string => {
  if (!script.startsWith("/")) return Program.programFile(script)
  if (!existsSync(script)) throw new Error(`${script} does not exist: run "npm run build" first`)
  return script
}

/** All children now alive: the last resort, if this process ends without closing its scopes. */
const alive = new Set<() => void>()
process.once("exit", () => alive.forEach((kill) => kill()))

const start = (file: string, options: Options): Child & { readonly hello: Effect.Effect<void, ChildEnded> } => {
  const orders: Orders = {
    stopAt: options.stopAt ?? [],
    trace: options.trace ?? false,
    race: options.race ?? null,
    input: options.input
  }
  const command = [process.execPath, ...(options.nodeOptions ?? []), file]
  const [program, ...args] = options.ownPidNamespace === true ? PidNamespace.inOwn(command) : command
  const child = spawnProcess(program ?? process.execPath, args, {
    env: { ...process.env, ...options.env, [environmentVariable]: JSON.stringify(orders) },
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"]
  })
  const reports = duplex(child, reportsFd)
  const letters = duplex(child, lettersFd)

  let stdout = ""
  let stderr = ""
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text))
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text))

  const unread = Reports.make()
  const passed: Array<string> = []
  reports.on(
    "data",
    lines((line) => {
      const report = Schema.decodeSync(Schema.parseJson(Report))(line)
      if (report._tag === "Passed") passed.push(`${report.point}#${report.n}`)
      else unread.put(report)
    })
  )

  const ended = Deferred.unsafeMake<Ending>(FiberId.none)
  let over = false
  const end = (code: number | null, signal: NodeJS.Signals | null) => {
    over = true
    alive.delete(kill)
    Deferred.unsafeDone(ended, Exit.succeed({ code, signal, stderr }))
    unread.end()
  }
  // "close", not "exit": all that it wrote has been read by then.
  child.once("close", end)
  // It could not be started.
  child.once("error", (cause) => {
    stderr += String(cause)
    end(null, null)
  })

  // In a namespace of its own the script is a child of `unshare`, to which signals would mean nothing.
  const pid = () => (options.ownPidNamespace === true ? PidNamespace.childOf(child.pid) : undefined) ?? child.pid ?? -1
  const signal = (name: NodeJS.Signals): void => {
    try {
      // Once its end is known the id may be somebody else's.
      if (!over && child.exitCode === null && child.signalCode === null) process.kill(pid(), name)
    } catch {
      // Gone meanwhile.
    }
  }
  const kill = () => signal("SIGKILL")
  alive.add(kill)

  const write = (letter: Letter) => Effect.sync(() => void letters.write(`${JSON.stringify(letter)}\n`))
  const orEnded = <A>(wait: Effect.Effect<A, Reports.WaitedInVain>) =>
    Effect.catchAll(wait, ({ waitedFor }) =>
      Effect.flatMap(Deferred.await(ended), (ending) => new ChildEnded({ ...ending, script: file, waitedFor }))
    )

  return {
    get pid() {
      return pid()
    },
    hello: Effect.asVoid(orEnded(unread.take("Hello", "it had loaded processes/Inside"))),
    stopped: (point) =>
      orEnded(
        unread.take(
          "Stopped",
          `it stopped at ${point ?? "a point"}`,
          (stop) => point === undefined || stop.point === point
        )
      ),
    release: (stop) =>
      stop.held
        ? write({ _tag: "Release", point: stop.point, n: stop.n })
        : Effect.sync(() => void reports.write(Buffer.from([1]))),
    passed: Effect.sync(() => passed.slice()),
    ready: Effect.asVoid(orEnded(unread.take("Ready", "it was at the start line"))),
    receive: (schema) =>
      Effect.flatMap(orEnded(unread.take("Told", "it sent a message")), ({ message }) =>
        Effect.orDie(Schema.decodeUnknown(schema)(message))
      ),
    send: (message) => write({ _tag: "Message", message }),
    kill: Effect.suspend(() => {
      kill()
      return Deferred.await(ended)
    }),
    terminate: Effect.sync(() => signal("SIGTERM")),
    freeze: Effect.suspend(() => {
      signal("SIGSTOP")
      return Effect.async<void>((resume) => {
        // Not by the Clock: in a test that one stands still.
        const look = () => (over || standsStill(pid()) ? resume(Effect.void) : void setImmediate(look))
        look()
      })
    }),
    thaw: Effect.sync(() => signal("SIGCONT")),
    exit: Deferred.await(ended),
    success: Effect.flatMap(Deferred.await(ended), (ending) =>
      ending.code === 0 ? Effect.void : new ChildEnded({ ...ending, script: file, waitedFor: "it ended well" })
    ),
    stdout: Effect.sync(() => stdout),
    stderr: Effect.sync(() => stderr)
  }
}

const duplex = (child: ChildProcess, fd: number): Socket => {
  const stream = child.stdio[fd]
  if (!(stream instanceof Socket)) throw new Error(`no pipe to file descriptor ${fd}`)
  // A child that is gone reads no more; whoever waits for it learns that from its end.
  return stream.on("error", () => {}).resume()
}

/** Whether every thread is stopped. The system has no event for that, only a state to look at. */
const standsStill = (pid: number): boolean => {
  if (process.platform !== "linux")
    return execFileSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" }).startsWith("T")
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      /^\d+ \(.*\) [Tt] /s.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))
    )
  } catch {
    // Gone meanwhile.
    return true
  }
}
