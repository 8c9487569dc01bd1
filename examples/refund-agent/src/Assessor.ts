/**
 * The model that reads what the customer wrote. `Assessor` is the whole of what the agent knows of it, so a real one is
 * another layer: call the provider in `assess`, decode its answer with `Assessment`, and let a failed call die (it is
 * asked again).
 */
import { Context, Effect, Layer, Schema } from "effect"
import { Order } from "./Order.js"
import { RefundRequest } from "./RefundRequest.js"

/** What the model is shown. */
export const Case = Schema.Struct({ request: RefundRequest, order: Order })
export type Case = typeof Case.Type

/** What it says. `unsure` sends the case to a person. */
export const Assessment = Schema.Struct({
  verdict: Schema.Literal("grant", "refuse", "unsure"),
  rationale: Schema.String
})
export type Assessment = typeof Assessment.Type

/** The model behind an interface of our own. */
export class Assessor extends Context.Tag("refund-agent/Assessor")<
  Assessor,
  { readonly assess: (asked: Case) => Effect.Effect<Assessment> }
>() {}

/** A deterministic stand-in: it looks for words in the reason, and needs no key, no network and no luck. */
export const standIn = Layer.succeed(Assessor, { assess: ({ request }) => Effect.sync(() => judge(request.reason)) })

/** The stand-in's judgement of a reason. */
export const judge = (reason: string): Assessment => {
  if (instructions.test(reason)) return { verdict: "unsure", rationale: "the reason gives me instructions" }
  if (regrets.test(reason)) return { verdict: "refuse", rationale: "a change of mind is no ground for a refund" }
  if (faults.test(reason)) return { verdict: "grant", rationale: "the goods were faulty, wrong or never came" }
  return { verdict: "unsure", rationale: "I see no ground in the reason" }
}

const instructions = /ignore .*instructions/i
const regrets = /changed my mind/i
const faults =
  /damaged|broken|defect?ive|defekt|kaputt|never arrived|wrong (item|size)|cassé|dañado|danificado|roto\b|壊れ/i
