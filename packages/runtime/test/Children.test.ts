/** Child workflows: started once, waited for at no cost, taken along or left alone. */
import { assert, describe, it } from "@effect/vitest"
import { rootBranch, RunId } from "@fermata/contract"
import { Cause, Effect, Either, Exit, Schema } from "effect"
import { Child, Interrupt, Ledger as Ledgers, Loop, Node, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { play } from "./House.js"

class Sunk extends Schema.TaggedError<Sunk>()("Sunk", { boat: Schema.String }) {}

const Gate = Interrupt.make("gate", { answer: Schema.DateFromString })

/** By its input: sails, sinks, dies, or waits for a person. */
const Sail = Workflow.make(
  "sail",
  { version: "1", input: Schema.String, success: Schema.DateFromString, error: Sunk },
  (boat) =>
    boat === "sinks"
      ? new Sunk({ boat })
      : boat === "dies"
        ? Effect.die(new Error("a mutiny"))
        : boat === "waits"
          ? Gate()
          : Effect.succeed(new Date(boat.length))
)

const told = <A, E>(exit: Exit.Exit<A, E>): string =>
  Exit.match(exit, {
    onSuccess: (value) => (value instanceof Date ? `date ${value.getTime()}` : String(value)),
    onFailure: (cause) => {
      const error: unknown = Cause.squash(cause)
      return typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : String(error)
    }
  })

/** Runs `Sail` with each input, one after the other, and tells how each ended. */
const Fleet = Workflow.make(
  "fleet",
  { version: "1", input: Schema.Array(Schema.String), success: Schema.Array(Schema.String) },
  (boats) => Effect.forEach(boats, (boat) => Effect.map(Effect.exit(Child.run(Sail, boat)), told))
)

const workflows = [Fleet, Sail] as const
const child = (run: string) => rootBranch(RunId.make(run))

describe("a child", () => {
  it.effect("gives its success, its typed error, its cancellation or its death", () =>
    play(({ client, hire, ledger }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows }))
        const run = yield* client.start(Fleet, ["sails", "sinks", "dies", "waits", "ok"], { run: "f" })
        const asked = yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        // The parent waits for a run, which inspection names (LV).
        assert.deepStrictEqual(
          asked.waitingFor.map(({ _tag }) => _tag),
          ["Answer"]
        )
        const [pending] = yield* client.pendingInterrupts({ run: "f" })
        // People are not asked for it.
        assert.deepStrictEqual(
          (yield* client.pendingInterrupts()).map(({ name }) => name),
          ["gate"]
        )
        assert.match(pending?.task?.assignee ?? "", /^run:f\.[\w-]{16}$/)
        const waits = pending?.task?.assignee?.slice(4) ?? ""
        yield* client.cancel(waits, { reason: "fog" })
        assert.deepStrictEqual(yield* client.result(Fleet, run), [
          "date 5",
          "Sunk",
          "ChildDied",
          "ChildCancelled",
          "date 2"
        ])
        yield* Effect.provideService(Testing.replayCheck(Fleet, run.branch), Ledgers, ledger)
      })
    )
  )

  it.effect("that waits leaves its parent in no memory, and is answered for after both were let go", () =>
    play(({ client, hire, recorded }) =>
      Effect.gen(function* () {
        const dismiss = yield* hire(Testing.worker({ workflows, residentBranches: 0 }))
        const run = yield* client.start(Fleet, ["waits"], { run: "f" })
        yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        const [inner] = yield* client.pendingInterrupts({ name: "gate" })
        assert(inner !== undefined)
        yield* client.awaitStatus(inner.branch, ({ status }) => status === "waiting")
        yield* dismiss
        yield* client.resume(Gate, {
          branch: inner.branch,
          interrupt: "gate#1",
          value: new Date(7),
          deliveryId: "d",
          intent: "retry"
        })
        yield* hire(Testing.worker({ workflows }))
        assert.deepStrictEqual(yield* client.result(Fleet, run), ["date 7"])
        yield* recorded(run.branch, "interrupt.answered child/sail#1")
      })
    )
  )

  it.effect("that ended while no worker was there to tell is told by the next one", () =>
    play(({ client, hire, ledger }) =>
      Effect.gen(function* () {
        // One worker knows the parent, the other the child: neither can do the other's part.
        yield* hire(Testing.worker({ workflows: [Fleet] }))
        const run = yield* client.start(Fleet, ["sails"], { run: "f" })
        yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        const dismiss = yield* hire(Testing.worker({ workflows: [Sail] }))
        assert.deepStrictEqual(yield* client.result(Fleet, run), ["date 5"])
        yield* dismiss
        assert.deepStrictEqual(yield* ledger.awaitedRuns({ limit: 9 }), [])
      })
    )
  )

  it.effect(
    "of a given id is the run of that id, also when it is over; another workflow's or input's is a conflict",
    () => {
      const Named = Workflow.make(
        "named",
        { version: "1", input: Schema.Struct({ run: Schema.String, boat: Schema.String }), success: Schema.String },
        ({ boat, run }) => Effect.map(Effect.exit(Child.run(Sail, boat, { run })), told)
      )
      return play(({ client, hire }) =>
        Effect.gen(function* () {
          yield* hire(Testing.worker({ workflows: [...workflows, Named] }))
          const named = (id: string, run: string, boat: string) =>
            Effect.flatMap(client.start(Named, { run, boat }, { run: id }), (handle) => client.result(Named, handle))
          assert.strictEqual(yield* named("a", "shared", "sails"), "date 5")
          assert.strictEqual(yield* named("b", "shared", "sails"), "date 5")
          assert.strictEqual(yield* named("c", "shared", "other"), "ChildConflict")
          assert.strictEqual(yield* named("d", "a", "sails"), "ChildConflict")
          yield* client.purge("shared")
          assert.strictEqual(yield* named("e", "shared", "sails"), "ChildConflict")
          assert.strictEqual(yield* named("f", " bad ", "sails"), "InvalidId")
        })
      )
    }
  )

  for (const onInterrupt of ["cancel", "abandon"] as const) {
    it.effect(`is ${onInterrupt === "cancel" ? "cancelled" : "left alone"} when its parent waits no more`, () => {
      const Parent = Workflow.make("parent", { version: "1", success: Schema.String }, () =>
        Effect.map(
          Effect.timeoutOption(Child.run(Sail, "waits", { run: "c", onInterrupt }), "1 hour"),
          (answer) => answer._tag
        ).pipe(Effect.orDie)
      )
      return play(({ client, hire, pass, recorded }) =>
        Effect.gen(function* () {
          yield* hire(Testing.worker({ workflows: [Parent, Sail] }))
          const timed = yield* client.start(Parent, undefined, { run: "p" })
          yield* client.awaitStatus(timed, ({ status }) => status === "waiting")
          yield* client.awaitStatus("c", ({ status }) => status === "waiting")
          yield* pass("1 hour")
          assert.strictEqual(yield* client.result(Parent, timed), "None")
          yield* recorded(timed.branch, "interrupt.closed child/sail#1")
          if (onInterrupt === "cancel") yield* recorded(child("c"), "run.cancelled")
          else assert.strictEqual((yield* client.describe("c")).status, "waiting")
        })
      )
    })
  }

  it.effect("goes with its parent when that is cancelled", () =>
    play(({ client, hire, recorded }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows }))
        const run = yield* client.start(Fleet, ["waits"], { run: "f" })
        yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        const [inner] = yield* client.pendingInterrupts({ name: "gate" })
        assert(inner !== undefined)
        yield* client.awaitStatus(inner.branch, ({ status }) => status === "waiting")
        yield* client.cancel(run)
        yield* recorded(run.branch, "run.cancelled")
        yield* recorded(inner.branch, "run.cancelled")
      })
    )
  )

  it.effect("that is detached goes its own way", () => {
    const Parent = Workflow.make("parent", { version: "1", success: Schema.String }, () =>
      Effect.orDie(Child.start(Sail, "waits"))
    )
    return play(({ client, hire }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Parent, Sail] }))
        const run = yield* client.result(Parent, yield* client.start(Parent, undefined, { run: "p" }))
        const { branch } = yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        yield* client.resume(Gate, {
          branch,
          interrupt: "gate#1",
          value: new Date(3),
          deliveryId: "d",
          intent: "retry"
        })
        assert.strictEqual((yield* client.result(Sail, run)).getTime(), 3)
      })
    )
  })

  it.effect("is observed by a fork of its parent, which starts children of its own afterwards", () =>
    play(({ client, hire, history, lines }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows }))
        const run = yield* client.start(Fleet, ["waits", "sails"], { run: "f" })
        yield* client.awaitStatus(run, ({ status }) => status === "waiting")
        const [inner] = yield* client.pendingInterrupts({ name: "gate" })
        assert(inner !== undefined)
        yield* client.awaitStatus(inner.branch, ({ status }) => status === "waiting")
        const seq = (yield* history(run.branch)).length
        const early = yield* client.fork({ from: { branch: run.branch, seq }, forkId: "early" })
        yield* client.resume(Gate, {
          branch: inner.branch,
          interrupt: "gate#1",
          value: new Date(7),
          deliveryId: "d",
          intent: "retry"
        })
        assert.deepStrictEqual(yield* client.result(Fleet, run), ["date 7", "date 5"])
        assert.deepStrictEqual(yield* client.result(Fleet, early.branch), ["date 7", "date 5"])
        // After the child's end, from before its parent heard of it.
        const late = yield* client.fork({ from: { branch: run.branch, seq }, forkId: "late" })
        assert.deepStrictEqual(yield* client.result(Fleet, late.branch), ["date 7", "date 5"])
        const started = (yield* lines(late.branch)).filter((line) => line.startsWith("step.succeeded"))
        assert.strictEqual(started.length, 2)
        // One that waited, and one that each of the three branches began.
        assert.strictEqual((yield* client.list({ workflow: "sail" })).length, 4)
      })
    )
  )

  it.live("comes in hundreds, some at a time, and in loops", () => {
    let most = 0
    let now = 0
    const count = Node.make("count", { undeclared: true }, () =>
      Effect.acquireUseRelease(
        Effect.sync(() => (most = Math.max(most, ++now))),
        () => Effect.yieldNow(),
        () => Effect.sync(() => now--)
      )
    )
    const Small = Workflow.make("small", { version: "1", input: Schema.Number, success: Schema.Number }, (n) =>
      Effect.as(count(), n * 2)
    )
    const Big = Workflow.make("big", { version: "1", success: Schema.Number }, () =>
      Effect.gen(function* () {
        const all = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, n) => n),
          (n) => Child.run(Small, n),
          { concurrency: 10 }
        )
        const more = yield* Workflow.loop("more", { state: Schema.Number, initial: 0 }, (sum, n) =>
          n > 3
            ? Effect.succeed(Loop.done(sum))
            : Effect.map(Child.run(Small, n), (doubled) => Loop.next(sum + doubled))
        )
        return all.reduce((sum, one) => sum + one, more)
      }).pipe(Effect.orDie)
    )
    return play(({ client, hire, ledger }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Small, Big] }))
        const run = yield* client.start(Big, undefined, { run: "b" })
        assert.strictEqual(yield* client.result(Big, run), 9900 + 12)
        assert.isAtMost(most, 10)
        yield* Effect.provideService(Testing.replayCheck(Big, run.branch), Ledgers, ledger)
      })
    )
  })

  it.effect("refuses an input that its Schema refuses, before anything is written", () => {
    const Parent = Workflow.make("parent", { version: "1" }, () =>
      Effect.asVoid(Effect.orDie(Child.run(Sail, 7 as unknown as string)))
    )
    return play(({ client, hire, lines }) =>
      Effect.gen(function* () {
        yield* hire(Testing.worker({ workflows: [Parent, Sail] }))
        const run = yield* client.start(Parent, undefined, { run: "p" })
        const died = yield* Effect.either(client.result(Parent, run))
        assert(Either.isLeft(died))
        assert.include(died.left.message, "input of child workflow sail")
        assert.deepStrictEqual(yield* lines(run.branch), ["run.started", "run.died"])
      })
    )
  })
})
