/** Reading and locking branch and run rows: the first statement of every transaction that decides something. */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { BranchInfo, RunRow } from "../Ledger.js"
import { CorruptJournal, RunNotFound, RunPurged } from "../LedgerError.js"
import type { Database } from "./Database.js"
import { runDigest } from "./Digest.js"
import { branchOfRow, type RawBranch, type RawRun, runOfRow } from "./Rows.js"

/** What the database knows of a run id. */
export type RunState = "known" | "unknown" | "purged"

/** The branch's row, locked until the transaction ends; `undefined` if there is none. */
export const lockBranch = (db: Database, branch: string): Effect.Effect<BranchInfo | undefined, SqlError> =>
  Effect.map(
    db.sql<RawBranch>`SELECT * FROM fermata_branches WHERE branch_id = ${branch} ${db.forUpdate}`,
    ([row]) => row && branchOfRow(row)
  )

/** The branch's row as it is, without a lock. */
export const readBranch = (db: Database, branch: string): Effect.Effect<BranchInfo | undefined, SqlError> =>
  Effect.map(
    db.sql<RawBranch>`SELECT * FROM fermata_branches WHERE branch_id = ${branch}`,
    ([row]) => row && branchOfRow(row)
  )

/** Fork, prune and purge lock the run row, so that they exclude each other. */
export const lockRun = (db: Database, run: string): Effect.Effect<RunRow | undefined, SqlError | CorruptJournal> =>
  Effect.flatMap(db.sql<RawRun>`SELECT * FROM fermata_runs WHERE run_id = ${run} ${db.forUpdate}`, verifiedRun)

/** The run's row, its digest verified. */
export const readRun = (db: Database, run: string): Effect.Effect<RunRow | undefined, SqlError | CorruptJournal> =>
  Effect.flatMap(db.sql<RawRun>`SELECT * FROM fermata_runs WHERE run_id = ${run}`, verifiedRun)

const verifiedRun = ([raw]: ReadonlyArray<RawRun>): Effect.Effect<RunRow | undefined, CorruptJournal> =>
  raw === undefined ? Effect.succeed(undefined) : verifyRun(runOfRow(raw))

/** Fails if the row's digest is not that of its columns. */
export const verifyRun = (run: RunRow): Effect.Effect<RunRow, CorruptJournal> =>
  runDigest(run) === run.digest
    ? Effect.succeed(run)
    : Effect.fail(
        new CorruptJournal({
          table: "runs",
          id: run.run,
          seq: null,
          detail: "the row's digest does not match its columns"
        })
      )

/** Whether a run id is in use, free, or used up by a purge. */
export const runState = (db: Database, run: string): Effect.Effect<RunState, SqlError> =>
  Effect.map(
    db.sql<{ readonly state: "known" | "purged" }>`SELECT 'purged' AS state FROM fermata_purged WHERE run_id = ${run}
      UNION ALL SELECT 'known' AS state FROM fermata_runs WHERE run_id = ${run}`,
    ([row]) => row?.state ?? "unknown"
  )

/** The typed refusal for a run or branch that is not there. */
export const notFound = (
  db: Database,
  run: string,
  id: string
): Effect.Effect<never, RunNotFound | RunPurged | SqlError> =>
  Effect.flatMap(runState(db, run), (state) =>
    Effect.fail(state === "purged" ? new RunPurged({ run }) : new RunNotFound({ id }))
  )

/** As {@link notFound}, for a branch id. */
export const branchNotFound = (
  db: Database,
  branch: string
): Effect.Effect<never, RunNotFound | RunPurged | SqlError> =>
  // Total also for text that is no branch id: it names no run then.
  notFound(db, branch.slice(0, Math.max(0, branch.lastIndexOf("/"))), branch)
