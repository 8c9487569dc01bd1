/** Code that cannot go on: what is found, how it is named, and that nothing is lost by it (RD, LV). */
import { assert, describe, it } from "@effect/vitest"
import { Interrupt, Node, type Problem, Workflow } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Clock, Effect, Layer, ManagedRuntime, Queue, Scheduler, Schema } from "effect"
import { play } from "./House.js"
import { turn } from "./Stage.js"

const Ask = Interrupt.make("ask", { payload: Schema.String, answer: Schema.String })
const Other = Interrupt.make("other", { payload: Schema.String, answer: Schema.String })
const counts = { a: 0, b: 0 }
const a = Node.make("a", { input: Schema.Number, success: Schema.Number }, (n) => Effect.sync(() => (counts.a++, n)))
const b = Node.make("b", { input: Schema.Number, success: Schema.Number }, (n) => Effect.sync(() => (counts.b++, n)))

type Body = Effect.Effect<unknown, never, Workflow.WorkflowScope>
const define = (body: () => Body) => Workflow.make("changing", { version: "1", success: Schema.Unknown }, body)

describe("what a workflow may not wait for", () => {
  const cases: ReadonlyArray<readonly [name: string, body: () => Body, says: string]> = [
    ["a promise", () => Effect.promise(() => Promise.resolve(1)), "Put"],
    [
      "a promise, while something else is waited for too",
      () => Effect.all([Ask("?"), Effect.promise(() => Promise.resolve(1))], { concurrency: 2 }),
      "Put it in a Node"
    ],
    [
      "a callback of the host",
      () =>
        Effect.all(
          [Effect.sleep("1 days"), Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))],
          { concurrency: 2 }
        ),
      "Put"
    ],
    [
      "a sleep on another clock",
      () =>
        Effect.all([Effect.sleep("1 days"), Effect.withClock(Effect.sleep("1 millis"), Clock.make())], {
          concurrency: 2
        }),
      "Put"
    ],
    ["nothing at all", () => Effect.never, "Effect.never"],
    [
      "a fiber on another scheduler",
      () => Effect.withScheduler(a(1), new Scheduler.MixedScheduler(1)),
      "another scheduler"
    ],
    [
      "a managed runtime's scheduler",
      () => Effect.provide(a(1), ManagedRuntime.make(Layer.setScheduler(new Scheduler.MixedScheduler(1)))),
      "ManagedRuntime"
    ]
  ]
  for (const [name, body, says] of cases) {
    it.live(`${name} is found, and says what to do instead`, () => {
      const workflow = define(body)
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [workflow] }))
          const { branch } = yield* house.client.start(workflow, undefined, { run: "r" })
          // One that parked before it was woken is found when it is taken up again.
          yield* house.client.awaitStatus(branch, ({ status }) => status === "waiting" || status === "stuck")
          yield* house.pass("1 days")
          const problem = yield* house.problem(branch)
          assert.strictEqual(problem._tag, "UndeclaredAsync")
          assert.include(problem.message, says)
          // Stuck, not failed: a deployment that does without it goes on.
        })
      )
    })
  }

  it.live("a callback that comes while a timer is being recorded is found, whenever in it it comes", () => {
    let wake = () => {}
    const workflow = define(() =>
      Effect.all(
        [
          Effect.sleep("500 millis"),
          Effect.async<void>((resume) => {
            wake = () => resume(Effect.void)
          })
        ],
        { concurrency: 2 }
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [workflow] }))
        for (let pause = 0; pause < 12; pause++) {
          const { branch } = yield* house.client.start(workflow, undefined, { run: `r${pause}` })
          yield* house.recorded(branch, "timer.started sleep#1")
          yield* house.pass("500 millis")
          for (let turns = 0; turns < pause; turns++) yield* Effect.yieldNow()
          wake()
          assert.strictEqual((yield* house.problem(branch))._tag, "UndeclaredAsync")
        }
      })
    )
  })

  it.live("a queue that is offered to from outside is found, and a corrected deployment ends the run", () => {
    const outside = Effect.runSync(Queue.unbounded<number>())
    const before = define(() => Effect.all([Ask("?"), Queue.take(outside)], { concurrency: 2 }))
    const after = define(() => Effect.all([Ask("?"), a(5)], { concurrency: 2 }))
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [before] }))
        const { branch } = yield* house.client.start(before, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
        // While it is parked nothing of it runs, and nothing is lost; it is found when it is taken up.
        yield* Queue.offer(outside, 1)
        yield* house.client.resume(Ask, { branch, interrupt: "ask#1", value: "yes", deliveryId: "d", intent: "retry" })
        yield* house.client.awaitStatus(branch, ({ status }) => status === "stuck")
        assert.strictEqual((yield* house.problem(branch))._tag, "UndeclaredAsync")
        yield* dismiss
        yield* house.hire(Testing.worker({ workflows: [after] }))
        assert.deepStrictEqual(yield* house.client.result(after, branch), ["yes", 5])
      })
    )
  })

  it.live("a loop that never waits is stopped as runaway, and the worker goes on with others", () => {
    const Loop = define(() => Effect.forever(Effect.yieldNow()))
    const Fine = Workflow.make("fine", { version: "1", success: Schema.Number }, () => a(1))
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [Loop, Fine] }))
        const { branch } = yield* house.client.start(Loop, undefined, { run: "r" })
        yield* turn
        const fine = yield* house.client.start(Fine, undefined, { run: "fine" })
        // The long activation is cut into slices: the other run is not kept waiting for its end.
        assert.strictEqual(yield* house.client.result(Fine, fine), 1)
        assert.strictEqual((yield* house.client.describe(branch)).status, "running")
        const problem = yield* house.problem(branch)
        assert.strictEqual(problem._tag, "Runaway")
      })
    )
  })
})

describe("code that changed under a history (B17)", () => {
  const original = () =>
    Effect.gen(function* () {
      const one = yield* a(1)
      const two = yield* b(2)
      const told = yield* Ask("go on?")
      const three = yield* a(3)
      return [one, two, told, three]
    })
  const changes: ReadonlyArray<
    readonly [name: string, body: () => Body, problem: Partial<Extract<Problem.Problem, { _tag: "NonDeterminism" }>>]
  > = [
    [
      "steps in another order",
      () =>
        Effect.gen(function* () {
          yield* b(2)
          yield* a(1)
          return yield* Ask("go on?")
        }),
      { seq: 2, history: "step.succeeded a#1", code: "waits for b#1" }
    ],
    [
      "another interrupt",
      () => Effect.zipRight(Effect.all([a(1), b(2)]), Other("go on?")),
      { seq: 4, history: "interrupt.opened ask#1", code: "interrupt.opened other#1" }
    ],
    [
      "a step inserted",
      () => Effect.all([a(1), b(2), b(2), Ask("go on?")]),
      { seq: 4, history: "interrupt.opened ask#1", code: "nothing" }
    ],
    [
      "a step removed",
      () => Effect.all([a(1), Ask("go on?"), a(3)]),
      { seq: 3, history: "step.succeeded b#1", code: "interrupt.opened ask#1" }
    ],
    ["a step with another input", () => Effect.all([a(1), b(20), Ask("go on?")]), { seq: 3 }],
    ["an interrupt with another question", () => Effect.all([a(1), b(2), Ask("stop?")]), { seq: 4 }],
    ["an earlier end", () => a(1), { seq: 3, history: "step.succeeded b#1", code: "nothing that waits" }]
  ]
  for (const [name, body, expected] of changes) {
    it.live(`${name} is told by both sides, and a corrected deployment goes on where it was`, () => {
      const first = define(original)
      const changed = define(body)
      const corrected = define(original)
      return play((house) =>
        Effect.gen(function* () {
          counts.a = counts.b = 0
          const dismiss = yield* house.hire(Testing.worker({ workflows: [first] }))
          const { branch } = yield* house.client.start(first, undefined, { run: "r" })
          yield* house.client.awaitStatus(branch, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
          yield* dismiss
          yield* house.client.resume(Ask, {
            branch,
            interrupt: "ask#1",
            value: "yes",
            deliveryId: "d",
            intent: "retry"
          })
          const before = yield* house.lines(branch)
          const dismissChanged = yield* house.hire(Testing.worker({ workflows: [changed] }))
          const problem = yield* house.problem(branch)
          assert.deepInclude(problem, { _tag: "NonDeterminism", ...expected })
          assert.include(problem.message, "Deploy code that matches")
          assert.deepStrictEqual(yield* house.lines(branch), before)
          assert.deepStrictEqual(counts, { a: 1, b: 1 })
          yield* dismissChanged
          yield* house.hire(Testing.worker({ workflows: [corrected] }))
          assert.deepStrictEqual(yield* house.client.result(corrected, branch), [1, 2, "yes", 3])
          assert.deepStrictEqual(counts, { a: 2, b: 1 })
          assert.deepStrictEqual((yield* house.lines(branch)).slice(0, before.length), before)
        })
      )
    })
  }

  it.live("a renamed step that is still under way starts under its new name; nothing recorded contradicts it", () => {
    const before = define(() => Effect.zipRight(Ask("go on?"), a(1)))
    const after = define(() => Effect.zipRight(Ask("go on?"), b(1)))
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [before] }))
        const { branch } = yield* house.client.start(before, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
        yield* dismiss
        yield* house.hire(Testing.worker({ workflows: [after] }))
        yield* house.client.resume(Ask, { branch, interrupt: "ask#1", value: "yes", deliveryId: "d", intent: "retry" })
        assert.strictEqual(yield* house.client.result(after, branch), 1)
        assert.include(yield* house.lines(branch), "step.succeeded b#1")
      })
    )
  })

  it.live("a recorded value that the new Schema cannot read is told with its place, never dropped", () => {
    const retyped = Node.make("a", { input: Schema.Number, success: Schema.String }, (n) => Effect.succeed(String(n)))
    const before = define(() => Effect.zip(a(1), Ask("go on?")))
    const after = define(() => Effect.zip(retyped(1), Ask("go on?")))
    return play((house) =>
      Effect.gen(function* () {
        const dismiss = yield* house.hire(Testing.worker({ workflows: [before] }))
        const { branch } = yield* house.client.start(before, undefined, { run: "r" })
        yield* house.client.awaitStatus(branch, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
        yield* dismiss
        yield* house.client.resume(Ask, { branch, interrupt: "ask#1", value: "yes", deliveryId: "d", intent: "retry" })
        const second = yield* house.hire(Testing.worker({ workflows: [after] }))
        assert.deepInclude(yield* house.problem(branch), {
          _tag: "ValueUnreadable",
          seq: 2,
          what: "the outcome of a#1"
        })
        yield* second
        yield* house.hire(Testing.worker({ workflows: [before] }))
        assert.deepStrictEqual(yield* house.client.result(before, branch), [1, "yes"])
      })
    )
  })

  it.live(
    "a worker that knows another version only leaves the run alone, and inspection says what it waits for",
    () => {
      const v1 = Workflow.make("versioned", { version: "1", success: Schema.Number }, () => a(1))
      const v2 = Workflow.make("versioned", { version: "2", success: Schema.Number }, () => a(2))
      return play((house) =>
        Effect.gen(function* () {
          yield* house.hire(Testing.worker({ workflows: [v2] }))
          const { branch } = yield* house.client.start(v1, undefined, { run: "r" })
          const done = yield* house.client.start(v2, undefined, { run: "r2" })
          assert.strictEqual(yield* house.client.result(v2, done), 2)
          assert.deepStrictEqual((yield* house.client.describe(branch)).waitingFor, [
            { _tag: "Worker", definition: "versioned@1" }
          ])
          yield* house.hire(Testing.worker({ workflows: [v1, v2] }))
          assert.strictEqual(yield* house.client.result(v1, branch), 1)
        })
      )
    }
  )

  it.live("time and chance taken from outside the journal are found by the replay check (B60)", () => {
    let outside = 0
    const raw = define(() =>
      Effect.zip(
        Ask("?"),
        Effect.suspend(() => a(outside++))
      )
    )
    return play((house) =>
      Effect.gen(function* () {
        yield* house.hire(Testing.worker({ workflows: [raw] }))
        const { branch } = yield* house.client.start(raw, undefined, { run: "r" })
        yield* house.recorded(branch, "interrupt.opened ask#1")
        yield* house.client.resume(Ask, { branch, interrupt: "ask#1", value: "", deliveryId: "d", intent: "retry" })
        yield* house.client.result(raw, branch)
        const found = yield* Effect.flip(Effect.provide(Testing.replayCheck(raw, branch), house.plane))
        assert.strictEqual(found._tag, "ReplayDiverged")
        assert.include(found.message, "its input changed")
      })
    )
  })
})
