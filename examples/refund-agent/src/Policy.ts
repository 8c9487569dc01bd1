/** The rules of the house: plain code, no judgement. The model advises; these decide what it may decide. */
import type * as Money from "./Money.js"
import type { Order } from "./Order.js"
import type { RefundRequest } from "./RefundRequest.js"

/** Up to this amount (in minor units, inclusive) a clear case is paid without asking a person. */
const limits: Record<Money.Currency, number> = {
  CHF: 100_00,
  EUR: 100_00,
  GBP: 90_00,
  JPY: 15_000,
  KWD: 30_000,
  USD: 100_00
}

/** True if a person has to agree, however clear the case is. */
export const isLarge = (amount: Money.Money): boolean => amount.minor > limits[amount.currency]

/** Why this order cannot be refunded by this amount, if so. */
export const objection = (request: RefundRequest, order: Order): string | undefined => {
  if (request.amount.minor <= 0) return "the amount is not positive"
  if (request.amount.currency !== order.paid.currency) return `the order was paid in ${order.paid.currency}`
  if (order.refunded.minor >= order.paid.minor) return "the order is refunded already"
  if (request.amount.minor > order.paid.minor - order.refunded.minor) return "that is more than was paid"
  return undefined
}
