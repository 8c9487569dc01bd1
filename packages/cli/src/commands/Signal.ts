/** `fermata signal`: sends a signal to a run, once per message id. */
import { Args, Command, Options } from "@effect/cli"
import { Client, type Signal } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { common, decoded, jsonValue, module, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

export const signal = Command.make(
  "signal",
  {
    ...common,
    module,
    of: Args.text({ name: "run-or-branch" }),
    name: Args.text({ name: "signal" }),
    payload: Options.text("payload").pipe(
      Options.withDescription("Its payload as JSON, @FILE, or - for standard input"),
      Options.optional
    ),
    message: Options.text("message").pipe(
      Options.withDescription("The message id: the same again is the same signal. Generated if left out"),
      Options.optional
    )
  },
  (options) =>
    Effect.gen(function* () {
      const loaded = yield* WorkflowModule.load(options.module)
      const declared = new Map(
        loaded.workflows.flatMap(({ signals }) => signals.filter(isSignal).map((one) => [one.name, one] as const))
      )
      const found = yield* WorkflowModule.pick("signal", declared, options.name, options.module)
      const json = Option.isSome(options.payload) ? yield* jsonValue("--payload", options.payload.value) : undefined
      const payload = yield* decoded("--payload", found.codec, json ?? null)
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const receipt = yield* client.signal(
            options.of,
            found,
            payload,
            Option.isSome(options.message) ? { messageId: options.message.value } : {}
          )
          yield* print(options.json, receipt, () => [
            `${receipt.verdict === "Accepted" ? "Accepted" : "Was accepted before"}: ${options.name} (${receipt.message}) for ${receipt.branch}`
          ])
        })
      )
    })
).pipe(Command.withDescription("Send a signal to a run"))

/** What a workflow lists is what `Signal.make` returned, or the module is no TypeScript and lists something else. */
const isSignal = (one: Signal.Any): one is Signal.Signal<string, unknown> => "codec" in one
