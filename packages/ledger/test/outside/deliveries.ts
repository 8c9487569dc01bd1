/** CO, FI: the table of deliveries, against the ledger. */
import { expect, it } from "@effect/vitest"
import type { Ledger } from "@fermata/ledger"
import { Effect, Either } from "effect"
import * as fc from "effect/FastCheck"
import {
  anyRun,
  answer,
  answered,
  branchId,
  closed,
  completed,
  delivery,
  opened,
  type Owner,
  unserved
} from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

/** Everything of a branch that a refused or duplicate delivery must leave alone. */
const stateOf = (ledger: Ledger, branch: ReturnType<typeof branchId>) =>
  Effect.all({
    row: ledger.branch(branch),
    inbox: ledger.inbox(branch, 0),
    open: Effect.map(ledger.pendingInterrupts(), (all) => all.filter((one) => one.branch === branch)),
    entries: Effect.map(ledger.history(branch), ({ entries }) => entries.length)
  })

/** The error of a delivery that leaves everything as it was. */
const refusal = (ledger: Ledger, request: Parameters<Ledger["deliver"]>[0]) =>
  Effect.gen(function* () {
    const before = yield* stateOf(ledger, request.branch)
    const error = yield* Effect.flip(ledger.deliver(request))
    expect(yield* stateOf(ledger, request.branch)).toEqual(before)
    return error
  })

/** A run that waits at an open interrupt `approve#1`. */
const waiting = (owner: Owner) =>
  Effect.gen(function* () {
    const owned = yield* owner.started()
    yield* owned.write(opened("approve#1"))
    yield* owned.park
    return owned.journal.branch
  })

/** A run whose interrupt was answered with `true` by `d1`, the answer journaled; still owned. */
const served = (owner: Owner) =>
  Effect.gen(function* () {
    const branch = yield* waiting(owner)
    const receipt = yield* owner.ledger.deliver(answer(branch, "approve#1", "d1", true))
    const owned = yield* owner.own(branch)
    yield* owned.write(answered("approve#1", true, "d1", 1))
    return { owned, branch, receipt }
  })

export const deliverySuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "row 1: an unknown branch or interrupt, or another definition's, is refused and named",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const branch = yield* waiting(owner)
        const nobody = branchId(`${anyRun()}/main`)
        expect(yield* Effect.flip(ledger.deliver(answer(nobody, "approve#1", "d", true)))).toMatchObject({
          _tag: "UnknownInterrupt",
          branch: nobody
        })
        expect(yield* refusal(ledger, answer(branch, "approve#2", "d", true))).toMatchObject({
          _tag: "UnknownInterrupt",
          interrupt: "approve#2",
          open: ["approve#1"]
        })
        expect(yield* refusal(ledger, answer(branch, "approve#1", "d", true, "reject"))).toMatchObject({
          _tag: "UnknownInterrupt"
        })
      })
    )
  )

  it.live(
    "row 7: an answer to an open interrupt is accepted, durable, and makes the branch ready",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const branch = yield* waiting(owner)
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "waiting", readyAt: null, owner: null })
        const receipt = yield* ledger.deliver(answer(branch, "approve#1", "d1", { yes: true }))
        expect(receipt).toMatchObject({ verdict: "Accepted", delivery: "d1", unserved: null })
        const row = yield* ledger.branch(branch)
        expect(row).toMatchObject({ status: "ready", inboxHead: 1 })
        expect(row.readyAt).not.toBeNull()
        const [stored] = yield* ledger.inbox(branch, 0)
        expect(stored).toMatchObject({ pos: 1, kind: "answer", key: "answer:approve#1", at: receipt.at })
        expect(JSON.parse(stored?.payload ?? "")).toMatchObject({
          interrupt: "approve#1",
          delivery: "d1",
          value: { yes: true }
        })
        expect((yield* ledger.pendingInterrupts()).filter((one) => one.branch === branch)).toEqual([])
      })
    )
  )

  it.live(
    "rows 2 to 4: after an answer its own delivery is a duplicate, every other is refused; nothing changes",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const judge = (branch: ReturnType<typeof branchId>, at: number) =>
          Effect.gen(function* () {
            const before = yield* stateOf(ledger, branch)
            expect(yield* ledger.deliver(answer(branch, "approve#1", "d1", true))).toMatchObject({
              verdict: "Duplicate",
              at
            })
            expect(yield* stateOf(ledger, branch)).toEqual(before)
            expect(yield* refusal(ledger, answer(branch, "approve#1", "d1", false))).toMatchObject({
              _tag: "DeliveryIdReused"
            })
            expect(yield* refusal(ledger, answer(branch, "approve#1", "d2", true))).toMatchObject({
              _tag: "AlreadyConsumed",
              by: "d1",
              at
            })
          })
        const branch = yield* waiting(owner)
        const { at } = yield* ledger.deliver(answer(branch, "approve#1", "d1", true))
        // Accepted and not journaled yet.
        yield* judge(branch, at)
        const owned = yield* owner.own(branch)
        yield* owned.write(answered("approve#1", true, "d1", 1), opened("approve#2"))
        yield* judge(branch, at)
        expect(yield* refusal(ledger, answer(branch, "approve#2", "d1", true))).toMatchObject({
          _tag: "DeliveryIdReused"
        })
        yield* owned.write(completed)
        // The run is over since: still the same receipt.
        yield* judge(branch, at)
        expect(yield* refusal(ledger, answer(branch, "approve#2", "d3", true))).toMatchObject({
          _tag: "InterruptClosed"
        })
      })
    )
  )

  it.live(
    "row 5: a withdrawn interrupt takes no answer",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const owned = yield* owner.started()
        yield* owned.write(opened("approve#1"), closed("approve#1"))
        expect(yield* refusal(owner.ledger, answer(owned.journal.branch, "approve#1", "d", true))).toMatchObject({
          _tag: "InterruptClosed",
          reason: "withdrawn"
        })
      })
    )
  )

  it.live(
    "row 6: an invalid or oversized value consumes nothing, and a valid one is accepted after it",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const branch = yield* waiting(owner)
        const request = answer(branch, "approve#1", "d1", true)
        const invalid = { _tag: "Invalid", issues: [`["approved"] is missing`] } as const
        expect(yield* refusal(ledger, { ...request, value: invalid })).toMatchObject({
          _tag: "ResumeValueInvalid",
          issues: invalid.issues
        })
        const huge = `"${"x".repeat(64 * 1024 * 1024)}"`
        const oversized = { _tag: "Valid", json: huge, digest: "d" } as const
        expect(yield* refusal(ledger, { ...request, value: oversized })).toMatchObject({ _tag: "ResumeValueInvalid" })
        const noJson = { _tag: "Valid", json: "{", digest: "d" } as const
        expect(yield* refusal(ledger, { ...request, value: noJson })).toMatchObject({ _tag: "ResumeValueInvalid" })
        expect(yield* ledger.deliver(request)).toMatchObject({ verdict: "Accepted" })
      })
    )
  )

  it.live(
    'presence is never tested by truthiness: false, 0, "", null, [] and {} are answers',
    onBench(({ owner }) =>
      Effect.gen(function* () {
        for (const value of [false, 0, "", null, [], {}]) {
          const branch = yield* waiting(owner)
          expect(yield* owner.ledger.deliver(answer(branch, "approve#1", "d", value))).toMatchObject({
            verdict: "Accepted"
          })
          expect(yield* owner.ledger.deliver(answer(branch, "approve#1", "d", value))).toMatchObject({
            verdict: "Duplicate"
          })
          const [row] = yield* owner.ledger.inbox(branch, 0)
          expect(JSON.parse(row?.payload ?? "").value).toEqual(value)
        }
      })
    )
  )

  it.live(
    "any JSON value is stored as the very text it came as",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const values = fc.sample(fc.jsonValue({ maxDepth: 4 }), 10)
        for (const value of [...values, "a\u0000b", "\ud800", { ["__proto__"]: 1 }, '{"$fermata":"-0"}']) {
          const branch = yield* waiting(owner)
          yield* owner.ledger.deliver(answer(branch, "approve#1", "d", value))
          const [row] = yield* owner.ledger.inbox(branch, 0)
          expect(row?.payload).toContain(`"value":${JSON.stringify(value)},`)
        }
      })
    )
  )

  it.live(
    "an answer whose interrupt closed before it was served says so in its receipt, also when asked again",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"))
        const receipt = yield* ledger.deliver(answer(branch, "approve#1", "d1", true))
        expect(receipt.unserved).toBeNull()
        yield* owned.write(closed("approve#1"), unserved("answer:approve#1", 1, "withdrawn"))
        expect(yield* ledger.deliver(answer(branch, "approve#1", "d1", true))).toEqual({
          ...receipt,
          verdict: "Duplicate",
          unserved: "withdrawn"
        })
        expect(yield* refusal(ledger, answer(branch, "approve#1", "d2", true))).toMatchObject({
          _tag: "AlreadyConsumed",
          by: "d1"
        })
      })
    )
  )

  it.live(
    "the owner of a running branch is told, and the branch stays running",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"))
        const heard: Array<unknown> = []
        const stop = ledger.subscribe((announcement) => heard.push(announcement))
        yield* ledger.deliver(answer(branch, "approve#1", "d1", true))
        stop()
        expect(heard).toContainEqual({ _tag: "Inbox", branch })
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "running", inboxHead: 1 })
      })
    )
  )

  it.live(
    "an answer takes a stuck branch out of it",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const owned = yield* owner.started()
        yield* owned.write(opened("approve#1"))
        yield* Effect.orDie(owned.journal.release({ _tag: "Stuck", problem: `"in doubt"` }, { inboxSeen: 0 }))
        yield* owner.ledger.deliver(answer(owned.journal.branch, "approve#1", "d1", true))
        expect(yield* owner.ledger.branch(owned.journal.branch)).toMatchObject({ status: "ready", problem: null })
      })
    )
  )

  for (const kind of ["equal", "different"] as const) {
    it.live(
      `of 20 concurrent deliveries of ${kind} values from ${place.ledgers} ledgers one is accepted`,
      onBench(({ ledgers, owner }) =>
        Effect.gen(function* () {
          const [first] = ledgers
          const branch = yield* waiting(owner)
          const results = yield* Effect.forEach(
            Array.from({ length: 20 }, (_, index) => index),
            (index) => {
              const ledger = ledgers[index % ledgers.length] ?? first
              return Effect.either(
                ledger.deliver(answer(branch, "approve#1", `d${index}`, kind === "equal" ? true : index))
              )
            },
            { concurrency: "unbounded" }
          )
          const accepted = results.filter(Either.isRight).map((result) => result.right)
          expect(accepted).toMatchObject([{ verdict: "Accepted" }])
          const refusals = results.filter(Either.isLeft).map((result) => result.left)
          expect(refusals).toHaveLength(19)
          for (const error of refusals) {
            expect(error).toMatchObject({ _tag: "AlreadyConsumed", by: accepted[0]?.delivery, at: accepted[0]?.at })
          }
          expect(yield* first.inbox(branch, 0)).toHaveLength(1)
          expect(yield* first.branch(branch)).toMatchObject({ inboxHead: 1, status: "ready" })
        })
      )
    )
  }

  it.live(
    "one delivery sent 20 times at once is accepted once and has one receipt",
    onBench(({ ledgers, owner }) =>
      Effect.gen(function* () {
        const [first] = ledgers
        const branch = yield* waiting(owner)
        const receipts = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => index),
          (index) => (ledgers[index % ledgers.length] ?? first).deliver(answer(branch, "approve#1", "d", "yes")),
          { concurrency: "unbounded" }
        )
        expect(receipts.filter(({ verdict }) => verdict === "Accepted")).toHaveLength(1)
        expect(new Set(receipts.map(({ at }) => at)).size).toBe(1)
      })
    )
  )

  it.live(
    "concurrent answers to many interrupts of one branch take positions without gaps",
    onBench(({ ledgers, owner }) =>
      Effect.gen(function* () {
        const [first] = ledgers
        const owned = yield* owner.started()
        const keys = Array.from({ length: 30 }, (_, index) => `approve#${index + 1}`)
        yield* owned.write(...keys.map((key) => opened(key)))
        yield* Effect.forEach(
          keys,
          (key, index) =>
            (ledgers[index % ledgers.length] ?? first).deliver(answer(owned.journal.branch, key, `d-${key}`, index)),
          { concurrency: "unbounded" }
        )
        const rows = yield* first.inbox(owned.journal.branch, 0)
        expect(rows.map(({ pos }) => pos)).toEqual(keys.map((_, index) => index + 1))
        expect(new Set(rows.map(({ key }) => key)).size).toBe(keys.length)
        expect((yield* first.inbox(owned.journal.branch, 28)).map(({ pos }) => pos)).toEqual([29, 30])
      })
    )
  )

  it.live(
    "pending interrupts are listed by page, in the order in which they were opened",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        yield* waiting(owner)
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1", { q: 1 }), opened("approve#2", { q: 2 }), opened("approve#3", { q: 3 }))
        const run = owned.claim.run.run
        const all = yield* ledger.pendingInterrupts({ run })
        expect(all.map(({ interrupt, payload, seq }) => [interrupt, JSON.parse(payload), seq])).toEqual([
          ["approve#1", { q: 1 }, 2],
          ["approve#2", { q: 2 }, 3],
          ["approve#3", { q: 3 }, 4]
        ])
        const [one] = yield* ledger.pendingInterrupts({ run, limit: 1 })
        if (one === undefined) throw new Error("nothing is pending")
        const rest = yield* ledger.pendingInterrupts({ run, after: one })
        expect(rest.map(({ interrupt }) => interrupt)).toEqual(["approve#2", "approve#3"])
        expect(rest[0]?.branch).toBe(branch)
        expect((yield* ledger.pendingInterrupts({ limit: 3 })).length).toBe(3)
        expect((yield* ledger.pendingInterrupts()).length).toBeGreaterThan(3)
      })
    )
  )

  it.live(
    "a delivery id may be used on another branch",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        yield* served(owner)
        const other = yield* waiting(owner)
        expect(
          yield* owner.ledger.deliver({ ...answer(other, "approve#1", "d1", true), delivery: delivery("d1") })
        ).toMatchObject({
          verdict: "Accepted"
        })
      })
    )
  )
}
