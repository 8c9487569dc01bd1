/** The workflow by itself, on a plane in memory and with handlers of the test's own. */
import { describe, expect, it } from "@effect/vitest"
import { Client } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Effect, Layer } from "effect"
import * as Assessor from "../src/Assessor.js"
import * as Money from "../src/Money.js"
import { Approval, Assess, LookUp, Notify, Pay, PaymentDeclined, Refund } from "../src/Refund.js"

const request = (minor: number, reason = "broken") => ({
  id: "R-1",
  order: "O-1",
  customer: "Zoë",
  amount: { currency: "EUR", minor } satisfies Money.Money,
  reason
})

/** Handlers that note what they are asked to do. */
const world = (did: Array<string>, card: "open" | "closed" = "open") =>
  Layer.mergeAll(
    LookUp.toLayer((id) =>
      Effect.succeed({ id, paid: { currency: "EUR", minor: 90_000 }, refunded: { currency: "EUR", minor: 0 } })
    ),
    Assess.toLayer(({ request }) => Effect.succeed(Assessor.judge(request.reason))),
    Pay.toLayer(({ amount }) =>
      Effect.suspend(() => {
        if (card === "closed") return new PaymentDeclined({ why: "the card is closed" })
        did.push(`paid ${Money.format(amount)}`)
        return Effect.succeed({ payment: "P-1", amount })
      })
    ),
    Notify.toLayer(({ text }) => Effect.sync(() => void did.push(text)))
  )

const plane = (did: Array<string>, card?: "open" | "closed") =>
  Testing.worker({ workflows: [Refund] }).pipe(Layer.provide(world(did, card)), Layer.provideMerge(Testing.layer))

describe("a refund", () => {
  it.effect("is paid at once if it is small and clear", () => {
    const did: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const outcome = yield* client.result(Refund, yield* client.start(Refund, request(100_00)))
      expect(outcome).toMatchObject({ _tag: "Paid", by: "model" })
      expect(did).toEqual(["paid 100.00 EUR", "Dear Zoë, we sent you 100.00 EUR."])
    }).pipe(Effect.provide(plane(did)))
  })

  it.effect("waits for a person if it is large, and replays from every prefix to the same end", () => {
    const did: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const run = yield* client.start(Refund, request(100_01))
      yield* client.awaitStatus(run, ({ status }) => status === "waiting")
      expect(did).toEqual([])

      const value = { approved: true, by: "Ben", note: "" }
      const address = { branch: run.branch, interrupt: "approval#1", deliveryId: "click", intent: "retry" } as const
      yield* client.resume(Approval, { ...address, value })
      expect(yield* client.result(Refund, run)).toMatchObject({ _tag: "Paid", by: "Ben" })
      expect(did).toEqual(["paid 100.01 EUR", "Dear Zoë, we sent you 100.01 EUR."])
      yield* Testing.replayCheck(Refund, run.branch)
      expect(did).toHaveLength(2)
    }).pipe(Effect.provide(plane(did)))
  })

  it.effect("ends as a refusal, with a letter, when the shop declines to pay", () => {
    const did: Array<string> = []
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const outcome = yield* client.result(Refund, yield* client.start(Refund, request(5_00)))
      expect(outcome).toEqual({ _tag: "Refused", by: "shop", why: "the card is closed" })
      expect(did).toEqual(["Dear Zoë, we cannot refund order O-1: the card is closed."])
    }).pipe(Effect.provide(plane(did, "closed")))
  })
})
