/** Settlements: an operator's word on an effect whose outcome nobody knows. One outcome per key, whoever says it first. */
import type { SqlError } from "@effect/sql/SqlError"
import { admitSettlement, type EffectTry, type SettlementFacts } from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger } from "../Ledger.js"
import {
  AlreadySettled,
  type CorruptJournal,
  EffectUnderWay,
  RunPurged,
  SettlementInvalid,
  UnknownEffect
} from "../LedgerError.js"
import { accept, type Found, lockAndFind, persistProblems, runIdOf } from "./Acceptance.js"
import type { Database } from "./Database.js"
import { jsonDigest } from "./Digest.js"
import { verifyInboxRow } from "./Gate.js"
import type { Ancestor } from "./History.js"
import { entriesByKey, payloadIf } from "./HistoryLookup.js"
import { isOver, type RawInbox } from "./Rows.js"

/** The inbox key of a settlement: unique on the branch. */
export const settlementKey = (effect: string): string => `settle:${effect}`

/** The part of the ledger that operators settle effects by. */
export const makeSettlements = (db: Database): Pick<Ledger, "settle"> => ({
  settle: Effect.fn("Ledger.settle")((request) =>
    Effect.suspend(() => {
      let mine = false
      const { branch: id, effect, settlement } = request
      const json = settlement._tag === "DidNotHappen" ? undefined : settlement.json
      const issues = json === undefined ? [] : persistProblems(db, { kind: "effect.succeeded", key: effect, json })
      const said = `"settlement":${JSON.stringify(settlement._tag)}${json === undefined ? "" : `,"value":${json}`}}`
      const digest = issues.length === 0 ? jsonDigest(`{${said}`) : ""
      return db.transaction("settle", (transaction) =>
        Effect.gen(function* () {
          const found = yield* lockAndFind(db, id)
          const facts: SettlementFacts =
            typeof found === "string"
              ? { run: found, over: false, owned: false, effect: undefined, accepted: undefined }
              : { run: "known", ...(yield* settlementFacts(db, found, effect)) }
          const verdict = admitSettlement(facts, { digest, valid: issues.length === 0 })
          switch (verdict._tag) {
            case "Accepted": {
              if (typeof found === "string") return yield* Effect.dieMessage("an effect of no branch was settled")
              const payload = `{"effect":${JSON.stringify(effect)},${said}`
              yield* accept(
                db,
                transaction,
                found.branch,
                { kind: "settlement", key: settlementKey(effect), delivery: null, payload },
                db.unsafeNow()
              )
              mine = true
              return "Accepted" as const
            }
            case "Duplicate":
              return mine ? ("Accepted" as const) : ("Duplicate" as const)
            case "RunPurged":
              return yield* new RunPurged({ run: runIdOf(id) })
            case "UnknownEffect":
              return yield* new UnknownEffect({ branch: id, effect })
            case "AlreadySettled":
              return yield* new AlreadySettled({ branch: id, effect })
            case "UnderWay":
              return yield* new EffectUnderWay({ branch: id, effect })
            case "SettlementInvalid":
              return yield* new SettlementInvalid({ branch: id, effect, issues })
          }
        })
      )
    })
  )
})

const settlementFacts = (
  db: Database,
  { branch, run, lineage }: Found,
  effect: string
): Effect.Effect<Omit<SettlementFacts, "run">, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const entries = yield* entriesByKey(db, run, lineage, [effect], "effect")
    let state: EffectTry["state"] | undefined
    let step: { readonly key: string; readonly seq: number } | undefined
    for (const entry of entries) {
      for (const [kind, means] of effectStates) {
        const payload = payloadIf(kind, entry)
        if (payload === undefined) continue
        state = means
        step = { key: payload.step, seq: entry.seq }
      }
    }
    const [raw] = yield* db.sql<RawInbox>`
      SELECT * FROM fermata_inbox WHERE branch_id = ${branch.branch} AND key = ${settlementKey(effect)}`
    const row = raw && (yield* verifyInboxRow(raw))
    return {
      // A step that ended (by a fork's edited outcome, say) asks for its effects no more.
      over: isOver(branch.status) || (step !== undefined && (yield* stepEnded(db, lineage, step.key, step.seq))),
      owned: branch.owner !== null,
      effect: state && { state },
      accepted: row && { digest: settlementDigest(row.payload) }
    }
  })

const effectStates = [
  ["effect.intended", "intended"],
  ["effect.succeeded", "succeeded"],
  ["effect.failed", "failed"],
  ["effect.voided", "voided"],
  ["effect.refused", "refused"]
] as const

/** Whether an outcome of the step stands after `seq`. Outcomes have no index: this reads on from the effect's entry. */
const stepEnded = (
  db: Database,
  lineage: ReadonlyArray<Ancestor>,
  step: string,
  seq: number
): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    Effect.forEach(
      lineage.filter(({ from, to }) => to > seq && to >= from),
      ({ branch, to }) => db.sql`
        SELECT 1 AS one FROM fermata_journal
        WHERE branch_id = ${branch.branch} AND seq > ${seq} AND seq <= ${to} AND key = ${step}
          AND kind IN ('step.succeeded', 'step.failed', 'step.died', 'step.interrupted')
        LIMIT 1`
    ),
    (found) => found.some((rows) => rows.length > 0)
  )

const settlementDigest = (payload: string): string => {
  // The digest vouches for the text, and only `settle` writes rows of this kind.
  const { effect: _, ...said } = JSON.parse(payload) as { readonly effect: string }
  return jsonDigest(JSON.stringify(said))
}
