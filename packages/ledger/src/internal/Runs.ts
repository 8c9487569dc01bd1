/** Starting runs, and reading runs, branches and histories. */
import { admitStart, type Entry, isTerminal, rootBranch, type StoredRun, type TerminalKind } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, Ledger, RunRow, StartReceipt } from "../Ledger.js"
import { CorruptJournal, RunConflict, RunPurged } from "../LedgerError.js"
import { branchNotFound, notFound, readBranch, readRun, runState } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { entryDigest, runDigest } from "./Digest.js"
import { readEntries, readHistory } from "./History.js"
import { branchOfRow, entryOfRow, isOver, type RawBranch, type RawEntry } from "./Rows.js"

type Runs = Pick<Ledger, "start" | "run" | "branch" | "branches" | "list" | "history" | "claimed" | "ending">

/** The ledger's operations on runs. */
export const makeRuns = (db: Database): Runs => {
  const { sql } = db

  const start: Runs["start"] = Effect.fn("Ledger.start")((request) =>
    db.transaction("start a run", (transaction) =>
      Effect.gen(function* () {
        const branch = rootBranch(request.run)
        const createdAt = db.unsafeNow()
        const fields: Omit<RunRow, "digest"> = {
          run: request.run,
          workflow: request.workflow,
          version: request.version,
          input: request.input,
          inputDigest: request.inputDigest,
          createdAt
        }
        const digest = runDigest(fields)
        // The insert comes first: it is the lock under which two starts of one id find out who created it.
        const inserted = yield* sql`INSERT INTO fermata_runs
          (run_id, workflow, version, input, input_digest, created_at, digest)
          SELECT ${request.run}, ${request.workflow}, ${request.version}, ${request.input}, ${request.inputDigest},
            ${createdAt}, ${digest}
          WHERE NOT EXISTS (SELECT 1 FROM fermata_purged WHERE run_id = ${request.run})
          ON CONFLICT (run_id) DO NOTHING RETURNING run_id`
        let stored: StoredRun = { _tag: "Absent" }
        if (inserted.length === 0) {
          const run = yield* readRun(db, request.run)
          stored =
            run !== undefined
              ? { _tag: "Present", workflow: run.workflow, version: run.version, inputDigest: run.inputDigest }
              : { _tag: "Purged" }
        }
        const verdict = admitStart(stored, request)
        switch (verdict._tag) {
          case "Existing":
            return { branch, created: false } satisfies StartReceipt
          case "Purged":
            return yield* new RunPurged({ run: request.run })
          case "Conflict":
            return yield* new RunConflict({
              run: request.run,
              differs: verdict.differs,
              stored: stored._tag === "Present" ? `${stored.workflow} ${stored.version}` : ""
            })
          case "Create":
        }
        // A purge that committed while the insert waited for it was not seen by it (PostgreSQL).
        if (db.dialect === "pg" && (yield* runState(db, request.run)) === "purged") {
          return yield* new RunPurged({ run: request.run })
        }
        const payload = JSON.stringify({ workflow: request.workflow, version: request.version, run: digest })
        const entry = { branch, seq: 1, kind: "run.started", key: "", payload, epoch: 0, at: createdAt }
        const head = entryDigest(digest, entry)
        yield* sql`INSERT INTO fermata_branches
          (branch_id, run_id, workflow, version, definition, status, head, head_digest, epoch, ready_at, created_at)
          VALUES (${branch}, ${request.run}, ${request.workflow}, ${request.version},
            ${`${request.workflow}@${request.version}`}, 'ready', 1, ${head}, 0, ${createdAt}, ${createdAt})`
        yield* sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
          VALUES (${branch}, 1, ${entry.kind}, ${entry.key}, ${payload}, 0, ${createdAt}, ${head})`
        transaction.announce({ _tag: "Ready" })
        return { branch, created: true } satisfies StartReceipt
      })
    )
  )

  const run: Runs["run"] = Effect.fn("Ledger.run")((id) =>
    db.query(
      "read a run",
      Effect.flatMap(readRun(db, id), (row) => (row === undefined ? notFound(db, id, id) : Effect.succeed(row)))
    )
  )

  const knownBranch = (id: string) =>
    Effect.flatMap(readBranch(db, id), (row) => (row === undefined ? branchNotFound(db, id) : Effect.succeed(row)))

  const branch: Runs["branch"] = Effect.fn("Ledger.branch")((id) => db.query("read a branch", knownBranch(id)))

  const branches: Runs["branches"] = Effect.fn("Ledger.branches")((id) =>
    db.query(
      "read a run's branches",
      Effect.gen(function* () {
        const rows =
          yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE run_id = ${id} ORDER BY created_at, branch_id`
        return rows.length === 0 ? yield* notFound(db, id, id) : rows.map(branchOfRow)
      })
    )
  )

  const list: Runs["list"] = Effect.fn("Ledger.list")((options) =>
    db.query(
      "list runs",
      Effect.gen(function* () {
        const conditions = [sql`parent IS NULL`]
        if (options.workflow !== undefined) conditions.push(sql`workflow = ${options.workflow}`)
        if (options.status !== undefined) conditions.push(sql`status = ${options.status}`)
        if (options.after !== undefined) {
          const [cursor] = yield* sql<{ readonly created_at: number | string }>`SELECT created_at FROM fermata_branches
            WHERE branch_id = ${rootBranch(options.after)}`
          // A cursor that was purged since ends the listing rather than start it over.
          if (cursor === undefined) return []
          conditions.push(sql`(created_at, run_id) < (${Number(cursor.created_at)}, ${options.after})`)
        }
        const rows = yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE ${sql.and(conditions)}
          ORDER BY created_at DESC, run_id DESC LIMIT ${options.limit ?? 100}`
        return rows.map(branchOfRow)
      })
    )
  )

  /** Damage is reported only of what is there: a purge that came in between answers as a purge. */
  const unlessPurged =
    (id: string) =>
    (
      damage: CorruptJournal
    ): Effect.Effect<never, CorruptJournal | Effect.Effect.Error<ReturnType<typeof knownBranch>>> =>
      Effect.zipRight(knownBranch(id), Effect.fail(damage))

  const history: Runs["history"] = Effect.fn("Ledger.history")((id) =>
    db.query(
      "read a history",
      Effect.gen(function* () {
        const row = yield* knownBranch(id)
        const { run, entries } = yield* Effect.catchTag(readHistory(db, row), "CorruptJournal", unlessPurged(id))
        return { run, branch: row, entries }
      })
    )
  )

  const claimed: Runs["claimed"] = Effect.fn("Ledger.claimed")(({ branch, run }) =>
    db.query(
      "read a claimed branch",
      Effect.catchTag(readEntries(db, run, branch), "CorruptJournal", unlessPurged(branch.branch))
    )
  )

  const ending: Runs["ending"] = Effect.fn("Ledger.ending")((id) =>
    db.query(
      "read how a branch ended",
      Effect.gen(function* () {
        const row = yield* knownBranch(id)
        if (!isOver(row.status)) return { branch: row, entry: undefined }
        const last = yield* Effect.catchTag(lastEntry(row), "CorruptJournal", unlessPurged(id))
        if (isTerminalEntry(last)) return { branch: row, entry: last }
        return yield* new CorruptJournal({
          table: "branches",
          id,
          seq: row.head,
          detail: `its status is ${row.status}, but its last entry is ${last?.kind ?? "missing"}`
        })
      })
    )
  )

  const lastEntry = (row: BranchInfo) =>
    Effect.gen(function* () {
      const entries = (yield* sql<RawEntry>`SELECT * FROM fermata_journal
        WHERE branch_id = ${row.branch} AND seq >= ${row.head - 1} ORDER BY seq`).map(entryOfRow)
      const [previous, last] = entries
      // A fork that ended with its first entry chains over its parent's: verify the long way.
      if (previous === undefined || last === undefined) return (yield* readHistory(db, row)).entries.at(-1)
      if (last.digest !== row.headDigest || entryDigest(previous.digest, last) !== last.digest) {
        return yield* new CorruptJournal({
          table: "journal",
          id: row.branch,
          seq: row.head,
          detail: "the last entry is not the one that the branch's row names"
        })
      }
      return last
    })

  return { start, run, branch, branches, list, history, claimed, ending }
}

const isTerminalEntry = (entry: Entry | undefined): entry is Entry & { readonly kind: TerminalKind } =>
  entry !== undefined && isTerminal(entry.kind)
