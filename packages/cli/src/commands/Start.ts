/** `fermata start`: starts a run of a module's workflow. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Option, Schema } from "effect"
import { Unwell, UsageError } from "../CliError.js"
import { common, decoded, jsonValue, module, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

export const start = Command.make(
  "start",
  {
    ...common,
    module,
    workflow: Args.text({ name: "workflow" }),
    input: Options.text("input").pipe(
      Options.withDescription("Its input as JSON, @FILE, or - for standard input"),
      Options.optional
    ),
    run: Options.text("run").pipe(
      Options.withDescription("The run id: the same again is the same run"),
      Options.optional
    ),
    wait: Options.boolean("wait").pipe(Options.withDescription("Wait for the run's end, and print its result"))
  },
  (options) =>
    Effect.gen(function* () {
      const loaded = yield* WorkflowModule.load(options.module)
      const workflow = yield* WorkflowModule.pickWorkflow(loaded, options.workflow)
      const input = Option.isSome(options.input)
        ? yield* decoded("--input", workflow.codecs.input, yield* jsonValue("--input", options.input.value))
        : yield* Effect.mapError(
            Schema.decodeUnknown(workflow.input)(undefined),
            () => new UsageError({ what: "--input", detail: `is missing: ${workflow.definition} requires one` })
          )
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const run = yield* client.start(workflow, input, Option.isSome(options.run) ? { run: options.run.value } : {})
          if (!options.wait) {
            return yield* print(options.json, run, () => [
              `${run.created ? "Started" : "Was started before:"} ${run.run}`
            ])
          }
          const value = yield* Effect.mapError(
            client.result(workflow, run),
            (error) => new Unwell({ detail: `Run ${run.run} failed: ${sentence(error)}` })
          )
          const encoded = yield* Effect.orDie(Schema.encode(workflow.success)(value))
          yield* print(options.json, { ...run, value: encoded }, () => [`${run.run}: ${JSON.stringify(encoded)}`])
        }),
        { create: true }
      )
    })
).pipe(Command.withDescription("Start a run"))

const sentence = (error: unknown): string => {
  if (error instanceof Error) return error.message
  return JSON.stringify(error)
}
