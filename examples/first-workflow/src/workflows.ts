/** A module of workflows for the command line: `fermata worker --module dist/workflows.js --db app.db`. */
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"

const Expense = Schema.Struct({ who: Schema.String, cents: Schema.Positive })

/** Found by `fermata answer` because it is exported. */
export const Approval = Interrupt.make("approval", { payload: Expense, answer: Schema.Boolean })

/** Found by `fermata settle` for the same reason. */
export const Pay = SideEffect.make("pay", { input: Expense, success: Schema.String, delivery: Delivery.keyed })

const pay = Node.make("pay-out", { input: Expense, success: Schema.String, effects: [Pay] }, (expense) => Pay(expense))

const Reimburse = Workflow.make("reimburse", { version: "1", input: Expense, success: Schema.String }, (expense) =>
  Effect.gen(function* () {
    if (expense.cents > 10_000 && !(yield* Approval(expense))) return "declined"
    return yield* pay(expense)
  })
)

export const workflows = [Reimburse]

/** The handlers of the workflows' side effects. A real one hands `idempotencyKey` to the bank. */
export const layer = Pay.toLayer(({ cents, who }, { idempotencyKey }) =>
  Effect.as(Effect.logInfo(`paying ${who} ${cents} cents`), `receipt ${idempotencyKey.slice(0, 8)}`)
)
