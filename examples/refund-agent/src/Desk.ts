/** The people who are asked, played by a file: what each decides, and how an answer reaches the run. */
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import { Approval, Decision } from "./Refund.js"

/** The file: decisions by request, and the three that are answered in an unusual way. */
export const Script = Schema.Struct({
  decisions: Schema.Record({ key: Schema.String, value: Decision }),
  /** Answered again under the same delivery id, and again under another. */
  answeredTwice: Schema.String,
  /** Answered by two processes at once. */
  answeredByTwo: Schema.Struct({ request: Schema.String, second: Decision }),
  /** Refused, and then forked into "what if we had approved". */
  whatIf: Schema.Struct({ request: Schema.String, decision: Decision })
})
export type Script = typeof Script.Type

/** One attempt to answer: whose, what, and under which id. A retry of the same attempt has the same id. */
export const Answer = Schema.Struct({
  branch: Schema.String,
  interrupt: Schema.String,
  deliveryId: Schema.String,
  decision: Decision
})
export type Answer = typeof Answer.Type

/** What became of an attempt. */
export interface Verdict {
  readonly accepted: boolean
  readonly text: string
}

/** Gives the answer. That somebody else was first is a verdict, not a failure. */
export const give = ({ branch, decision, deliveryId, interrupt }: Answer) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const receipt = yield* client.resume(Approval, { branch, interrupt, value: decision, deliveryId, intent: "retry" })
    const verdict = receipt._tag === "Answered" ? receipt.verdict : receipt._tag
    return { accepted: verdict === "Accepted", text: verdict }
  }).pipe(
    Effect.catchTag("AlreadyConsumed", (refusal) =>
      Effect.succeed({ accepted: false, text: `${refusal._tag} by delivery ${refusal.by}` })
    )
  )
