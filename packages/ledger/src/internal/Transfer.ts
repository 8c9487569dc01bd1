/**
 * Taking a run out of a database as lines, and into another one: all of it or nothing, and only what verifies there by the
 * same audit that `verify` makes.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { admitStart } from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger, RunRow } from "../Ledger.js"
import { type CorruptJournal, ImportInvalid, RunExists, RunPurged } from "../LedgerError.js"
import { auditWithin } from "./BranchAudit.js"
import { notFound, readRun, runState, verifyRun } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { insertTags, readTags } from "./Finding.js"
import {
  branchOfRow,
  claimedAs,
  entryOfRow,
  type RawBranch,
  type RawEntry,
  type RawInbox,
  type RawInterrupt
} from "./Rows.js"
import * as RunLines from "./RunLines.js"

/** Its operations over a database. */
export const makeTransfer = (db: Database): Pick<Ledger, "exportRun" | "importRun"> => {
  const { sql } = db

  const exportRun: Ledger["exportRun"] = Effect.fn("Ledger.exportRun")((id) =>
    db.transaction("export a run", () =>
      Effect.gen(function* () {
        // The locks of purge and of every writer: what is read is one moment of the run.
        yield* sql`SELECT run_id FROM fermata_runs WHERE run_id = ${id} ${db.forUpdate}`
        const run = yield* readRun(db, id)
        if (run === undefined) return yield* notFound(db, id, id)
        const rows = yield* sql<RawBranch>`
          SELECT * FROM fermata_branches WHERE run_id = ${id} ORDER BY branch_id ${db.forUpdate}`
        const now = db.unsafeNow()
        const own = sql`branch_id IN (SELECT branch_id FROM fermata_branches WHERE run_id = ${id})`
        const entries = yield* sql<RawEntry>`SELECT * FROM fermata_journal WHERE ${own} ORDER BY branch_id, seq`
        const inbox = yield* sql<RawInbox>`SELECT * FROM fermata_inbox WHERE ${own} ORDER BY branch_id, pos`
        const interrupts = yield* sql<RawInterrupt>`
          SELECT * FROM fermata_interrupts WHERE ${own} ORDER BY branch_id, interrupt_id`
        const tags = yield* readTags(db, id)
        // CV: damage is not handed on.
        for (const row of rows) {
          const [problem] = yield* auditWithin(db, run, branchOfRow(row))
          if (problem !== undefined) return yield* problem
        }
        return RunLines.write({
          run: { type: "run", ...run },
          branches: parentsFirst(rows).map((row) => branchLine(row, now)),
          entries: entries.map((row) => ({ type: "entry", ...entryOfRow(row) })),
          inbox: inbox.map((row) => ({
            type: "inbox",
            // Checked when they entered, and covered by digests that the audit verified.
            branch: row.branch_id as RunLines.RunParts["inbox"][number]["branch"],
            pos: Number(row.pos),
            kind: row.kind as RunLines.RunParts["inbox"][number]["kind"],
            key: row.key,
            delivery: row.delivery,
            payload: row.payload,
            at: Number(row.at),
            digest: row.digest
          })),
          interrupts: interrupts.map((row) => ({
            type: "interrupt",
            branch: row.branch_id as RunLines.RunParts["interrupts"][number]["branch"],
            interrupt: row.interrupt_id,
            name: row.name,
            payload: row.payload,
            seq: Number(row.seq),
            openedAt: Number(row.opened_at),
            assignee: row.assignee,
            deadline: row.deadline === null ? null : Number(row.deadline),
            task: row.task
          })),
          tags: Object.entries(tags).map(([name, value]) => ({ type: "tag", name, value }))
        })
      })
    )
  )

  const importRun: Ledger["importRun"] = Effect.fn("Ledger.importRun")((lines) =>
    Effect.gen(function* () {
      const { lineOf, parts } = yield* RunLines.read(lines)
      const { branches, entries, run } = parts
      let tried = false
      return yield* db.transaction("import a run", (transaction) =>
        Effect.gen(function* () {
          const receipt = { run: run.run, branches: branches.length, entries: entries.length }
          if (!(yield* insertRun(run))) {
            const stored = yield* readRun(db, run.run).pipe(
              // It is there, whatever became of it.
              Effect.catchTag("CorruptJournal", () => Effect.fail(new RunExists({ run: run.run })))
            )
            // The reply to the commit was lost: it is the one that was just brought.
            if (tried && stored?.digest === run.digest) return receipt
            const verdict = admitStart(stored === undefined ? { _tag: "Purged" } : { _tag: "Present", ...stored }, run)
            return yield* verdict._tag === "Purged" ? new RunPurged({ run: run.run }) : new RunExists({ run: run.run })
          }
          // A purge that committed while the insert waited for it was not seen by it (PostgreSQL).
          if ((yield* runState(db, run.run)) === "purged") return yield* new RunPurged({ run: run.run })
          tried = true
          yield* insertRest(parts)
          const problem = yield* firstProblem(run)
          if (problem !== undefined) {
            const line = lineOf(problem.table, problem.id, problem.seq)
            return yield* new ImportInvalid({ reason: "damaged", line, detail: problem.detail })
          }
          transaction.announce({ _tag: "Ready" })
          return receipt
        })
      )
    })
  )

  /** False if there is, or was, a run of this id. */
  const insertRun = (run: RunLines.RunParts["run"]): Effect.Effect<boolean, SqlError> =>
    Effect.map(
      sql`INSERT INTO fermata_runs (run_id, workflow, version, input, input_digest, created_at, digest)
        SELECT ${run.run}, ${run.workflow}, ${run.version}, ${run.input}, ${run.inputDigest}, ${run.createdAt}, ${run.digest}
        WHERE NOT EXISTS (SELECT 1 FROM fermata_purged WHERE run_id = ${run.run})
        ON CONFLICT (run_id) DO NOTHING RETURNING run_id`,
      (rows) => rows.length > 0
    )

  const insertRest = ({ branches, entries, inbox, interrupts, run, tags }: RunLines.RunParts) =>
    Effect.gen(function* () {
      for (const row of branches) {
        yield* sql`INSERT INTO fermata_branches (branch_id, run_id, workflow, version, definition, parent, fork_seq,
            fork_digest, anchor, status, head, head_digest, epoch, ready_at, inbox_head, problem, created_at, accepts,
            standing, queue, queue_key, priority, queue_rank)
          VALUES (${row.branch}, ${run.run}, ${run.workflow}, ${run.version},
            ${claimedAs(`${run.workflow}@${run.version}`, row.queue)}, ${row.parent}, ${row.forkSeq}, ${row.forkDigest},
            ${row.anchor}, ${row.status}, ${row.head}, ${row.headDigest}, ${row.epoch}, ${row.readyAt},
            ${row.inboxHead}, ${row.problem}, ${row.createdAt}, ${row.accepts}, ${row.standing}, ${row.queue},
            ${row.queueKey}, ${row.priority}, ${row.queueRank})`
      }
      for (const row of entries) {
        yield* sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
          VALUES (${row.branch}, ${row.seq}, ${row.kind}, ${row.key}, ${row.payload}, ${row.epoch}, ${row.at}, ${row.digest})`
      }
      for (const row of inbox) {
        yield* sql`INSERT INTO fermata_inbox (branch_id, pos, kind, key, delivery, payload, at, digest)
          VALUES (${row.branch}, ${row.pos}, ${row.kind}, ${row.key}, ${row.delivery}, ${row.payload}, ${row.at}, ${row.digest})`
      }
      for (const row of interrupts) {
        yield* sql`INSERT INTO fermata_interrupts
            (branch_id, interrupt_id, run_id, name, payload, seq, opened_at, assignee, deadline, task)
          VALUES (${row.branch}, ${row.interrupt}, ${run.run}, ${row.name}, ${row.payload}, ${row.seq}, ${row.openedAt},
            ${row.assignee}, ${row.deadline}, ${row.task})`
      }
      yield* insertTags(db, run.run, Object.fromEntries(tags.map(({ name, value }) => [name, value])))
    })

  /** What does not verify of the run as it is stored now. */
  const firstProblem = (run: RunRow): Effect.Effect<CorruptJournal | undefined, SqlError> =>
    Effect.gen(function* () {
      yield* verifyRun(run)
      const rows = yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE run_id = ${run.run} ORDER BY branch_id`
      for (const row of rows) {
        const [problem] = yield* auditWithin(db, run, branchOfRow(row))
        if (problem !== undefined) return problem
      }
      return undefined
    }).pipe(Effect.catchTag("CorruptJournal", Effect.succeed))

  return { exportRun, importRun }
}

/** A worker's claim is not taken along: what it ran is ready for another one. */
const branchLine = (row: RawBranch, now: number): RunLines.RunParts["branches"][number] => {
  const { branch, createdAt, epoch, head, headDigest, inboxHead, parent, problem, readyAt, standing, status, accepts } =
    branchOfRow(row)
  const whole = (column: RawBranch["priority"]) => (column === null ? null : Number(column))
  return {
    type: "branch",
    branch,
    parent: parent?.branch ?? null,
    forkSeq: parent?.seq ?? null,
    forkDigest: row.fork_digest,
    anchor: Number(row.anchor),
    status: status === "running" ? "ready" : status,
    head,
    headDigest,
    epoch,
    readyAt: status === "running" ? now : readyAt,
    inboxHead,
    problem,
    createdAt,
    accepts,
    standing,
    queue: row.queue,
    queueKey: row.queue_key,
    priority: whole(row.priority),
    queueRank: whole(row.queue_rank)
  }
}

/** Forks after what they were forked from. */
const parentsFirst = (rows: ReadonlyArray<RawBranch>): ReadonlyArray<RawBranch> => {
  const forks = new Map<string | null, Array<RawBranch>>()
  for (const row of rows) forks.set(row.parent, [...(forks.get(row.parent) ?? []), row])
  const ordered = [...(forks.get(null) ?? [])]
  // It grows while it is walked: every branch brings its forks.
  for (const { branch_id } of ordered) ordered.push(...(forks.get(branch_id) ?? []))
  return ordered
}
