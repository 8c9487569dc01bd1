/** The agent: a model that looks orders up and refunds them, and a person who approves what is not small. */
import { AiError, LanguageModel, Prompt, Tool, Toolkit } from "@effect/ai"
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import * as DurableModel from "@fermata/runtime/DurableModel"
import { Effect, Schema } from "effect"

const Order = Schema.Struct({ id: Schema.String, cents: Schema.Number, item: Schema.String })
const Amount = Schema.Struct({ id: Schema.String, cents: Schema.Number })

// What the model may call. Their descriptions are for the model.
const Tools = Toolkit.make(
  Tool.make("lookup_order", {
    description: "Finds an order by its id",
    parameters: { id: Schema.String },
    success: Order
  }),
  Tool.make("refund_order", {
    description: "Pays an amount of an order back",
    parameters: { id: Schema.String, cents: Schema.Number },
    success: Schema.Literal("refunded", "a person said no")
  })
)

// What touches the outside world. A payment carries a key, so that the bank pays it once however often it is told.
export const Lookup = SideEffect.make("lookup", {
  delivery: Delivery.repeatable,
  input: Schema.String,
  success: Order
})
export const Pay = SideEffect.make("pay", { delivery: Delivery.keyed, input: Amount })

const lookup = Node.make("lookup", { input: Schema.String, success: Order, effects: [Lookup] }, (id) => Lookup(id))
const pay = Node.make("pay", { input: Amount, effects: [Pay] }, (amount) => Pay(amount))

/** Asked before more than 50 are paid. */
export const Approval = Interrupt.make("approval", { payload: Amount, answer: Schema.Boolean })

export const Assistant = DurableModel.make("assistant", { toolkit: Tools, retry: { times: 3, delay: "1 second" } })

export const Support = Workflow.make(
  "support",
  { version: "1", input: Schema.String, success: Schema.String, error: AiError.AiError },
  (question) =>
    Effect.gen(function* () {
      let prompt = Prompt.make([
        { role: "system", content: "You are the support desk of a shop. Use the tools." },
        { role: "user", content: [{ type: "text", text: question }] }
      ])
      for (;;) {
        const response = yield* LanguageModel.generateText({ prompt, toolkit })
        if (response.toolCalls.length === 0) return response.text
        prompt = Prompt.merge(prompt, Prompt.fromResponseParts(response.content))
      }
    }).pipe(Assistant.provide)
)

// The tools run in the workflow: each is made of steps, and may wait for a person for days.
const toolkit = DurableModel.handlers(Tools, {
  lookup_order: ({ id }) => lookup(id),
  refund_order: (amount) =>
    Effect.gen(function* () {
      const approved = amount.cents <= 5_000 || (yield* Approval(amount))
      if (!approved) return "a person said no" as const
      yield* pay(amount)
      return "refunded" as const
    })
})
