/**
 * The workflow that is killed everywhere: six nodes, all four deliveries, a parallel pair, an interrupt, a sleep, and
 * a node with two effects. What its effects do is written to the log outside the plane; what its nodes run, too.
 */
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Schema } from "effect"
import { createHash, randomUUID } from "node:crypto"
import type { EffectLog } from "../EffectLog.js"
import { pass } from "../processes/Inside.js"

/** `silent`: the receiver answers no questions, so that a `once` effect in doubt needs an operator. */
export const Order = Schema.Struct({ run: Schema.String, account: Schema.String, silent: Schema.Boolean })
export type Order = typeof Order.Type

const Quoted = Schema.Struct({ order: Order, price: Schema.String })
const Payment = Schema.Struct({ order: Order, price: Schema.String, grade: Schema.String, approver: Schema.String })
const Paid = Schema.Struct({ order: Order, receipt: Schema.String })

export const Outcome = Schema.Struct({
  price: Schema.String,
  reservation: Schema.String,
  grade: Schema.String,
  receipt: Schema.String,
  entry: Schema.String,
  seal: Schema.String
})
export type Outcome = typeof Outcome.Type

const text = Schema.String
export const Quote = SideEffect.make("shop/quote", { delivery: Delivery.repeatable, input: Order, success: text })
export const Reserve = SideEffect.make("shop/reserve", { delivery: Delivery.keyed, input: Quoted, success: text })
export const Assess = SideEffect.make("model/assess", { delivery: Delivery.repeatable, input: Quoted, success: text })
export const Pay = SideEffect.make("bank/pay", { delivery: Delivery.once(), input: Payment, success: text })
export const Book = SideEffect.make("ledger/book", { delivery: Delivery.transactional, input: Paid, success: text })
export const Mail = SideEffect.make("mail/send", { delivery: Delivery.keyed, input: Paid, success: text })
export const Seal = SideEffect.make("notary/seal", { delivery: Delivery.once(), input: Paid, success: text })

/** Which effects each node performs, in the order of its body. */
export const effectsOf: Readonly<Record<string, ReadonlyArray<SideEffect.Any["name"]>>> = {
  quote: [Quote.name],
  reserve: [Reserve.name],
  assess: [Assess.name],
  pay: [Pay.name],
  book: [Book.name],
  notify: [Mail.name, Seal.name]
}

export const deliveries: ReadonlyMap<string, string> = new Map(
  [Quote, Reserve, Assess, Pay, Book, Mail, Seal].map((effect) => [effect.name, effect.delivery.policy])
)

/** The value that the receiver of a firing gives back: a function of its input, except where it reads the world. */
export const receiptOf = {
  reserve: (price: string) => `reserved at ${price}`,
  pay: (price: string, grade: string, approver: string) => `paid ${price}, ${grade}, by ${approver}`,
  book: (receipt: string) => `booked: ${receipt}`,
  seal: (receipt: string) => `sealed: ${receipt}`
}

export const Approval = Interrupt.make("approval", { payload: Quoted, answer: Schema.Struct({ approver: text }) })

/** The table of the plane's own database that the transactional effect writes to; the run is not unique in it. */
export const bookTable = "CREATE TABLE sweep_book (run TEXT NOT NULL, receipt TEXT NOT NULL)"

/** Says that a run has reached a point, and waits there for as long as the test wants. */
export type Reach = (run: string, point: string) => Promise<void>

/**
 * The workflow in a version of its own, and its handlers. The version is the scenario: a worker claims the versions
 * that it knows, so scenarios share a database without meeting.
 */
export const make = (log: EffectLog, reach: Reach = () => Promise.resolve()) => {
  // Raw code in a body, on purpose: it says how often the body ran.
  const ran = (order: Order, node: string) =>
    Effect.sync(() => void log.write({ at: order.run, effect: "body", idempotencyKey: node, inputDigest: "" }))

  const quote = Node.make("quote", { input: Order, success: text, effects: [Quote] }, (order) =>
    Effect.zipRight(ran(order, "quote"), Quote(order))
  )
  const reserve = Node.make("reserve", { input: Quoted, success: text, effects: [Reserve] }, (quoted) =>
    Effect.zipRight(ran(quoted.order, "reserve"), Reserve(quoted))
  )
  const assess = Node.make("assess", { input: Quoted, success: text, effects: [Assess] }, (quoted) =>
    Effect.zipRight(ran(quoted.order, "assess"), Assess(quoted))
  )
  const pay = Node.make("pay", { input: Payment, success: text, effects: [Pay] }, (payment) =>
    Effect.zipRight(ran(payment.order, "pay"), Pay(payment))
  )
  const book = Node.make("book", { input: Paid, success: text, effects: [Book] }, (paid) =>
    Effect.zipRight(ran(paid.order, "book"), Book(paid))
  )
  const notify = Node.make("notify", { input: Paid, success: text, effects: [Mail, Seal] }, (paid) =>
    Effect.gen(function* () {
      yield* ran(paid.order, "notify")
      yield* Mail(paid)
      return yield* Seal(paid)
    })
  )

  const workflow = (version: string) =>
    Workflow.make("sweep", { version, input: Order, success: Outcome }, (order) =>
      Effect.gen(function* () {
        const price = yield* quote(order)
        const [reservation, grade] = yield* Effect.all([reserve({ order, price }), assess({ order, price })], {
          concurrency: 2
        })
        const { approver } = yield* Approval({ order, price })
        const receipt = yield* pay({ order, price, grade, approver })
        yield* Effect.sleep("20 millis")
        const entry = yield* book({ order, receipt })
        const seal = yield* notify({ order, receipt })
        return { price, reservation, grade, receipt, entry, seal }
      })
    )

  /** The receiver's side of a firing: the process may be killed just before it happens and just after. */
  const happen = <A>(name: string, firing: SideEffect.Firing, order: Order, input: unknown, value: A) =>
    Effect.promise(async () => {
      await reach(order.run, `entered:${name}`)
      const inputDigest = createHash("sha256").update(JSON.stringify(input)).digest("base64url")
      const written = log.write({ at: firing.key, effect: name, idempotencyKey: firing.idempotencyKey, inputDigest })
      await reach(order.run, `fired:${name}`)
      if (written === "refused") throw new Error(`${firing.key} was ruled never to happen`)
      return value
    })
  const ask = <A>(firing: SideEffect.Firing, order: Order, value: A) =>
    Effect.sync(() =>
      order.silent
        ? SideEffect.Unknown
        : log.rule(firing.idempotencyKey) === "happened"
          ? SideEffect.Happened(value)
          : SideEffect.NeverWill
    )
  const paidAs = (payment: typeof Payment.Type) => receiptOf.pay(payment.price, payment.grade, payment.approver)

  const handlers = Layer.mergeAll(
    // What these two read changes from one look to the next, so that a second look after a record would show.
    Quote.toLayer((order, firing) => happen(Quote.name, firing, order, order, randomUUID())),
    Assess.toLayer((quoted, firing) => happen(Assess.name, firing, quoted.order, quoted, randomUUID())),
    Reserve.toLayer((quoted, firing) =>
      happen(Reserve.name, firing, quoted.order, quoted, receiptOf.reserve(quoted.price))
    ),
    Mail.toLayer((paid, firing) => happen(Mail.name, firing, paid.order, paid, "sent")),
    Pay.toLayer((payment, firing) => happen(Pay.name, firing, payment.order, payment, paidAs(payment)), {
      reconcile: (firing, payment) => ask(firing, payment.order, paidAs(payment))
    }),
    Seal.toLayer((paid, firing) => happen(Seal.name, firing, paid.order, paid, receiptOf.seal(paid.receipt)), {
      reconcile: (firing, paid) => ask(firing, paid.order, receiptOf.seal(paid.receipt))
    }),
    Book.toLayer((paid) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        pass(`entered:${Book.name}`)
        yield* Effect.orDie(sql`INSERT INTO sweep_book (run, receipt) VALUES (${paid.order.run}, ${paid.receipt})`)
        pass(`fired:${Book.name}`)
        return receiptOf.book(paid.receipt)
      })
    )
  )
  return { workflow, handlers }
}
