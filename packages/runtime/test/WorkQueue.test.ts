import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Layer, Schema, TestClock } from "effect"
import { Client, Interrupt, Workflow, WorkQueue } from "../src/index.js"
import * as Testing from "../src/testing.js"

const Go = Interrupt.make("go", {})

/** Waits for `go` on a branch, as a stand-in for work that somebody else ends. */
const Job = Workflow.make("job", { version: "1", input: Schema.String, success: Schema.String }, (name) =>
  Effect.as(Effect.sleep("1 hour"), name)
)
const Asking = Workflow.make("asking", { version: "1", input: Schema.String, success: Schema.String }, (name) =>
  Effect.as(Go(), name)
)
const Quick = Workflow.make("quick", { version: "1", input: Schema.String, success: Schema.String }, (name) =>
  Effect.succeed(name)
)

const workflows = [Job, Asking, Quick] as const
const on = (queues: ReadonlyArray<string | WorkQueue.WorkQueue>) =>
  Testing.worker({ workflows, queues }).pipe(Layer.provideMerge(Testing.layer))

const waiting = (client: Client.Client, run: string) => client.awaitStatus(run, ({ status }) => status === "waiting")

describe("a queue", () => {
  const Mail = WorkQueue.make("mail", { concurrency: 1, hold: "run" })

  it.effect("runs one after another what its slots do not hold at once, in order of priority", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const first = yield* client.start(Asking, "a", { run: "a", queue: Mail })
      yield* waiting(client, "a")
      yield* client.start(Quick, "b", { run: "b", queue: "mail" })
      yield* client.start(Quick, "c", { run: "c", queue: Mail, priority: 1 })
      // What is in no queue, or in another one that is served, is not held up.
      assert.strictEqual(yield* client.result(Quick, yield* client.start(Quick, "plain")), "plain")
      assert.strictEqual(yield* client.result(Quick, yield* client.start(Quick, "o", { queue: "other" })), "o")
      const mail = (yield* client.queues.list).find(({ name }) => name === "mail")
      assert.deepStrictEqual([mail?.ready, mail?.running, mail?.waiting, mail?.concurrency], [2, 0, 1, 1])
      assert.strictEqual((yield* client.describe("b")).status, "ready")
      yield* client.resume(Go, {
        branch: first.branch,
        interrupt: "go#1",
        value: undefined,
        deliveryId: "d",
        intent: "retry"
      })
      assert.strictEqual(yield* client.result(Quick, "b"), "b")
      assert.strictEqual(yield* client.result(Quick, "c"), "c")
    }).pipe(Effect.provide(on(["default", Mail, "other"])))
  )

  const Slow = WorkQueue.make("slow", { rate: { limit: 1, per: "1 minute" } })

  it.effect("begins no more than its rate, and by itself when the time has come", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Quick, "a", { run: "a", queue: Slow })
      yield* client.result(Quick, "a")
      yield* client.start(Quick, "b", { run: "b", queue: Slow })
      // A run of the same worker that is over when b could have run, too.
      yield* client.result(Quick, yield* client.start(Quick, "plain"))
      yield* TestClock.adjust("59 seconds")
      yield* client.result(Quick, yield* client.start(Quick, "plain again"))
      assert.strictEqual((yield* client.describe("b")).status, "ready")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(yield* client.result(Quick, "b"), "b")
    }).pipe(Effect.provide(on(["default", Slow])))
  )

  it.effect("that is paused begins nothing until it goes on", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.queues.set(WorkQueue.make("mail"))
      yield* client.queues.pause("mail")
      yield* client.start(Quick, "a", { run: "a", queue: "mail" })
      yield* client.result(Quick, yield* client.start(Quick, "plain"))
      assert.strictEqual((yield* client.describe("a")).status, "ready")
      yield* client.queues.resume("mail")
      assert.strictEqual(yield* client.result(Quick, "a"), "a")
    }).pipe(Effect.provide(on(["default", "mail"])))
  )

  it.effect("is served by workers that name it alone, which leave everything else", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Quick, "plain", { run: "plain" })
      assert.strictEqual(yield* client.result(Quick, yield* client.start(Quick, "m", { queue: "mail" })), "m")
      assert.strictEqual((yield* client.describe("plain")).status, "ready")
    }).pipe(Effect.provide(on(["mail"])))
  )
})

describe("a start", () => {
  it.effect("that is delayed begins when its time has come", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Quick, "a", { run: "a", delay: "1 day" })
      yield* client.result(Quick, yield* client.start(Quick, "plain"))
      assert.strictEqual((yield* client.describe("a")).waitingFor[0]?._tag, "Time")
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* client.result(Quick, "a"), "a")
    }).pipe(Effect.provide(on(["default"])))
  )

  it.effect("of a debounced burst: the newest input runs, once nothing came for the period", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const start = (input: string) =>
        client.start(Quick, input, {
          run: input,
          dedupeKey: "k",
          debounce: { period: "1 minute", maxWait: "90 seconds" }
        })
      yield* start("a")
      yield* TestClock.adjust("59 seconds")
      yield* start("b")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* client.describe("b")).status, "waiting")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(yield* client.result(Quick, "b"), "b")
      const a = yield* Effect.either(client.result(Quick, "a"))
      assert.deepStrictEqual(Either.isLeft(a) && a.left._tag === "RunCancelled" && a.left.reason, "superseded by run b")
    }).pipe(Effect.provide(on(["default"])))
  )

  it.effect("with a dedupe key is answered by the run that goes on", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const first = yield* client.start(Job, "a", { dedupeKey: "k" })
      const second = yield* client.start(Job, "b", { dedupeKey: "k" })
      assert.deepStrictEqual(second, { ...first, created: false })
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* client.result(Job, second), "a")
      assert.isTrue((yield* client.start(Job, "b", { dedupeKey: "k" })).created)
    }).pipe(Effect.provide(on(["default"])))
  )

  it.effect("whose options contradict each other is refused, and nothing is written", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const refused = (options: Client.StartOptions) =>
        Effect.map(Effect.either(client.start(Quick, "a", { run: "a", ...options })), (either) =>
          Either.isLeft(either) && either.left._tag === "InvalidValue" ? either.left.issues : []
        )
      assert.deepStrictEqual(yield* refused({ key: "k", priority: 1.5 }), [
        "key: needs a queue",
        "priority: needs a queue",
        "priority: is not a whole number"
      ])
      assert.lengthOf(yield* refused({ delay: "1 day", startAt: new Date(0) }), 1)
      assert.lengthOf(yield* refused({ startAt: new Date(Number.NaN) }), 1)
      assert.lengthOf(yield* refused({ queue: "q", key: "" }), 1)
      assert.lengthOf(yield* refused({ debounce: { period: 0 } }), 2)
      const bad = yield* Effect.either(client.start(Quick, "a", { queue: "a|b" }))
      assert.isTrue(Either.isLeft(bad) && bad.left._tag === "InvalidId")
    }).pipe(Effect.provide(Testing.layer))
  )

  it("limits that admit nothing are refused where they are declared", () => {
    for (const options of [
      { concurrency: 0 },
      { perKey: { concurrency: -1 } },
      { rate: { limit: 0, per: "1 second" } },
      { rate: { limit: 1, per: 0 } }
    ] as const) {
      assert.throws(() => WorkQueue.make("q", options), TypeError)
    }
    assert.throws(() => WorkQueue.make("default"), TypeError)
  })
})
