/** `fermata dev`: a worker that starts anew whenever its module, or what that imports, changes. */
import { Command } from "@effect/cli"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as DatabaseAddress from "../DatabaseAddress.js"
import * as WorkflowModule from "../WorkflowModule.js"
import { workerOptions } from "./Worker.js"

const program = fileURLToPath(new URL("../main.js", import.meta.url))

export const dev = Command.make("dev", workerOptions, (options) =>
  Effect.gen(function* () {
    // What is wrong with the command is said before the first worker starts.
    const address = yield* DatabaseAddress.given(options)
    yield* WorkflowModule.load(options.module)
    const parameters = ["worker", "--module", options.module, "--concurrency", String(options.concurrency)]
    if (options.json) parameters.push("--json")
    yield* Effect.acquireUseRelease(
      Effect.sync(() =>
        // Node's watcher follows imports, and stops a worker by SIGTERM, which lets go of its branches.
        spawn(process.execPath, ["--watch", "--watch-preserve-output", "--no-warnings", program, ...parameters], {
          stdio: "inherit",
          // In the environment, where other users' process lists do not show the URL.
          env: { ...process.env, [DatabaseAddress.variable]: DatabaseAddress.text(address) }
        })
      ),
      (child) => Effect.async<void>((resume) => void child.once("exit", () => resume(Effect.void))),
      (child) =>
        Effect.async<void>((resume) => {
          if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
          child.once("exit", () => resume(Effect.void))
          child.kill("SIGTERM")
        })
    )
  })
).pipe(Command.withDescription("Run a worker that restarts when its module changes"))
