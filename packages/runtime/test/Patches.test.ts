/** Code that changes under runs that go on: which path a run takes is decided once, and journaled (RD). */
import { assert, describe, it } from "@effect/vitest"
import { HistoryFile, Interrupt, Node, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Schema } from "effect"
import { type House, play } from "./House.js"

const Ask = Interrupt.make("ask", { payload: Schema.String, answer: Schema.String })
const old = Node.make("old", { success: Schema.String }, () => Effect.succeed("old"))
const fresh = Node.make("fresh", { success: Schema.String }, () => Effect.succeed("new"))

type Body = Effect.Effect<unknown, never, Workflow.WorkflowScope>
const define = (body: () => Body) => Workflow.make("changing", { version: "1", success: Schema.Unknown }, body)
type Changing = ReturnType<typeof define>

const choice = Effect.flatMap(Workflow.patched("p"), (taken) => (taken ? fresh() : old()))

const before = define(() => Effect.all([Ask("1"), old(), Ask("2"), old()]))
/** Both places ask; the first question of an execution decides. */
const patched = define(() => Effect.all([Ask("1"), choice, Ask("2"), choice]))
const deprecated = define(() =>
  Effect.all([Ask("1"), Effect.zipRight(Workflow.deprecatePatch("p"), fresh()), Ask("2"), fresh()])
)
const removed = define(() => Effect.all([Ask("1"), fresh(), Ask("2"), fresh()]))

const answer = (house: House, branch: string, n: number) =>
  house.client.resume(Ask, {
    branch,
    interrupt: `ask#${n}`,
    value: String(n),
    deliveryId: `d${n}`,
    intent: "retry"
  })

/** Runs under `first` until it asks for the nth time, then under `second` to its end. */
const across = (house: House, first: Changing, asked: number, second: Changing) =>
  Effect.gen(function* () {
    const dismiss = yield* house.hire(Testing.worker({ workflows: [first] }))
    const { branch } = yield* house.client.start(first, undefined, { run: "r" })
    for (let n = 1; n <= asked; n++) {
      yield* house.recorded(branch, `interrupt.opened ask#${n}`)
      if (n < asked) yield* answer(house, branch, n)
    }
    yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
    yield* dismiss
    yield* house.hire(Testing.worker({ workflows: [second] }))
    for (let n = asked; n <= 2; n++) {
      yield* house.recorded(branch, `interrupt.opened ask#${n}`)
      yield* answer(house, branch, n)
    }
    return branch
  })

const marks = (lines: ReadonlyArray<string>) => lines.filter((line) => line.startsWith("patch.taken"))

describe("a patched workflow", () => {
  for (const [name, first, asked, second, outcome, recorded] of [
    ["a run that is new takes the new path", patched, 1, patched, "new", 1],
    ["a run that had not come so far takes the new path", before, 1, patched, "new", 1],
    ["a run that had passed it keeps the old path, also where the code asks later", before, 2, patched, "old", 0],
    ["a run that took it goes on under code that has no other path", patched, 2, deprecated, "new", 1],
    ["a deprecated patch records nothing anew", deprecated, 2, removed, "new", 0]
  ] as const) {
    it.live(name, () =>
      play((house) =>
        Effect.gen(function* () {
          const branch = yield* across(house, first, asked, second)
          assert.deepStrictEqual(yield* house.client.result(second, branch), ["1", outcome, "2", outcome])
          assert.strictEqual(marks(yield* house.lines(branch)).length, recorded)
          // From every prefix, as a crash can leave it.
          yield* Effect.provide(Testing.replayCheck(second, branch), house.plane)
        })
      )
    )
  }

  it.live(
    "a run that took the patch is not replayed by code from before it: stuck, until the patch is deployed again",
    () =>
      play((house) =>
        Effect.gen(function* () {
          const dismiss = yield* house.hire(Testing.worker({ workflows: [patched] }))
          const { branch } = yield* house.client.start(patched, undefined, { run: "r" })
          yield* house.recorded(branch, "interrupt.opened ask#1")
          yield* answer(house, branch, 1)
          yield* house.recorded(branch, "interrupt.opened ask#2")
          yield* dismiss
          yield* answer(house, branch, 2)
          const rolledBack = yield* house.hire(Testing.worker({ workflows: [before] }))
          assert.deepInclude(yield* house.problem(branch), { _tag: "NonDeterminism", history: "patch.taken p" })
          yield* rolledBack
          yield* house.hire(Testing.worker({ workflows: [patched] }))
          assert.deepStrictEqual(yield* house.client.result(patched, branch), ["1", "new", "2", "new"])
        })
      )
  )

  it.live("a fork takes the path that its inherited history shows, and replays alike", () =>
    play((house) =>
      Effect.gen(function* () {
        const branch = yield* across(house, before, 2, patched)
        yield* house.client.result(patched, branch)
        const fork = (intent: string, n: number) =>
          Effect.gen(function* () {
            const receipt = yield* house.client.resume(Ask, {
              branch,
              interrupt: `ask#${n}`,
              value: "fork",
              deliveryId: intent,
              intent: "fork",
              forkId: intent
            })
            for (let next = n + 1; next <= 2; next++) {
              yield* house.recorded(receipt.branch, `interrupt.opened ask#${next}`)
              yield* answer(house, receipt.branch, next)
            }
            const result = yield* house.client.result(patched, receipt.branch)
            yield* Effect.provide(Testing.replayCheck(patched, receipt.branch), house.plane)
            return result
          })
        // Behind the place the old path was taken; in front of it nothing is decided yet.
        assert.deepStrictEqual(yield* fork("behind", 2), ["1", "old", "fork", "old"])
        assert.deepStrictEqual(yield* fork("front", 1), ["fork", "new", "2", "new"])
      })
    )
  )

  it.live("stored histories are checked against changed code, which names the first divergence", () =>
    play((house) =>
      Effect.gen(function* () {
        const branch = yield* across(house, before, 1, before)
        yield* house.client.result(before, branch)
        const text = HistoryFile.write(yield* house.ledger.history(branch))
        const history = yield* HistoryFile.read(text)
        for (const prefixes of ["every", "whole"] as const) {
          yield* Testing.Replay.check(before, history, { prefixes })
          yield* Testing.Replay.check(patched, history, { prefixes })
          const diverged = yield* Effect.flip(Testing.Replay.check(removed, history, { prefixes }))
          assert.deepInclude(diverged, { _tag: "ReplayDiverged", branch, seq: 4 })
        }
        const edited = yield* Effect.flip(HistoryFile.read(text.replace("ask#2", "ask#3")))
        assert.strictEqual(edited._tag, "HistoryFileInvalid")
        const newer = yield* Effect.flip(HistoryFile.read(text.replace('"formatVersion": 1', '"formatVersion": 2')))
        assert.include(newer.message, "formatVersion")
        assert.strictEqual((yield* Effect.flip(HistoryFile.read("{")))._tag, "HistoryFileInvalid")
      })
    )
  )
})
