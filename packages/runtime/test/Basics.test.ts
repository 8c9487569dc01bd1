import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock } from "effect"
import { Client, Delivery, Interrupt, Node, SideEffect, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

const Charge = SideEffect.make("charge", { delivery: Delivery.keyed, input: Schema.Number, success: Schema.String })
const charge = Node.make("charge", { input: Schema.Number, success: Schema.String, effects: [Charge] }, (cents) =>
  Charge(cents)
)
const Approval = Interrupt.make("approval", { payload: Schema.Number, answer: Schema.Boolean })

const Refund = Workflow.make("refund", { version: "1", input: Schema.Number, success: Schema.String }, (cents) =>
  Effect.gen(function* () {
    const [a, b] = yield* Effect.all([charge(cents), charge(cents + 1)], { concurrency: 2 })
    yield* Effect.sleep("3 days")
    const ok = yield* Approval(cents)
    if (!ok) return "refused"
    return `${a} ${b} ${yield* charge(cents + 2)}`
  })
)

describe("a workflow", () => {
  it.effect("runs steps, sleeps, asks, and ends", () => {
    const fired: Array<number> = []
    const ChargeLive = Charge.toLayer((cents) =>
      Effect.sync(() => {
        fired.push(cents)
        return `r${cents}`
      })
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Refund, 5, { run: "r1" })
      const d = yield* client.awaitStatus(run, ({ status }) => status === "waiting" || status === "stuck")
      assert.strictEqual(d.status, "waiting", JSON.stringify(d))
      yield* TestClock.adjust("3 days")
      yield* client.awaitStatus(run, ({ waitingFor }) => waitingFor.some((w) => w._tag === "Answer"))
      yield* client.resume(Approval, {
        branch: run.branch,
        interrupt: "approval#1",
        value: true,
        deliveryId: "d1",
        intent: "retry"
      })
      assert.strictEqual(yield* client.result(Refund, run), "r5 r6 r7")
      assert.deepStrictEqual(fired, [5, 6, 7])
      yield* Testing.replayCheck(Refund, run.branch)
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Refund] }).pipe(Layer.provide(ChargeLive), Layer.provideMerge(Testing.layer))
      )
    )
  })
})
