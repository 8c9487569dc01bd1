/** Cancellation is interruption: finalizers run, durably, and a run ends once. */
import { assert, describe, it } from "@effect/vitest"
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import { play, until } from "./House.js"
import { Stage } from "./Stage.js"

const Ask = Interrupt.make("ask", { answer: Schema.String })

/** A workflow whose node waits on a stage, with a compensation that is counted. */
const arrange = (
  body: (parts: {
    readonly work: Effect.Effect<void, never, Workflow.WorkflowScope>
    readonly undo: Effect.Effect<void, never, Workflow.WorkflowScope>
  }) => Effect.Effect<void, never, Workflow.WorkflowScope>
) => {
  const stage = new Stage()
  const counts = { begun: 0, undone: 0 }
  const work = Node.make("work", {}, () => Effect.suspend(() => (counts.begun++, stage.wait("work"))))
  const undo = Node.make("undo", {}, () => Effect.sync(() => void counts.undone++))
  const workflow = Workflow.make("cancelled", { version: "1" }, () => body({ work: work(), undo: undo() }))
  return { counts, stage, workflow }
}

describe("cancelling a run", () => {
  it.live("before any worker began it ends it, and no node runs", () => {
    const { counts, workflow } = arrange(({ work }) => work)
    return play((house) =>
      Effect.gen(function* () {
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.cancel(branch, { reason: "changed my mind" }), "Accepted")
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const error = yield* Effect.flip(house.client.result(workflow, branch))
        assert.deepInclude(error, { _tag: "RunCancelled", reason: "changed my mind" })
        assert.deepStrictEqual(counts, { begun: 0, undone: 0 })
      })
    )
  })

  for (const residentBranches of [0, 100]) {
    it.live(`that waits for an answer closes its interrupt (${residentBranches} kept in memory)`, () => {
      const { counts, workflow } = arrange(({ undo }) => Effect.onInterrupt(Effect.asVoid(Ask()), () => undo))
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [workflow], residentBranches }))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          yield* house.client.cancel(branch)
          assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
          assert.deepStrictEqual(counts, { begun: 0, undone: 1 })
          assert.deepStrictEqual(yield* house.lines(branch), [
            "run.started",
            "interrupt.opened ask#1",
            "cancel.requested cancel",
            "interrupt.closed ask#1",
            "step.succeeded undo#1",
            "run.cancelled"
          ])
          const late = yield* Effect.flip(
            house.client.resume(Ask, { branch, interrupt: "ask#1", value: "yes", deliveryId: "d", intent: "retry" })
          )
          assert.strictEqual(late._tag, "InterruptClosed")
          yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
        })
      )
    })
  }

  it.live("that sleeps does not wait for the end of the sleep", () => {
    const { workflow } = arrange(() => Effect.sleep("3650 days"))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.client.cancel(branch)
        assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
      })
    )
  })

  it.live("in a step interrupts its body, starts nothing more of it, and runs the finalizers (B23)", () => {
    const stage = new Stage()
    const counts = { stopped: 0, after: 0, undone: 0 }
    const work = Node.make("work", {}, () =>
      Effect.onInterrupt(stage.wait("work"), () => Effect.sync(() => void counts.stopped++))
    )
    const after = Node.make("after", {}, () => Effect.sync(() => void counts.after++))
    const undo = Node.make("undo", {}, () => Effect.sync(() => void counts.undone++))
    const workflow = Workflow.make("cancelled", { version: "1" }, () =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.acquireRelease(Effect.void, () => undo())
          yield* work()
          yield* after()
        })
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the body", () => stage.has("work"))
        yield* house.client.cancel(branch)
        assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
        yield* until("the body's interruption", () => counts.stopped === 1)
        assert.deepStrictEqual(counts, { stopped: 1, after: 0, undone: 1 })
        assert.notInclude(yield* house.lines(branch), "step.succeeded work#1")
      })
    )
  })

  it.live("in the back-off of a step's retry starts no further attempt (B23)", () => {
    let begun = 0
    const work = Node.make("work", { error: Schema.String, retry: { times: 5, delay: "1 hours" } }, () =>
      Effect.suspend(() => Effect.fail(`attempt ${++begun}`))
    )
    const workflow = Workflow.make("cancelled", { version: "1", error: Schema.String }, () => work())
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.client.cancel(branch)
        assert.deepInclude(yield* Effect.flip(house.client.result(workflow, branch)), { _tag: "RunCancelled" })
        yield* house.pass("2 hours")
        assert.strictEqual(begun, 1)
        assert.strictEqual((yield* house.lines(branch)).at(-1), "run.cancelled")
      })
    )
  })

  it.live("in an uninterruptible region lets the region end first", () => {
    const { counts, stage, workflow } = arrange(({ undo, work }) =>
      Effect.zipRight(Effect.uninterruptible(Effect.zipRight(work, undo)), Effect.asVoid(Ask()))
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the body", () => stage.has("work"))
        yield* house.client.cancel(branch)
        yield* house.recorded(branch, "cancel.requested cancel")
        stage.release("work")
        assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
        assert.deepStrictEqual(counts, { begun: 1, undone: 1 })
        assert.notInclude(yield* house.lines(branch), "interrupt.opened ask#1")
      })
    )
  })

  it.live("while a once effect fires waits for its outcome, and records it", () => {
    const stage = new Stage()
    const Pay = SideEffect.make("pay", { delivery: Delivery.once(), success: Schema.Number })
    const pay = Node.make("pay", { success: Schema.Number, effects: [Pay] }, () => Pay())
    const workflow = Workflow.make("cancelled", { version: "1", success: Schema.Number }, () => pay())
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(
          Testing.worker({ workflows: [workflow] }).pipe(
            Layer.provide(Pay.toLayer(() => Effect.as(stage.wait("pay"), 1)))
          )
        )
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the handler", () => stage.has("pay"))
        yield* house.client.cancel(branch)
        yield* house.recorded(branch, "cancel.requested cancel")
        assert.strictEqual((yield* house.client.describe(branch)).status, "running")
        stage.release("pay")
        assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
        assert.include(yield* house.lines(branch), "effect.succeeded r/main|pay#1|1")
      })
    )
  })

  it.live("lets finalizers that were cut short by a lost worker go on with the next one", () => {
    const stage = new Stage()
    let begun = 0
    const undo = Node.make("undo", {}, () => Effect.suspend(() => (begun++, stage.wait(`undo ${begun}`))))
    const workflow = Workflow.make("cancelled", { version: "1" }, () =>
      Effect.onInterrupt(Effect.asVoid(Ask()), () => undo())
    )
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.client.cancel(branch)
        yield* until("the finalizer", () => stage.has("undo 1"))
        yield* dismiss
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        yield* until("the finalizer again", () => stage.has("undo 2"))
        stage.release("undo 2")
        assert.strictEqual((yield* Effect.flip(house.client.result(workflow, branch)))._tag, "RunCancelled")
      })
    )
  })

  it.live("twice is the same cancellation, also when it is over", () => {
    const { workflow } = arrange(() => Effect.asVoid(Ask()))
    return play((house) =>
      Effect.gen(function* () {
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.cancel(branch, { reason: "first" }), "Accepted")
        assert.strictEqual(yield* house.client.cancel(branch, { reason: "second" }), "Duplicate")
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const error = yield* Effect.flip(house.client.result(workflow, branch))
        assert.deepInclude(error, { _tag: "RunCancelled", reason: "first" })
        assert.strictEqual(yield* house.client.cancel(branch), "Duplicate")
        assert.strictEqual((yield* house.lines(branch)).filter((line) => line.startsWith("cancel.requested")).length, 1)
      })
    )
  })

  it.live("that ended otherwise is too late, and changes nothing", () => {
    const { workflow } = arrange(() => Effect.void)
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.result(workflow, branch)
        assert.strictEqual(yield* house.client.cancel(branch), "TooLate")
        yield* house.client.result(workflow, branch)
        assert.deepStrictEqual(yield* house.lines(branch), ["run.started", "run.completed"])
      })
    )
  })

  it.live("that catches its own interruption ends as it says", () => {
    const workflow = Workflow.make("stubborn", { version: "1", success: Schema.String }, () =>
      Effect.catchAllCause(Ask(), () => Effect.succeed("went on"))
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.client.cancel(branch)
        const exit = yield* Effect.exit(house.client.result(workflow, branch))
        // An interrupted fiber runs no continuation outside an uninterruptible region: that is Effect's own rule.
        assert.strictEqual(exit._tag, "Failure")
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })
})
