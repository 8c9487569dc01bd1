/** `fermata answer`: answers an interrupt, at most once, or forks with another answer. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { createHash } from "node:crypto"
import { UsageError } from "../CliError.js"
import { common, decoded, jsonValue, module, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

export const answer = Command.make(
  "answer",
  {
    ...common,
    module,
    of: Args.text({ name: "run-or-branch" }),
    interrupt: Args.text({ name: "interrupt" }).pipe(Args.withDescription("As `fermata show` names it: approval#1")),
    value: Options.text("value").pipe(Options.withDescription("The answer as JSON, @FILE, or - for standard input")),
    delivery: Options.text("delivery").pipe(
      Options.withDescription(
        "The delivery id; by default one derived from the answer, so that saying it again is inert"
      ),
      Options.optional
    ),
    fork: Options.text("fork").pipe(
      Options.withDescription("Makes a new branch of this name with the answer, instead of answering"),
      Options.optional
    )
  },
  (options) =>
    Effect.gen(function* () {
      const loaded = yield* WorkflowModule.load(options.module)
      const name = options.interrupt.slice(0, Math.max(0, options.interrupt.lastIndexOf("#")))
      if (name === "") yield* new UsageError({ what: "the interrupt", detail: 'has no number: it reads "approval#1"' })
      const interrupt = yield* WorkflowModule.pick("interrupt", loaded.interrupts, name, options.module)
      const json = yield* jsonValue("--value", options.value)
      const value = yield* decoded("--value", interrupt.codecs.answer, json)
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const { branch } = yield* client.describe(options.of)
          const delivery = {
            branch,
            interrupt: options.interrupt,
            value,
            // CO: another answer has another id, and is refused as the second one.
            deliveryId: Option.getOrElse(options.delivery, () => derivedId(branch, options.interrupt, json))
          }
          const receipt = yield* client.resume(
            interrupt,
            Option.isSome(options.fork)
              ? { ...delivery, intent: "fork", forkId: options.fork.value }
              : { ...delivery, intent: "retry" }
          )
          yield* print(options.json, receipt, () => [
            receipt._tag === "Forked"
              ? `${receipt.created ? "Forked" : "Was forked before:"} ${receipt.branch} from seq ${receipt.seq}`
              : `${receipt.verdict === "Accepted" ? "Accepted" : "Was accepted before"}: ${receipt.interrupt} of ${receipt.branch}` +
                (receipt.unserved === null ? "" : `, but not served: ${receipt.unserved}`)
          ])
        })
      )
    })
).pipe(Command.withDescription("Answer an interrupt"))

const derivedId = (branch: string, interrupt: string, json: unknown): string =>
  `cli-${createHash("sha256")
    .update(JSON.stringify([branch, interrupt, json]))
    .digest("base64url")}`
