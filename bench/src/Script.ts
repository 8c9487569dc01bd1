/** A child process of a measurement: a compiled script of `processes/`, which answers in lines of standard output. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

export interface Script {
  /** Waits for the next line; an end without one is a defect. */
  readonly line: Effect.Effect<string>
  /** SIGKILL, and waits until it is gone. */
  readonly kill: Effect.Effect<void>
}

/** Starts it; it is killed with the scope. `parameters` arrive in the environment, not on the command line: a URL has a password. */
export const start = (
  name: string,
  options: { readonly parameters: Readonly<Record<string, string>>; readonly flags?: ReadonlyArray<string> }
): Effect.Effect<Script, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const script = fileURLToPath(new URL(`./processes/${name}.js`, import.meta.url))
        return spawn(process.execPath, [...(options.flags ?? []), script], {
          env: { ...process.env, ...options.parameters },
          stdio: ["ignore", "pipe", "inherit"]
        })
      }),
      end
    )
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    return {
      line: Effect.promise(async () => {
        const next = await lines.next()
        if (next.done === true) throw new Error(`${name} ended (code ${child.exitCode}) without an answer`)
        return next.value
      }),
      kill: end(child)
    }
  })

const end = (child: ChildProcess): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, "exit")
    child.kill("SIGKILL")
    await gone
  })
