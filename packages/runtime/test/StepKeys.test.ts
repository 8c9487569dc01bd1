/** Steps under keys of the workflow's choice: one step for all who call it, live and replayed. */
import { assert, describe, it } from "@effect/vitest"
import { Delivery, Interrupt, Loop, Node, RunError, SideEffect, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Cause, Effect, Exit, Fiber, Layer, Schema } from "effect"
import { play, until } from "./House.js"
import { Stage } from "./Stage.js"

const Approve = Interrupt.make("approve", { answer: Schema.Boolean })

/** A node that counts its runs. */
const counting = () => {
  const runs: Array<string> = []
  const node = Node.make("invoice", { input: Schema.String, success: Schema.String }, (text) =>
    Effect.sync(() => `${text} ${runs.push(text)}`)
  )
  return { node, runs }
}

/** The names of the defects that an effect dies with. */
const dies = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit) => {
    const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    return defect instanceof RunError.StepKeyReused
      ? `${defect.step} ${defect.because}`
      : defect instanceof RunError.InvalidValue
        ? defect.what
        : "lives"
  })

describe("node.withKey", () => {
  it.live("the second call has the outcome of the first, also of a worker before", () => {
    const { node, runs } = counting()
    const workflow = Workflow.make("twice", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.gen(function* () {
        const first = yield* node.withKey("17")("a")
        yield* Approve()
        const second = yield* node.withKey("17")("a")
        return [first, second, yield* node("a"), yield* node.withKey("18")("a")]
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.recorded(branch, "interrupt.opened approve#1")
        yield* dismiss
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        yield* house.client.resume(Approve, {
          branch,
          interrupt: "approve#1",
          deliveryId: "d",
          intent: "retry",
          value: true
        })
        assert.deepStrictEqual(yield* house.client.result(workflow, branch), ["a 1", "a 1", "a 2", "a 3"])
        assert.deepStrictEqual(runs, ["a", "a", "a"])
        assert.deepStrictEqual(
          (yield* house.lines(branch)).filter((line) => line.startsWith("step.")),
          ["step.succeeded invoice@17", "step.succeeded invoice#1", "step.succeeded invoice@18"]
        )
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })

  it.live("who calls it while it runs waits for it, and who leaves does not stop it for the others", () => {
    const stage = new Stage()
    let runs = 0
    const node = Node.make("work", { success: Schema.Number, error: Schema.String }, () =>
      Effect.zipRight(
        Effect.suspend(() => stage.wait(`run ${++runs}`)),
        Effect.fail("no")
      )
    )
    const workflow = Workflow.make("joined", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.gen(function* () {
        const call = Effect.merge(node.withKey("k")()).pipe(Effect.map(String))
        const left = yield* Effect.fork(call)
        const stayed = yield* Effect.fork(Effect.all([call, call], { concurrency: "unbounded" }))
        yield* Effect.sleep("1 minute")
        yield* Fiber.interrupt(left)
        return yield* Fiber.join(stayed)
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the body", () => stage.has("run 1"))
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* house.pass("1 minute")
        yield* house.recorded(branch, "timer.fired sleep#1")
        stage.release("run 1")
        assert.deepStrictEqual(yield* house.client.result(workflow, branch), ["no", "no"])
        assert.strictEqual(runs, 1)
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })

  it.live("a key of other work, of interrupted work and what is no key are the workflow's defects", () => {
    const { node, runs } = counting()
    const never = Node.make("never", {}, () => Effect.never)
    const odd = Node.make("odd@name", {}, () => Effect.void)
    const workflow = Workflow.make("wrong", { version: "1", success: Schema.Array(Schema.String) }, () =>
      Effect.gen(function* () {
        yield* node.withKey("k")("a")
        yield* Effect.timeoutOption(never.withKey("n")(), "1 minute")
        return [
          yield* dies(node.withKey("k")("b")),
          yield* dies(never.withKey("n")()),
          yield* dies(node.withKey("k#1")("a")),
          yield* dies(odd.withKey("k")())
        ]
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.recorded(branch, "timer.started sleep#1")
        yield* house.pass("1 minute")
        assert.deepStrictEqual(yield* house.client.result(workflow, branch), [
          "invoice@k input",
          "never@n withdrawn",
          "key of a call of node invoice",
          "key of a call of node odd@name"
        ])
        assert.deepStrictEqual(runs, ["a"])
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })

  it.live("an iteration of a loop has keys of its own, and effects have the step's", () => {
    const keys: Array<string> = []
    const Send = SideEffect.make("send", { delivery: Delivery.keyed })
    const node = Node.make("mail", { effects: [Send] }, () => Send())
    const workflow = Workflow.make("each", { version: "1" }, () =>
      Workflow.loop("up", { state: Schema.Number, initial: 0 }, (n) =>
        Effect.as(
          Effect.zipRight(node.withKey("k")(), node.withKey("k")()),
          n < 1 ? Loop.next(n + 1) : Loop.done(undefined)
        )
      )
    )
    const handler = Send.toLayer((_, { key }) => Effect.sync(() => void keys.push(key)))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Layer.provide(Testing.worker({ workflows: [workflow] }), handler))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* house.client.result(workflow, branch)
        assert.deepStrictEqual(keys, ["r/main|up#1/1/mail@k|1", "r/main|up#1/2/mail@k|1"])
        yield* Effect.provide(Testing.replayCheck(workflow, branch), house.plane)
      })
    )
  })
})
