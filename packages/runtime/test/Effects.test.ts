/** Side effects: what each delivery does when a handler succeeds, declines, dies, takes too long, or is left alone (EO). */
import { assert, describe, it } from "@effect/vitest"
import { Delivery, Node, SideEffect, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import { play, until } from "./House.js"
import { Stage } from "./Stage.js"

class Declined extends Schema.TaggedError<Declined>()("Declined", { why: Schema.String }) {}

type Handler = (n: number, firing: SideEffect.Firing) => Effect.Effect<number, Declined>

/** One node that performs one effect, and a workflow that calls it and tells what came. */
const arrange = <P extends "keyed" | "once" | "repeatable">(delivery: Delivery.Delivery<P>) => {
  const fired: Array<string> = []
  const Act = SideEffect.make("act", { delivery, input: Schema.Number, success: Schema.Positive, error: Declined })
  const act = Node.make("act", { input: Schema.Number, success: Schema.Number, error: Declined, effects: [Act] }, (n) =>
    Act(n)
  )
  const workflow = Workflow.make("acting", { version: "1", success: Schema.String }, () =>
    Effect.match(act(7), { onFailure: ({ why }) => `declined: ${why}`, onSuccess: (n) => `done: ${n}` })
  )
  const logged =
    (handler: Handler): Handler =>
    (n, firing) => {
      fired.push(`${firing.key.slice("r/main|act#1|".length)}${firing.again ? " again" : ""}`)
      return handler(n, firing)
    }
  return { Act, fired, logged, workflow }
}

const onceWithin = Delivery.once({ timeLimit: "5 seconds", fireWithin: "10 seconds" })
const dies: Handler = () => Effect.dieMessage("the line went dead")

describe("a keyed effect", () => {
  it.live("is handed 43 characters to deduplicate by, and its outcome is served from then on", () => {
    const { Act, fired, logged, workflow } = arrange(Delivery.keyed)
    const keys: Array<string> = []
    const handlers = Act.toLayer(
      logged((n, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        return Effect.succeed(n + 1)
      })
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.result(workflow, branch), "done: 8")
        assert.deepStrictEqual(fired, ["1"])
        assert.match(keys[0] ?? "", /^[\w-]{43}$/)
        assert.deepStrictEqual(yield* house.lines(branch), [
          "run.started",
          "effect.intended r/main|act#1|1",
          "effect.succeeded r/main|act#1|1",
          "step.succeeded act#1",
          "run.completed"
        ])
      })
    )
  })

  it.live("that dies is fired again under the same key, which the handler is told", () => {
    const { Act, fired, logged, workflow } = arrange(Delivery.keyed)
    const handlers = Act.toLayer(
      logged((n, firing) => (firing.again ? Effect.succeed(n) : Effect.dieMessage("cut off")))
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the first firing", () => fired.length === 1)
        yield* house.pass("1 minutes")
        assert.strictEqual(yield* house.client.result(workflow, branch), "done: 7")
        assert.deepStrictEqual(fired, ["1", "1 again"])
      })
    )
  })

  it.live("that keeps dying is in doubt, and an operator settles it", () => {
    const { Act, fired, logged, workflow } = arrange(Delivery.keyed)
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(Act.toLayer(logged(dies)))))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        for (let n = 1; n <= 5; n++) {
          yield* until(`firing ${n}`, () => fired.length === n)
          if (n < 5) yield* house.pass("1 minutes")
        }
        const problem = yield* house.problem(branch)
        assert.strictEqual(problem._tag, "InDoubt")
        assert.include(problem.message, "the line went dead")
        yield* house.client.settle(Act, { branch, key: "r/main|act#1|1", settlement: { _tag: "Happened", value: 3 } })
        assert.strictEqual(yield* house.client.result(workflow, branch), "done: 3")
      })
    )
  })

  it.live("that is interrupted is abandoned: nobody waits for it", () => {
    const stage = new Stage()
    const { Act, workflow: _, logged } = arrange(Delivery.keyed)
    const act = Node.make(
      "act",
      { input: Schema.Number, success: Schema.Number, error: Declined, effects: [Act] },
      (n) => Act(n)
    )
    const Bounded = Workflow.make("bounded", { version: "1", success: Schema.String, error: Declined }, () =>
      Effect.timeoutTo(act(7), { duration: "1 seconds", onSuccess: String, onTimeout: () => "timed out" })
    )
    let interrupted = false
    const handlers = Act.toLayer(
      logged((n) =>
        Effect.as(
          Effect.onInterrupt(stage.wait("handler"), () => Effect.sync(() => (interrupted = true))),
          n
        )
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Bounded] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
        yield* until("the handler", () => stage.has("handler"))
        yield* house.pass("1 seconds")
        assert.strictEqual(yield* house.client.result(Bounded, branch), "timed out")
        yield* until("the handler's interruption", () => interrupted)
        assert.notInclude(yield* house.lines(branch), "step.succeeded act#1")
      })
    )
  })
})

describe("a once effect", () => {
  for (const [name, answer, outcome, fired] of [
    ["that happened is adopted with the outcome that the outside tells", SideEffect.Happened(5), "done: 5", ["1"]],
    [
      "that the outside declined fails with that error",
      SideEffect.Declined(new Declined({ why: "no funds" })),
      "declined: no funds",
      ["1"]
    ],
    ["that never will arrive is fired anew, under another key", SideEffect.NeverWill, "done: 70", ["1", "1~1"]]
  ] as const) {
    it.live(`in doubt ${name}`, () => {
      const bench = arrange(onceWithin)
      const asked: Array<number> = []
      const handlers = bench.Act.toLayer(
        bench.logged((n) =>
          bench.fired.length === 1 ? Effect.dieMessage("the line went dead") : Effect.succeed(n * 10)
        ),
        {
          reconcile: (firing, n) =>
            Effect.sync(() => {
              assert.strictEqual<string>(firing.key, "r/main|act#1|1")
              asked.push(n)
              return answer
            })
        }
      )
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [bench.workflow] }).pipe(Layer.provide(handlers)))
          const { branch } = yield* house.client.start(bench.workflow, undefined, { run: "r" })
          assert.strictEqual(yield* house.client.result(bench.workflow, branch), outcome)
          assert.deepStrictEqual(bench.fired, [...fired])
          assert.deepStrictEqual(asked, [7])
          yield* Effect.provide(Testing.replayCheck(bench.workflow, branch), house.plane)
        })
      )
    })
  }

  for (const [name, reconcile] of [
    ["nobody can say", { reconcile: () => Effect.succeed(SideEffect.Unknown) }],
    ["there is nobody to ask", {}],
    ["asking fails", { reconcile: () => Effect.fail("the archive is closed") }]
  ] as const) {
    for (const [settlement, outcome, fired] of [
      [{ _tag: "Happened", value: 5 }, "done: 5", ["1"]],
      [{ _tag: "Declined", error: new Declined({ why: "no funds" }) }, "declined: no funds", ["1"]],
      [{ _tag: "DidNotHappen" }, "done: 70", ["1", "1~1"]]
    ] as const) {
      it.live(`in doubt is stuck when ${name}, until an operator settles that it was ${settlement._tag}`, () => {
        const bench = arrange(onceWithin)
        const handlers = bench.Act.toLayer(
          bench.logged((n) =>
            bench.fired.length === 1 ? Effect.dieMessage("the line went dead") : Effect.succeed(n * 10)
          ),
          reconcile
        )
        return play((house) =>
          Effect.gen(function* () {
            const dismiss = yield* house.hire(
              Testing.worker({ workflows: [bench.workflow] }).pipe(Layer.provide(handlers))
            )
            const { branch } = yield* house.client.start(bench.workflow, undefined, { run: "r" })
            const problem = yield* house.problem(branch)
            assert.deepInclude(problem, { _tag: "InDoubt", step: "act#1", effect: "act", key: "r/main|act#1|1" })
            // Another worker does not fire it either, when the first firing can no longer be under way.
            yield* dismiss
            yield* house.hire(Testing.worker({ workflows: [bench.workflow] }).pipe(Layer.provide(handlers)))
            yield* house.pass("15 seconds")
            assert.strictEqual((yield* house.problem(branch))._tag, "InDoubt")
            assert.deepStrictEqual(bench.fired, ["1"])
            const settle = house.client.settle(bench.Act, { branch, key: "r/main|act#1|1", settlement })
            assert.strictEqual(yield* settle, "Accepted")
            assert.strictEqual(yield* house.client.result(bench.workflow, branch), outcome)
            assert.strictEqual(yield* settle, "Duplicate")
            assert.deepStrictEqual(bench.fired, [...fired])
          })
        )
      })
    }
  }

  it.live("that takes longer than its limit is in doubt, although its handler never ends", () => {
    const { Act, fired, logged, workflow } = arrange(onceWithin)
    const handlers = Act.toLayer(
      logged(() => Effect.never),
      { reconcile: () => Effect.succeed(SideEffect.Happened(9)) }
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the firing", () => fired.length === 1)
        yield* house.pass("4999 millis")
        assert.notInclude(yield* house.lines(branch), "effect.succeeded r/main|act#1|1")
        yield* house.pass("1 millis")
        assert.strictEqual(yield* house.client.result(workflow, branch), "done: 9")
        assert.deepStrictEqual(fired, ["1"])
      })
    )
  })

  it.live("that fires while its step is interrupted ends first, and what it did is recorded", () => {
    const stage = new Stage()
    const { Act, fired, logged } = arrange(onceWithin)
    const act = Node.make(
      "act",
      { input: Schema.Number, success: Schema.Number, error: Declined, effects: [Act] },
      (n) => Act(n)
    )
    const Bounded = Workflow.make("bounded", { version: "1", success: Schema.String, error: Declined }, () =>
      Effect.timeoutTo(act(7), { duration: "1 seconds", onSuccess: String, onTimeout: () => "timed out" })
    )
    const handlers = Act.toLayer(logged((n) => Effect.as(stage.wait("handler"), n)))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Bounded] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(Bounded, undefined, { run: "r" })
        yield* until("the handler", () => stage.has("handler"))
        yield* house.pass("1 seconds")
        yield* house.recorded(branch, "timer.fired sleep#1")
        assert.strictEqual((yield* house.client.describe(branch)).status, "running")
        stage.release("handler")
        assert.strictEqual(yield* house.client.result(Bounded, branch), "timed out")
        const lines = yield* house.lines(branch)
        assert.include(lines, "effect.succeeded r/main|act#1|1")
        assert.deepStrictEqual(fired, ["1"])
        yield* Effect.provide(Testing.replayCheck(Bounded, branch), house.plane)
      })
    )
  })

  it.live(
    "whose outcome its Schema refuses happened nevertheless: stuck until an acceptable outcome is settled",
    () => {
      const { Act, fired, logged, workflow } = arrange(onceWithin)
      const handlers = Act.toLayer(logged(() => Effect.succeed(-1)))
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(handlers)))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          assert.strictEqual((yield* house.problem(branch))._tag, "EffectValueRefused")
          const settle = (value: number) =>
            house.client.settle(Act, { branch, key: "r/main|act#1|1", settlement: { _tag: "Happened", value } })
          assert.strictEqual((yield* Effect.flip(settle(-2)))._tag, "InvalidValue")
          yield* settle(2)
          assert.strictEqual(yield* house.client.result(workflow, branch), "done: 2")
          assert.deepStrictEqual(fired, ["1"])
        })
      )
    }
  )
})

describe("any effect", () => {
  it.live("that declines closes its key: it is not fired again, whoever asks", () => {
    const { Act, fired, logged, workflow } = arrange(Delivery.keyed)
    const handlers = Act.toLayer(logged(() => Effect.fail(new Declined({ why: "no" }))))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow], residentBranches: 0 }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        assert.strictEqual(yield* house.client.result(workflow, branch), "declined: no")
        assert.deepStrictEqual(fired, ["1"])
        assert.include(yield* house.lines(branch), "effect.failed r/main|act#1|1")
      })
    )
  })

  it.live("that is repeatable is fired again after a lost worker, and memoized once recorded", () => {
    const stage = new Stage()
    const { Act, fired, logged, workflow } = arrange(Delivery.repeatable)
    const handlers = Act.toLayer(logged((n) => Effect.as(stage.wait(`handler ${fired.length}`), n)))
    return play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [workflow] }).pipe(Layer.provide(handlers))
        const dismiss = yield* house.hire(worker)
        const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
        yield* until("the first firing", () => stage.has("handler 1"))
        yield* dismiss
        yield* house.hire(worker)
        yield* until("the second firing", () => stage.has("handler 2"))
        stage.release("handler 2")
        assert.strictEqual(yield* house.client.result(workflow, branch), "done: 7")
        assert.deepStrictEqual(fired, ["1", "1"])
      })
    )
  })

  it.live("asked for with another input when its body runs again is not fired", () => {
    const stage = new Stage()
    const fired: Array<number> = []
    let asks = 1
    const Act = SideEffect.make("act", { delivery: Delivery.keyed, input: Schema.Number, success: Schema.Number })
    const act = Node.make("act", { success: Schema.Number, effects: [Act] }, () => Effect.suspend(() => Act(asks)))
    const Acting = Workflow.make("acting", { version: "1", success: Schema.Number }, () => act())
    const handlers = Act.toLayer((n) => {
      fired.push(n)
      return fired.length === 1 ? Effect.as(stage.wait("handler"), n) : Effect.succeed(n)
    })
    return play((house) =>
      Effect.gen(function* () {
        const worker = Testing.worker({ workflows: [Acting] }).pipe(Layer.provide(handlers))
        const first = yield* house.hire(worker)
        const { branch } = yield* house.client.start(Acting, undefined, { run: "r" })
        yield* until("the firing", () => stage.has("handler"))
        yield* first
        asks = 2
        const second = yield* house.hire(worker)
        assert.deepInclude(yield* house.problem(branch), {
          _tag: "EffectInputChanged",
          step: "act#1",
          differs: "input"
        })
        assert.deepStrictEqual(fired, [1])
        yield* second
        asks = 1
        yield* house.hire(worker)
        assert.strictEqual(yield* house.client.result(Acting, branch), 1)
        assert.deepStrictEqual(fired, [1, 1])
      })
    )
  })

  it.live("fired twice at once without keys is refused; with keys of their own both go through", () => {
    const Act = SideEffect.make("act", { delivery: Delivery.keyed, input: Schema.Number, success: Schema.String })
    const node = (key: (n: number) => { readonly key?: string }) =>
      Node.make("many", { success: Schema.Array(Schema.String), effects: [Act] }, () =>
        Effect.forEach([1, 2], (n) => Act(n, key(n)), { concurrency: 2 })
      )
    const make = (name: string, key: (n: number) => { readonly key?: string }) => {
      const many = node(key)
      return Workflow.make(name, { version: "1", success: Schema.Array(Schema.String) }, () => many())
    }
    const Keyless = make("keyless", () => ({}))
    const Same = make("same", () => ({ key: "a" }))
    const Keyed = make("keyed", (n) => ({ key: `k${n}` }))
    const handlers = Act.toLayer((_n, { key }) => Effect.succeed(key))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Keyless, Same, Keyed] }).pipe(Layer.provide(handlers)))
        for (const workflow of [Keyless, Same]) {
          const { branch } = yield* house.client.start(workflow, undefined, { run: workflow.name })
          assert.deepInclude(yield* house.problem(branch), { _tag: "BadEffect", step: "many#1", effect: "act" })
        }
        const { branch } = yield* house.client.start(Keyed, undefined, { run: "keyed" })
        assert.deepStrictEqual(yield* house.client.result(Keyed, branch), [
          "keyed/main|many#1|k:k1",
          "keyed/main|many#1|k:k2"
        ])
      })
    )
  })

  it.live("that its node does not declare is refused, although the types were forced", () => {
    const fired: Array<number> = []
    const Act = SideEffect.make("act", { delivery: Delivery.keyed, input: Schema.Number })
    // Forced: a body that performs what its node does not declare has no type that `Node.make` takes.
    const sly = Node.make("sly", {}, (() => Act(1)) as unknown as () => Effect.Effect<void>)
    const Sly = Workflow.make("sly", { version: "1" }, () => sly())
    const handlers = Act.toLayer((n) => Effect.sync(() => void fired.push(n)))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Sly] }).pipe(Layer.provide(handlers)))
        const { branch } = yield* house.client.start(Sly, undefined, { run: "r" })
        const problem = yield* house.problem(branch)
        assert.deepInclude(problem, { _tag: "BadEffect", effect: "act" })
        assert.include(problem.message, 'add it to its "effects"')
        assert.deepStrictEqual(fired, [])
      })
    )
  })
})
