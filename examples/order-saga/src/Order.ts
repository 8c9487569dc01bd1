/**
 * Fulfilling an order: stock is held, the card is charged, a carrier is booked. What was done is undone if the rest cannot be.
 */
import { Delivery, Node, Saga, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"

export const Order = Schema.Struct({
  id: Schema.String,
  item: Schema.String,
  cents: Schema.Number,
  /** What goes wrong with it, in this example. */
  trouble: Schema.optional(Schema.Literal("no stock", "no carrier", "no carrier, no refund"))
})
export type Order = typeof Order.Type

/** The outside refused: nothing was done. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { what: Schema.String }) {
  override get message() {
    return `the ${this.what} was refused`
  }
}

const shape = { input: Order, success: Schema.String, error: Refused }

export const Hold = SideEffect.make("hold stock", { ...shape, delivery: Delivery.keyed })
export const Release = SideEffect.make("release stock", { ...shape, delivery: Delivery.keyed })
/** The bank knows no idempotency keys: it is asked what became of a payment before it is paid again. */
export const Charge = SideEffect.make("charge", { ...shape, delivery: Delivery.once() })
export const Refund = SideEffect.make("refund", { ...shape, delivery: Delivery.keyed })
export const Book = SideEffect.make("book carrier", { ...shape, delivery: Delivery.keyed })

const node = <
  const N extends string,
  E extends typeof Hold | typeof Release | typeof Charge | typeof Refund | typeof Book
>(
  name: N,
  effect: E
) => Node.make(name, { ...shape, effects: [effect as typeof Hold] }, (order) => (effect as typeof Hold)(order))

const hold = node("hold", Hold)
const release = node("release", Release)
const charge = node("charge", Charge)
const refund = node("refund", Refund)
const book = node("book", Book)

export const Fulfil = Workflow.make(
  "fulfil",
  { version: "1", input: Order, success: Schema.String, error: Schema.Union(Refused, Saga.CompensationFailed) },
  (order) =>
    Saga.run(
      Effect.gen(function* () {
        yield* Saga.compensate(hold(order), () => release(order), { name: "release stock" })
        yield* Saga.compensate(charge(order), () => refund(order), { name: "refund" })
        return yield* book(order)
      })
    )
)
