import { describe, expect, it } from "@effect/vitest"
import { SideEffect } from "@fermata/runtime"
import { Effect, Either, Layer } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as EffectLog from "../src/EffectLog.js"
import type * as Money from "../src/Money.js"
import { calm } from "../src/Network.js"
import { PaymentDeclined } from "../src/Refund.js"
import * as Shop from "../src/Shop.js"
import * as ShopDatabase from "../src/ShopDatabase.js"

const euros = (minor: number): Money.Money => ({ currency: "EUR", minor })
const payment = (minor: number, order = "O-1") => ({ request: "R-1", order, amount: euros(minor) })

/** Runs with a shop of its own, in a file, and gives the log afterwards. */
const withShop = <A, E>(use: (shop: Shop.Shop["Type"]) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "refund-agent-shop-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true }))
    )
    const filename = join(directory, "shop.db")
    yield* ShopDatabase.create(
      filename,
      '{"id":"O-1","currency":"EUR","paid":"10.00"}\n{"id":"O-2","currency":"EUR","paid":"10.00","card":"closed"}'
    )
    const result = yield* Effect.provide(Effect.flatMap(Shop.Shop, use), Layer.provide(Shop.layer(filename), calm))
    return { result, log: (yield* EffectLog.read(filename)).map(({ what }) => what) }
  })

describe("the shop", () => {
  it.scoped("pays once per key, and answers the same key alike", () =>
    Effect.gen(function* () {
      const { log, result } = yield* withShop((shop) =>
        Effect.all([shop.pay("a", payment(400)), shop.pay("a", payment(400))])
      )
      expect(result[0]).toEqual(result[1])
      expect(log).toEqual(["payment", "payment asked for again"])
    })
  )

  it.scoped("never pays more than the order has left", () =>
    Effect.gen(function* () {
      const { log, result } = yield* withShop((shop) =>
        Effect.zipRight(shop.pay("a", payment(600)), Effect.either(shop.pay("b", payment(401))))
      )
      expect(result).toEqual(Either.left(new PaymentDeclined({ why: "the order does not have that much left" })))
      expect(log).toEqual(["payment", "payment declined"])
    })
  )

  it.scoped("closes a key that it is asked about and never saw, and refuses the call that comes late", () =>
    Effect.gen(function* () {
      const { log, result } = yield* withShop((shop) =>
        Effect.all([
          shop.whatBecameOf("a", payment(400)),
          Effect.flip(shop.pay("a", payment(400))),
          shop.whatBecameOf("a", payment(400))
        ])
      )
      expect(result).toEqual([
        SideEffect.NeverWill,
        new PaymentDeclined({ why: "this key is closed" }),
        SideEffect.NeverWill
      ])
      expect(log).toEqual(["key closed", "payment asked for again"])
    })
  )

  it.scoped("knows what became of a payment that was made, and of one that was declined", () =>
    Effect.gen(function* () {
      const { result } = yield* withShop((shop) =>
        Effect.gen(function* () {
          const receipt = yield* shop.pay("a", payment(400))
          yield* Effect.flip(shop.pay("b", payment(400, "O-2")))
          return {
            receipt,
            made: yield* shop.whatBecameOf("a", payment(400)),
            declined: yield* shop.whatBecameOf("b", payment(400, "O-2"))
          }
        })
      )
      expect(result.made).toEqual(SideEffect.Happened(result.receipt))
      expect(result.declined).toEqual(
        SideEffect.Declined(new PaymentDeclined({ why: "the customer's card is closed" }))
      )
    })
  )
})
