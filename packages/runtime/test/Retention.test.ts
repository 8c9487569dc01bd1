import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Schema, TestClock } from "effect"
import { Client, Interrupt, Ledger, Retention, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { refusedAs } from "./ClientFixture.js"

const Ask = Interrupt.make("ask", { answer: Schema.Boolean })
const Order = Workflow.make("order", { version: "1", error: Schema.String }, () =>
  Effect.flatMap(Ask(), (ok) => (ok ? Effect.void : Effect.fail("declined")))
)
const Other = Workflow.make("other", { version: "1" }, () => Effect.void)

const retention = { order: { completed: "2 days", failed: "4 days" } } as const
const Live = Testing.worker({ workflows: [Order, Other], retention }).pipe(Layer.provideMerge(Testing.layer))

/** Answers when the run asks, and waits for its end. */
const settle = (client: Client.Client, run: string, value: boolean) =>
  Effect.gen(function* () {
    yield* client.start(Order, undefined, { run })
    yield* client.awaitStatus(run, ({ status }) => status === "waiting")
    const answer = { branch: `${run}/main`, interrupt: "ask#1", value, deliveryId: "d" }
    yield* client.resume(Ask, { ...answer, intent: "retry" })
    yield* Effect.exit(client.result(Order, run))
  })

describe("retention", () => {
  it.effect("purges what ended longer ago than its workflow's policy says, and nothing else, for good", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* settle(client, "done", true)
      yield* settle(client, "declined", false)
      yield* settle(client, "forked", true)
      const from = { branch: (yield* client.describe("forked")).branch, seq: 2 }
      yield* client.fork({ from, forkId: "f" })
      yield* client.awaitStatus("forked/f", ({ status }) => status === "waiting")
      yield* client.start(Other, undefined, { run: "other" })
      yield* client.result(Other, "other")
      yield* client.start(Order, undefined, { run: "going" })
      yield* client.awaitStatus("going", ({ status }) => status === "waiting")
      const runs = Effect.map(client.list(), (all) => all.map(({ run }) => String(run)).sort())
      /** The worker's own look, and one that is waited for: what it left is what is left. */
      const later = (span: "1 days" | "2 days" | "4 days") =>
        Effect.zipRight(TestClock.adjust(span), Retention.sweep(retention))

      assert.strictEqual(yield* later("1 days"), 0)
      assert.lengthOf(yield* runs, 5)
      yield* later("2 days")
      assert.deepStrictEqual(yield* runs, ["declined", "forked", "going", "other"])
      yield* later("4 days")
      assert.deepStrictEqual(yield* runs, ["forked", "going", "other"])
      yield* refusedAs("RunPurged", client.start(Order, undefined, { run: "done" }))
      // Its fork ends, and with it the run is over.
      yield* client.cancel("forked/f")
      yield* client.awaitStatus("forked/f", ({ status }) => status === "cancelled")
      assert.strictEqual(yield* Retention.sweep(retention), 1)
      assert.deepStrictEqual((yield* (yield* Ledger).verify).problems, [])
    }).pipe(Effect.provide(Live))
  )

  it.effect("is by the worker alone: time passes, and what is due is gone", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const ledger = yield* Ledger
      yield* settle(client, "done", true)
      const gone = Effect.async<void>((resume) =>
        Effect.sync(
          ledger.subscribe((heard) => {
            // A purge announces each of its branches; the run had nothing else to say.
            if (heard._tag === "Changed" && heard.branch === "done/main") resume(Effect.void)
          })
        )
      )
      yield* Effect.zip(gone, TestClock.adjust("3 days"), { concurrent: true })
      yield* refusedAs("RunPurged", client.describe("done"))
    }).pipe(Effect.provide(Live))
  )

  it.effect("refuses a span that is none", () =>
    Effect.gen(function* () {
      // JavaScript callers are not bound by the types.
      const policies = { order: { completed: "soon" } } as unknown as Retention.Policies
      const exit = yield* Effect.exit(Effect.suspend(() => Retention.sweep(policies)))
      assert.match(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", /order: completed/)
    }).pipe(Effect.provide(Testing.layer))
  )
})
