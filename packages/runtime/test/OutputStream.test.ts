import { assert, describe, it } from "@effect/vitest"
import { Cause, Chunk, Effect, Exit, Layer, Schema, Stream } from "effect"
import { Client, Interrupt, Node, OutputStream, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

const Tokens = OutputStream.make("tokens", { chunk: Schema.String })
const Progress = OutputStream.make("progress", { chunk: Schema.Struct({ done: Schema.Number, of: Schema.Number }) })
const Go = Interrupt.make("go", {})

const tokens = (stream: Stream.Stream<OutputStream.Emitted<string>, unknown>) =>
  Effect.map(Stream.runCollect(Stream.orDie(stream)), (all) =>
    Chunk.toReadonlyArray(all).map(({ execution, offset, step, value }) => [offset, value, step, execution])
  )

const on = <N extends string, I, A, E>(workflow: Workflow.Workflow<N, I, A, E, never>) =>
  Testing.worker({ workflows: [workflow] }).pipe(Layer.provideMerge(Testing.layer))

describe("an output stream", () => {
  const write = Node.make("write", { input: Schema.Number }, (count) =>
    Effect.forEach(
      Array.from({ length: count }, (_, n) => n + 1),
      (n) => Effect.zipRight(Tokens(`t${n}`), Progress({ done: n, of: count })),
      { discard: true }
    )
  )
  const Write = Workflow.make("write", { version: "1", input: Schema.Number }, (count) => write(count))

  it.effect("carries more than a page in order, each stream for itself, and all of it before the outcome is seen", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Write, 1000, { run: "r" })
      yield* client.result(Write, "r")
      // Nothing is waited for any more.
      const heard = yield* tokens(client.listen(Tokens, "r", { follow: false }))
      assert.deepStrictEqual(
        heard,
        Array.from({ length: 256 }, (_, n) => [n + 1, `t${n + 1}`, "write#1", 1]).concat(
          Array.from({ length: 744 }, (_, n) => [n + 257, `t${n + 257}`, "write#1", 1])
        )
      )
      const progress = yield* Stream.runCollect(client.listen(Progress, "r", { after: 998 }))
      assert.deepStrictEqual(
        Chunk.toReadonlyArray(progress).map(({ value }) => value),
        [
          { done: 999, of: 1000 },
          { done: 1000, of: 1000 }
        ]
      )
    }).pipe(Effect.provide(on(Write)))
  )

  const Aside = Workflow.make("aside", { version: "1", success: Schema.Number }, () =>
    Effect.gen(function* () {
      yield* Tokens("before")
      yield* Go()
      yield* Tokens("after")
      return 1
    })
  )

  it.effect("is written by a workflow once, however often it is replayed, and heard while the run waits", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Aside, undefined, { run: "r" })
      const heard = yield* tokens(Stream.take(client.listen(Tokens, "r"), 1))
      assert.deepStrictEqual(heard, [[1, "before", "tokens#1", 1]])
      const listener = yield* Effect.fork(tokens(client.listen(Tokens, "r", { after: 1 })))
      yield* client.awaitStatus(run, ({ status }) => status === "waiting")
      yield* client.resume(Go, {
        branch: run.branch,
        interrupt: "go#1",
        value: undefined,
        deliveryId: "d",
        intent: "retry"
      })
      // The listener ends with the run.
      assert.deepStrictEqual(yield* listener, [[2, "after", "tokens#2", 1]])
      yield* Testing.replayCheck(Aside, run.branch)
      assert.strictEqual((yield* tokens(client.listen(Tokens, "r"))).length, 2)
    }).pipe(Effect.provide(on(Aside)))
  )

  it.effect("says of a body that is tried again that it is, and gives a fork a stream of its own", () => {
    class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}
    let tries = 0
    const flaky = Node.make("flaky", { error: Refused, retry: { times: 1 } }, () =>
      Effect.zipRight(
        Tokens(`try ${++tries}`),
        Effect.suspend(() => (tries === 1 ? Effect.fail(new Refused()) : Effect.void))
      )
    )
    const Flaky = Workflow.make("flaky", { version: "1", error: Refused }, () =>
      Effect.gen(function* () {
        yield* flaky()
        yield* Tokens("end")
      })
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Flaky, undefined, { run: "r" })
      yield* client.result(Flaky, "r")
      assert.deepStrictEqual(yield* tokens(client.listen(Tokens, "r")), [
        [1, "try 1", "flaky#1", 1],
        [2, "try 2", "flaky#1", 2],
        [3, "end", "tokens#1", 1]
      ])
      const { seq } = (yield* client.history("r")).find(
        ({ key, kind }) => kind === "step.succeeded" && key === "flaky#1"
      ) ?? {
        seq: 0
      }
      const fork = yield* client.fork({ from: { branch: run.branch, seq }, forkId: "f" })
      assert.deepStrictEqual(yield* tokens(client.listen(Tokens, fork.branch)), [[1, "end", "tokens#1", 1]])
    }).pipe(Effect.provide(on(Flaky)))
  })

  it.effect("refuses what is no chunk of it before anything is stored, and what nobody declared to read", () => {
    const wrong = Node.make("wrong", {}, () => Tokens(7 as unknown as string))
    const Wrong = Workflow.make("wrong", { version: "1" }, () => wrong())
    const Numbers = OutputStream.make("tokens", { chunk: Schema.Number })
    return Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Wrong, undefined, { run: "w" })
      const exit = yield* Effect.exit(client.result(Wrong, "w"))
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "chunk of output stream tokens (wrong#1)")
      assert.deepStrictEqual(yield* tokens(client.listen(Tokens, "w")), [])
      const missing = yield* Effect.flip(Stream.runDrain(client.listen(Tokens, "nobody")))
      assert.strictEqual(missing._tag, "RunNotFound")
      yield* client.start(Write, 1, { run: "r" })
      yield* client.result(Write, "r")
      const stored = yield* Effect.flip(Stream.runDrain(client.listen(Numbers, "r")))
      assert.include(stored.message, "chunk 1 of output stream tokens as stored")
    }).pipe(Effect.provide(Testing.worker({ workflows: [Wrong, Write] }).pipe(Layer.provideMerge(Testing.layer))))
  })

  it("cannot be written outside", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Tokens("x") as Effect.Effect<void>)
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "outside of a workflow")
    }).pipe(Effect.runPromise))
})
