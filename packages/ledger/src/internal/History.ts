/**
 * Reading a branch's history: its ancestors' entries up to the fork points, then its own; every digest and every link
 * of the chain verified on the way. A reader gets a verified history or a `CorruptJournal`, never a guess (CV).
 */
import type { SqlError } from "@effect/sql/SqlError"
import type { Entry } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, Position, RunRow } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import { readBranch, readRun } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { entryDigest } from "./Digest.js"
import { entryOfNamed, type NamedEntry } from "./Rows.js"

/** One branch of a lineage, and the last position of it that belongs to the history. */
export interface Ancestor {
  readonly branch: BranchInfo
  /** Positions `from` to `to` are this branch's own; empty if `to < from`. */
  readonly from: number
  readonly to: number
}

/** The lineage of a branch up to `upTo` (its head, if not given), from the root to the branch itself. */
export const readLineage = (
  db: Database,
  branch: BranchInfo,
  upTo: number = branch.head
): Effect.Effect<ReadonlyArray<Ancestor>, SqlError | CorruptJournal> =>
  Effect.gen(function* () {
    const lineage: Array<Ancestor> = []
    let current = branch
    // A fork may address a position that its parent inherited itself: the limit only ever falls.
    let to = upTo
    for (;;) {
      lineage.push({ branch: current, from: (current.parent?.seq ?? 0) + 1, to })
      if (current.parent === null) return lineage.reverse()
      to = Math.min(to, current.parent.seq)
      const parent: BranchInfo | undefined = yield* readBranch(db, current.parent.branch)
      if (parent === undefined || lineage.some(({ branch: known }) => known.branch === parent.branch)) {
        return yield* corrupt(current.branch, null, `its parent ${current.parent.branch} is missing`, "branches")
      }
      current = parent
    }
  })

/**
 * The verified entries of a branch's history after a position whose digest is known, or all of them: one query per branch of
 * the lineage that has any.
 */
export const readEntries = (
  db: Database,
  run: RunRow,
  branch: BranchInfo,
  after: Position = { seq: 0, digest: run.digest }
): Effect.Effect<ReadonlyArray<Entry>, SqlError | CorruptJournal> =>
  Effect.gen(function* () {
    const lineage = yield* readLineage(db, branch)
    const entries: Array<Entry> = []
    let { digest, seq } = after
    for (const { branch: ancestor, from: first, to } of lineage) {
      const from = Math.max(first, after.seq + 1)
      if (to < from) continue
      // Entries up to the head read before are there for good, so that no transaction is needed to read them.
      const rows =
        yield* db.sql<NamedEntry>`SELECT branch_id AS branch, seq, kind, key, payload, epoch, at, digest FROM fermata_journal
        WHERE branch_id = ${ancestor.branch} AND seq >= ${from} AND seq <= ${to} ORDER BY seq`
      for (const row of rows) {
        const entry = entryOfNamed(row)
        seq += 1
        if (entry.seq !== seq) return yield* corrupt(ancestor.branch, seq, `entry ${seq} is missing`)
        if (entryDigest(digest, entry) !== entry.digest) {
          return yield* corrupt(ancestor.branch, seq, "the entry's digest does not match its columns and predecessor")
        }
        digest = entry.digest
        entries.push(entry)
      }
      if (seq !== to) return yield* corrupt(ancestor.branch, seq + 1, `entry ${seq + 1} of ${to} is missing`)
    }
    // The root's first entry binds the run's row into the chain; a branch's head detects truncation.
    if (digest !== branch.headDigest) {
      return yield* corrupt(branch.branch, branch.head, "the last entry is not the one that the branch's row names")
    }
    return entries
  })

/** The verified history of a branch (or the rest of it), read within the caller's transaction or outside one. */
export const readHistory = (
  db: Database,
  branch: BranchInfo,
  after?: Position
): Effect.Effect<{ readonly run: RunRow; readonly entries: ReadonlyArray<Entry> }, SqlError | CorruptJournal> =>
  Effect.gen(function* () {
    const run = yield* readRun(db, branch.run)
    if (run === undefined) return yield* corrupt(branch.run, null, "the run's row is missing", "runs")
    return { run, entries: yield* readEntries(db, run, branch, after) }
  })

const corrupt = (
  id: string,
  seq: number | null,
  detail: string,
  table: CorruptJournal["table"] = "journal"
): CorruptJournal => new CorruptJournal({ table, id, seq, detail })
