/** Durable time: sleeps, timeouts and schedules are journaled, and go on where they were. */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Node, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Clock, Deferred, Duration, Effect, Exit, FiberId, Schedule, Schema } from "effect"
import { type House, play } from "./House.js"

const Ask = Interrupt.make("ask", { answer: Schema.String })
const nothing = Node.make("nothing", {}, () => Effect.void)

const dueOf = (house: House, branch: Parameters<House["history"]>[0], key = "sleep#1") =>
  Effect.map(house.history(branch), (entries) => {
    const started = entries.find((entry) => entry.kind === "timer.started" && entry.key === key)
    assert.isDefined(started)
    return (JSON.parse(started.payload) as { readonly due: number }).due
  })

const Sleeper = Workflow.make("sleeper", { version: "1", input: Schema.Number, success: Schema.Number }, (millis) =>
  Effect.gen(function* () {
    const begun = yield* Clock.currentTimeMillis
    yield* Effect.sleep(Duration.millis(millis))
    return (yield* Clock.currentTimeMillis) - begun
  })
)

describe("durable time", () => {
  it.live("a sleep ends at its due time, however many workers come and go meanwhile (B50)", () =>
    play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [Sleeper] })
        const first = yield* house.hire(worker)
        const { branch } = yield* house.client.start(Sleeper, 10_000, { run: "r" })
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* house.pass("8 seconds")
        yield* first
        yield* house.pass("1 seconds")
        const second = yield* house.hire(worker)
        yield* second
        yield* house.hire(worker)
        assert.notInclude(yield* house.lines(branch), "timer.fired sleep#1")
        yield* house.pass("1 seconds")
        assert.strictEqual(yield* house.client.result(Sleeper, branch), 10_000)
      })
    )
  )

  it.live("a sleep that came due while no worker ran is delivered late, and not before its due time", () =>
    play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [Sleeper] })
        const first = yield* house.hire(worker)
        const { branch } = yield* house.client.start(Sleeper, 10_000, { run: "r" })
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* first
        yield* house.pass("1 days")
        yield* house.hire(worker)
        assert.strictEqual(yield* house.client.result(Sleeper, branch), 86_400_000)
      })
    )
  )

  for (const millis of [2 ** 31 - 1, 2 ** 31, Duration.toMillis("30 days"), Duration.toMillis("3650 days")]) {
    it.live(`a sleep of ${millis} ms is not a millisecond early, over a restart midway (B67)`, () =>
      play((house) =>
        Effect.gen(function* () {
          const worker = Testing.worker({ workflows: [Sleeper] })
          const first = yield* house.hire(worker)
          const { branch } = yield* house.client.start(Sleeper, millis, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          yield* house.pass(Math.floor(millis / 2))
          yield* first
          yield* house.hire(worker)
          yield* house.pass(Math.ceil(millis / 2) - 1)
          // A step of another run shows that the worker had its turn since.
          const other = yield* house.client.start(Sleeper, 0, { run: "other" })
          yield* house.client.result(Sleeper, other)
          assert.strictEqual((yield* house.client.describe(branch)).status, "waiting")
          yield* house.pass(1)
          assert.strictEqual(yield* house.client.result(Sleeper, branch), millis)
        })
      )
    )
  }

  for (const millis of [0, -1, -(2 ** 40)]) {
    it.live(`a sleep of ${millis} ms is journaled like any other and ends at once (B67)`, () =>
      play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [Sleeper] }))
          const { branch } = yield* house.client.start(Sleeper, millis, { run: "r" })
          assert.strictEqual(yield* house.client.result(Sleeper, branch), 0)
          assert.deepStrictEqual(yield* house.lines(branch), [
            "run.started",
            "timer.started sleep#1",
            "timer.fired sleep#1",
            "run.completed"
          ])
        })
      )
    )
  }

  it.live("a timer that starts two steps waits for both, also if the first ends at once", () => {
    const letGo = Deferred.unsafeMake<void>(FiberId.none)
    const late = Node.make("late", {}, () => Deferred.await(letGo))
    const Both = Workflow.make("both", { version: "1" }, () =>
      Effect.sleep("500 millis").pipe(Effect.zipRight(Effect.all([nothing(), late()], { concurrency: "unbounded" })))
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Both] }))
        const { branch } = yield* house.client.start(Both, undefined, { run: "r" })
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* house.pass("500 millis")
        yield* house.recorded(branch, "step.succeeded nothing#1")
        yield* Deferred.succeed(letGo, undefined)
        yield* house.client.result(Both, branch)
      })
    )
  })

  it.live("an infinite sleep is refused where the workflow asks for it; NaN is none, as Effect has it (B67)", () => {
    const Endless = Workflow.make("endless", { version: "1", success: Schema.String }, () =>
      Effect.gen(function* () {
        yield* Effect.sleep(Duration.millis(Number.NaN))
        const exit = yield* Effect.exit(Effect.sleep(Duration.infinity))
        return Exit.isFailure(exit) ? String(exit.cause) : "it slept"
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Endless] }))
        const { branch } = yield* house.client.start(Endless, undefined, { run: "r" })
        assert.include(yield* house.client.result(Endless, branch), "finite duration")
        assert.deepStrictEqual(yield* house.lines(branch), [
          "run.started",
          "timer.started sleep#1",
          "timer.fired sleep#1",
          "run.completed"
        ])
      })
    )
  })

  it.live("a date in the past is waited for no longer (B67)", () => {
    const Until = Workflow.make("until", { version: "1", input: Schema.Number, success: Schema.Number }, (at) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* Effect.sleep(Duration.millis(at - now))
        return (yield* Clock.currentTimeMillis) - now
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Until] }))
        const { branch } = yield* house.client.start(Until, 1_000, { run: "r" })
        assert.strictEqual(yield* house.client.result(Until, branch), 0)
        assert.include(yield* house.lines(branch), "timer.fired sleep#1")
      })
    )
  })

  it.live("a timeout that runs out closes the interrupt it bounds", () => {
    const Bounded = Workflow.make("bounded", { version: "1", success: Schema.String }, () =>
      Effect.timeoutTo(Ask(), { duration: "2 days", onSuccess: (answer) => answer, onTimeout: () => "too late" })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Bounded], residentBranches: 0 }))
        const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.pass("2 days")
        assert.strictEqual(yield* house.client.result(Bounded, branch), "too late")
        assert.include(yield* house.lines(branch), "interrupt.closed ask#1")
        yield* Effect.provide(Testing.replayCheck(Bounded, branch), house.plane)
      })
    )
  })

  it.live(
    "a retry by a schedule waits durably between the tries, and goes on with the next one after a restart",
    () => {
      let calls = 0
      const flaky = Node.make("flaky", { success: Schema.Number, error: Schema.String }, () => {
        calls++
        return calls < 4 ? Effect.fail(`try ${calls}`) : Effect.succeed(calls)
      })
      const Retrying = Workflow.make("retrying", { version: "1", success: Schema.Number, error: Schema.String }, () =>
        Effect.retry(flaky(), Schedule.intersect(Schedule.exponential("1 hours"), Schedule.recurs(5)))
      )
      return play((house) =>
        Effect.gen(function* () {
          const worker = Testing.worker({ workflows: [Retrying] })
          const first = yield* house.hire(worker)
          const { branch } = yield* house.client.start(Retrying, undefined, { run: "r" })
          for (const n of [1, 2, 3]) {
            yield* house.recorded(branch, `timer.started sleep#${n}`)
            if (n === 2) {
              yield* first
              yield* house.hire(worker)
            }
            assert.strictEqual(calls, n)
            const due = yield* dueOf(house, branch, `sleep#${n}`)
            assert.strictEqual(due - house.clock.unsafeCurrentTimeMillis(), Duration.toMillis("1 hours") * 2 ** (n - 1))
            yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
            house.clock.set(due)
          }
          assert.strictEqual(yield* house.client.result(Retrying, branch), 4)
        })
      )
    }
  )

  it.live("the arm whose event comes first in the journal wins a race, and wins it again on replay (B61, B71)", () => {
    const Race = Workflow.make("race", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.forEach([1, 2, 3], () =>
        Effect.race(
          Effect.map(Ask(), (answer) => `told ${answer}`),
          Effect.as(Effect.sleep("1 minutes"), "slept")
        )
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Race], residentBranches: 0 }))
        const { branch } = yield* house.client.start(Race, undefined, { run: "r" })
        const answer = (n: number) =>
          house.client.resume(Ask, {
            branch,
            interrupt: `ask#${n}`,
            value: `${n}`,
            deliveryId: `d${n}`,
            intent: "retry"
          })
        yield* house.recorded(branch, "interrupt.opened ask#1")
        yield* answer(1)
        yield* house.recorded(branch, "timer.started sleep#2")
        yield* house.pass("1 minutes")
        yield* house.recorded(branch, "interrupt.opened ask#3")
        yield* answer(3)
        assert.deepStrictEqual(yield* house.client.result(Race, branch), ["told 1", "slept", "told 3"])
        yield* Effect.provide(Testing.replayCheck(Race, branch), house.plane)
      })
    )
  })

  it.live("a timer that fails its arm wins over an arm that never ends (B71)", () => {
    const Slow = Workflow.make("slow", { version: "1", success: Schema.String, error: Schema.String }, () =>
      Effect.raceFirst(Ask(), Effect.zipRight(Effect.sleep("100 millis"), Effect.fail("no answer")))
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Slow] }))
        const { branch } = yield* house.client.start(Slow, undefined, { run: "r" })
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* house.pass("99 millis")
        assert.notInclude(yield* house.lines(branch), "timer.fired sleep#1")
        yield* house.pass("1 millis")
        assert.strictEqual(yield* Effect.flip(house.client.result(Slow, branch)), "no answer")
      })
    )
  })

  it.live("time stands still between events, and never goes back", () => {
    const Watch = Workflow.make("watch", { version: "1", success: Schema.Array(Schema.Number) }, () =>
      Effect.gen(function* () {
        const times: Array<number> = []
        for (let n = 0; n < 3; n++) {
          times.push(yield* Clock.currentTimeMillis, yield* Clock.currentTimeMillis)
          yield* nothing()
          yield* Ask()
        }
        return times
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Watch] }))
        const { branch } = yield* house.client.start(Watch, undefined, { run: "r" })
        for (const n of [1, 2, 3]) {
          yield* house.recorded(branch, `interrupt.opened ask#${n}`)
          // The host's clock steps back (B20): what is journaled does not.
          house.clock.set(house.clock.unsafeCurrentTimeMillis() + (n === 1 ? -86_400_000 : 3_600_000))
          yield* house.client.resume(Ask, {
            branch,
            interrupt: `ask#${n}`,
            value: "",
            deliveryId: `d${n}`,
            intent: "retry"
          })
        }
        const times = yield* house.client.result(Watch, branch)
        for (let n = 0; n < times.length; n += 2) assert.strictEqual(times[n], times[n + 1])
        assert.deepStrictEqual(
          [...times].sort((a, b) => a - b),
          [...times]
        )
        const entries = yield* house.history(branch)
        for (const [index, entry] of entries.entries()) assert.isAtLeast(entry.at, entries[index - 1]?.at ?? 0)
        yield* Effect.provide(Testing.replayCheck(Watch, branch), house.plane)
      })
    )
  })
})
