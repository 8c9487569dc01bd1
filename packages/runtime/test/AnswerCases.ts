/** Cases of pauses and their answers (CO, FI, LV). */
import { assert, describe, it } from "@effect/vitest"
import { BranchId } from "@fermata/contract"
import type { Ledger } from "@fermata/ledger"
import { type Client, Interrupt, Node, Worker, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Deferred, Effect, Fiber, FiberId, type Layer, Schema } from "effect"
import { type House, playOn } from "./House.js"

const Ask = Interrupt.make("ask", { payload: Schema.Number, answer: Schema.Unknown })

const answer = (house: House, branch: string, n: number, value: unknown, deliveryId = `d${n}`) =>
  house.client.resume(Ask, { branch, interrupt: `ask#${n}`, value, deliveryId, intent: "retry" })

export const answerCases = <E>(name: string, plane: Layer.Layer<Ledger | Client.Client, E>): void => {
  describe(`answers on ${name}`, () => {
    it.live("arrive as themselves, whatever they look like (B03)", () => {
      const values = [false, 0, "", null, -0, [], {}, "false", [null], { a: undefined }]
      const kept = [false, 0, "", null, 0, [], {}, "false", [null]]
      const Each = Workflow.make("each", { version: "1", success: Schema.Array(Schema.Unknown) }, () =>
        Effect.forEach(kept, (_, index) => Ask(index))
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          yield* house.hire(Worker.layer({ workflows: [Each], residentBranches: 0 }))
          const { branch } = yield* house.client.start(Each, undefined, { run: "r" })
          const refused: Array<number> = []
          for (const [index] of kept.entries()) {
            yield* house.recorded(branch, `interrupt.opened ask#${index + 1}`)
            const sent = yield* Effect.either(answer(house, branch, index + 1, values[index]))
            if (sent._tag === "Left") {
              // What JSON cannot keep is refused, with the interrupt still open; never turned into something else.
              assert.strictEqual(sent.left._tag, "ResumeValueInvalid")
              refused.push(index)
              yield* answer(house, branch, index + 1, kept[index], `again${index}`)
            }
          }
          const result = yield* house.client.result(Each, branch)
          for (const [index, value] of result.entries()) {
            assert.deepStrictEqual(value, refused.includes(index) ? kept[index] : values[index])
          }
          for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, 1n, () => 1]) {
            const late = yield* Effect.flip(answer(house, branch, 1, value, "late"))
            assert.include(["ResumeValueInvalid", "AlreadyConsumed"], late._tag)
          }
        })
      )
    })

    it.live(
      "given twice are one answer; another value without a fork is refused, with a fork it is another branch (B27, B28)",
      () => {
        const Decide = Workflow.make("decide", { version: "1", success: Schema.Unknown }, () => Ask(1))
        return playOn(plane, (house) =>
          Effect.gen(function* () {
            yield* house.hire(Worker.layer({ workflows: [Decide] }))
            const { branch } = yield* house.client.start(Decide, undefined, { run: "r" })
            yield* house.recorded(branch, "interrupt.opened ask#1")
            assert.deepInclude(yield* answer(house, branch, 1, "yes"), { verdict: "Accepted" })
            assert.deepInclude(yield* answer(house, branch, 1, "yes"), { verdict: "Duplicate" })
            assert.strictEqual((yield* Effect.flip(answer(house, branch, 1, "no")))._tag, "DeliveryIdReused")
            assert.strictEqual((yield* Effect.flip(answer(house, branch, 1, "no", "other")))._tag, "AlreadyConsumed")
            const fork = yield* house.client.resume(Ask, {
              branch,
              interrupt: "ask#1",
              value: "no",
              deliveryId: "f",
              intent: "fork",
              forkId: "f"
            })
            assert.strictEqual(yield* house.client.result(Decide, branch), "yes")
            assert.strictEqual(yield* house.client.result(Decide, fork.branch), "no")
          })
        )
      }
    )

    it.live("between steps run no step again (B32)", () => {
      const counts = { a: 0, b: 0, c: 0 }
      const step = Node.make("step", { input: Schema.Literal("a", "b", "c") }, (which) =>
        Effect.sync(() => void counts[which]++)
      )
      const Steps = Workflow.make("steps", { version: "1" }, () =>
        Effect.asVoid(Effect.all([step("a"), Ask(1), step("b"), Ask(2), step("c")]))
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const worker = Worker.layer({ workflows: [Steps], residentBranches: 0 })
          let dismiss = yield* house.hire(worker)
          const { branch } = yield* house.client.start(Steps, undefined, { run: "r" })
          for (const n of [1, 2]) {
            yield* house.recorded(branch, `interrupt.opened ask#${n}`)
            yield* dismiss
            yield* answer(house, branch, n, n)
            dismiss = yield* house.hire(worker)
          }
          yield* house.client.result(Steps, branch)
          assert.deepStrictEqual(counts, { a: 1, b: 1, c: 1 })
        })
      )
    })

    it.live("reach the pause that they name, in any order, over a restart (B35)", () => {
      const Three = Workflow.make("three", { version: "1", success: Schema.Array(Schema.Unknown) }, () =>
        Effect.all([Ask(1), Ask(2), Ask(3)], { concurrency: 3 })
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const worker = Worker.layer({ workflows: [Three], residentBranches: 0 })
          const dismiss = yield* house.hire(worker)
          const { branch } = yield* house.client.start(Three, undefined, { run: "r" })
          yield* house.recorded(branch, "interrupt.opened ask#3")
          const pending = yield* house.client.pendingInterrupts({ run: "r" })
          assert.deepStrictEqual(
            pending.map(({ interrupt, payload }) => [interrupt, payload]),
            [
              ["ask#1", 1],
              ["ask#2", 2],
              ["ask#3", 3]
            ]
          )
          yield* answer(house, branch, 3, "third")
          yield* dismiss
          yield* answer(house, branch, 2, "second")
          yield* house.hire(worker)
          yield* answer(house, branch, 1, "first")
          assert.deepStrictEqual(yield* house.client.result(Three, branch), ["first", "second", "third"])
          assert.strictEqual((yield* Effect.flip(answer(house, branch, 4, "nobody asked")))._tag, "UnknownInterrupt")
        })
      )
    })

    it.live("that are asked for again until one is good are each used once (B38)", () => {
      const seen: Array<unknown> = []
      const log = Node.make("log", { input: Schema.Unknown }, (value) => Effect.sync(() => void seen.push(value)))
      const Valid = Workflow.make("valid", { version: "1", success: Schema.Unknown }, () =>
        Effect.gen(function* () {
          for (let n = 1; ; n++) {
            const value = yield* Ask(n)
            yield* log(value)
            if (value === "good") return n
          }
        })
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          yield* house.hire(Worker.layer({ workflows: [Valid], residentBranches: 0 }))
          const { branch } = yield* house.client.start(Valid, undefined, { run: "r" })
          for (const n of [1, 2, 3, 4, 5, 6]) {
            yield* house.recorded(branch, `interrupt.opened ask#${n}`)
            yield* answer(house, branch, n, n === 6 ? "good" : `bad ${n}`)
          }
          assert.strictEqual(yield* house.client.result(Valid, branch), 6)
          assert.deepStrictEqual(seen, ["bad 1", "bad 2", "bad 3", "bad 4", "bad 5", "good"])
        })
      )
    })

    it.live("to many runs at once all arrive, however they meet the parking (B64)", () => {
      const One = Workflow.make("one", { version: "1", success: Schema.Unknown }, () => Ask(1))
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          yield* house.hire(Worker.layer({ workflows: [One], poll: "1 hours" }))
          yield* Effect.forEach(
            Array.from({ length: 40 }, (_, n) => n),
            (n) =>
              Effect.gen(function* () {
                const { branch } = yield* house.client.start(One, undefined, { run: `r${n}` })
                yield* house.recorded(branch, "interrupt.opened ask#1")
                yield* answer(house, branch, 1, n)
                assert.strictEqual(yield* house.client.result(One, branch), n)
                assert.deepInclude(yield* answer(house, branch, 1, n), { verdict: "Duplicate" })
              }),
            { concurrency: 20, discard: true }
          )
        })
      )
    })

    it.live("that come before the workflow waits for them are kept, and handed over when it does (B63)", () => {
      const letGo = Deferred.unsafeMake<void>(FiberId.none)
      const busy = Node.make("busy", {}, () => Deferred.await(letGo))
      const Later = Workflow.make("later", { version: "1", success: Schema.Array(Schema.Unknown) }, () =>
        Effect.gen(function* () {
          const first = yield* Effect.fork(Ask(1))
          const second = yield* Effect.fork(Ask(2))
          // Both questions are out; nobody waits for their answers yet.
          yield* busy()
          return [yield* Fiber.join(second), yield* Fiber.join(first)]
        })
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const branch = BranchId.make("r/main")
          const unasked = () => Effect.flip(answer(house, branch, 1, "early", "d1"))
          // Before the run exists, and before a worker has asked: refused, and nothing of it is kept.
          assert.strictEqual((yield* unasked())._tag, "UnknownInterrupt")
          yield* house.client.start(Later, undefined, { run: "r" })
          assert.strictEqual((yield* unasked())._tag, "UnknownInterrupt")
          yield* house.hire(Worker.layer({ workflows: [Later] }))
          yield* house.recorded(branch, "interrupt.opened ask#2")
          // The refused delivery is free to be sent again.
          assert.deepInclude(yield* answer(house, branch, 1, "a", "d1"), { verdict: "Accepted" })
          assert.deepInclude(yield* answer(house, branch, 2, "b", "d2"), { verdict: "Accepted" })
          yield* house.recorded(branch, "interrupt.answered ask#2")
          yield* Deferred.succeed(letGo, undefined)
          assert.deepStrictEqual(yield* house.client.result(Later, branch), ["b", "a"])
          const lines = (yield* house.lines(branch)).filter((line) => line.startsWith("interrupt.answered"))
          assert.deepStrictEqual(lines, ["interrupt.answered ask#1", "interrupt.answered ask#2"])
        })
      )
    })

    it.live("and the step beside them come in the order of the journal on every replay (B58)", () => {
      const work = Node.make("work", { input: Schema.Number, success: Schema.Number }, (n) =>
        Effect.as(Effect.yieldNow(), n)
      )
      const Race = Workflow.make("race", { version: "1", success: Schema.Unknown }, () =>
        Effect.gen(function* () {
          const order: Array<string> = []
          const noted = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
            Effect.tap(effect, () => Effect.sync(() => order.push(what)))
          yield* Effect.all(
            [noted("answer", Ask(1)), Effect.zipRight(noted("step", work(1)), noted("second", work(2)))],
            { concurrency: 2 }
          )
          yield* Ask(2)
          return order
        })
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const worker = Worker.layer({ workflows: [Race], residentBranches: 0 })
          let dismiss = yield* house.hire(worker)
          for (let n = 0; n < 10; n++) {
            const { branch } = yield* house.client.start(Race, undefined, { run: `r${n}` })
            yield* house.recorded(branch, "interrupt.opened ask#1")
            yield* answer(house, branch, 1, n)
            yield* house.recorded(branch, "interrupt.opened ask#2")
            const journaled = (yield* house.lines(branch))
              .map(
                (line) =>
                  ({
                    "interrupt.answered ask#1": "answer",
                    "step.succeeded work#1": "step",
                    "step.succeeded work#2": "second"
                  })[line]
              )
              .filter((what) => what !== undefined)
            yield* dismiss
            dismiss = yield* house.hire(worker)
            yield* answer(house, branch, 2, n)
            assert.deepStrictEqual(yield* house.client.result(Race, branch), journaled)
            // From every prefix of its history each time: more than 1,000 replays in all.
            const prefixes = (yield* house.history(branch)).length
            for (let replays = 0; replays < 100; replays += prefixes) {
              yield* Effect.provide(Testing.replayCheck(Race, branch), house.plane)
            }
          }
        })
      )
    })
  })
}
