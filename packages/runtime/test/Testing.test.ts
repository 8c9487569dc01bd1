import { assert, describe, it } from "@effect/vitest"
import { Client, Delivery, Node, SideEffect, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Deferred, Effect, Fiber, Layer, Option, Schema, TestClock } from "effect"

const Mail = SideEffect.make("mail", { delivery: Delivery.keyed, input: Schema.String })
const send = Node.make("send", { input: Schema.String, effects: [Mail] }, (text) => Mail(text))

const Reminder = Workflow.make("reminder", { version: "1", success: Schema.Number }, () =>
  Effect.gen(function* () {
    for (let n = 0; n < 3; n++) {
      yield* Effect.sleep("30 days")
      yield* send(`reminder ${n}`)
    }
    return 3
  })
)

const waiting = ({ waitingFor }: Client.Description): boolean => waitingFor.some(({ _tag }) => _tag === "Time")

const planeOf = <N extends string, I, A, E>(
  workflow: Workflow.Workflow<N, I, A, E, SideEffect.HandlerOf<"mail">>,
  sent: Array<string>
) =>
  Testing.worker({ workflows: [workflow] }).pipe(
    Layer.provide(Mail.toLayer((text) => Effect.sync(() => void sent.push(text)))),
    Layer.provideMerge(Testing.layer)
  )

describe("the testing plane", () => {
  it.effect("fires durable timers by the test's clock, not before they are due", () => {
    const sent: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Reminder, undefined)
      for (let n = 0; n < 3; n++) {
        const { waitingFor } = yield* client.awaitStatus(run, waiting)
        assert.deepStrictEqual(waitingFor, [{ _tag: "Time", at: (n + 1) * 30 * 86_400_000 }])
        yield* TestClock.adjust("29 days")
        assert.strictEqual(sent.length, n)
        yield* TestClock.adjust("1 day")
        yield* client.awaitStatus(
          run,
          (description) => description.status === "completed" || (waiting(description) && sent.length > n)
        )
      }
      assert.strictEqual(yield* client.result(Reminder, run), 3)
      assert.deepStrictEqual(sent, ["reminder 0", "reminder 1", "reminder 2"])
      yield* Testing.replayCheck(Reminder, run.branch)
    }).pipe(Effect.provide(planeOf(Reminder, sent)))
  })

  it.effect("the replay check finds what was not taken from the journal", () => {
    let host = 0
    const Impure = Workflow.make("impure", { version: "1" }, () =>
      Effect.gen(function* () {
        yield* send("a")
        // As Date.now() or Math.random() would: another value each time that the body runs.
        yield* send(`b ${host++}`)
      })
    )
    const sent: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Impure, undefined)
      yield* client.result(Impure, run)
      const diverged = yield* Effect.flip(Testing.replayCheck(Impure, run.branch))
      assert.strictEqual(diverged._tag, "ReplayDiverged")
      assert.include(diverged.message, run.branch)
      assert.deepStrictEqual(sent, ["a", "b 0"])
    }).pipe(Effect.provide(planeOf(Impure, sent)))
  })

  it.effect("a crash point holds a firing where the test wants it", () => {
    const Once = Workflow.make("once", { version: "1" }, () => send("a"))
    const sent: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const reached = yield* Deferred.make<string>()
      const go = yield* Deferred.make<void>()
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          Testing.CrashPoint.install((name, detail) =>
            name === "before-handler"
              ? Effect.zipRight(Deferred.succeed(reached, detail), Deferred.await(go))
              : undefined
          )
        ),
        (uninstall) => Effect.sync(uninstall)
      )
      const run = yield* client.start(Once, undefined, { run: "r" })
      const result = yield* Effect.fork(client.result(Once, run))
      assert.strictEqual(yield* Deferred.await(reached), "r/main|send#1|1")
      // The intent is durable, the handler not entered.
      const kinds = (yield* client.history(run)).map(({ kind }) => kind)
      assert.deepStrictEqual(kinds, ["run.started", "effect.intended"])
      assert.deepStrictEqual(sent, [])
      assert.isTrue(Option.isNone(yield* Fiber.poll(result)))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(result)
      assert.deepStrictEqual(sent, ["a"])
    }).pipe(Effect.scoped, Effect.provide(planeOf(Once, sent)))
  })
})
