/**
 * The refund agent: a workflow, the four nodes that it calls, and the side effects that those perform. This is the
 * file to read first. Nothing in it says how a crash is survived; what it does say is how each effect may be delivered.
 */
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import { Assessment, Case } from "./Assessor.js"
import * as Money from "./Money.js"
import { Order, UnknownOrder } from "./Order.js"
import * as Policy from "./Policy.js"
import { RefundRequest } from "./RefundRequest.js"

// ── The outside world, declared ─────────────────────────────────────────────────────────────────────────────

/** Money that goes back to a customer. */
export const Payment = Schema.Struct({ request: Schema.String, order: Schema.String, amount: Money.Money })
export type Payment = typeof Payment.Type

/** The shop's proof that it paid. */
export const Receipt = Schema.Struct({ payment: Schema.String, amount: Money.Money })
export type Receipt = typeof Receipt.Type

/** The shop did not pay and will not. */
export class PaymentDeclined extends Schema.TaggedError<PaymentDeclined>()("PaymentDeclined", { why: Schema.String }) {
  override get message() {
    return this.why
  }
}

/** A letter to the customer. */
export const Notice = Schema.Struct({ request: Schema.String, to: Schema.String, text: Schema.String })
export type Notice = typeof Notice.Type

/** A read: asked again as often as it takes. */
export const LookUp = SideEffect.make("shop/look-up", {
  input: Schema.String,
  success: Order,
  error: UnknownOrder,
  delivery: Delivery.repeatable
})

/** A model call: costs a little, changes nothing. */
export const Assess = SideEffect.make("model/assess", {
  input: Case,
  success: Assessment,
  delivery: Delivery.repeatable
})

/** Money moves: never fired again blindly. After a crash the shop is asked what became of it. */
export const Pay = SideEffect.make("shop/pay", {
  input: Payment,
  success: Receipt,
  error: PaymentDeclined,
  delivery: Delivery.once({ timeLimit: "30 seconds" })
})

/** The mail service honours an idempotency key: after a crash it is told again, and sends one letter. */
export const Notify = SideEffect.make("mail/notify", { input: Notice, delivery: Delivery.keyed })

// ── The nodes ───────────────────────────────────────────────────────────────────────────────────────────────

const lookUp = Node.make(
  "look-up",
  { input: Schema.String, success: Order, error: UnknownOrder, effects: [LookUp] },
  (order) => LookUp(order)
)

const assess = Node.make("assess", { input: Case, success: Assessment, effects: [Assess] }, (asked) => Assess(asked))

const pay = Node.make("pay", { input: Payment, success: Receipt, error: PaymentDeclined, effects: [Pay] }, (payment) =>
  Pay(payment)
)

const notify = Node.make("notify", { input: Notice, effects: [Notify] }, (notice) => Notify(notice))

// ── The person ──────────────────────────────────────────────────────────────────────────────────────────────

/** What a person is asked. */
export const Question = Schema.Struct({ request: RefundRequest, rationale: Schema.String })

/** What a person answers. */
export const Decision = Schema.Struct({ approved: Schema.Boolean, by: Schema.String, note: Schema.String })
export type Decision = typeof Decision.Type

/** Waits for a person, for as long as it takes: the run leaves memory and no worker is held. */
export const Approval = Interrupt.make("approval", { payload: Question, answer: Decision })

// ── The workflow ────────────────────────────────────────────────────────────────────────────────────────────

const Paid = Schema.TaggedStruct("Paid", { receipt: Receipt, by: Schema.String })
const Refused = Schema.TaggedStruct("Refused", { by: Schema.String, why: Schema.String })

/** How a request ends, and who decided so. */
export const Outcome = Schema.Union(Paid, Refused)
export type Outcome = typeof Outcome.Type

/** One request, from order look-up to the letter. */
export const Refund = Workflow.make("refund", { version: "1", input: RefundRequest, success: Outcome }, (request) =>
  Effect.gen(function* () {
    const outcome = yield* settle(request)
    yield* notify({ request: request.id, to: request.customer, text: letter(request, outcome) })
    return outcome
  })
)

const settle = (request: RefundRequest) =>
  Effect.gen(function* () {
    const order = yield* lookUp(request.order)
    const objection = Policy.objection(request, order)
    if (objection !== undefined) return Refused.make({ by: "rules", why: objection })

    const assessment = yield* assess({ request, order })
    if (assessment.verdict === "refuse") return Refused.make({ by: "model", why: assessment.rationale })

    if (assessment.verdict === "grant" && !Policy.isLarge(request.amount)) return yield* payBack(request, "model")

    const decision = yield* Approval({ request, rationale: assessment.rationale })
    if (!decision.approved) return Refused.make({ by: decision.by, why: decision.note })
    return yield* payBack(request, decision.by)
  }).pipe(
    Effect.catchTags({
      UnknownOrder: (error) => Effect.succeed(Refused.make({ by: "shop", why: error.message })),
      PaymentDeclined: (error) => Effect.succeed(Refused.make({ by: "shop", why: error.message }))
    })
  )

const payBack = (request: RefundRequest, by: string) =>
  Effect.map(pay({ request: request.id, order: request.order, amount: request.amount }), (receipt) =>
    Paid.make({ receipt, by })
  )

const letter = (request: RefundRequest, outcome: Outcome): string =>
  outcome._tag === "Paid"
    ? `Dear ${request.customer}, we sent you ${Money.format(outcome.receipt.amount)}.`
    : `Dear ${request.customer}, we cannot refund order ${request.order}: ${outcome.why}.`
