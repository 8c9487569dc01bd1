/** Signals, queries and updates, on a plane in memory whose clock is set by hand. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Either, Fiber, Option, Ref, Schema, Stream } from "effect"
import { Interrupt, Query, Signal, Update, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { play } from "./House.js"

const Joined = Signal.make("joined", { payload: Schema.String })
const Left = Signal.make("left", { payload: Schema.Number })
const Go = Interrupt.make("go", {})

const Party = Workflow.make(
  "party",
  { version: "1", input: Schema.Number, success: Schema.Array(Schema.String), signals: [Joined] },
  (count) => Effect.replicateEffect(Signal.next(Joined), count)
)

describe("a signal", () => {
  it.effect("is delivered in the order of acceptance, once per message id, before the wait and after it", () =>
    play(({ client, hire, plane }) =>
      Effect.gen(function* () {
        const run = yield* client.start(Party, 4, { run: "r" })
        const first = yield* client.signal("r", Joined, "Ada", { messageId: "1" })
        const again = yield* client.signal("r", Joined, "Ada", { messageId: "1" })
        yield* client.signal(run.branch, Joined, "Bob", { messageId: "2" })
        assert.deepStrictEqual(again, { ...first, verdict: "Duplicate" })
        const dismiss = yield* hire(Testing.worker({ workflows: [Party] }))
        const waiting = yield* client.awaitStatus("r", ({ status }) => status === "waiting")
        assert.deepStrictEqual(waiting.waitingFor, [{ _tag: "Signal", name: "joined" }])
        yield* client.signal("r", Joined, "Ada", { messageId: "3" })
        yield* client.awaitStatus("r", ({ head, status }) => status === "waiting" && head > waiting.head)
        // Another worker replays what the first has taken.
        yield* dismiss
        yield* hire(Testing.worker({ workflows: [Party] }))
        yield* client.signal("r", Joined, "Cy", { messageId: "4" })
        assert.deepStrictEqual(yield* client.result(Party, run), ["Ada", "Bob", "Ada", "Cy"])
        // Also when the run is over the same message is the same message.
        assert.strictEqual((yield* client.signal("r", Joined, "Cy", { messageId: "4" })).verdict, "Duplicate")
        yield* Effect.provide(Testing.replayCheck(Party, run.branch), plane)
      })
    )
  )

  it.effect("is refused when nothing takes it, and nothing is written then", () =>
    play(({ client, hire, ledger }) =>
      Effect.gen(function* () {
        const run = yield* client.start(Party, 1, { run: "r" })
        const tag = <E extends { readonly _tag: string }>(effect: Effect.Effect<unknown, E>) =>
          Effect.map(Effect.flip(effect), ({ _tag }) => _tag)
        assert.strictEqual(yield* tag(client.signal("nobody", Joined, "x")), "RunNotFound")
        assert.strictEqual(yield* tag(client.signal("r", Left, 1)), "UnknownMessage")
        const invalid = yield* Effect.flip(client.signal("r", Joined, 7 as unknown as string))
        assert.strictEqual(invalid._tag, "InvalidValue")
        assert.include(invalid.message, "payload of signal joined")
        assert.strictEqual(yield* tag(client.signal("r", Joined, "x", { messageId: "" })), "InvalidId")
        assert.deepStrictEqual(yield* ledger.inbox(run.branch, 0), [])
        yield* client.signal("r", Joined, "x", { messageId: "1" })
        assert.strictEqual(yield* tag(client.signal("r", Joined, "y", { messageId: "1" })), "MessageIdReused")
        yield* hire(Testing.worker({ workflows: [Party] }))
        yield* client.result(Party, "r")
        assert.strictEqual(yield* tag(client.signal("r", Joined, "z", { messageId: "2" })), "RunOver")
        assert.strictEqual((yield* ledger.inbox(run.branch, 0)).length, 1)
        yield* client.purge("r")
        assert.strictEqual(yield* tag(client.signal("r", Joined, "x", { messageId: "1" })), "RunPurged")
      })
    )
  )

  it.effect("starts its run if need be, in the same transaction, with a worker or without", () =>
    play(({ client, hire }) =>
      Effect.gen(function* () {
        const send = (run: string, name: string) =>
          client.signalWithStart(Party, 2, Joined, name, { run, messageId: name })
        const first = yield* send("r", "Ada")
        assert.isTrue(first.run.created)
        yield* hire(Testing.worker({ workflows: [Party] }))
        assert.isFalse((yield* send("r", "Bob")).run.created)
        assert.deepStrictEqual(yield* client.result(Party, "r"), ["Ada", "Bob"])
        // The worker takes this one in the transaction that starts it.
        yield* send("s", "Ada")
        yield* send("s", "Bob")
        assert.deepStrictEqual(yield* client.result(Party, "s"), ["Ada", "Bob"])
        const other = yield* Effect.flip(client.signalWithStart(Party, 3, Joined, "Cy", { run: "r", messageId: "Cy" }))
        assert.strictEqual(other._tag, "RunConflict")
        const over = yield* Effect.flip(send("r", "Cy"))
        assert.strictEqual(over._tag, "RunOver")
      })
    )
  )

  it.effect("does not start a run before its time, and is there when it starts", () =>
    play(({ client, hire, pass }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Party] }))
        yield* client.start(Party, 1, { run: "r", delay: "1 hour" })
        yield* client.signal("r", Joined, "Ada")
        assert.deepInclude(yield* client.describe("r"), { status: "waiting", head: 1 })
        yield* pass("1 hour")
        assert.deepStrictEqual(yield* client.result(Party, "r"), ["Ada"])
      })
    )
  )

  it.effect("may be drained, come as a stream, and lose a race without being lost", () => {
    const Collect = Workflow.make(
      "collect",
      { version: "1", success: Schema.Array(Schema.String), signals: [Joined] },
      () =>
        Effect.gen(function* () {
          const none = yield* Effect.timeoutOption(Signal.next(Joined), "1 minute")
          yield* Go()
          const drained = yield* Signal.drain(Joined)
          const streamed = yield* Stream.runCollect(Stream.take(Signal.stream(Joined), 2))
          return [Option.getOrElse(none, () => "nobody"), ...drained, "|", ...Chunk.toReadonlyArray(streamed)]
        })
    )
    return play(({ client, hire, pass, plane, recorded }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Collect] }))
        const run = yield* client.start(Collect, undefined, { run: "r" })
        yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        yield* pass("1 minute")
        yield* recorded(run.branch, "interrupt.opened go#1")
        for (const name of ["a", "b"]) yield* client.signal("r", Joined, name, { messageId: name })
        const waiting = yield* client.awaitStatus(run, ({ unread }) => unread["signal:joined"] === 2)
        assert.deepStrictEqual(
          waiting.waitingFor.map(({ _tag }) => _tag),
          ["Answer"]
        )
        yield* client.resume(Go, {
          branch: run.branch,
          interrupt: "go#1",
          value: undefined,
          deliveryId: "d",
          intent: "retry"
        })
        for (const name of ["c", "d", "e"])
          yield* client.signal("r", Joined, name, { messageId: name }).pipe(Effect.ignore)
        assert.deepStrictEqual(yield* client.result(Collect, run), ["nobody", "a", "b", "|", "c", "d"])
        yield* Effect.provide(Testing.replayCheck(Collect, run.branch), plane)
      })
    )
  })

  it.effect("is inherited by a fork if it was journaled before, and goes to the root by the run's id", () =>
    play(({ client, hire, history, plane }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Party] }))
        const run = yield* client.start(Party, 2, { run: "r" })
        yield* client.signal("r", Joined, "Ada", { messageId: "1" })
        yield* client.awaitStatus("r", ({ head, status }) => status === "waiting" && head === 2)
        const fork = yield* client.fork({ from: { branch: run.branch, seq: 2 }, forkId: "f" })
        yield* client.signal("r", Joined, "Bob", { messageId: "2" })
        assert.deepStrictEqual(yield* client.result(Party, "r"), ["Ada", "Bob"])
        // The inherited one is known, the later one is not.
        assert.strictEqual((yield* client.signal(fork.branch, Joined, "Ada", { messageId: "1" })).verdict, "Duplicate")
        const cy = yield* client.signal(fork.branch, Joined, "Cy", { messageId: "2" })
        assert.strictEqual(cy.verdict, "Accepted")
        assert.deepStrictEqual(yield* client.result(Party, fork.branch), ["Ada", "Cy"])
        assert.strictEqual((yield* history(fork.branch)).filter(({ kind }) => kind === "signal.received").length, 2)
        yield* Effect.provide(Testing.replayCheck(Party, fork.branch), plane)
      })
    )
  )

  it.effect("that no one could send makes a run stuck, and one that was not taken is counted at the end", () => {
    const Wrong = Workflow.make("wrong", { version: "1" }, () => Effect.asVoid(Signal.next(Joined)))
    const Deaf = Workflow.make("deaf", { version: "1", signals: [Joined] }, () => Go())
    return play(({ client, hire, ledger, problem }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Wrong, Deaf] }))
        const wrong = yield* client.start(Wrong, undefined, { run: "w" })
        assert.strictEqual((yield* problem(wrong.branch))._tag, "UndeclaredMessage")
        const deaf = yield* client.start(Deaf, undefined, { run: "d" })
        yield* client.signal("d", Joined, "Ada")
        yield* client.awaitStatus("d", ({ status, unread }) => status === "waiting" && unread["signal:joined"] === 1)
        const answer = { branch: deaf.branch, interrupt: "go#1" as const, value: undefined, deliveryId: "d" as const }
        yield* client.resume(Go, { ...answer, intent: "retry" })
        yield* client.result(Deaf, "d")
        assert.deepStrictEqual((yield* client.describe("d")).unread, { "signal:joined": 1 })
        assert.deepStrictEqual((yield* ledger.verify).problems, [])
      })
    )
  })
})

describe("a query", () => {
  const Count = Query.make("count", { result: Schema.Number })
  const Counting = Workflow.make("counting", { version: "1", signals: [Joined] }, () =>
    Effect.gen(function* () {
      for (let n = 0; n < 3; n++) {
        yield* Signal.next(Joined)
        yield* Query.publish(Count, n + 1)
      }
    })
  )

  it.effect("reads what was published last, without a worker, also after the end and on a fork", () =>
    play(({ client, hire, plane }) =>
      Effect.gen(function* () {
        const dismiss = yield* hire(Testing.worker({ workflows: [Counting] }))
        const run = yield* client.start(Counting, undefined, { run: "r" })
        assert.strictEqual((yield* Effect.flip(client.query("r", Count)))._tag, "NotPublished")
        yield* client.signal("r", Joined, "a")
        const one = yield* client.awaitStatus("r", ({ head, status }) => status === "waiting" && head >= 3)
        yield* dismiss
        assert.strictEqual(yield* client.query("r", Count), 1)
        const fork = yield* client.fork({ from: { branch: run.branch, seq: one.head }, forkId: "f" })
        yield* client.signal("r", Joined, "b")
        yield* client.signal("r", Joined, "c")
        yield* hire(Testing.worker({ workflows: [Counting] }))
        yield* client.result(Counting, "r")
        assert.strictEqual(yield* client.query("r", Count), 3)
        assert.strictEqual(yield* client.query(fork.branch, Count), 1)
        const Text = Query.make("count", { result: Schema.String })
        assert.strictEqual((yield* Effect.flip(client.query("r", Text)))._tag, "InvalidValue")
        assert.strictEqual((yield* Effect.flip(client.query("nobody", Count)))._tag, "RunNotFound")
        yield* Effect.provide(Testing.replayCheck(Counting, run.branch), plane)
      })
    )
  )
})

describe("an update", () => {
  class TooMuch extends Schema.TaggedError<TooMuch>()("TooMuch", { limit: Schema.Number }) {}
  const Add = Update.make("add", { input: Schema.Number, success: Schema.Number, error: TooMuch })
  const Stop = Signal.make("stop")
  const Total = Workflow.make("total", { version: "1", success: Schema.Number, signals: [Stop], updates: [Add] }, () =>
    Effect.gen(function* () {
      const total = yield* Ref.make(0)
      yield* Update.handle(Add, {
        validate: (n) => (n > 0 ? undefined : "must be positive"),
        handler: (n) =>
          n === 13
            ? Effect.die(new Error("unlucky"))
            : n > 100
              ? Effect.fail(new TooMuch({ limit: 100 }))
              : Ref.updateAndGet(total, (sum) => sum + n)
      })
      yield* Signal.next(Stop)
      return yield* Ref.get(total)
    })
  )

  it.effect("is validated, handled and answered, once per update id, by whatever worker", () =>
    play(({ client, hire, lines, plane }) =>
      Effect.gen(function* () {
        const dismiss = yield* hire(Testing.worker({ workflows: [Total] }))
        const run = yield* client.start(Total, undefined, { run: "r" })
        const add = (n: number, updateId: string) => client.update("r", Add, n, { updateId })
        assert.strictEqual(yield* add(3, "a"), 3)
        const failed = yield* Effect.flip(add(101, "b"))
        assert.deepStrictEqual([failed._tag, "limit" in failed && failed.limit], ["TooMuch", 100])
        const rejected = yield* Effect.flip(add(-1, "c"))
        assert.deepStrictEqual(
          [rejected._tag, "reason" in rejected && rejected.reason],
          ["UpdateRejected", "must be positive"]
        )
        const died = yield* Effect.flip(add(13, "d"))
        assert.strictEqual(died._tag, "UpdateDied")
        assert.include(died.message, "unlucky")
        yield* dismiss
        const waiting = yield* Effect.fork(add(4, "e"))
        yield* hire(Testing.worker({ workflows: [Total] }))
        assert.strictEqual(yield* Fiber.join(waiting), 7)
        // The same ids again: the same answers, and nothing is done twice.
        assert.strictEqual(yield* add(3, "a"), 3)
        assert.strictEqual((yield* Effect.flip(add(-1, "c")))._tag, "UpdateRejected")
        assert.strictEqual((yield* Effect.flip(add(5, "a")))._tag, "MessageIdReused")
        assert.strictEqual((yield* lines(run.branch)).filter((line) => line === "update.rejected update:c").length, 1)
        yield* client.signal("r", Stop, undefined)
        assert.strictEqual(yield* client.result(Total, "r"), 7)
        assert.strictEqual(yield* add(3, "a"), 3)
        assert.strictEqual((yield* Effect.flip(add(6, "f")))._tag, "RunOver")
        yield* Effect.provide(Testing.replayCheck(Total, run.branch), plane)
      })
    )
  )

  it.effect("is a typed error when the run ends before it answers, or takes none of that name", () => {
    const Ignore = Workflow.make("ignore", { version: "1", signals: [Stop], updates: [Add] }, () => Signal.next(Stop))
    const Other = Update.make("other")
    return play(({ client, hire }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Ignore] }))
        yield* client.start(Ignore, undefined, { run: "r" })
        assert.strictEqual((yield* Effect.flip(client.update("r", Other, undefined)))._tag, "UnknownMessage")
        const asking = yield* Effect.fork(Effect.flip(client.update("r", Add, 1)))
        yield* client.awaitStatus("r", ({ unread }) => unread["update:add"] === 1)
        yield* client.signal("r", Stop, undefined)
        assert.strictEqual((yield* Fiber.join(asking))._tag, "UpdateUnanswered")
      })
    )
  })

  it.effect("may be taken one by one and answered later, and only once", () => {
    const Later = Workflow.make("later", { version: "1", success: Schema.Boolean, updates: [Add] }, () =>
      Effect.gen(function* () {
        const one = yield* Update.next(Add)
        const two = yield* Update.next(Add)
        yield* two.succeed(one.input + two.input)
        yield* one.fail(new TooMuch({ limit: 0 }))
        return Either.isLeft(yield* Effect.either(Effect.sandbox(one.succeed(1))))
      })
    )
    return play(({ client, hire, plane }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Later] }))
        const run = yield* client.start(Later, undefined, { run: "r" })
        const one = yield* Effect.fork(Effect.flip(client.update("r", Add, 1)))
        yield* client.awaitStatus("r", ({ head, status }) => status === "waiting" && head === 2)
        assert.strictEqual(yield* client.update("r", Add, 2), 3)
        assert.strictEqual((yield* Fiber.join(one))._tag, "TooMuch")
        assert.isTrue(yield* client.result(Later, "r"))
        yield* Effect.provide(Testing.replayCheck(Later, run.branch), plane)
      })
    )
  })
})
