/**
 * The workflow of the soak: all four deliveries, parallel steps, a race, a timer, a question, an output stream and a
 * finalizer. What its effects do is written to the log outside the plane.
 */
import { Delivery, Interrupt, Node, OutputStream, SideEffect, Workflow } from "@fermata/runtime"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer, Random, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"

/** `asks`: it waits for a person between its charge and its payment. */
export const Job = Schema.Struct({ id: Schema.String, asks: Schema.Boolean })
export type Job = typeof Job.Type

const text = Schema.String
export const Look = SideEffect.make("look", { delivery: Delivery.repeatable, input: text, success: text })
export const Charge = SideEffect.make("charge", { delivery: Delivery.keyed, input: text, success: text })
export const Pay = SideEffect.make("pay", { delivery: Delivery.once(), input: text, success: text })
export const Book = SideEffect.make("book", { delivery: Delivery.transactional, input: text, success: text })
export const Release = SideEffect.make("release", { delivery: Delivery.keyed, input: text, success: text })

export const Approval = Interrupt.make("approval", { payload: text, answer: text })
export const Progress = OutputStream.make("progress", { chunk: text })

const look = Node.make("look", { input: text, success: text, effects: [Look] }, (input) =>
  Effect.zipRight(Progress(`looking at ${input}`), Look(input))
)
const charge = Node.make("charge", { input: text, success: text, effects: [Charge] }, (input) => Charge(input))
const pay = Node.make("pay", { input: text, success: text, effects: [Pay] }, (input) => Pay(input))
const book = Node.make("book", { input: text, success: text, effects: [Book] }, (input) => Book(input))
const release = Node.make("release", { input: text, success: text, effects: [Release] }, (input) => Release(input))

export const Soak = Workflow.make("soak", { version: "1", input: Job, success: text }, ({ asks, id }) =>
  Effect.gen(function* () {
    yield* Progress("begun")
    const [left, right] = yield* Effect.all([look(`${id} left`), look(`${id} right`)], { concurrency: 2 })
    const charged = yield* charge(`${id} ${left} ${right}`)
    const answer = asks ? yield* Approval(charged) : "nobody"
    const paid = yield* pay(`${charged} by ${answer}`)
    yield* Effect.sleep((yield* Random.nextIntBetween(1, 400)) * 1)
    // Who wins is recorded; the loser's outcome is nobody's.
    yield* Effect.race(look(`${id} slowly`), Effect.as(Effect.sleep("20 millis"), "late"))
    return yield* book(paid)
  }).pipe(Effect.onExit(() => release(id)))
)

/** What a run of the job comes to. */
export const resultOf = ({ id }: Job, answer: string): string =>
  `booked: paid: charged: ${id} seen ${id} left seen ${id} right by ${answer}`

/** The table of the plane's database that the transactional effect writes to; nothing in it is unique. */
export const bookTable = "CREATE TABLE soak_book (branch TEXT NOT NULL, receipt TEXT NOT NULL)"

/** The outside world, which takes its time. */
export const handlers = (log: EffectLog) => {
  const happen = (effect: string, input: string, { idempotencyKey, key }: SideEffect.Firing) =>
    Effect.gen(function* () {
      yield* Effect.sleep(Math.random() * 20)
      const written = log.write({ at: key, effect, idempotencyKey, inputDigest: input })
      // The receiver keeps its word: what it ruled out does not happen.
      if (written === "refused") return yield* Effect.dieMessage("the receiver does not take this key any more")
      yield* Effect.sleep(Math.random() * 20)
    })
  return Layer.mergeAll(
    Look.toLayer((input, firing) => Effect.as(happen("look", input, firing), `seen ${input}`)),
    Charge.toLayer((input, firing) => Effect.as(happen("charge", input, firing), `charged: ${input}`)),
    Release.toLayer((input, firing) => Effect.as(happen("release", input, firing), `released: ${input}`)),
    Pay.toLayer((input, firing) => Effect.as(happen("pay", input, firing), `paid: ${input}`), {
      reconcile: ({ idempotencyKey }, input) =>
        Effect.sync(() =>
          log.rule(idempotencyKey) === "happened" ? SideEffect.Happened(`paid: ${input}`) : SideEffect.NeverWill
        )
    }),
    Book.toLayer((input, { key }) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* Effect.orDie(sql`INSERT INTO soak_book (branch, receipt) VALUES (${key.split("|")[0] ?? ""}, ${input})`)
        return `booked: ${input}`
      })
    )
  )
}
