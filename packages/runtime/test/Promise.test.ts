import { assert, describe, it } from "@effect/vitest"
import { Delivery, Interrupt, Node, Plane, SideEffect, Workflow } from "@fermata/runtime"
import { ConnectionClosed, connect, PromiseFailure, work } from "@fermata/runtime/promise"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Schema } from "effect"

class Declined extends Schema.TaggedError<Declined>()("Declined", { cents: Schema.Number }) {}
const Plain = Schema.TaggedStruct("Plain", { why: Schema.String })
const Approve = Interrupt.make("approve", { answer: Schema.Boolean })
const Charge = SideEffect.make("charge", { input: Schema.Number, success: Schema.String, delivery: Delivery.keyed })
const charge = Node.make("charge-card", { input: Schema.Number, success: Schema.String, effects: [Charge] }, (cents) =>
  Charge(cents)
)
const Buy = Workflow.make(
  "buy",
  { version: "1", input: Schema.Number, success: Schema.String, error: Schema.Union(Declined, Plain) },
  (cents) =>
    Effect.gen(function* () {
      if (cents === 0) return yield* Effect.fail({ _tag: "Plain", why: "nothing to buy" } as const)
      if (!(yield* Approve())) return yield* new Declined({ cents })
      return yield* charge(cents)
    })
)

const handlers = Charge.toLayer((cents) => Effect.succeed(`charged ${cents}`))
/** A worker and its client in one, on a plane in memory. */
const shop = () => work(Testing.layer, { workflows: [Buy], handlers })

const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  return assert.fail("it did not reject")
}

describe("the façade of promises", () => {
  const answer = (value: boolean, deliveryId: string) =>
    ({ branch: "r/main", interrupt: "approve#1", value, deliveryId, intent: "retry" }) as const

  it("runs a workflow, answers it once, and gives its typed result", async () => {
    await using plane = await shop()
    const { client } = plane
    const run = await client.start(Buy, 5, { run: "r" })
    await client.awaitStatus(run, ({ status }) => status === "waiting")
    assert.strictEqual((await client.pendingInterrupts()).length, 1)
    assert.strictEqual((await client.resume(Approve, answer(true, "d")))._tag, "Answered")
    const text: string = await client.result(Buy, run)
    assert.strictEqual(text, "charged 5")
    assert.deepInclude(await rejection(client.resume(Approve, answer(false, "e"))), {
      _tag: "AlreadyConsumed",
      by: "d"
    })
    assert.deepInclude(await rejection(client.describe("nobody")), { _tag: "RunNotFound" })
    assert.strictEqual((await client.history(run)).at(-1)?.kind, "run.completed")
  })

  it("rejects with the workflow's own errors, as errors that keep their tags", async () => {
    await using plane = await shop()
    const { client } = plane
    await client.start(Buy, 7, { run: "r" })
    await client.awaitStatus("r", ({ status }) => status === "waiting")
    await client.resume(Approve, answer(false, "d"))
    const declined = await rejection(client.result(Buy, "r"))
    assert.instanceOf(declined, Declined)
    assert.instanceOf(declined, Error)
    assert.deepInclude(declined, { _tag: "Declined", cents: 7 })
    await client.start(Buy, 0, { run: "plain" })
    const plain = await rejection(client.result(Buy, "plain"))
    assert.instanceOf(plain, PromiseFailure)
    assert.deepInclude(plain, { _tag: "Plain" })
    assert.deepStrictEqual((plain as PromiseFailure).cause, { _tag: "Plain", why: "nothing to buy" })
  })

  it("stops waiting when a signal says so, or the connection is closed, and the run goes on", async () => {
    const plane = await shop()
    const { client } = plane
    await client.start(Buy, 5, { run: "r" })
    const controller = new AbortController()
    const waiting = rejection(client.result(Buy, "r", { signal: controller.signal }))
    controller.abort(new Error("the caller left"))
    assert.deepInclude(await waiting, { message: "the caller left" })
    assert.deepInclude(
      await rejection(
        client
          .result(Buy, "r", { signal: AbortSignal.abort("gone before") })
          .catch((reason: unknown) => Promise.reject(new Error(String(reason))))
      ),
      { message: "gone before" }
    )
    assert.notStrictEqual((await client.describe("r")).status, "cancelled")
    const last = rejection(client.result(Buy, "r"))
    await plane.close()
    assert.instanceOf(await last, ConnectionClosed)
    assert.instanceOf(await rejection(client.describe("r")), ConnectionClosed)
    await plane.close()
  })

  it("says what is wrong with the database when it connects", async () => {
    const error = await rejection(connect(Plane.sqlite({ filename: "/nowhere/at/all.db" })))
    assert.deepInclude(error, { _tag: "LedgerUnusable", reason: "cannot be opened" })
  })
})
