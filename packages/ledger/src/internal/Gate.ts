/**
 * The facts of the consume-once gate: what a branch's whole history and its accepted inbox say of one interrupt and of
 * one delivery id. Facts only; `judgeDelivery` decides.
 */
import type { SqlError } from "@effect/sql/SqlError"
import type { DeliveryFacts, Entry } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, RunRow } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import type { Database } from "./Database.js"
import { inboxDigest } from "./Digest.js"
import type { Ancestor } from "./History.js"
import { entriesByKey, firstOwnEntry, payloadIf } from "./HistoryLookup.js"
import { inboxOfRow, isOver, type RawInbox } from "./Rows.js"

/** The inbox key of an answer to an interrupt: unique on the branch (CO: the second guard of the gate). */
export const answerKey = (interrupt: string): string => `answer:${interrupt}`

/** The payload of an inbox row of kind `answer`. */
export interface AnswerPayload {
  readonly interrupt: string
  readonly delivery: string
  readonly value: unknown
  readonly valueDigest: string
}

/** One accepted delivery that this history knows of. */
export interface DeliveryRecord {
  readonly interrupt: string
  readonly delivery: string
  readonly valueDigest: string
  readonly at: number
  /** Why it could not be served, if it was not. */
  readonly unserved: string | null
  /** The inbox row's digest; `undefined` for a fork's first event. */
  readonly rowDigest: string | undefined
}

/** The row's digest, or a loud failure: what does not verify decides nothing. */
export const verifyInboxRow = (row: RawInbox): Effect.Effect<RawInbox, CorruptJournal> =>
  inboxDigest({ ...inboxOfRow(row), delivery: row.delivery }) === row.digest
    ? Effect.succeed(row)
    : Effect.fail(
        new CorruptJournal({
          table: "inbox",
          id: row.branch_id,
          seq: Number(row.pos),
          detail: "the row's digest does not match its columns"
        })
      )

/** What the gate knows: the decision's facts, and what its receipt or refusal reports. */
export interface GateFacts {
  readonly facts: Pick<DeliveryFacts, "over" | "interrupt" | "deliveryUse">
  /** The delivery that consumed the addressed interrupt. */
  readonly consumedBy: DeliveryRecord | undefined
  /** The earlier use of the request's delivery id. */
  readonly earlier: DeliveryRecord | undefined
  /** Position of the interrupt's `opened` entry, and the name that it has there. */
  readonly opened: { readonly seq: number; readonly name: string } | undefined
}

/** Gathers the gate's facts. The caller holds the branch's lock, so that they stay true until it commits. */
export const gateFacts = (
  db: Database,
  run: RunRow,
  branch: BranchInfo,
  lineage: ReadonlyArray<Ancestor>,
  request: { readonly interrupt: string; readonly name: string; readonly delivery: string }
): Effect.Effect<GateFacts, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const marks = yield* entriesByKey(db, run, lineage, [request.interrupt, answerKey(request.interrupt)])
    const records = yield* deliveryRecords(db, run, branch, lineage, request, marks)
    const consumedBy = records.find((record) => record.interrupt === request.interrupt)
    const earlier = records.find((record) => record.delivery === request.delivery)
    const opened = openedIn(marks, request.interrupt)
    const over = isOver(branch.status)
    const interrupt = yield* interruptState(db, run, branch, lineage, request, marks, opened, consumedBy, over)
    return {
      facts: {
        over,
        interrupt,
        deliveryUse: earlier && { interrupt: earlier.interrupt, valueDigest: earlier.valueDigest }
      },
      consumedBy,
      earlier,
      opened
    }
  })

/** Where an interrupt was opened, among entries found by its key. */
export const openedIn = (
  marks: ReadonlyArray<Entry>,
  interrupt: string
): { readonly seq: number; readonly name: string } | undefined => {
  for (const entry of marks) {
    const payload = entry.key === interrupt ? payloadIf("interrupt.opened", entry) : undefined
    if (payload !== undefined) return { seq: entry.seq, name: payload.name }
  }
  return undefined
}

const interruptState = (
  db: Database,
  run: RunRow,
  branch: BranchInfo,
  lineage: ReadonlyArray<Ancestor>,
  request: { readonly interrupt: string; readonly name: string },
  marks: ReadonlyArray<Entry>,
  opened: { readonly name: string } | undefined,
  consumedBy: DeliveryRecord | undefined,
  over: boolean
): Effect.Effect<DeliveryFacts["interrupt"], CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    // An interrupt of another definition is not the one that the caller means.
    if (opened === undefined || opened.name !== request.name) return { _tag: "Unknown" }
    if (consumedBy !== undefined) {
      return { _tag: "Consumed", delivery: consumedBy.delivery, valueDigest: consumedBy.valueDigest }
    }
    for (const entry of marks) {
      if (entry.key !== request.interrupt) continue
      const closed = payloadIf("interrupt.closed", entry)
      if (closed !== undefined) return { _tag: "Closed", reason: closed.reason }
      // The journal says that it was answered, and nothing says by whom: a row is gone.
      if (entry.kind === "interrupt.answered") {
        return yield* new CorruptJournal({
          table: "inbox",
          id: entry.branch,
          seq: null,
          detail: `the answer to ${request.interrupt} that entry ${entry.seq} delivered is missing`
        })
      }
    }
    const listed = over
      ? []
      : yield* db.sql`
          SELECT seq FROM fermata_interrupts WHERE branch_id = ${branch.branch} AND interrupt_id = ${request.interrupt}`
    if (listed.length === 0) {
      const expired = yield* entriesByKey(db, run, lineage, [request.interrupt], "message")
      if (expired.length > 0) return { _tag: "Closed", reason: "nobody answered before its deadline" }
    }
    if (!over) {
      // CO: open by the journal and open by the derived table, or nothing is consumed. A damaged row of the one that
      // hides an answer is contradicted by the other.
      if (listed.length === 0) {
        return yield* new CorruptJournal({
          table: "journal",
          id: branch.branch,
          seq: null,
          detail: `interrupt ${request.interrupt} was neither answered nor closed, yet it is not among the open ones`
        })
      }
    }
    return { _tag: "Open" }
  })

/** Accepted deliveries of this history that name the interrupt or carry the delivery id. */
const deliveryRecords = (
  db: Database,
  run: RunRow,
  branch: BranchInfo,
  lineage: ReadonlyArray<Ancestor>,
  request: { readonly interrupt: string; readonly delivery: string },
  marks: ReadonlyArray<Entry>
): Effect.Effect<ReadonlyArray<DeliveryRecord>, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const records: Array<DeliveryRecord> = []
    for (const ancestor of lineage) {
      const rows = yield* db.sql<RawInbox>`
        SELECT * FROM fermata_inbox
        WHERE branch_id = ${ancestor.branch.branch}
          AND (key = ${answerKey(request.interrupt)} OR delivery = ${request.delivery})`
      for (const raw of rows) {
        const row = yield* verifyInboxRow(raw)
        // The digest vouches for the text, and only `deliver` writes rows of this kind.
        const answer = JSON.parse(row.payload) as AnswerPayload
        // In the whole lineage: the entry before a fork's first is its parent's, and the first verifies over that one.
        const related =
          answer.interrupt === request.interrupt
            ? marks
            : yield* entriesByKey(db, run, lineage, [answer.interrupt, answerKey(answer.interrupt)])
        const fate = fateOf(Number(row.pos), ancestor, related)
        // What an ancestor accepted and had not journaled at the fork point is not part of this history.
        if (fate === "pending" && ancestor.branch.branch !== branch.branch) continue
        records.push({
          interrupt: answer.interrupt,
          delivery: answer.delivery,
          valueDigest: answer.valueDigest,
          at: Number(row.at),
          unserved: typeof fate === "object" ? fate.unserved : null,
          rowDigest: row.digest
        })
      }
      if (ancestor.branch.parent === null) continue
      const first = yield* firstOwnEntry(db, run, lineage, ancestor)
      const served = first && payloadIf("interrupt.answered", first)
      if (first === undefined || served === undefined || served.inbox !== undefined) continue
      if (first.key !== request.interrupt && served.delivery !== request.delivery) continue
      records.push({
        interrupt: first.key,
        delivery: served.delivery,
        valueDigest: served.valueDigest,
        at: first.at,
        unserved: null,
        rowDigest: undefined
      })
    }
    return records
  })

/** What became of an inbox row within its branch: a row counts as moved only by the entry that carries its position. */
const fateOf = (
  pos: number,
  ancestor: Ancestor,
  marks: ReadonlyArray<Entry>
): "pending" | "served" | { readonly unserved: string } => {
  for (const entry of marks) {
    if (entry.branch !== ancestor.branch.branch) continue
    if (payloadIf("interrupt.answered", entry)?.inbox === pos) return "served"
    const unserved = payloadIf("inbox.unserved", entry)
    if (unserved?.inbox === pos) return { unserved: unserved.reason }
  }
  return "pending"
}
