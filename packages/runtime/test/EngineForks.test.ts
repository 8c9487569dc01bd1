/** Forks: the same checkpoint and the same outcomes give the same end, whatever else was done with it (FD, FI). */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Node, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Clock, Effect, Random, Schema } from "effect"
import { type House, play, until } from "./House.js"
import { Stage } from "./Stage.js"

const Ask = Interrupt.make("ask", { answer: Schema.String })
const counts = { before: 0, after: 0 }
const before = Node.make("before", { success: Schema.Number }, () => Effect.sync(() => ++counts.before))
const after = Node.make("after", { input: Schema.String, success: Schema.String }, (told) =>
  Effect.sync(() => (counts.after++, `did ${told}`))
)

const Choice = Workflow.make(
  "choice",
  {
    version: "1",
    success: Schema.Struct({ drawn: Schema.Number, ran: Schema.Number, did: Schema.String, again: Schema.Number })
  },
  () =>
    Effect.gen(function* () {
      const drawn = yield* Random.next
      const ran = yield* before()
      const did = yield* after(yield* Ask())
      return { drawn, ran, did, again: yield* Random.next }
    })
)

const waiting = (house: House, branch: string) => house.client.awaitStatus(branch, ({ status }) => status === "waiting")
const answer = (house: House, branch: string, value: string, interrupt = "ask#1") =>
  house.client.resume(Ask, { branch, interrupt, value, deliveryId: `d-${branch}-${value}`, intent: "retry" })
const forkWith = (house: House, branch: string, value: string, forkId: string, interrupt = "ask#1") =>
  house.client.resume(Ask, { branch, interrupt, value, deliveryId: `f-${forkId}`, intent: "fork", forkId })

describe("a fork", () => {
  for (const order of [
    ["yes", "no", "own"],
    ["own", "no", "yes"],
    ["no", "own", "yes"]
  ] as const) {
    it.live(`of one interrupt with two values gives each its own, in the order ${order.join(", ")}`, () =>
      play((house) =>
        Effect.gen(function* () {
          counts.before = counts.after = 0
          yield* house.hire(Testing.worker({ workflows: [Choice], residentBranches: order[0] === "own" ? 100 : 0 }))
          const { branch } = yield* house.client.start(Choice, undefined, { run: "r" })
          yield* waiting(house, branch)
          for (const which of order) {
            if (which === "own") yield* answer(house, branch, "maybe")
            else yield* forkWith(house, branch, which, `f-${which}`)
          }
          const own = yield* house.client.result(Choice, branch)
          const yes = yield* house.client.result(Choice, "r/f-yes")
          const no = yield* house.client.result(Choice, "r/f-no")
          assert.deepStrictEqual([own.did, yes.did, no.did], ["did maybe", "did yes", "did no"])
          // What lies before the fork is inherited, what is drawn after it follows from the same stream.
          assert.deepStrictEqual({ ...yes, did: "" }, { ...own, did: "" })
          assert.deepStrictEqual({ ...no, did: "" }, { ...own, did: "" })
          assert.deepStrictEqual(counts, { before: 1, after: 3 })
          for (const each of [branch, "r/f-yes", "r/f-no"] as const) {
            yield* Effect.provide(Testing.replayCheck(Choice, each as typeof branch), house.plane)
          }
        })
      )
    )
  }

  it.live("asked for again by its id is the same branch; with another value it is refused", () =>
    play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Choice] }))
        const { branch } = yield* house.client.start(Choice, undefined, { run: "r" })
        yield* waiting(house, branch)
        const first = yield* forkWith(house, branch, "yes", "f")
        const again = yield* forkWith(house, branch, "yes", "f")
        assert.deepInclude(again, { _tag: "Forked", created: false, branch: first.branch })
        assert.strictEqual((yield* Effect.flip(forkWith(house, branch, "no", "f")))._tag, "ForkIdReused")
        assert.strictEqual((yield* waiting(house, branch)).status, "waiting")
      })
    )
  )

  it.live("in the middle of what one event set off issues the rest anew", () => {
    const Two = Workflow.make("two", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.all([Ask(), Effect.as(Effect.sleep("1 hours"), "slept"), Ask()], { concurrency: 3 })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Two], residentBranches: 0 }))
        const { branch } = yield* house.client.start(Two, undefined, { run: "r" })
        yield* waiting(house, branch)
        const lines = yield* house.lines(branch)
        assert.deepStrictEqual(lines, [
          "run.started",
          "interrupt.opened ask#1",
          "timer.started sleep#1",
          "interrupt.opened ask#2"
        ])
        for (const seq of [1, 2, 3]) {
          const fork = yield* house.client.fork({ from: { branch, seq }, forkId: `f${seq}` })
          yield* waiting(house, fork.branch)
          assert.deepStrictEqual(yield* house.lines(fork.branch), lines)
          yield* answer(house, fork.branch, "2", "ask#2")
          yield* answer(house, fork.branch, "1", "ask#1")
        }
        yield* house.pass("1 hours")
        for (const seq of [1, 2, 3]) {
          assert.deepStrictEqual(yield* house.client.result(Two, `r/f${seq}`), ["1", "slept", "2"])
        }
        // An answer as the fork's first event comes before the rest of what it cut off.
        yield* forkWith(house, branch, "early", "early", "ask#1")
        const early = "r/early" as typeof branch
        yield* waiting(house, early)
        yield* answer(house, early, "late", "ask#2")
        assert.deepStrictEqual(yield* house.client.result(Two, early), ["early", "slept", "late"])
        yield* Effect.provide(Testing.replayCheck(Two, early), house.plane)
      })
    )
  })

  it.live("with an edited outcome goes on from there as if the step had ended so", () =>
    play((house) =>
      Effect.gen(function* () {
        counts.before = counts.after = 0
        yield* house.hire(Testing.worker({ workflows: [Choice] }))
        const { branch } = yield* house.client.start(Choice, undefined, { run: "r" })
        yield* waiting(house, branch)
        yield* answer(house, branch, "yes")
        const own = yield* house.client.result(Choice, branch)
        const fork = yield* house.client.forkWithOutcome(before, {
          branch,
          step: "before#1",
          forkId: "what-if",
          outcome: { _tag: "Success", value: 99 }
        })
        yield* waiting(house, fork.branch)
        yield* answer(house, fork.branch, "no")
        assert.deepStrictEqual(yield* house.client.result(Choice, fork.branch), { ...own, ran: 99, did: "did no" })
        assert.deepStrictEqual(counts, { before: 1, after: 2 })
        assert.deepStrictEqual(yield* house.client.result(Choice, branch), own)
        yield* Effect.provide(Testing.replayCheck(Choice, fork.branch), house.plane)
      })
    )
  )

  it.live("of a fork inherits through both, and every branch has its own end", () => {
    const Thrice = Workflow.make("thrice", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.forEach([1, 2, 3], () => Ask())
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Thrice], residentBranches: 0 }))
        const { branch } = yield* house.client.start(Thrice, undefined, { run: "r" })
        yield* house.recorded(branch, "interrupt.opened ask#1")
        yield* answer(house, branch, "a1", "ask#1")
        yield* house.recorded(branch, "interrupt.opened ask#2")
        yield* forkWith(house, branch, "b2", "b", "ask#2")
        const b = "r/b" as typeof branch
        yield* house.recorded(b, "interrupt.opened ask#3")
        yield* forkWith(house, b, "c3", "c", "ask#3")
        // The inherited gate is consumed on the fork too: it can be forked, not answered again.
        assert.strictEqual((yield* Effect.flip(answer(house, b, "again", "ask#1")))._tag, "AlreadyConsumed")
        yield* answer(house, b, "b3", "ask#3")
        yield* answer(house, branch, "a2", "ask#2")
        yield* house.recorded(branch, "interrupt.opened ask#3")
        yield* answer(house, branch, "a3", "ask#3")
        assert.deepStrictEqual(yield* house.client.result(Thrice, branch), ["a1", "a2", "a3"])
        assert.deepStrictEqual(yield* house.client.result(Thrice, b), ["a1", "b2", "b3"])
        assert.deepStrictEqual(yield* house.client.result(Thrice, "r/c"), ["a1", "b2", "c3"])
      })
    )
  })

  it.live("while a timer runs keeps the timer's due time, and fires it on its own", () => {
    const Timed = Workflow.make(
      "timed",
      { version: "1", success: Schema.Struct({ slept: Schema.Number, told: Schema.String }) },
      () =>
        Effect.gen(function* () {
          const begun = yield* Clock.currentTimeMillis
          const [told] = yield* Effect.all([Ask(), Effect.sleep("1 hours")], { concurrency: 2 })
          return { told, slept: (yield* Clock.currentTimeMillis) - begun }
        })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Timed] }))
        const { branch } = yield* house.client.start(Timed, undefined, { run: "r" })
        yield* waiting(house, branch)
        yield* house.pass("30 minutes")
        yield* forkWith(house, branch, "fork", "f")
        yield* house.client.awaitStatus(
          "r/f",
          ({ waitingFor }) => waitingFor.length === 1 && waitingFor[0]?._tag === "Time"
        )
        yield* house.pass("30 minutes")
        assert.deepStrictEqual(yield* house.client.result(Timed, "r/f"), { told: "fork", slept: 3_600_000 })
        yield* house.recorded(branch, "timer.fired sleep#1")
        yield* answer(house, branch, "own")
        assert.deepStrictEqual(yield* house.client.result(Timed, branch), { told: "own", slept: 3_600_000 })
      })
    )
  })

  it.live("while a step runs starts that step again on the fork, and leaves the first one alone", () => {
    const stage = new Stage()
    let begun = 0
    const work = Node.make("work", { success: Schema.Number }, () =>
      Effect.suspend(() => ((n) => Effect.as(stage.wait(`work ${n}`), n))(++begun))
    )
    const Working = Workflow.make("working", { version: "1", success: Schema.Number }, () => work())
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Working] }))
        const { branch } = yield* house.client.start(Working, undefined, { run: "r" })
        yield* until("the first body", () => stage.has("work 1"))
        const fork = yield* house.client.fork({ from: { branch, seq: 1 }, forkId: "f" })
        yield* until("the fork's body", () => stage.has("work 2"))
        stage.release("work 2")
        assert.strictEqual(yield* house.client.result(Working, fork.branch), 2)
        assert.isTrue(stage.has("work 1"))
        stage.release("work 1")
        assert.strictEqual(yield* house.client.result(Working, branch), 1)
      })
    )
  })
})
