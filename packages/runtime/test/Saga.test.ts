/** Sagas: what is undone, in which order, and what is said of what could not be. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Fiber, Schema } from "effect"
import { Ledger, Loop, Node, Saga, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { play } from "./House.js"
import { Stage } from "./Stage.js"

class Refused extends Schema.TaggedError<Refused>()("Refused", { what: Schema.String }) {}

/** Steps that do and undo by name; those in `refused` fail, those in `held` wait on the stage. */
const arrange = (options: { readonly refused?: ReadonlyArray<string>; readonly held?: ReadonlyArray<string> } = {}) => {
  const stage = new Stage()
  const done: Array<string> = []
  const act = Node.make(
    "act",
    { input: Schema.String, success: Schema.String, error: Refused, undeclared: true },
    (what) =>
      Effect.gen(function* () {
        if (options.held?.includes(what) === true) yield* stage.wait(what)
        if (options.refused?.includes(what) === true) return yield* new Refused({ what })
        done.push(what)
        return what
      })
  )
  const step = (what: string) => Saga.compensate(act(what), (done) => act(`undo ${done}`), { name: what })
  const workflow = (body: Effect.Effect<unknown, Refused | Saga.CompensationFailed, Workflow.WorkflowScope>) =>
    Workflow.make(
      "saga",
      { version: "1", success: Schema.String, error: Schema.Union(Refused, Saga.CompensationFailed) },
      () => Effect.map(body, String)
    )
  return { act, done, stage, step, workflow }
}

const ended = (workflow: ReturnType<ReturnType<typeof arrange>["workflow"]>) =>
  play(({ client, hire, ledger }) =>
    Effect.gen(function* () {
      yield* hire(Testing.worker({ workflows: [workflow] }))
      const run = yield* client.start(workflow, undefined, { run: "s" })
      const result = yield* Effect.either(client.result(workflow, run))
      yield* Effect.provideService(Testing.replayCheck(workflow, run.branch), Ledger, ledger)
      return Either.match(result, { onLeft: (error) => error, onRight: (value) => value })
    })
  )

describe("a saga", () => {
  it.effect("that succeeds undoes nothing", () => {
    const { done, step, workflow } = arrange()
    return Effect.map(ended(workflow(Saga.run(Effect.all([step("a"), step("b")])))), (end) => {
      assert.strictEqual(end, "a,b")
      assert.deepStrictEqual(done, ["a", "b"])
    })
  })

  it.effect("that fails undoes what was done, last first, and keeps its error", () => {
    const { act, done, step, workflow } = arrange({ refused: ["c"] })
    return Effect.map(ended(workflow(Saga.run(Effect.all([step("a"), step("b"), act("c")])))), (end) => {
      assert.deepInclude(end, { _tag: "Refused", what: "c" })
      assert.deepStrictEqual(done, ["a", "b", "undo b", "undo a"])
    })
  })

  it.effect("undoes what a step attempted, also if it failed", () => {
    const { act, done, step, workflow } = arrange({ refused: ["b"] })
    const b = Saga.compensateAttempt(act("b"), () => act("undo b"))
    return Effect.map(ended(workflow(Saga.run(Effect.all([step("a"), b])))), (end) => {
      assert.deepInclude(end, { _tag: "Refused", what: "b" })
      assert.deepStrictEqual(done, ["a", "undo b", "undo a"])
    })
  })

  it.effect("says which of its compensations failed, and runs the others", () => {
    const { act, done, step, workflow } = arrange({ refused: ["d", "undo b", "undo a"] })
    return Effect.map(ended(workflow(Saga.run(Effect.all([step("a"), step("b"), step("c"), act("d")])))), (end) => {
      assert.deepInclude(end, { _tag: "CompensationFailed" })
      assert(end instanceof Saga.CompensationFailed)
      assert.deepStrictEqual(
        end.failures.map(({ compensation }) => compensation),
        ["b", "a"]
      )
      assert.deepStrictEqual(done, ["a", "b", "c", "undo c"])
    })
  })

  it.effect("inside a saga is undone before what came before it; one that succeeded is the outer one's to undo", () => {
    const { act, done, step, workflow } = arrange({ refused: ["d"] })
    const inner = Saga.run(Effect.all([step("b"), step("c"), act("d")]))
    const whole = Saga.compensate(Saga.run(step("x")), () => act("undo inner"))
    return Effect.map(ended(workflow(Saga.run(Effect.all([step("a"), whole, inner])))), (end) => {
      assert.deepInclude(end, { _tag: "Refused", what: "d" })
      assert.deepStrictEqual(done, ["a", "x", "b", "c", "undo c", "undo b", "undo inner", "undo a"])
    })
  })

  it.effect("of parallel steps undoes those that ended, in reverse order of their ends", () => {
    const { act, done, stage, step, workflow } = arrange({ held: ["a", "b"], refused: ["c"] })
    const body = Saga.run(Effect.zipRight(Effect.all([step("a"), step("b")], { concurrency: 2 }), act("c")))
    const saga = workflow(body)
    return play(({ client, hire, recorded }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [saga] }))
        const run = yield* client.start(saga, undefined, { run: "s" })
        for (const name of ["b", "a"]) {
          while (!stage.has(name)) yield* Effect.yieldNow()
          stage.release(name)
          yield* recorded(run.branch, `step.succeeded act#${name === "a" ? 1 : 2}`)
        }
        yield* Effect.either(client.result(saga, run))
        assert.deepStrictEqual(done, ["b", "a", "undo a", "undo b"])
      })
    )
  })

  it.effect.each([undefined, "undo a"])(
    "that is cancelled (and cannot %s) waits for the step that has begun, undoes it, too, and can be followed by a shielded part",
    (cannot) => {
      const { act, done, stage, step, workflow } = arrange({
        held: ["b"],
        refused: cannot === undefined ? [] : [cannot]
      })
      const saga = workflow(
        Effect.onExit(Saga.run(Effect.all([step("a"), step("b"), step("c")])), () => Effect.orDie(act("report")))
      )
      return play(({ client, hire, recorded }) =>
        Effect.gen(function* () {
          const dismiss = yield* hire(Testing.worker({ workflows: [saga] }))
          const run = yield* client.start(saga, undefined, { run: "s" })
          while (!stage.has("b")) yield* Effect.yieldNow()
          assert.strictEqual(yield* client.cancel(run), "Accepted")
          assert.strictEqual(yield* client.cancel(run), "Duplicate")
          yield* recorded(run.branch, "cancel.requested cancel")
          yield* dismiss
          // The step runs again elsewhere, and is waited for there.
          yield* hire(Testing.worker({ workflows: [saga] }))
          while (!stage.has("b")) yield* Effect.yieldNow()
          stage.release("b")
          const { _tag } = yield* Effect.flip(client.result(saga, run))
          assert.strictEqual(_tag, cannot === undefined ? "RunCancelled" : "CompensationFailed")
          const undone = cannot === undefined ? ["undo b", "undo a"] : ["undo b"]
          assert.deepStrictEqual(done, ["a", "b", ...undone, "report"])
          assert.strictEqual(yield* client.cancel(run), "Duplicate")
        })
      )
    }
  )

  it.effect("around a loop cannot remember what an iteration did, and says so; inside an iteration it can", () => {
    const { act, done, step, workflow } = arrange({ refused: ["c"] })
    const loop = (
      body: Effect.Effect<unknown, Refused | Saga.CompensationFailed, Workflow.WorkflowScope | Saga.Saga>
    ) =>
      Workflow.loop("l", { state: Schema.Number, initial: 0 }, (n) =>
        Effect.as(body, n < 1 ? Loop.next(n + 1) : Loop.done("end"))
      )
    return Effect.gen(function* () {
      const around = yield* ended(workflow(Saga.run(loop(step("a"))) as never))
      assert.match(String(around), /iteration of a loop/)
      done.length = 0
      const inside = yield* ended(workflow(loop(Effect.either(Saga.run(Effect.all([step("b"), act("c")])))) as never))
      assert.strictEqual(inside, "end")
      assert.deepStrictEqual(done, ["b", "undo b", "b", "undo b"])
    })
  })
})

describe("a part of a workflow", () => {
  it.effect(
    "is cancelled alone by interrupting its fiber, and shielded from a cancellation by being uninterruptible",
    () => {
      const { act, done, stage, workflow } = arrange({ held: ["slow", "shielded"] })
      const saga = workflow(
        Effect.gen(function* () {
          const part = yield* Effect.fork(Effect.onInterrupt(act("slow"), () => Effect.orDie(act("undo slow"))))
          yield* Effect.sleep("1 minute")
          yield* Fiber.interrupt(part)
          yield* Effect.uninterruptible(act("shielded"))
          return yield* act("never")
        })
      )
      return play(({ client, hire, pass, recorded }) =>
        Effect.gen(function* () {
          yield* hire(Testing.worker({ workflows: [saga] }))
          const run = yield* client.start(saga, undefined, { run: "s" })
          while (!stage.has("slow")) yield* Effect.yieldNow()
          yield* pass("1 minute")
          while (!stage.has("shielded")) yield* Effect.yieldNow()
          yield* client.cancel(run)
          yield* recorded(run.branch, "cancel.requested cancel")
          stage.release("shielded")
          assert.strictEqual((yield* Effect.flip(client.result(saga, run)))._tag, "RunCancelled")
          assert.deepStrictEqual(done, ["undo slow", "shielded"])
        })
      )
    }
  )
})
