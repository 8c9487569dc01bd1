/** `fermata settle`: an operator's word on an effect whose outcome is not known. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { UsageError } from "../CliError.js"
import { common, decoded, jsonValue, module, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

export const settle = Command.make(
  "settle",
  {
    ...common,
    module,
    of: Args.text({ name: "run-or-branch" }),
    key: Args.text({ name: "effect-key" }).pipe(Args.withDescription("As the problem in `fermata show` names it")),
    effect: Options.text("effect").pipe(Options.withDescription("The side effect's name")),
    happened: Options.text("happened").pipe(
      Options.withDescription("It happened, with this outcome (JSON, @FILE or -)"),
      Options.optional
    ),
    declined: Options.text("declined").pipe(
      Options.withDescription("The receiver refused it with this error (JSON, @FILE or -)"),
      Options.optional
    ),
    never: Options.boolean("never").pipe(
      Options.withDescription("It did not happen, and the earlier firing can no longer arrive: it may be fired anew")
    )
  },
  (options) =>
    Effect.gen(function* () {
      const said = [Option.isSome(options.happened), Option.isSome(options.declined), options.never]
      if (said.filter(Boolean).length !== 1) {
        yield* new UsageError({ what: "the settlement", detail: "is one of --happened, --declined and --never" })
      }
      const loaded = yield* WorkflowModule.load(options.module)
      const effect = yield* WorkflowModule.pick("side effect", loaded.effects, options.effect, options.module)
      const settlement = yield* settlementOf(options, effect)
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const { branch } = yield* client.describe(options.of)
          const verdict = yield* client.settle(effect, { branch, key: options.key, settlement })
          yield* print(options.json, { branch, key: options.key, verdict }, () => [
            `${verdict === "Accepted" ? "Settled" : "Was settled so before"}: ${options.key}`
          ])
        })
      )
    })
).pipe(Command.withDescription("Settle an effect in doubt"))

const settlementOf = (
  { declined, happened }: { readonly declined: Option.Option<string>; readonly happened: Option.Option<string> },
  effect: WorkflowModule.AnyEffect
): Effect.Effect<Client.Settlement<unknown, unknown>, UsageError> =>
  Effect.gen(function* () {
    if (Option.isSome(happened)) {
      const value = yield* decoded("--happened", effect.codecs.success, yield* jsonValue("--happened", happened.value))
      return { _tag: "Happened", value }
    }
    if (Option.isSome(declined)) {
      const error = yield* decoded("--declined", effect.codecs.error, yield* jsonValue("--declined", declined.value))
      return { _tag: "Declined", error }
    }
    return { _tag: "DidNotHappen" }
  })
