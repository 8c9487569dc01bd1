/** `fermata cancel`: asks a branch to end; its finalizers run, durably. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

const said = {
  Accepted: "Cancellation accepted",
  Duplicate: "Cancellation was accepted before",
  TooLate: "It had ended already"
} as const

export const cancel = Command.make(
  "cancel",
  {
    ...common,
    of: Args.text({ name: "run-or-branch" }),
    reason: Options.text("reason").pipe(Options.withDescription("Kept in its history"), Options.optional)
  },
  (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        const verdict = yield* client.cancel(
          options.of,
          Option.isSome(options.reason) ? { reason: options.reason.value } : {}
        )
        yield* print(options.json, { of: options.of, verdict }, () => [`${said[verdict]}: ${options.of}`])
      })
    )
).pipe(Command.withDescription("Cancel a run or branch"))
