/** The warehouse, the bank and the carrier: a file that each of them writes what it did to. */
import { SideEffect } from "@fermata/runtime"
import { Effect, Layer } from "effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { Book, Charge, Hold, type Order, Refund, Refused, Release } from "./Order.js"

interface Deed {
  readonly what: string
  readonly order: string
  readonly key: string
}

/** What was done so far; `deedsOf` leaves out what a receiver did already under the same key. */
export const deedsOf = (file: string): ReadonlyArray<Deed> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Deed)
    : []

/** The handlers. `happened` is called after each deed, before anybody else knows of it. */
export const handlers = (file: string, happened: (deeds: number) => void) => {
  const act =
    (what: string, refuses: (order: Order) => boolean) =>
    (order: Order, { idempotencyKey }: SideEffect.Firing) =>
      Effect.suspend(() => {
        if (refuses(order)) return new Refused({ what: `${what} of ${order.id}` })
        const known = deedsOf(file)
        // The receivers honour the key.
        if (!known.some(({ key }) => key === idempotencyKey)) {
          appendFileSync(file, `${JSON.stringify({ what, order: order.id, key: idempotencyKey } satisfies Deed)}\n`)
          happened(known.length + 1)
        }
        return Effect.succeed(`${what}: done`)
      })
  const never = () => false
  return Layer.mergeAll(
    Hold.toLayer(act("hold", ({ trouble }) => trouble === "no stock")),
    Release.toLayer(act("release", never)),
    Charge.toLayer(act("charge", never), {
      reconcile: ({ idempotencyKey }) =>
        Effect.sync(() =>
          deedsOf(file).some(({ key }) => key === idempotencyKey)
            ? SideEffect.Happened("charge: done")
            : SideEffect.NeverWill
        )
    }),
    Refund.toLayer(act("refund", ({ trouble }) => trouble === "no carrier, no refund")),
    Book.toLayer(act("book", ({ trouble }) => trouble?.startsWith("no carrier") === true))
  )
}
