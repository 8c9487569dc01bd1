/** Cases of steps and what they return or throw (PC, EO, CV). */
import { assert, describe, it } from "@effect/vitest"
import type { Ledger } from "@fermata/ledger"
import { type Client, Interrupt, Node, Worker, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Cause, Clock, Effect, Exit, type Layer, Random, Schema } from "effect"
import { isDeepStrictEqual } from "node:util"
import { type House, playOn, until } from "./House.js"
import { Stage } from "./Stage.js"

const Ask = Interrupt.make("ask", { answer: Schema.String })
const answer = (house: House, branch: string, n = 1) =>
  house.client.resume(Ask, { branch, interrupt: `ask#${n}`, value: "on", deliveryId: `d${n}`, intent: "retry" })

/** An object that holds itself, or the same one twice. */
const looped = (): unknown => {
  const self: Record<string, unknown> = {}
  self["self"] = self
  return self
}

export const outcomeCases = <E>(name: string, plane: Layer.Layer<Ledger | Client.Client, E>): void => {
  /** Runs to the first pause, changes the worker, and goes on: the outcome as another process reads it. */
  const overRestart = <A, E2>(
    workflow: Workflow.Workflow<string, void, A, E2, never>,
    use: (house: House, exit: Exit.Exit<A, unknown>) => Effect.Effect<void, unknown>
  ) =>
    playOn(plane, (house) =>
      Effect.gen(function* () {
        const worker = Worker.layer({ workflows: [workflow], residentBranches: 0 })
        const dismiss = yield* house.hire(worker)
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.recorded(branch, "interrupt.opened ask#1")
        yield* dismiss
        yield* house.hire(worker)
        yield* answer(house, branch)
        yield* use(house, yield* Effect.exit(house.client.result(workflow, branch)))
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  const value = <A>(exit: Exit.Exit<A, unknown>): A => {
    if (Exit.isFailure(exit)) throw new Error(Cause.pretty(exit.cause))
    return exit.value
  }

  describe(`outcomes on ${name}`, () => {
    it.live("keep fields that are false, zero, empty or null (B04)", () => {
      const state = { f: false, n: 0, s: "", z: null }
      const set = Node.make("set", { success: Schema.Unknown }, () => Effect.succeed(state))
      const Keeps = Workflow.make("keeps", { version: "1", success: Schema.Unknown }, () =>
        Effect.zipLeft(set(), Ask())
      )
      return overRestart(Keeps, (_, exit) => Effect.sync(() => assert.deepStrictEqual(value(exit), state)))
    })

    it.live("may hold one object twice, and are refused with the path if they hold themselves (B21)", () => {
      const shared = { a: 1 }
      const twice = Node.make("twice", { success: Schema.Unknown }, () => Effect.succeed({ a: shared, b: shared }))
      const cyclic = Node.make("cyclic", { success: Schema.Unknown }, () => Effect.sync(looped))
      const Both = Workflow.make("both", { version: "1", success: Schema.Unknown }, () =>
        Effect.gen(function* () {
          const fine = yield* twice()
          const refused = yield* Effect.exit(cyclic())
          yield* Ask()
          return [fine, Exit.isFailure(refused) ? Cause.pretty(refused.cause) : "accepted"]
        })
      )
      return overRestart(Both, (_, exit) =>
        Effect.sync(() => {
          const [fine, refused] = value(exit) as [unknown, string]
          assert.deepStrictEqual(fine, { a: { a: 1 }, b: { a: 1 } })
          assert.include(refused, "self")
          assert.include(refused, "cyclic#1")
        })
      )
    })

    it.live("that look like a serializer's own envelope come back as plain data (B22)", () => {
      const sly = [
        { _tag: "Some", value: 1 },
        { _id: "Exit", _tag: "Failure", cause: { _id: "Cause" } },
        { lc: 1, type: "constructor", id: ["x"] },
        { $date: 0 },
        { __type: "Map", value: [] }
      ]
      const give = Node.make("give", { success: Schema.Unknown }, () => Effect.succeed(sly))
      const Plain = Workflow.make("plain", { version: "1", success: Schema.Unknown }, () =>
        Effect.zipLeft(give(), Ask())
      )
      return overRestart(Plain, (_, exit) =>
        Effect.sync(() => {
          const read = value(exit) as Array<object>
          assert.deepStrictEqual(read, sly)
          for (const each of read) assert.strictEqual(Object.getPrototypeOf(each), Object.prototype)
        })
      )
    })

    it.live("that a Schema declares come back deep-equal; what cannot be kept is refused, never null (B43)", () => {
      const Rich = Schema.Struct({
        date: Schema.Date,
        map: Schema.Map({ key: Schema.String, value: Schema.BigInt }),
        set: Schema.Set(Schema.Number),
        bytes: Schema.Uint8Array,
        big: Schema.BigInt
      })
      const rich = {
        date: new Date(0),
        map: new Map([["a", 1n]]),
        set: new Set([1, 2]),
        bytes: new Uint8Array([0, 255]),
        big: 2n ** 70n
      }
      const bad: ReadonlyArray<unknown> = [
        new Date(Number.NaN),
        new Map(),
        new Set(),
        1n,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        [undefined],
        Array.from({ length: 2 }),
        new (class Own {
          readonly field = 1
        })(),
        () => 1,
        Symbol("s")
      ]
      const give = Node.make("give", { success: Rich }, () => Effect.succeed(rich))
      const spoil = Node.make("spoil", { input: Schema.Number, success: Schema.Unknown }, (index) =>
        Effect.succeed({ in: bad[index] })
      )
      const Values = Workflow.make(
        "values",
        { version: "1", success: Schema.Struct({ same: Schema.Boolean, refused: Schema.Array(Schema.String) }) },
        () =>
          Effect.gen(function* () {
            const read = yield* give()
            const refused: Array<string> = []
            for (const [index] of bad.entries()) {
              const exit = yield* Effect.exit(spoil(index))
              const kept = (value: unknown): boolean => isDeepStrictEqual(value, { in: bad[index] })
              refused.push(
                Exit.isFailure(exit) ? Cause.pretty(exit.cause) : kept(exit.value) ? "kept" : `spoilt value ${index}`
              )
            }
            yield* Ask()
            return {
              same:
                read.date.getTime() === 0 &&
                read.map.get("a") === 1n &&
                read.set.has(2) &&
                read.bytes[1] === 255 &&
                read.big === 2n ** 70n,
              refused
            }
          })
      )
      return overRestart(Values, (_, exit) =>
        Effect.sync(() => {
          const { refused, same } = value(exit)
          assert.isTrue(same)
          assert.isAbove(refused.filter((text) => text !== "kept").length, 3)
          for (const [index, text] of refused.entries()) {
            // The path of what is refused, or the very value.
            if (text !== "kept") assert.include(text, "$.in", `value ${index}`)
            assert.notInclude(text, "spoilt")
          }
        })
      )
    })

    it.live("that are defects keep name, message, code and causes (B52)", () => {
      class Refused extends Error {
        override readonly name = "Refused"
        readonly code = "E_REFUSED"
      }
      const cyclic = new Error("cyclic")
      Object.assign(cyclic, { cause: cyclic })
      const thrown: ReadonlyArray<unknown> = [
        new Refused("no", { cause: new TypeError("second", { cause: new Error("third", { cause: "root" }) }) }),
        new AggregateError([new Error("one"), new RangeError("two")], "several"),
        "text",
        undefined,
        cyclic
      ]
      const fail = Node.make("fail", { input: Schema.Number }, (index) => Effect.die(thrown[index]))
      const told = (error: unknown, depth = 0): unknown =>
        error instanceof Error && depth < 4
          ? [
              error.name,
              error.message,
              Reflect.get(error, "code") ?? null,
              told(error.cause, depth + 1),
              error instanceof AggregateError ? error.errors.map((each) => told(each, depth + 1)) : null
            ]
          : String(error)
      const Errors = Workflow.make("errors", { version: "1", success: Schema.Unknown }, () =>
        Effect.gen(function* () {
          const seen: Array<unknown> = []
          for (const [index] of thrown.entries()) {
            const exit = yield* Effect.exit(fail(index))
            seen.push(Exit.isFailure(exit) ? told(Cause.squash(exit.cause)) : "it did not fail")
          }
          yield* Ask()
          return seen
        })
      )
      return overRestart(Errors, (_, exit) =>
        Effect.sync(() => {
          const [refused, several, text] = value(exit) as ReadonlyArray<unknown>
          assert.deepStrictEqual(refused, told(thrown[0]))
          assert.deepStrictEqual(several, told(thrown[1]))
          assert.strictEqual(text, "text")
        })
      )
    })

    it.live("that cannot be encoded fail their own run with a substitute, and no other (B56)", () => {
      const huge = "x".repeat(5_000_000)
      const details: ReadonlyArray<unknown> = [
        looped(),
        1n,
        () => 1,
        huge,
        Object.assign(new Error("with details"), { details: looped(), big: 1n })
      ]
      const fail = Node.make("fail", { input: Schema.Number }, (index) => Effect.die(details[index]))
      const Fails = Workflow.make("fails", { version: "1", input: Schema.Number }, (index) => fail(index))
      const Fine = Workflow.make("fine", { version: "1", success: Schema.String }, () => Ask())
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          yield* house.hire(Worker.layer({ workflows: [Fails, Fine] }))
          const fine = yield* house.client.start(Fine, undefined, { run: "fine" })
          yield* house.recorded(fine.branch, "interrupt.opened ask#1")
          for (const [index] of details.entries()) {
            const { branch } = yield* house.client.start(Fails, index, { run: `r${index}` })
            assert.deepInclude(yield* Effect.flip(house.client.result(Fails, branch)), { _tag: "RunDied" })
          }
          yield* answer(house, fine.branch)
          assert.strictEqual(yield* house.client.result(Fine, fine), "on")
        })
      )
    })

    it.live(
      "of parallel steps keep their names, in whatever order they end, over a restart after any of them (B53)",
      () => {
        const stage = new Stage()
        let begun: Array<string> = []
        const work = Node.make("work", { input: Schema.String, success: Schema.String }, (which) =>
          Effect.suspend(() => (begun.push(which), Effect.as(stage.wait(which), `${which} done`)))
        )
        const Parallel = Workflow.make("parallel", { version: "1", success: Schema.Array(Schema.String) }, () =>
          Effect.all([work("a"), work("b"), work("c")], { concurrency: 3 })
        )
        const orders = [
          ["a", "b", "c"],
          ["c", "b", "a"],
          ["b", "a", "c"],
          ["b", "c", "a"]
        ] as const
        return playOn(plane, (house) =>
          Effect.gen(function* () {
            const worker = Worker.layer({ workflows: [Parallel] })
            for (const [index, order] of orders.entries()) {
              for (const killAfter of [1, 2]) {
                begun = []
                let dismiss = yield* house.hire(worker)
                const { branch } = yield* house.client.start(Parallel, undefined, { run: `r${index}-${killAfter}` })
                for (const [ended, which] of order.entries()) {
                  yield* until(which, () => stage.has(which))
                  if (ended === killAfter) {
                    yield* dismiss
                    yield* until("the bodies' end", () => stage.names.length === 0)
                    dismiss = yield* house.hire(worker)
                    yield* until(which, () => stage.has(which))
                  }
                  stage.release(which)
                  yield* house.recorded(branch, `step.succeeded work#${"abc".indexOf(which) + 1}`)
                }
                assert.deepStrictEqual(yield* house.client.result(Parallel, branch), ["a done", "b done", "c done"])
                yield* dismiss
                // What had ended did not begin again; what had not, did.
                assert.deepStrictEqual([...begun].sort(), ["a", "b", "c", ...order.slice(killAfter)].sort())
              }
            }
          })
        )
      }
    )

    it.live("are recorded in order: what a worker finished before it went is never run again (B30)", () => {
      const counts = [0, 0, 0]
      const stage = new Stage()
      const step = Node.make("step", { input: Schema.Number }, (n) =>
        Effect.suspend(() => ((counts[n] = (counts[n] ?? 0) + 1), stage.wait(`step ${n}`)))
      )
      const Steps = Workflow.make("steps", { version: "1" }, () =>
        Effect.forEach([0, 1, 2], (n) => step(n), { discard: true })
      )
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const worker = Worker.layer({ workflows: [Steps] })
          const { branch } = yield* house.client.start(Steps, undefined, { run: "r" })
          for (const n of [0, 1, 2]) {
            const dismiss = yield* house.hire(worker)
            yield* until("the step", () => stage.has(`step ${n}`))
            stage.release(`step ${n}`)
            yield* house.recorded(branch, `step.succeeded step#${n + 1}`)
            yield* dismiss
            yield* until("the body's end", () => stage.names.length === 0)
          }
          yield* house.hire(worker)
          yield* house.client.result(Steps, branch)
          // A step that was begun and not finished by the leaving worker begins again; none that had finished does.
          assert.strictEqual(counts[0], 1)
          assert.isAtMost(counts[1] ?? 0, 2)
          assert.isAtMost(counts[2] ?? 0, 2)
        })
      )
    })

    it.live("of one node called three times are three (B75)", () => {
      let calls = 0
      const call = Node.make("call", { input: Schema.Number, success: Schema.Number }, () => Effect.sync(() => ++calls))
      const Thrice = Workflow.make("thrice", { version: "1", success: Schema.Array(Schema.Number) }, () =>
        Effect.zipLeft(
          Effect.forEach([7, 7, 7], (n) => call(n)),
          Ask()
        )
      )
      return overRestart(Thrice, (_, exit) =>
        Effect.sync(() => {
          assert.deepStrictEqual(value(exit), [1, 2, 3])
          assert.strictEqual(calls, 3)
        })
      )
    })

    it.live("of time and chance are the same on replay (B60)", () => {
      const seen: Array<ReadonlyArray<number>> = []
      const Draws = Workflow.make("draws", { version: "1", success: Schema.Array(Schema.Number) }, () =>
        Effect.gen(function* () {
          const first = [yield* Random.next, yield* Clock.currentTimeMillis]
          seen.push(first)
          yield* Ask()
          return [...first, yield* Random.next]
        })
      )
      return overRestart(Draws, (_, exit) =>
        Effect.sync(() => {
          assert.isAtLeast(seen.length, 2)
          for (const each of seen) assert.deepStrictEqual(each, seen[0])
          assert.deepStrictEqual(value(exit).slice(0, 2), seen[0])
          assert.notStrictEqual(value(exit)[2], value(exit)[0])
        })
      )
    })

    it.live("of a timed wait count from its first start, not from the restart (B50)", () => {
      const Timed = Workflow.make("timed", { version: "1" }, () => Effect.sleep("1500 millis"))
      return playOn(plane, (house) =>
        Effect.gen(function* () {
          const worker = Worker.layer({ workflows: [Timed] })
          const dismiss = yield* house.hire(worker)
          const { branch } = yield* house.client.start(Timed, undefined, { run: "r" })
          yield* house.recorded(branch, "timer.started sleep#1")
          yield* dismiss
          yield* house.hire(worker)
          yield* house.client.result(Timed, branch)
          const entries = yield* house.history(branch)
          const at = (kind: string) => entries.find((entry) => entry.kind === kind)?.at ?? 0
          const due = (
            JSON.parse(entries.find(({ kind }) => kind === "timer.started")?.payload ?? "{}") as {
              readonly due: number
            }
          ).due
          assert.strictEqual(due - at("run.started"), 1500)
          assert.isAtLeast(at("timer.fired"), due)
          assert.strictEqual(entries.filter(({ kind }) => kind === "timer.started").length, 1)
        })
      )
    })

    it.live("of a race with a timer are decided by the journal (B61)", () => {
      const Race = Workflow.make("race", { version: "1", success: Schema.String }, () =>
        Effect.zipLeft(
          Effect.race(Effect.as(Effect.sleep("50 millis"), "timer"), Effect.as(Effect.sleep("1 hours"), "never")),
          Ask()
        )
      )
      return overRestart(Race, (_, exit) => Effect.sync(() => assert.strictEqual(value(exit), "timer")))
    })
  })
}
