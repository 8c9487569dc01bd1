/** Loops: constant history behind a snapshot, scopes of iterations, and what a snapshot does not replace. */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Loop, Node, Query, Signal, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Random, Schema } from "effect"
import { play } from "./House.js"

const Approve = Interrupt.make("approve", { answer: Schema.Boolean })

/** A node that counts its calls. */
const counting = () => {
  const calls: Array<number> = []
  const node = Node.make("add", { input: Schema.Number, success: Schema.Number }, (n) =>
    Effect.sync(() => {
      calls.push(n)
      return n + 1
    })
  )
  return { calls, node }
}

describe("Workflow.loop", () => {
  it.live("journals each iteration's state, and counts keys within it", () =>
    play((house) =>
      Effect.gen(function* () {
        const { calls, node } = counting()
        const workflow = Workflow.make("count", { version: "1", success: Schema.Number }, () =>
          Effect.gen(function* () {
            const sum = yield* Workflow.loop("up", { state: Schema.Number, initial: 0 }, (n) =>
              n < 3 ? Effect.map(node(n), Loop.next) : Effect.succeed(Loop.done(n))
            )
            return yield* node(sum)
          })
        )
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.result(workflow, branch), 4)
        assert.deepStrictEqual(calls, [0, 1, 2, 3])
        assert.deepStrictEqual(yield* house.lines(branch), [
          "run.started",
          "loop.snapshot up#1",
          "step.succeeded up#1/1/add#1",
          "loop.snapshot up#1",
          "step.succeeded up#1/2/add#1",
          "loop.snapshot up#1",
          "step.succeeded up#1/3/add#1",
          "loop.snapshot up#1",
          "step.succeeded add#1",
          "run.completed"
        ])
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  )

  it.live("a replay begins with the last snapshot, and what ran beside the loop is replayed in full", () =>
    play((house) =>
      Effect.gen(function* () {
        const { node } = counting()
        let iterations = 0
        const draws: Array<number> = []
        const workflow = Workflow.make("beside", { version: "1", success: Schema.Unknown }, () =>
          Effect.all(
            [
              Workflow.loop("turn", { state: Schema.Number, initial: 0 }, (n) =>
                Effect.gen(function* () {
                  iterations++
                  draws.push(yield* Random.nextIntBetween(0, 1_000_000))
                  yield* node(n)
                  yield* Effect.sleep("1 minutes")
                  const inner = yield* Workflow.loop("inner", { state: Schema.Number, initial: n }, (m) =>
                    Effect.map(node(m), (next) => (next < n + 3 ? Loop.next(next) : Loop.done(next)))
                  )
                  if (n === 2) yield* Approve()
                  return n < 4 ? Loop.next(n + 1) : Loop.done(inner)
                })
              ),
              Effect.gen(function* () {
                const seen: Array<number> = []
                for (let i = 0; i < 8; i++) {
                  yield* Effect.sleep("25 seconds")
                  seen.push(yield* node(100 + i))
                }
                return seen
              })
            ],
            { concurrency: "unbounded" }
          )
        )
        const drive = (done: Effect.Effect<boolean, unknown>) =>
          Effect.gen(function* () {
            while (!(yield* done)) {
              yield* house.pass("5 seconds")
              yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
            }
          })
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        const asked = Effect.map(house.lines(branch), (lines) => lines.includes("interrupt.opened turn#1/3/approve#1"))
        yield* drive(asked)
        assert.strictEqual(iterations, 3)
        yield* dismiss
        iterations = 0
        draws.length = 0
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        yield* house.client.resume(Approve, {
          branch,
          interrupt: "turn#1/3/approve#1",
          value: true,
          deliveryId: "d",
          intent: "retry"
        })
        const over = Effect.map(
          house.client.describe(branch),
          ({ status }) => status !== "running" && status !== "waiting" && status !== "ready"
        )
        yield* drive(over)
        // Iteration 3 again, then 4 and 5: not 1 and 2.
        assert.strictEqual(iterations, 3)
        assert.strictEqual(new Set(draws).size, 3)
        assert.strictEqual((yield* house.client.describe(branch)).status, "completed")
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  )

  it.live(
    "state that fails its Schema is refused before it is written, and the snapshot before it can be forked (CV)",
    () =>
      play((house) =>
        Effect.gen(function* () {
          const { node } = counting()
          let bad = true
          const workflow = Workflow.make("bad", { version: "1", success: Schema.Number }, () =>
            Workflow.loop("up", { state: Schema.Number.pipe(Schema.lessThan(10)), initial: 0 }, (n) =>
              n === 2 && !bad
                ? Effect.succeed(Loop.done(n))
                : Effect.map(node(n), (next) => Loop.next(next === 3 ? 99 : next))
            )
          )
          yield* house.hire(Testing.worker({ workflows: [workflow] }))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ status }) => status === "failed")
          const history = yield* house.history(branch)
          const snapshots = history.filter(({ kind }) => kind === "loop.snapshot")
          assert.deepStrictEqual(
            snapshots.map(({ payload }) => (JSON.parse(payload) as { readonly state: number }).state),
            [0, 1, 2]
          )
          bad = false
          const fork = yield* house.client.fork({ from: { branch, seq: snapshots[2]?.seq ?? 0 }, forkId: "f" })
          assert.strictEqual(yield* house.client.result(workflow, fork.branch), 2)
          yield* Effect.provide(Testing.replayCheck(workflow, fork.branch), house.plane)
        })
      )
  )

  for (const [what, outlive, by] of [
    ["timer", Effect.forkDaemon(Effect.sleep("1 days")), "up#1/1/sleep#1"],
    ["interrupt", Effect.forkDaemon(Approve()), "up#1/1/approve#1"],
    ["fiber", Effect.forkDaemon(Effect.never), "a fiber"]
  ] as const) {
    it.live(`a ${what} that outlives its iteration makes the branch stuck (RD)`, () =>
      play((house) =>
        Effect.gen(function* () {
          const { node } = counting()
          const workflow = Workflow.make("leak", { version: "1", success: Schema.Number }, () =>
            Workflow.loop("up", { state: Schema.Number, initial: 0 }, (n) =>
              Effect.gen(function* () {
                yield* outlive
                return n < 3 ? Loop.next(yield* node(n)) : Loop.done(n)
              })
            )
          )
          yield* house.hire(Testing.worker({ workflows: [workflow] }))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          const problem = yield* house.problem(branch)
          assert.strictEqual(problem._tag, "IterationOutlived")
          if (problem._tag === "IterationOutlived") assert.deepStrictEqual(problem.by, [by])
          const lines = yield* house.lines(branch)
          assert.strictEqual(lines.filter((line) => line === "loop.snapshot up#1").length, 1)
        })
      )
    )
  }

  it.live("what an iteration took, published and replied stays taken when a replay skips it", () =>
    play((house) =>
      Effect.gen(function* () {
        const Word = Signal.make("word", { payload: Schema.String })
        const Count = Query.make("count", { result: Schema.Number })
        const taken: Array<string> = []
        const workflow = Workflow.make("talk", { version: "1", success: Schema.String, signals: [Word] }, () =>
          Workflow.loop("turn", { state: Schema.String, initial: "" }, (said, turn) =>
            Effect.gen(function* () {
              const word = yield* Signal.next(Word)
              taken.push(word)
              yield* Query.publish(Count, turn)
              const more = `${said}${word}`
              return word === "." ? Loop.done(more) : Loop.next(more)
            })
          )
        )
        const say = (word: string) => house.client.signal("r", Word, word, { messageId: `m-${word}` })
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* say("a")
        yield* say("b")
        const published = Effect.map(
          house.lines(branch),
          (lines) => lines.filter((line) => line.startsWith("view.")).length
        )
        yield* Effect.repeat(published, { until: (count) => count === 2 })
        yield* dismiss
        taken.length = 0
        // Nobody is there: it waits in the inbox.
        yield* say("c")
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        yield* say(".")
        assert.strictEqual(yield* house.client.result(workflow, branch), "abc.")
        assert.deepStrictEqual(taken, ["c", "."])
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  )
})
