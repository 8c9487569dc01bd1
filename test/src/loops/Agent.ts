/** An agent that goes round: each turn charges once, and every third waits for a person. */
import { Delivery, Interrupt, Loop, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, type Layer, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import { pass } from "../processes/Inside.js"

export const Charge = SideEffect.make("charge", {
  delivery: Delivery.keyed,
  input: Schema.Number,
  success: Schema.Number
})
const charge = Node.make("charge", { input: Schema.Number, success: Schema.Number, effects: [Charge] }, (n) =>
  Effect.zipRight(
    Effect.sync(() => pass("body")),
    Charge(n)
  )
)
export const Ask = Interrupt.make("ask", { answer: Schema.Number })

export const Agent = Workflow.make("agent", { version: "1", input: Schema.Number, success: Schema.Number }, (turns) =>
  Workflow.loop("turn", { state: Schema.Number, initial: 0 }, (sum, turn) =>
    Effect.gen(function* () {
      const charged = yield* charge(turn)
      const next = sum + charged + (turn % 3 === 0 ? yield* Ask() : 0)
      return turn < turns ? Loop.next(next) : Loop.done(next)
    })
  )
)

export const handlers = (log: EffectLog) =>
  Charge.toLayer((n, { idempotencyKey, key }) =>
    Effect.sync(() => {
      pass("entered")
      log.write({ at: key, effect: "charge", idempotencyKey, inputDigest: String(n) })
      pass("charged")
      return n
    })
  ) satisfies Layer.Layer<SideEffect.HandlerOf<"charge">>
