/** Retry policies of nodes: attempts are journaled, pauses are durable, and the caller sees the last error once. */
import { assert, describe, it } from "@effect/vitest"
import { Delivery, Node, type RunError, SideEffect, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Duration, Effect, Layer, Schema } from "effect"
import { play, until } from "./House.js"
import { Stage } from "./Stage.js"

class Busy extends Schema.TaggedError<Busy>()("Busy", { attempt: Schema.Number, final: Schema.Boolean }) {}

/** A node that always fails, with how often it ran; and the compensation that its caller does. */
const failing = (retry: Node.RetryPolicy<Busy> | undefined, final = false) => {
  const counts = { attempts: 0, compensations: 0 }
  const fail = Node.make(
    "fail",
    { success: Schema.String, error: Busy, ...(retry === undefined ? {} : { retry }) },
    () => Effect.suspend(() => Effect.fail(new Busy({ attempt: ++counts.attempts, final })))
  )
  const compensate = Node.make("compensate", {}, () => Effect.sync(() => void counts.compensations++))
  const workflow = Workflow.make("caller", { version: "1", success: Schema.String }, () =>
    Effect.catchAll(fail(), (error) => Effect.as(compensate(), `caught attempt ${error.attempt}`))
  )
  return { counts, workflow }
}

describe("a node's retry policy", () => {
  for (const [name, retry, final, attempts] of [
    ["without a policy the caller catches the first error", undefined, false, 1],
    ["with three retries the caller catches the fourth error, once", { times: 3 }, false, 4],
    [
      "an error that the policy calls final is not tried again",
      { times: 3, while: (error: Busy) => !error.final },
      true,
      1
    ]
  ] as const) {
    it.live(`${name} (B69)`, () => {
      const { counts, workflow } = failing(retry, final)
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [workflow] }))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          assert.strictEqual(yield* house.client.result(workflow, branch), `caught attempt ${attempts}`)
          assert.deepStrictEqual(counts, { attempts, compensations: 1 })
          assert.deepStrictEqual(yield* house.lines(branch), [
            "run.started",
            ...Array.from({ length: attempts - 1 }, () => "step.retried fail#1"),
            "step.failed fail#1",
            "step.succeeded compensate#1",
            "run.completed"
          ])
          yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
        })
      )
    })
  }

  it.live("pauses between attempts grow by the factor up to the longest, and are durable", () => {
    const { counts, workflow } = failing({ times: 4, delay: "10 minutes", factor: 3, maxDelay: "1 hours" })
    return play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [workflow] })
        const first = yield* house.hire(worker)
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        for (const [index, pause] of (["10 minutes", "30 minutes", "1 hours", "1 hours"] as const).entries()) {
          const waiting = yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting")
          assert.strictEqual(counts.attempts, index + 1)
          // A new worker begins no earlier than the pause that the first one recorded ends.
          if (index === 1) {
            yield* first
            yield* house.hire(worker)
          }
          yield* house.pass(Duration.subtract(Duration.decode(pause), "1 millis"))
          assert.strictEqual(counts.attempts, index + 1, JSON.stringify(waiting))
          yield* house.pass("1 millis")
          yield* until("the next attempt", () => counts.attempts === index + 2)
        }
        assert.strictEqual(yield* house.client.result(workflow, branch), "caught attempt 5")
        assert.strictEqual(counts.compensations, 1)
      })
    )
  })

  it.live("a lost worker is not an attempt", () => {
    const stage = new Stage()
    let begun = 0
    const work = Node.make("work", { success: Schema.String, error: Schema.String, retry: { times: 1 } }, () =>
      Effect.suspend(() =>
        Effect.zipRight(stage.wait(`attempt ${++begun}`), begun < 7 ? Effect.fail("not yet") : Effect.succeed("done"))
      )
    )
    const Working = Workflow.make("working", { version: "1", success: Schema.String, error: Schema.String }, () =>
      work()
    )
    return play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [Working] })
        const { branch } = yield* house.client.start(Working, undefined, { run: "r" })
        for (let lost = 1; lost <= 5; lost++) {
          const dismiss = yield* house.hire(worker)
          yield* until("the body", () => stage.has(`attempt ${lost}`))
          yield* dismiss
        }
        yield* house.hire(worker)
        yield* until("the body", () => stage.has("attempt 6"))
        stage.release("attempt 6")
        yield* until("the second attempt", () => stage.has("attempt 7"))
        stage.release("attempt 7")
        assert.strictEqual(yield* house.client.result(Working, branch), "done")
        assert.deepStrictEqual(
          (yield* house.lines(branch)).filter((line) => line.startsWith("step.")),
          ["step.retried work#1", "step.succeeded work#1"]
        )
      })
    )
  })

  it.live("a defect is not retried", () => {
    let begun = 0
    const dies = Node.make("dies", { error: Schema.String, retry: { times: 3 } }, () =>
      Effect.suspend(() => Effect.dieMessage(`broken ${++begun}`))
    )
    const Dying = Workflow.make("dying", { version: "1", error: Schema.String }, () => dies())
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Dying] }))
        const { branch } = yield* house.client.start(Dying, undefined, { run: "r" })
        const error = yield* Effect.flip(house.client.result(Dying, branch))
        assert.include(String((error as RunError.RunDied).message), "broken 1")
        assert.strictEqual(begun, 1)
      })
    )
  })

  it.live(
    "effects of an earlier attempt are served, a typed error's key is closed, and the next attempt has a new one",
    () => {
      const fired: Array<string> = []
      const effect = <const N extends string>(name: N) =>
        SideEffect.make(name, {
          delivery: Delivery.keyed,
          input: Schema.Number,
          success: Schema.Number,
          error: Schema.String
        })
      const First = effect("first")
      const Second = effect("second")
      const both = Node.make(
        "both",
        {
          input: Schema.Number,
          success: Schema.Number,
          error: Schema.String,
          effects: [First, Second],
          retry: { times: 1 }
        },
        (n) => Effect.flatMap(First(n), (m) => Second(m))
      )
      const Both = Workflow.make("both", { version: "1", success: Schema.Number, error: Schema.String }, () => both(1))
      const handlers = Layer.merge(
        First.toLayer((n, { key }) => Effect.sync(() => (fired.push(`first ${key}`), n + 1))),
        Second.toLayer((n, { key }) => {
          fired.push(`second ${key}`)
          return fired.length < 3 ? Effect.fail("declined") : Effect.succeed(n + 1)
        })
      )
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [Both] }).pipe(Layer.provide(handlers)))
          const { branch } = yield* house.client.start(Both, undefined, { run: "r" })
          assert.strictEqual(yield* house.client.result(Both, branch), 3)
          assert.deepStrictEqual(fired, ["first r/main|both#1|1", "second r/main|both#1|2", "second r/main|both#1|2~1"])
        })
      )
    }
  )

  it.live("errors with a tag that is not to be retried are final", () => {
    const { counts, workflow } = failing({ times: 3, nonRetryable: ["Busy"] })
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.result(workflow, branch), "caught attempt 1")
        assert.deepStrictEqual(counts, { attempts: 1, compensations: 1 })
      })
    )
  })
})

class Late extends Schema.TaggedError<Late>()("Late", { limit: Schema.String, attempt: Schema.Number }) {}

describe("a node's timeouts", () => {
  const stage = () => {
    const stage = new Stage()
    const begun: Array<number> = []
    const slow = (timeouts: Omit<Node.Timeouts<Late>, "error">, retry?: Node.RetryPolicy<Late>) => {
      const node = Node.make(
        "slow",
        {
          success: Schema.String,
          error: Late,
          undeclared: true,
          ...(retry === undefined ? {} : { retry }),
          timeouts: { ...timeouts, error: ({ attempt, limit }) => new Late({ attempt, limit }) }
        },
        () => Effect.suspend(() => Effect.as(stage.wait(`slow ${begun.push(0)}`), "in time"))
      )
      return Workflow.make("caller", { version: "1", success: Schema.String, error: Late }, () => node())
    }
    const reached = (n: number) => until(`attempt ${n}`, () => stage.has(`slow ${n}`))
    return { begun, reached, slow, stage }
  }

  it.live("give each attempt its time, and the next one its own", () => {
    const { reached, slow, stage: on } = stage()
    const workflow = slow({ startToClose: "1 minute" }, { times: 1 })
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* reached(1)
        yield* house.pass("1 minute")
        yield* house.recorded(branch, "step.retried slow#1")
        yield* reached(2)
        yield* house.pass("59 seconds")
        on.release("slow 2")
        assert.strictEqual(yield* house.client.result(workflow, branch), "in time")
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })

  it.live("end all attempts together, whoever makes them, also while nobody is there", () => {
    const { begun, reached, slow } = stage()
    const workflow = slow(
      { startToClose: "1 minute", scheduleToClose: "10 minutes" },
      { times: 100, delay: "2 minutes" }
    )
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* reached(1)
        yield* house.pass("1 minute")
        yield* house.recorded(branch, "step.retried slow#1")
        yield* dismiss
        yield* house.pass("8 minutes")
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        yield* reached(2)
        // One minute is left, and no other attempt could begin in it.
        yield* house.pass("1 minute")
        const error = yield* Effect.flip(house.client.result(workflow, branch))
        assert.deepInclude(error, { _tag: "Late", attempt: 2 })
        assert.strictEqual(begun.length, 2)
      })
    )
  })

  it.live("that are over when a worker comes let no attempt begin", () => {
    const { begun, reached, slow } = stage()
    const workflow = slow({ scheduleToClose: "1 hour" }, { times: 9 })
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* reached(1)
        yield* dismiss
        yield* house.pass("1 hour")
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const error = yield* Effect.flip(house.client.result(workflow, branch))
        assert.deepInclude(error, { _tag: "Late", limit: "scheduleToClose", attempt: 1 })
        assert.strictEqual(begun.length, 1)
      })
    )
  })

  it("of nothing are refused where they are declared", () => {
    assert.throws(
      () =>
        Node.make(
          "no",
          { error: Late, timeouts: { startToClose: 0, error: (out) => new Late(out) } },
          () => Effect.void
        ),
      /timeouts of node no must be above zero/
    )
  })
})
