/**
 * Accepting what comes from outside: finding and locking the branch, what may be stored, and the row itself.
 *
 * The position is taken from the branch's own row, never from a serial: rows become visible in the order of their
 * positions, so that the owner that reads them in order skips none (LV).
 */
import type { SqlError } from "@effect/sql/SqlError"
import { admitEntry, type EntryKind } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, InboxRow, RunRow } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import { lockBranch, readRun, type RunState, runState } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { inboxDigest } from "./Digest.js"
import { type Ancestor, readLineage } from "./History.js"

/** Room that the journal's payload takes beyond the inbox row's: its position and identity fields. */
const journalOverhead = 2048

/** The run's id as a branch id spells it; empty for text that is no branch id. */
export const runIdOf = (branch: string): string => branch.slice(0, Math.max(0, branch.lastIndexOf("/")))

/** A branch that was found and locked, with its run and the lineage of its history. */
export interface Found {
  readonly branch: BranchInfo
  readonly run: RunRow
  readonly lineage: ReadonlyArray<Ancestor>
}

/** The branch, locked, or what the database knows of its run. */
export const lockAndFind = (
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
    : [`$: ${verdict.reason} (${entry.json.length} characters of JSON; at most ${db.maxPayload - journalOverhead} fit)`]
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
export const accept = (
  db: Database,
  transaction: Transaction,
  branch: BranchInfo,
  row: Pick<InboxRow, "kind" | "key" | "payload"> & { readonly delivery: string | null },
  at: number
): Effect.Effect<string, SqlError> =>
  Effect.gen(function* () {
    // A message does not start a run before its time: it is in the inbox when it starts.
    const wakes = branch.epoch > 0 || (row.kind !== "signal" && row.kind !== "update") ? 1 : 0
    // LV: in the statement that takes the position a waiting branch becomes ready, so no parked branch misses it.
    const [taken] = yield* db.sql<{ readonly inbox_head: number | string }>`
      UPDATE fermata_branches SET inbox_head = inbox_head + 1,
        ready_at = CASE WHEN ${wakes} = 1 AND status IN ('waiting', 'stuck') THEN ${at} ELSE ready_at END,
        problem = CASE WHEN ${wakes} = 1 AND status IN ('waiting', 'stuck') THEN NULL ELSE problem END,
        status = CASE WHEN ${wakes} = 1 AND status IN ('waiting', 'stuck') THEN 'ready' ELSE status END
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
