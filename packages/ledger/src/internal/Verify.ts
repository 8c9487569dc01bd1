/**
 * Verification of a whole database, page by page: every run's digest, every branch by `auditBranch`, and rows that belong
 * to nothing. It repairs nothing.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { idProblem, rootBranch } from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger, RunRow } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import { auditBranch } from "./BranchAudit.js"
import { auditChunks } from "./Chunks.js"
import { verifyRun } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { branchOfRow, type RawBranch, type RawRun, runOfRow } from "./Rows.js"

const pageSize = 200

export const makeVerify = (db: Database): Pick<Ledger, "verify"> => ({
  verify: Effect.gen(function* () {
    const { sql } = db
    const problems: Array<CorruptJournal> = []
    let runs = 0
    let branches = 0
    let entries = 0
    for (let after = ""; ;) {
      const page = yield* db.query(
        "verify: read runs",
        sql<RawRun>`
        SELECT * FROM fermata_runs WHERE run_id > ${after} ORDER BY run_id LIMIT ${pageSize}`
      )
      for (const raw of page) {
        after = raw.run_id
        runs += 1
        const run = runOfRow(raw)
        const verified = yield* Effect.either(verifyRun(run))
        if (verified._tag === "Left") problems.push(verified.left)
        const found = yield* auditRun(db, run)
        branches += found.branches
        entries += found.entries
        problems.push(...found.problems)
      }
      if (page.length < pageSize) break
    }
    problems.push(...(yield* db.query("verify: look for orphans", orphans(db))))
    return { runs, branches, entries, problems }
  })
})

const auditRun = (db: Database, run: RunRow) =>
  Effect.gen(function* () {
    const problems: Array<CorruptJournal> = []
    let branches = 0
    let entries = 0
    let root = false
    for (let after = ""; ;) {
      const page = yield* db.query(
        "verify: read branches",
        db.sql<RawBranch>`
        SELECT * FROM fermata_branches WHERE run_id = ${run.run} AND branch_id > ${after} ORDER BY branch_id LIMIT ${pageSize}`
      )
      for (const raw of page) {
        after = raw.branch_id
        root ||= isRoot(run, raw)
        const audited = yield* auditBranch(db, run, branchOfRow(raw))
        if (audited === undefined) continue
        branches += 1
        entries += audited.entries
        problems.push(...audited.problems)
        problems.push(...(yield* db.query("verify: read chunks", auditChunks(db, raw.branch_id))))
      }
      if (page.length < pageSize) break
    }
    // A run that was purged meanwhile has no branches any more, and is no run any more either.
    if (!root && (yield* db.query("verify: read a run", stillThere(db, run)))) {
      problems.push(new CorruptJournal({ table: "runs", id: run.run, seq: null, detail: "its root branch is missing" }))
    }
    return { branches, entries, problems }
  })

const isRoot = (run: RunRow, row: RawBranch): boolean =>
  // Damage may have made the run's id no id at all; it has no root then.
  row.parent === null && idProblem(run.run) === undefined && row.branch_id === rootBranch(run.run)

const stillThere = (db: Database, run: RunRow): Effect.Effect<boolean, SqlError> =>
  Effect.map(db.sql`SELECT 1 AS one FROM fermata_runs WHERE run_id = ${run.run}`, (rows) => rows.length > 0)

/** Rows whose branch, and branches whose run, do not exist: one of each owner is named. */
const orphans = (db: Database): Effect.Effect<ReadonlyArray<CorruptJournal>, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const problems: Array<CorruptJournal> = []
    for (const table of ["journal", "inbox", "interrupts", "chunks"] as const) {
      const rows = yield* sql<{ readonly branch_id: string }>`
        SELECT DISTINCT branch_id FROM ${sql(`fermata_${table}`)} o
        WHERE NOT EXISTS (SELECT 1 FROM fermata_branches b WHERE b.branch_id = o.branch_id) LIMIT ${pageSize}`
      for (const { branch_id } of rows) {
        problems.push(
          new CorruptJournal({
            table: table === "interrupts" ? "branches" : table,
            id: branch_id,
            seq: null,
            detail: `there are rows (${table}) of a branch that does not exist`
          })
        )
      }
    }
    const branches = yield* sql<{ readonly branch_id: string; readonly run_id: string }>`
      SELECT branch_id, run_id FROM fermata_branches o
      WHERE NOT EXISTS (SELECT 1 FROM fermata_runs r WHERE r.run_id = o.run_id) LIMIT ${pageSize}`
    for (const { branch_id, run_id } of branches) {
      problems.push(
        new CorruptJournal({ table: "branches", id: branch_id, seq: null, detail: `its run ${run_id} does not exist` })
      )
    }
    return problems
  })
