/** Settlements and cancellations: one outcome per effect and one cancellation per branch, whoever says it first. */
import { expect, it } from "@effect/vitest"
import type { BranchId } from "@fermata/contract"
import type { Ledger, SettleRequest } from "@fermata/ledger"
import { Effect, Either } from "effect"
import {
  anyRun,
  branchId,
  cancelled,
  completed,
  forkId,
  happened,
  intended,
  opened,
  type Owner,
  refused,
  stepDone
} from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

const didNotHappen: SettleRequest["settlement"] = { _tag: "DidNotHappen" }
const succeeded = (value: unknown): SettleRequest["settlement"] => ({ _tag: "Succeeded", json: JSON.stringify(value) })

/** A branch that is stuck with a `once` effect in doubt. */
const inDoubt = (owner: Owner) =>
  Effect.gen(function* () {
    const owned = yield* owner.started()
    const { branch } = owned.journal
    const effect = `${branch}|pay#1|0`
    yield* owned.write(intended(effect, "pay#1"))
    yield* Effect.orDie(owned.journal.release({ _tag: "Stuck", problem: `{"inDoubt":true}` }, { inboxSeen: 0 }))
    return { branch, effect }
  })

const rows = (ledger: Ledger, branch: BranchId) => ledger.inbox(branch, 0)

export const settlementSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "an effect in doubt is settled once: the same word again is a duplicate, another is refused",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { branch, effect } = yield* inDoubt(owner)
        const settle = (settlement: SettleRequest["settlement"]) => ledger.settle({ branch, effect, settlement })
        expect(yield* settle(succeeded({ b: 1, a: 2 }))).toBe("Accepted")
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "ready", problem: null, inboxHead: 1 })
        const [row] = yield* rows(ledger, branch)
        expect(row).toMatchObject({ kind: "settlement", key: `settle:${effect}` })
        expect(JSON.parse(row?.payload ?? "")).toEqual({ effect, settlement: "Succeeded", value: { b: 1, a: 2 } })
        const judge = Effect.gen(function* () {
          expect(yield* settle(succeeded({ a: 2, b: 1 }))).toBe("Duplicate")
          for (const other of [succeeded(null), didNotHappen, { _tag: "Failed", json: `{"b":1,"a":2}` } as const]) {
            expect(yield* Effect.flip(settle(other))).toMatchObject({ _tag: "AlreadySettled", effect })
          }
        })
        yield* judge
        const owned = yield* owner.own(branch)
        yield* owned.write(happened(effect, "pay#1", "once", 1))
        yield* judge
        yield* owned.write(stepDone("pay#1"), completed)
        yield* judge
        expect(yield* rows(ledger, branch)).toHaveLength(1)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "a refused outcome is settleable; a known outcome, an ended run and an unknown effect are not",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        const key = (ordinal: number) => `${branch}|pay#${ordinal}|0`
        const settle = (ordinal: number) => ledger.settle({ branch, effect: key(ordinal), settlement: didNotHappen })
        yield* owned.write(
          intended(key(1), "pay#1"),
          refused(key(1), "pay#1"),
          intended(key(2), "pay#2"),
          happened(key(2), "pay#2"),
          intended(key(3), "pay#3"),
          intended(key(5), "pay#5", "keyed"),
          stepDone("pay#5")
        )
        // A worker has it: the effect may be firing, and its outcome is the worker's to bring.
        expect(yield* Effect.flip(settle(1))).toMatchObject({ _tag: "EffectUnderWay", effect: key(1) })
        yield* Effect.orDie(owned.journal.release({ _tag: "Stuck", problem: "[]" }, { inboxSeen: 0 }))
        expect(yield* settle(1)).toBe("Accepted")
        expect(yield* Effect.flip(settle(2))).toMatchObject({ _tag: "AlreadySettled" })
        expect(yield* Effect.flip(settle(4))).toMatchObject({ _tag: "UnknownEffect", effect: key(4) })
        // Its step has ended: nothing asks for it any more.
        expect(yield* Effect.flip(settle(5))).toMatchObject({ _tag: "AlreadySettled" })
        yield* (yield* owner.own(branch)).write(completed)
        expect(yield* Effect.flip(settle(3))).toMatchObject({ _tag: "AlreadySettled" })
        const nobody = branchId(`${anyRun()}/main`)
        expect(
          yield* Effect.flip(ledger.settle({ branch: nobody, effect: key(1), settlement: didNotHappen }))
        ).toMatchObject({
          _tag: "UnknownEffect"
        })
      })
    )
  )

  it.live(
    "a settlement that the journal could not store is refused and settles nothing",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { branch, effect } = yield* inDoubt(owner)
        for (const json of ["{", `"${"x".repeat(64 * 1024 * 1024)}"`]) {
          const settlement = { _tag: "Succeeded", json } as const
          expect(yield* Effect.flip(ledger.settle({ branch, effect, settlement }))).toMatchObject({
            _tag: "SettlementInvalid"
          })
        }
        expect(yield* rows(ledger, branch)).toEqual([])
        expect(yield* ledger.settle({ branch, effect, settlement: succeeded(null) })).toBe("Accepted")
      })
    )
  )

  it.live(
    "an inherited keyed intent is settled on the child under its key, apart from the parent",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        const effect = `${branch}|mail#1|0`
        yield* owned.write(intended(effect, "mail#1", "keyed"), opened("approve#1"))
        const { branch: child } = yield* ledger.fork({
          run: owned.claim.run.run,
          fork: forkId("f"),
          parent: branch,
          at: { _tag: "Checkpoint", seq: 3 }
        })
        expect(yield* ledger.settle({ branch: child, effect, settlement: succeeded(1) })).toBe("Accepted")
        yield* Effect.orDie(owned.journal.release({ _tag: "Stuck", problem: "[]" }, { inboxSeen: 0 }))
        expect(yield* ledger.settle({ branch, effect, settlement: didNotHappen })).toBe("Accepted")
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "of 16 concurrent settlements one is accepted",
    onBench(({ owner, ledgers }) =>
      Effect.gen(function* () {
        const { branch, effect } = yield* inDoubt(owner)
        const results = yield* Effect.forEach(
          Array.from({ length: 16 }, (_, index) => index),
          (index) =>
            Effect.either(
              (ledgers[index % ledgers.length] ?? ledgers[0]).settle({ branch, effect, settlement: succeeded(index) })
            ),
          { concurrency: "unbounded" }
        )
        expect(results.filter(Either.isRight).map(({ right }) => right)).toEqual(["Accepted"])
        expect(yield* rows(ledgers[0], branch)).toHaveLength(1)
      })
    )
  )

  it.live(
    "a cancellation is accepted once, is inert when repeated, and comes too late after the end",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"))
        yield* owned.park
        expect(yield* ledger.cancel(branch, "changed my mind \ud800")).toBe("Accepted")
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "ready", inboxHead: 1 })
        expect(yield* rows(ledger, branch)).toMatchObject([{ kind: "cancel", key: "cancel" }])
        expect(yield* ledger.cancel(branch, null)).toBe("Duplicate")
        const again = yield* owner.own(branch)
        yield* again.write(cancelled(1), { kind: "run.cancelled", key: "", payload: `{"reason":null}` })
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "cancelled" })
        expect(yield* ledger.cancel(branch, null)).toBe("Duplicate")
        expect(yield* rows(ledger, branch)).toHaveLength(1)

        const other = yield* owner.started()
        yield* other.write(completed)
        expect(yield* ledger.cancel(other.journal.branch, null)).toBe("TooLate")
        const nobody = branchId(`${anyRun()}/main`)
        expect(yield* Effect.flip(ledger.cancel(nobody, null))).toMatchObject({ _tag: "RunNotFound", id: nobody })
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "a reason of any length is cut to what always fits",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { journal } = yield* owner.started()
        yield* ledger.cancel(journal.branch, "x".repeat(10_000_000))
        expect((yield* rows(ledger, journal.branch))[0]?.payload.length).toBeLessThan(2_000)
      })
    )
  )
}
