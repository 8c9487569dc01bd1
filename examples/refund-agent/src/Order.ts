/** An order as the shop knows it. */
import { Schema } from "effect"
import * as Money from "./Money.js"

/** What was paid for an order, and how much of it went back already. */
export const Order = Schema.Struct({ id: Schema.String, paid: Money.Money, refunded: Money.Money })
export type Order = typeof Order.Type

/** The shop has no such order. */
export class UnknownOrder extends Schema.TaggedError<UnknownOrder>()("UnknownOrder", { order: Schema.String }) {
  override get message() {
    return `the shop has no order ${this.order}`
  }
}
