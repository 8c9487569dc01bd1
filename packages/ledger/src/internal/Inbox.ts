/**
 * What comes from outside: answers, cancellations and settlements. Each is one transaction that locks the branch's row,
 * gathers the facts, lets the contract decide, and writes the inbox row together with the branch's next position.
 *
 * The position is taken from the branch's own row, never from a serial: rows become visible in the order of their
 * positions, so that the owner that reads them in order skips none (LV).
 */
import type { SqlError } from "@effect/sql/SqlError"
import {
  admitCancel,
  admitEntry,
  admitSettlement,
  type EffectTry,
  type EntryKind,
  judgeDelivery,
  type SettlementFacts,
  type ValueCheck
} from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, InboxRow, Ledger, PendingInterrupt, RunRow } from "../Ledger.js"
import {
  AlreadyConsumed,
  AlreadySettled,
  CorruptJournal,
  DeliveryIdReused,
  InterruptClosed,
  ResumeValueInvalid,
  RunNotFound,
  RunPurged,
  SettlementInvalid,
  UnknownEffect,
  UnknownInterrupt
} from "../LedgerError.js"
import { lockBranch, readRun, type RunState, runState } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { inboxDigest, jsonDigest } from "./Digest.js"
import { answerKey, gateFacts, verifyInboxRow } from "./Gate.js"
import { type Ancestor, readLineage } from "./History.js"
import { entriesByKey, payloadIf } from "./HistoryLookup.js"
import { inboxOfRow, interruptOfRow, isOver, type RawBranch, type RawInbox, type RawInterrupt } from "./Rows.js"

/** Room that the journal's payload takes beyond the inbox row's: its position and identity fields. */
const journalOverhead = 2048

/** The longest reason of a cancellation; what is longer is cut, so that a cancellation always fits. */
const maxReason = 1024

const defaultPage = 1000

/** The run's id as a branch id spells it; empty for text that is no branch id. */
const runIdOf = (branch: string): string => branch.slice(0, Math.max(0, branch.lastIndexOf("/")))

/** A branch that was found and locked, with its run and the lineage of its history. */
interface Found {
  readonly branch: BranchInfo
  readonly run: RunRow
  readonly lineage: ReadonlyArray<Ancestor>
}

const lockAndFind = (
  db: Database,
  id: string
): Effect.Effect<Found | Exclude<RunState, "known">, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const branch = yield* lockBranch(db, id)
    if (branch === undefined) return (yield* runState(db, runIdOf(id))) === "purged" ? "purged" : "unknown"
    const run = yield* readRun(db, branch.run)
    if (run === undefined) {
      return yield* new CorruptJournal({ table: "branches", id, seq: null, detail: `its run ${branch.run} is missing` })
    }
    return { branch, run, lineage: yield* readLineage(db, branch) }
  })

/** What keeps a text out of the journal, by `admitEntry`; empty if it may persist. */
export const persistProblems = (
  db: Database,
  entry: { readonly kind: EntryKind; readonly key: string; readonly json: string }
): ReadonlyArray<string> => {
  const verdict = admitEntry(
    { head: 1, over: false },
    {
      kind: entry.kind,
      key: entry.key,
      payloadLength: entry.json.length + journalOverhead,
      payloadWellFormed: entry.json.isWellFormed() && isJson(entry.json)
    },
    { maxPayload: db.maxPayload }
  )
  return verdict._tag === "Persist"
    ? []
    : [`${verdict.reason} (${entry.json.length} characters of JSON; at most ${db.maxPayload - journalOverhead} fit)`]
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Takes the next inbox position, wakes the branch if it waits, and writes the row. Returns the row's digest. */
const accept = (
  db: Database,
  transaction: Transaction,
  branch: BranchInfo,
  row: Pick<InboxRow, "kind" | "key" | "payload"> & { readonly delivery: string | null },
  at: number
): Effect.Effect<string, SqlError> =>
  Effect.gen(function* () {
    // LV: in the statement that takes the position a waiting branch becomes ready, so no parked branch misses it.
    const [taken] = yield* db.sql<{ readonly inbox_head: number | string }>`
      UPDATE fermata_branches SET inbox_head = inbox_head + 1,
        ready_at = CASE WHEN status IN ('waiting', 'stuck') THEN ${at} ELSE ready_at END,
        problem = CASE WHEN status IN ('waiting', 'stuck') THEN NULL ELSE problem END,
        status = CASE WHEN status IN ('waiting', 'stuck') THEN 'ready' ELSE status END
      WHERE branch_id = ${branch.branch} RETURNING inbox_head`
    if (taken === undefined) return yield* Effect.dieMessage(`branch ${branch.branch} vanished under its lock`)
    const stored = { branch: branch.branch, pos: Number(taken.inbox_head), at, ...row }
    const digest = inboxDigest(stored)
    yield* db.sql`
      INSERT INTO fermata_inbox (branch_id, pos, kind, key, delivery, payload, at, digest)
      VALUES (${stored.branch}, ${stored.pos}, ${row.kind}, ${row.key}, ${row.delivery}, ${row.payload}, ${at}, ${digest})`
    transaction.announce(branch.owner === null ? { _tag: "Ready" } : { _tag: "Inbox", branch: branch.branch })
    return digest
  })

/** The part of the ledger that the outside writes to. */
export const makeInbox = (
  db: Database
): Pick<Ledger, "deliver" | "cancel" | "settle" | "inbox" | "pendingInterrupts"> => ({
  deliver: (request) =>
    Effect.suspend(() => {
      // If the reply to a commit is lost the transaction runs again and finds its own row: that is still "Accepted".
      let mine: string | undefined
      const { branch: id, interrupt, delivery } = request
      return db.transaction("deliver", (transaction) =>
        Effect.gen(function* () {
          const found = yield* lockAndFind(db, id)
          if (typeof found === "string") {
            return found === "purged"
              ? yield* new RunPurged({ run: runIdOf(id) })
              : yield* new UnknownInterrupt({ branch: id, interrupt, open: [] })
          }
          const gate = yield* gateFacts(db, found.run, found.branch, found.lineage, request)
          const issues =
            request.value._tag === "Invalid"
              ? request.value.issues
              : persistProblems(db, { kind: "interrupt.answered", key: interrupt, json: request.value.json })
          const { value } = request
          const check: ValueCheck =
            value._tag === "Valid" && issues.length === 0
              ? { _tag: "Valid", digest: value.digest }
              : { _tag: "Invalid", ...(value.digest === undefined ? {} : { digest: value.digest }) }
          const verdict = judgeDelivery({ run: "known", ...gate.facts }, { interrupt, delivery, value: check })
          switch (verdict._tag) {
            case "Accepted": {
              // `judgeDelivery` accepts valid values only.
              if (value._tag === "Invalid") return yield* Effect.dieMessage("an invalid value was accepted")
              const at = db.unsafeNow()
              const payload =
                `{"interrupt":${JSON.stringify(interrupt)},"delivery":${JSON.stringify(delivery)},` +
                `"value":${value.json},"valueDigest":${JSON.stringify(value.digest)}}`
              mine = yield* accept(
                db,
                transaction,
                found.branch,
                { kind: "answer", key: answerKey(interrupt), delivery, payload },
                at
              )
              yield* db.sql`DELETE FROM fermata_interrupts WHERE branch_id = ${id} AND interrupt_id = ${interrupt}`
              return { verdict: "Accepted" as const, branch: id, interrupt, delivery, at, unserved: null }
            }
            case "Duplicate": {
              const { earlier } = gate
              if (earlier === undefined) return yield* Effect.dieMessage("a duplicate of nothing")
              return {
                verdict:
                  mine !== undefined && earlier.rowDigest === mine ? ("Accepted" as const) : ("Duplicate" as const),
                branch: id,
                interrupt,
                delivery,
                at: earlier.at,
                unserved: earlier.unserved
              }
            }
            case "UnknownInterrupt":
              return yield* new UnknownInterrupt({ branch: id, interrupt, open: yield* openInterrupts(db, id) })
            case "RunPurged":
              return yield* new RunPurged({ run: found.run.run })
            case "DeliveryIdReused":
              return yield* new DeliveryIdReused({ branch: id, interrupt, delivery })
            case "AlreadyConsumed":
              return yield* new AlreadyConsumed({
                branch: id,
                interrupt,
                by: gate.consumedBy?.delivery ?? "",
                at: gate.consumedBy?.at ?? 0
              })
            case "InterruptClosed":
              return yield* new InterruptClosed({ branch: id, interrupt, reason: verdict.reason })
            case "ResumeValueInvalid":
              return yield* new ResumeValueInvalid({ branch: id, interrupt, issues })
          }
        })
      )
    }),

  cancel: (id, reason) =>
    Effect.suspend(() => {
      let mine = false
      return db.transaction("cancel", (transaction) =>
        Effect.gen(function* () {
          const branch = yield* lockBranch(db, id)
          const run = branch === undefined ? yield* runState(db, runIdOf(id)) : "known"
          const verdict = admitCancel({
            run: branch === undefined && run === "known" ? "unknown" : run,
            over: branch !== undefined && isOver(branch.status),
            requested: branch !== undefined && (yield* cancelRequested(db, branch))
          })
          switch (verdict._tag) {
            case "Accepted": {
              if (branch === undefined) return yield* Effect.dieMessage("a branch that is not there was cancelled")
              const payload = JSON.stringify({
                reason: reason === null ? null : reason.toWellFormed().slice(0, maxReason).toWellFormed()
              })
              yield* accept(
                db,
                transaction,
                branch,
                { kind: "cancel", key: "cancel", delivery: null, payload },
                db.unsafeNow()
              )
              mine = true
              return "Accepted" as const
            }
            case "Duplicate":
              return mine ? ("Accepted" as const) : ("Duplicate" as const)
            case "TooLate":
              return "TooLate" as const
            case "RunPurged":
              return yield* new RunPurged({ run: runIdOf(id) })
            case "UnknownRun":
              return yield* new RunNotFound({ id })
          }
        })
      )
    }),

  settle: (request) =>
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
              ? { run: found, over: false, effect: undefined, accepted: undefined }
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
            case "SettlementInvalid":
              return yield* new SettlementInvalid({ branch: id, effect, issues })
          }
        })
      )
    }),

  inbox: (branch, after) =>
    db.query(
      "inbox",
      Effect.gen(function* () {
        const rows = yield* db.sql<RawInbox>`
          SELECT * FROM fermata_inbox WHERE branch_id = ${branch} AND pos > ${after} ORDER BY pos`
        let pos = after
        for (const row of rows) {
          yield* verifyInboxRow(row)
          if (Number(row.pos) !== ++pos) {
            return yield* new CorruptJournal({ table: "inbox", id: branch, seq: pos, detail: "the row is missing" })
          }
        }
        return rows.map(inboxOfRow)
      })
    ),

  pendingInterrupts: (options = {}) => {
    const { sql } = db
    const { run, after, limit = defaultPage } = options
    const conditions = [
      ...(run === undefined ? [] : [sql`run_id = ${run}`]),
      ...(after === undefined
        ? []
        : [sql`(opened_at, branch_id, interrupt_id) > (${after.openedAt}, ${after.branch}, ${after.interrupt})`])
    ]
    return db.query(
      "pendingInterrupts",
      Effect.map(
        sql<RawInterrupt>`
          SELECT * FROM fermata_interrupts ${conditions.length === 0 ? sql.literal("") : sql`WHERE ${sql.and(conditions)}`}
          ORDER BY opened_at, branch_id, interrupt_id LIMIT ${limit}`,
        (rows): ReadonlyArray<PendingInterrupt> => rows.map(interruptOfRow)
      )
    )
  }
})

const settlementKey = (effect: string): string => `settle:${effect}`

/** Names for an error message: enough to see what was meant. */
export const openInterrupts = (db: Database, branch: string): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    db.sql<{ readonly interrupt_id: string }>`
      SELECT interrupt_id FROM fermata_interrupts WHERE branch_id = ${branch} ORDER BY interrupt_id LIMIT 20`,
    (rows) => rows.map((row) => row.interrupt_id)
  )

/** Whether the history, or what this branch accepted, holds a cancellation. */
const cancelRequested = (db: Database, branch: BranchInfo): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const holds = (id: string) => sql`SELECT 1 AS one FROM fermata_inbox WHERE branch_id = ${id} AND key = 'cancel'`
    if ((yield* holds(branch.branch)).length > 0) return true
    let id: string | null = branch.parent?.branch ?? null
    let to = branch.parent?.seq ?? 0
    while (id !== null) {
      // Inherited only if it was journaled at or before the fork point; looked for on those that were cancelled only.
      if ((yield* holds(id)).length > 0) {
        const inherited = yield* sql`
          SELECT 1 AS one FROM fermata_journal
          WHERE branch_id = ${id} AND kind = 'cancel.requested' AND seq <= ${to} LIMIT 1`
        if (inherited.length > 0) return true
      }
      const [row]: ReadonlyArray<Pick<RawBranch, "parent" | "fork_seq">> = yield* sql<RawBranch>`
        SELECT parent, fork_seq FROM fermata_branches WHERE branch_id = ${id}`
      id = row?.parent ?? null
      to = Math.min(to, Number(row?.fork_seq ?? 0))
    }
    return false
  })

const settlementFacts = (
  db: Database,
  { branch, run, lineage }: Found,
  effect: string
): Effect.Effect<Pick<SettlementFacts, "over" | "effect" | "accepted">, CorruptJournal | SqlError> =>
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
