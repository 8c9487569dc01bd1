/** `fermata replay`: does this code still do what a stored history shows? Runs no node and touches no database. */
import { Args, Command, Options } from "@effect/cli"
import { HistoryFile } from "@fermata/runtime"
import { Replay } from "@fermata/runtime/testing"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { UsageError } from "../CliError.js"
import { common, module } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

export const replay = Command.make(
  "replay",
  {
    json: common.json,
    module,
    file: Args.text({ name: "file" }).pipe(Args.withDescription("What `fermata history --json` printed")),
    everyPrefix: Options.boolean("every-prefix").pipe(
      Options.withDescription("Also from every shorter history, as a crash could leave it; slow for long ones")
    )
  },
  (options) =>
    Effect.gen(function* () {
      const text = yield* Effect.try({
        try: () => readFileSync(options.file, "utf8"),
        catch: (error) =>
          new UsageError({
            what: "the history",
            detail: `${options.file} cannot be read: ${error instanceof Error ? error.message : String(error)}`
          })
      })
      const history = yield* HistoryFile.read(text)
      const loaded = yield* WorkflowModule.load(options.module)
      const { version, workflow } = history.run
      const exact = loaded.workflows.find(({ definition }) => definition === `${workflow}@${version}`)
      const code = exact ?? (yield* WorkflowModule.pickWorkflow(loaded, workflow))
      const check = Replay.check(code, history, { prefixes: options.everyPrefix ? "every" : "whole" })
      // The module's layer has the pure services that the workflow uses.
      yield* Effect.provide(check, loaded.layer)
      const entries = history.entries.length
      yield* print(options.json, { branch: history.branch.branch, definition: code.definition, entries }, () => [
        `${history.branch.branch}: all ${entries} entries replay with ${code.definition}`
      ])
    })
).pipe(Command.withDescription("Replay a history file with a module's code, and name the first divergence"))
