/**
 * The shop: the outside world, in a database of its own that the workflows' plane knows nothing of. It writes an effect
 * log of everything that it was asked to do, and that log is what the demonstration is judged by.
 *
 * It keeps the receiver's half of the bargain. A key is answered once and ever after alike, and a key can be closed: a
 * call under a closed key that arrives late is refused. That is what makes "it will never happen" a promise.
 */
import { SqlClient } from "@effect/sql"
import type { SqlError } from "@effect/sql/SqlError"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { SideEffect } from "@fermata/runtime"
import { Context, Effect, Layer, Schema } from "effect"
import type { ParseError } from "effect/ParseResult"
import * as EffectLog from "./EffectLog.js"
import type * as Money from "./Money.js"
import { Network } from "./Network.js"
import { type Order, UnknownOrder } from "./Order.js"
import { type Notice, type Payment, PaymentDeclined, Receipt } from "./Refund.js"

/** The shop's endpoints. */
export class Shop extends Context.Tag("refund-agent/Shop")<
  Shop,
  {
    readonly lookUp: (order: string) => Effect.Effect<Order, UnknownOrder>
    /** Pays once per key. */
    readonly pay: (key: string, payment: Payment) => Effect.Effect<Receipt, PaymentDeclined>
    /** What became of the payment under this key. A key that was never seen is closed. */
    readonly whatBecameOf: (
      key: string,
      payment: Payment
    ) => Effect.Effect<SideEffect.Reconciled<Receipt, PaymentDeclined>>
    /** Sends one letter per key. */
    readonly notify: (key: string, notice: Notice) => Effect.Effect<void>
  }
>() {}

/** What a key was answered. */
const Answer = Schema.Union(
  Schema.TaggedStruct("Paid", { receipt: Receipt }),
  Schema.TaggedStruct("Declined", { why: Schema.String }),
  Schema.TaggedStruct("Closed", {})
)
type Answer = typeof Answer.Type
const AnswerJson = Schema.parseJson(Answer)

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  const log = EffectLog.write(sql)

  const lookUp = (order: string) =>
    Effect.gen(function* () {
      const [row] = yield* sql<OrderRow>`SELECT id, currency, paid, refunded, card FROM orders WHERE id = ${order}`
      if (row === undefined) return yield* new UnknownOrder({ order })
      return { ...row, paid: money(row, row.paid), refunded: money(row, row.refunded) }
    })

  // Taking the key is each transaction's first statement: it takes the write lock, so two calls cannot both be first.
  const takeKey = (key: string) =>
    Effect.map(
      sql`INSERT INTO answers (key, answer) VALUES (${key}, '{"_tag":"Closed"}') ON CONFLICT DO NOTHING RETURNING key`,
      (rows) => rows.length === 1
    )
  const answerOf = (key: string) =>
    Effect.flatMap(sql<{ answer: string }>`SELECT answer FROM answers WHERE key = ${key}`, (rows) =>
      Schema.decodeUnknown(AnswerJson)(rows[0]?.answer)
    )
  const answer = (key: string, given: Answer) =>
    Effect.flatMap(
      Schema.encode(AnswerJson)(given),
      (json) => sql`UPDATE answers SET answer = ${json} WHERE key = ${key}`
    )

  const firstPayment = (key: string, { amount, order, request }: Payment) =>
    Effect.gen(function* () {
      const { card, paid, refunded } = yield* lookUp(order)
      const why =
        card === "closed"
          ? "the customer's card is closed"
          : amount.currency !== paid.currency || amount.minor <= 0 || refunded.minor + amount.minor > paid.minor
            ? "the order does not have that much left"
            : undefined
      if (why !== undefined) {
        yield* answer(key, { _tag: "Declined", why })
        yield* log({ what: "payment declined", key, request, amount, text: why })
        return
      }
      yield* sql`UPDATE orders SET refunded = refunded + ${amount.minor} WHERE id = ${order}`
      const n = yield* log({ what: "payment", key, request, amount, text: order })
      yield* answer(key, { _tag: "Paid", receipt: { payment: `P-${String(n).padStart(4, "0")}`, amount } })
    }).pipe(Effect.catchTag("UnknownOrder", (error) => answer(key, { _tag: "Declined", why: error.message })))

  const pay = (key: string, payment: Payment) =>
    Effect.gen(function* () {
      if (yield* takeKey(key)) yield* firstPayment(key, payment)
      else yield* log({ what: "payment asked for again", key, request: payment.request, amount: payment.amount })
      return yield* answerOf(key)
    }).pipe(
      sql.withTransaction,
      Effect.flatMap((given) =>
        given._tag === "Paid"
          ? Effect.succeed(given.receipt)
          : new PaymentDeclined({ why: given._tag === "Declined" ? given.why : "this key is closed" })
      )
    )

  const whatBecameOf = (key: string, payment: Payment) =>
    Effect.gen(function* () {
      if (yield* takeKey(key)) {
        yield* log({ what: "key closed", key, request: payment.request, amount: payment.amount })
      }
      const given = yield* answerOf(key)
      switch (given._tag) {
        case "Paid":
          return SideEffect.Happened(given.receipt)
        case "Declined":
          return SideEffect.Declined(new PaymentDeclined({ why: given.why }))
        case "Closed":
          return SideEffect.NeverWill
      }
    }).pipe(sql.withTransaction)

  const notify = (key: string, { request, text }: Notice) =>
    Effect.gen(function* () {
      const first = yield* takeKey(key)
      yield* log({ what: first ? "letter" : "letter asked for again", key, request, text })
    }).pipe(sql.withTransaction)

  return Shop.of({
    lookUp: (order) => network.carry("orders", Effect.catchTag(lookUp(order), "SqlError", Effect.die)),
    pay: (key, payment) => network.carry("payments", dieUnlessDeclined(pay(key, payment))),
    whatBecameOf: (key, payment) => Effect.orDie(whatBecameOf(key, payment)),
    notify: (key, notice) => network.carry("mail", Effect.orDie(notify(key, notice)))
  })
})

/** Only a declined payment is an answer. Anything else leaves it open whether the shop paid: a defect, hence in doubt. */
const dieUnlessDeclined = <A>(
  call: Effect.Effect<A, PaymentDeclined | SqlError | ParseError>
): Effect.Effect<A, PaymentDeclined> =>
  Effect.catchAll(call, (error) => (error instanceof PaymentDeclined ? Effect.fail(error) : Effect.die(error)))

interface OrderRow {
  readonly id: string
  readonly currency: Money.Currency
  readonly paid: number
  readonly refunded: number
  readonly card: "open" | "closed"
}

const money = ({ currency }: OrderRow, minor: number): Money.Money => ({ currency, minor })

/** The shop in this file. */
export const layer = (filename: string) => Layer.provide(Layer.effect(Shop, make), SqliteClient.layer({ filename }))
