/** A parent of three children, each with an effect on the outside; the last one's comes after a person's answer. */
import { Child, Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import { pass } from "../processes/Inside.js"

const Sail = SideEffect.make("sail", {
  delivery: Delivery.keyed,
  input: Schema.String,
  success: Schema.String
})
const sail = Node.make("sail", { input: Schema.String, success: Schema.String, effects: [Sail] }, (boat) => Sail(boat))

export const Harbour = Interrupt.make("harbour", { answer: Schema.String })

export const Boat = Workflow.make("boat", { version: "1", input: Schema.String, success: Schema.String }, (boat) =>
  Effect.gen(function* () {
    const towards = boat === "third" ? yield* Harbour() : "sea"
    return `${yield* sail(boat)} to ${towards}`
  })
)

export const Convoy = Workflow.make("convoy", { version: "1", success: Schema.Array(Schema.String) }, () =>
  Effect.gen(function* () {
    const first = yield* Child.run(Boat, "first")
    const both = yield* Effect.all([Child.run(Boat, "second"), Child.run(Boat, "third")], { concurrency: 2 })
    return [first, ...both]
  }).pipe(Effect.orDie)
)

export const handlers = (log: EffectLog) =>
  Sail.toLayer((boat, { idempotencyKey }) =>
    Effect.sync(() => {
      log.write({ at: boat, effect: "sail", idempotencyKey, inputDigest: boat })
      pass(`sailed ${boat}`)
      return boat
    })
  )
