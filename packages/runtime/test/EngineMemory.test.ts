/** What a branch costs while it waits, and that memory is only a cache of the journal. */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Node, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Fiber, Layer, Logger, Queue, Schema } from "effect"
import { globalValue } from "effect/GlobalValue"
import { play } from "./House.js"
import { turn } from "./Stage.js"

const Ask = Interrupt.make("ask", { answer: Schema.String })
const roots = globalValue(
  Symbol.for("effect/FiberScope/Global"),
  (): { readonly roots: Set<Fiber.RuntimeFiber<unknown, unknown>> } => ({ roots: new Set() })
)

/** Counts intervals that are alive while `effect` runs. */
const countingIntervals = <A, E, R>(effect: (alive: () => number) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { clearInterval, setInterval } = globalThis
    const alive = new Set<unknown>()
    globalThis.setInterval = ((...parameters: Parameters<typeof setInterval>) => {
      const interval = setInterval(...parameters)
      alive.add(interval)
      return interval
    }) as typeof setInterval
    globalThis.clearInterval = (interval) => {
      alive.delete(interval)
      clearInterval(interval)
    }
    return Effect.ensuring(
      effect(() => alive.size),
      Effect.sync(() => Object.assign(globalThis, { clearInterval, setInterval }))
    )
  })

describe("a waiting branch", () => {
  it.live("that was evicted leaves no fiber and no interval behind", () => {
    const Busy = Workflow.make("busy", { version: "1", success: Schema.String }, () =>
      Effect.gen(function* () {
        const queue = yield* Queue.unbounded<number>()
        yield* Effect.forkDaemon(Effect.never)
        yield* Effect.forkScoped(Queue.take(queue))
        yield* Effect.fork(Effect.zipRight(Effect.sleep("30 days"), Effect.never))
        return yield* Effect.race(Ask(), Effect.never)
      })
    )
    return countingIntervals((alive) =>
      play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [Busy], residentBranches: 0 }))
          for (let turns = 0; turns < 20; turns++) yield* turn
          const before = { roots: roots.roots.size, intervals: alive() }
          for (let n = 0; n < 50; n++) {
            const { branch } = yield* house.client.start(Busy, undefined, { run: `r${n}` })
            yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          }
          for (let turns = 0; turns < 20; turns++) yield* turn
          // The 30-day timers are rows of the database, not of this process.
          assert.isAtMost(roots.roots.size, before.roots + 5)
          assert.isAtMost(alive(), before.intervals + 5)
          yield* house.client.resume(Ask, {
            branch: "r7/main",
            interrupt: "ask#1",
            value: "on",
            deliveryId: "d",
            intent: "retry"
          })
          assert.strictEqual(yield* house.client.result(Busy, "r7"), "on")
        })
      )
    )
  })

  it.live("that is kept goes on without replay; one that was not is replayed; bodies of nodes run once in both", () => {
    const counts = { bodies: 0, steps: 0 }
    const step = Node.make("step", {}, () => Effect.sync(() => void counts.steps++))
    const Counted = Workflow.make("counted", { version: "1", success: Schema.String }, () =>
      Effect.zipRight(
        Effect.sync(() => void counts.bodies++),
        Effect.zipRight(step(), Ask())
      )
    )
    const once = (residentBranches: number) =>
      play((house) =>
        Effect.gen(function* () {
          counts.bodies = counts.steps = 0
          yield* house.hire(Testing.worker({ workflows: [Counted], residentBranches }))
          const { branch } = yield* house.client.start(Counted, undefined, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          yield* house.client.resume(Ask, { branch, interrupt: "ask#1", value: "on", deliveryId: "d", intent: "retry" })
          assert.strictEqual(yield* house.client.result(Counted, branch), "on")
          return { ...counts }
        })
      )
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* once(100), { bodies: 1, steps: 1 })
      assert.deepStrictEqual(yield* once(0), { bodies: 2, steps: 1 })
    })
  })

  it.live("logs what its workflow says once, however often it is replayed", () => {
    const told: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void told.push(String(message)))
    const Talking = Workflow.make("talking", { version: "1" }, () =>
      Effect.forEach(
        [1, 2, 3],
        (n) => Effect.zipRight(Effect.log(`before ${n}`), Effect.zipRight(Ask(), Effect.log(`after ${n}`))),
        { discard: true }
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [Talking], residentBranches: 0 }).pipe(
          Layer.provide(Logger.add(logger))
        )
        yield* Effect.provide(house.hire(worker), Logger.add(logger))
        const { branch } = yield* house.client.start(Talking, undefined, { run: "r" })
        for (const n of [1, 2, 3]) {
          yield* house.recorded(branch, `interrupt.opened ask#${n}`)
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          yield* house.client.resume(Ask, {
            branch,
            interrupt: `ask#${n}`,
            value: "",
            deliveryId: `d${n}`,
            intent: "retry"
          })
        }
        yield* house.client.result(Talking, branch)
        assert.deepStrictEqual(
          told,
          [1, 2, 3].flatMap((n) => [`before ${n}`, `after ${n}`])
        )
      })
    )
  })
})

describe("a run that is started while its only worker leaves", () => {
  it.live("is finished by the next one, wherever in its leaving it was started", () => {
    const Short = Workflow.make("short", { version: "1", input: Schema.Number, success: Schema.Number }, (n) =>
      Effect.succeed(n)
    )
    const worker = Testing.worker({ workflows: [Short] })
    return play((house) =>
      Effect.gen(function* () {
        for (let pause = 0; pause < 30; pause++) {
          const dismiss = yield* house.hire(worker)
          // Each time the start falls into another part of the worker's leaving.
          const leaving = yield* Effect.fork(dismiss)
          for (let turns = 0; turns < pause; turns++) yield* Effect.yieldNow()
          const handle = yield* house.client.start(Short, pause)
          yield* Fiber.join(leaving)
          const dismissNext = yield* house.hire(worker)
          assert.strictEqual(yield* house.client.result(Short, handle), pause)
          yield* dismissNext
        }
        const owned = yield* house.ledger.sql`SELECT branch_id FROM fermata_branches WHERE owner IS NOT NULL`
        assert.deepStrictEqual(owned, [])
      })
    )
  })
})
