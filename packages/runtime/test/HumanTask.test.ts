/** Human tasks: what a person is told, who is asked, and what happens when nobody answers in time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HumanTask, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { play } from "./House.js"

const options = {
  payload: Schema.Number,
  answer: Schema.Boolean,
  title: (cents: number) => `Refund ${cents}?`,
  assignee: "team",
  deadline: "2 days"
} as const
const Approve = HumanTask.make("approve", options)
const Assume = HumanTask.make("assume", { ...options, otherwise: () => false })

const Approval = Workflow.make("approval", { version: "1", success: Schema.String }, () =>
  Effect.gen(function* () {
    const assumed = yield* Assume(1)
    const first = yield* Effect.either(Approve(2))
    // Escalated: somebody else, with more time.
    const second = yield* Approve(2, { assignee: "boss", deadline: new Date(4_000_000_000_000) }).pipe(Effect.orDie)
    return `${assumed} ${first._tag} ${second}`
  })
)

describe("a human task", () => {
  it.effect("says what a form needs, expires into its default or a typed error, and can be escalated", () =>
    play(({ client, hire, ledger, pass, plane, recorded }) =>
      Effect.gen(function* () {
        const dismiss = yield* hire(Testing.worker({ workflows: [Approval] }))
        const run = yield* client.start(Approval, undefined, { run: "r" })
        yield* recorded(run.branch, "interrupt.opened assume#1")
        const [asked] = yield* client.pendingInterrupts({ assignee: "team", name: "assume" })
        assert.deepStrictEqual(yield* client.pendingInterrupts({ assignee: "boss" }), [])
        assert.strictEqual(asked?.task?.title, "Refund 1?")
        assert.strictEqual(asked?.task?.deadline, (asked?.openedAt ?? 0) + 2 * 24 * 3_600_000)
        assert.include(JSON.stringify(asked?.task?.form), '"type":"boolean"')
        yield* pass("2 days")
        yield* recorded(run.branch, "interrupt.expired assume#1")
        const late = yield* Effect.flip(
          client.resume(Assume, {
            branch: run.branch,
            interrupt: "assume#1",
            value: true,
            deliveryId: "late",
            intent: "retry"
          })
        )
        assert.strictEqual(late._tag, "InterruptClosed")
        assert.include(late.message, "deadline")
        yield* recorded(run.branch, "interrupt.opened approve#1")
        // Nobody is there when the time comes: whoever comes finds it expired.
        yield* dismiss
        yield* pass("2 days")
        yield* hire(Testing.worker({ workflows: [Approval] }))
        yield* recorded(run.branch, "interrupt.opened approve#2")
        assert.strictEqual((yield* client.pendingInterrupts({ assignee: "boss" })).length, 1)
        yield* client.resume(Approve, {
          branch: run.branch,
          interrupt: "approve#2",
          value: true,
          deliveryId: "d",
          intent: "retry"
        })
        assert.strictEqual(yield* client.result(Approval, run), "false Left true")
        assert.deepStrictEqual((yield* ledger.verify).problems, [])
        yield* Effect.provide(Testing.replayCheck(Approval, run.branch), plane)
      })
    )
  )

  it.effect("takes an answer that was accepted before the deadline, though no worker saw it until after", () =>
    play(({ client, hire, pass, recorded }) =>
      Effect.gen(function* () {
        const dismiss = yield* hire(Testing.worker({ workflows: [Approval] }))
        const run = yield* client.start(Approval, undefined, { run: "r" })
        yield* recorded(run.branch, "interrupt.opened assume#1")
        yield* dismiss
        const answer = { branch: run.branch, interrupt: "assume#1", value: true, deliveryId: "d" }
        yield* client.resume(Assume, { ...answer, intent: "retry" })
        yield* pass("3 days")
        yield* hire(Testing.worker({ workflows: [Approval] }))
        yield* recorded(run.branch, "interrupt.answered assume#1")
      })
    )
  )
})
