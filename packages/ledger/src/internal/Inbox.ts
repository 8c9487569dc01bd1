/**
 * What comes from outside: answers and cancellations, and reading what came. Each is one transaction that locks the branch's
 * row, gathers the facts, lets the contract decide, and writes the inbox row together with the branch's next position.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { admitCancel, judgeDelivery, runAssignee, type ValueCheck } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, Ledger, PendingInterrupt } from "../Ledger.js"
import {
  AlreadyConsumed,
  CorruptJournal,
  DeliveryIdReused,
  InterruptClosed,
  ResumeValueInvalid,
  RunNotFound,
  RunPurged,
  UnknownInterrupt
} from "../LedgerError.js"
import { accept, lockAndFind, persistProblems, runIdOf } from "./Acceptance.js"
import { lockBranch, runState } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { answerKey, gateFacts, verifyInboxRow } from "./Gate.js"
import {
  inboxOfRow,
  type Int,
  interruptOfRow,
  isOver,
  type RawBranch,
  type RawInbox,
  type RawInterrupt
} from "./Rows.js"

/** The longest reason of a cancellation; what is longer is cut, so that a cancellation always fits. */
const maxReason = 1024

const defaultPage = 1000

/** The part of the ledger that the outside writes to. */
export const makeInbox = (db: Database): Pick<Ledger, "deliver" | "cancel" | "inbox" | "pendingInterrupts"> => ({
  deliver: Effect.fn("Ledger.deliver")((request) =>
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
    })
  ),

  cancel: Effect.fn("Ledger.cancel")((id, reason) =>
    Effect.suspend(() => {
      let mine = false
      return db.transaction("cancel", (transaction) =>
        Effect.map(cancelWithin(db, transaction, id, reason), (verdict) => {
          if (verdict === "Accepted") mine = true
          return mine ? "Accepted" : verdict
        })
      )
    })
  ),

  inbox: Effect.fn("Ledger.inbox")((branch, after) =>
    db.query(
      "inbox",
      Effect.gen(function* () {
        // One statement, so that the rows and how many there must be are of one moment.
        const found = yield* db.sql<(RawInbox | { readonly pos: null }) & { readonly inbox_head: Int }>`
          SELECT i.*, b.inbox_head FROM fermata_branches b
          LEFT JOIN fermata_inbox i ON i.branch_id = b.branch_id AND i.pos > ${after}
          WHERE b.branch_id = ${branch} ORDER BY i.pos`
        const rows = found.flatMap((row) => (row.pos === null ? [] : [row]))
        const missing = (pos: number) =>
          new CorruptJournal({ table: "inbox", id: branch, seq: pos, detail: "the row is missing" })
        let pos = after
        for (const row of rows) {
          yield* verifyInboxRow(row)
          if (Number(row.pos) !== ++pos) return yield* missing(pos)
        }
        if (Number(found[0]?.inbox_head ?? 0) > pos) return yield* missing(pos + 1)
        return rows.map(inboxOfRow)
      })
    )
  ),

  pendingInterrupts: Effect.fn("Ledger.pendingInterrupts")((options = {}) => {
    const { sql } = db
    const { after, assignee, limit = defaultPage, name, people = false, run } = options
    const conditions = [
      ...(run === undefined ? [] : [sql`run_id = ${run}`]),
      ...(assignee === undefined ? [] : [sql`assignee = ${assignee}`]),
      ...(name === undefined ? [] : [sql`name = ${name}`]),
      ...(people
        ? [sql`(assignee IS NULL OR assignee < ${runAssignee.from} OR assignee >= ${runAssignee.below})`]
        : []),
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
  })
})

/** Asks for a branch's cancellation, as part of a larger transaction. */
export const cancelWithin = (
  db: Database,
  transaction: Transaction,
  id: string,
  reason: string | null
): Effect.Effect<"Accepted" | "Duplicate" | "TooLate", RunNotFound | RunPurged | SqlError> =>
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
        const row = { kind: "cancel", key: "cancel", delivery: null, payload } as const
        yield* accept(db, transaction, branch, row, db.unsafeNow())
        return "Accepted"
      }
      case "Duplicate":
      case "TooLate":
        return verdict._tag
      case "RunPurged":
        return yield* new RunPurged({ run: runIdOf(id) })
      case "UnknownRun":
        return yield* new RunNotFound({ id })
    }
  })

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
