/** Answers: what is accepted is delivered, once, before what came later; or its receipt says why not (CO, LV). */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Node, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Schema } from "effect"
import { play, until } from "./House.js"
import { Stage, turn } from "./Stage.js"

const Ask = Interrupt.make("ask", { answer: Schema.Unknown })
const Bounded = Workflow.make("bounded", { version: "1", success: Schema.Unknown }, () =>
  Effect.timeoutTo(Ask(), { duration: "1 hours", onSuccess: (answer) => ({ answer }), onTimeout: () => "timed out" })
)
const answer = (branch: string, value: unknown, deliveryId = "d") =>
  ({ branch, interrupt: "ask#1", value, deliveryId, intent: "retry" }) as const

describe("an answer", () => {
  it.live(
    "accepted before the timer of its timeout was journaled is delivered first, also when both are due (B58, B61)",
    () =>
      play((house) =>
        Effect.gen(function* () {
          const dismiss = yield* house.hire(Testing.worker({ workflows: [Bounded] }))
          const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          yield* dismiss
          // The timer is overdue when the answer comes; nobody was there to journal it.
          yield* house.pass("2 hours")
          yield* house.client.resume(Ask, answer(branch, false))
          yield* house.hire(Testing.worker({ workflows: [Bounded] }))
          assert.deepStrictEqual(yield* house.client.result(Bounded, branch), { answer: false })
          assert.notInclude(yield* house.lines(branch), "timer.fired sleep#1")
        })
      )
  )

  it.live("accepted while a worker holds the branch comes before the timer that is due in the same moment", () =>
    play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Bounded] }))
        const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.client.resume(Ask, answer(branch, 0))
        yield* house.pass("1 hours")
        assert.deepStrictEqual(yield* house.client.result(Bounded, branch), { answer: 0 })
        yield* Effect.provide(Testing.replayCheck(Bounded, branch), house.plane)
      })
    )
  )

  it.live("that comes after the timeout is refused, with what became of its interrupt", () =>
    play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Bounded] }))
        const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
        yield* house.pass("1 hours")
        assert.strictEqual(yield* house.client.result(Bounded, branch), "timed out")
        assert.strictEqual((yield* Effect.flip(house.client.resume(Ask, answer(branch, 1))))._tag, "InterruptClosed")
        assert.strictEqual((yield* house.lines(branch)).at(-1), "run.completed")
      })
    )
  )

  it.live("whose interrupt lost its race before it was served is not dropped in silence: its receipt says so", () => {
    const stage = new Stage()
    let answered = false
    const work = Node.make("work", { success: Schema.String }, () => Effect.as(stage.wait("work"), "work won"))
    const go = Node.make("go", {}, () => stage.wait("go"))
    const spin: Effect.Effect<void> = Effect.suspend(() =>
      answered ? Effect.void : Effect.zipRight(Effect.yieldNow(), spin)
    )
    const Race = Workflow.make("race", { version: "1", success: Schema.Unknown }, () =>
      Effect.map(
        Effect.all([Effect.race(Ask(), work()), Effect.zipRight(go(), spin)], { concurrency: 2 }),
        ([winner]) => winner
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Race] }))
        const { branch } = yield* house.client.start(Race, undefined, { run: "r" })
        yield* until("the bodies", () => stage.has("work") && stage.has("go"))
        // While the branch is busy with one event, the step ends, and then the answer is accepted.
        stage.release("go")
        yield* house.recorded(branch, "step.succeeded go#1")
        stage.release("work")
        yield* turn
        const accepted = yield* house.client.resume(Ask, answer(branch, "too late"))
        answered = true
        assert.deepInclude(accepted, { _tag: "Answered", verdict: "Accepted", unserved: null })
        assert.strictEqual(yield* house.client.result(Race, branch), "work won")
        const lines = yield* house.lines(branch)
        assert.include(lines, "inbox.unserved answer:ask#1")
        const receipt = yield* house.client.resume(Ask, answer(branch, "too late"))
        assert.deepInclude(receipt, { _tag: "Answered", verdict: "Duplicate" })
        assert.isString("unserved" in receipt ? receipt.unserved : null)
        yield* Effect.provide(Testing.replayCheck(Race, branch), house.plane)
      })
    )
  })

  it.live("delivered while the branch parks wakes it all the same, at every turn of its parking (B64)", () =>
    play((house) =>
      Effect.gen(function* () {
        const Quick = Workflow.make("quick", { version: "1", success: Schema.Unknown }, () => Ask())
        yield* house.hire(Testing.worker({ workflows: [Quick] }))
        yield* Effect.forEach(
          Array.from({ length: 60 }, (_, n) => n),
          (n) =>
            Effect.gen(function* () {
              const { branch } = yield* house.client.start(Quick, undefined, { run: `r${n}` })
              // Refused until the interrupt is there; accepted at the first moment that it is.
              for (let turns = 0; ; turns++) {
                const sent = yield* Effect.either(house.client.resume(Ask, answer(branch, n)))
                if (sent._tag === "Right") break
                assert.strictEqual(sent.left._tag, "UnknownInterrupt")
                yield* turn
                for (let waits = 0; waits < n % 5; waits++) yield* Effect.yieldNow()
              }
              assert.strictEqual(yield* house.client.result(Quick, branch), n)
              // The sender whose reply was lost tells it again: harmless.
              assert.deepInclude(yield* house.client.resume(Ask, answer(branch, n)), { verdict: "Duplicate" })
            }),
          { concurrency: 20, discard: true }
        )
      })
    )
  )
})
