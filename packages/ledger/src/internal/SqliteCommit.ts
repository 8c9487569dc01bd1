/** The writer's commit on SQLite: one immediate transaction, a statement for each branch and few for all rows. */
import { SqlError } from "@effect/sql/SqlError"
import { type Entry, isTerminal } from "@fermata/contract"
import { Effect } from "effect"
import {
  changesInterrupts,
  closesInterrupt,
  type Commit,
  interruptOf,
  missed,
  type Part,
  type PartOutcome,
  storedEntries
} from "./Commit.js"
import type { Database } from "./Database.js"
import { changesTags, columnsOf, tagsOf } from "./Finding.js"
import { branchOfRow, type RawBranch } from "./Rows.js"
import { isSqliteClient, type SyncConnection, syncRunner } from "./SqliteClient.js"

/** Up to this many rows have a statement of exactly their number; more are cut into statements of the largest. */
const exactRows = 16
const mostRows = 64

const insertRows = Array.from(
  { length: mostRows + 1 },
  (_, rows) =>
    `INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest) VALUES ${Array.from({ length: rows }, () => "(?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`
)

const isWhereItsOwnerBelieves = `branch_id = ? AND epoch = ? AND head = ? AND head_digest = ? AND owner IS NOT NULL`

const advance = `UPDATE fermata_branches SET head = ?, head_digest = ?
  WHERE ${isWhereItsOwnerBelieves} RETURNING inbox_head`

const advanceIf = `UPDATE fermata_branches SET head = ?, head_digest = ?
  WHERE ${isWhereItsOwnerBelieves} AND inbox_head = ? RETURNING inbox_head`

// LV: letting go is conditional on columns of the row itself, so that nothing accepted goes unseen.
const letGoIf = `UPDATE fermata_branches
  SET head = ?, head_digest = ?, status = ?, owner = NULL, ready_at = ?, problem = ?, standing = ?
  WHERE ${isWhereItsOwnerBelieves} AND (? IS NULL OR inbox_head = ?) RETURNING inbox_head`

type Run = SyncConnection["runSync"]

const insertAll = (run: Run, rows: ReadonlyArray<Entry>): void => {
  for (let start = 0; start < rows.length;) {
    const left = rows.length - start
    const count = left >= mostRows ? mostRows : Math.min(left, exactRows)
    const params: Array<unknown> = []
    for (const row of rows.slice(start, start + count)) {
      params.push(row.branch, row.seq, row.kind, row.key, row.payload, row.epoch, row.at, row.digest)
    }
    run(insertRows[count] ?? "", params)
    start += count
  }
}

const moveInterrupts = (run: Run, part: Part, entries: ReadonlyArray<Entry>): void => {
  for (const entry of entries) {
    if (entry.kind === "interrupt.opened") {
      const { assignee, deadline, name, payload, task } = interruptOf(entry)
      run(
        `INSERT INTO fermata_interrupts (branch_id, interrupt_id, run_id, name, payload, seq, opened_at,
            assignee, deadline, task)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [part.branch, entry.key, part.run, name, payload, entry.seq, entry.at, assignee, deadline, task]
      )
    } else if (closesInterrupt(entry)) {
      run(`DELETE FROM fermata_interrupts WHERE branch_id = ? AND interrupt_id = ?`, [part.branch, entry.key])
    } else if (isTerminal(entry.kind)) {
      run(`DELETE FROM fermata_interrupts WHERE branch_id = ?`, [part.branch])
    }
  }
}

/** Moves the branch's row, if it is where its owner believes it; the rows of its entries follow. */
const move = (run: Run, part: Part): PartOutcome | undefined => {
  const { branch, epoch, base, mid, head, inboxSeen, letGo } = part
  const place = [branch, epoch, base.seq, base.digest]
  // The statements' rows have these columns.
  const inboxHead = (sql: string, params: ReadonlyArray<unknown>) =>
    (run(sql, params) as ReadonlyArray<{ readonly inbox_head: number }>)[0]?.inbox_head
  const to = [head.seq, head.digest]
  const moved =
    letGo !== null
      ? inboxHead(letGoIf, [
          ...to,
          letGo.status,
          letGo.readyAt,
          letGo.problem,
          letGo.standing,
          ...place,
          inboxSeen,
          inboxSeen
        ])
      : inboxSeen !== null
        ? inboxHead(advanceIf, [...to, ...place, inboxSeen])
        : inboxHead(advance, [...to, ...place])
  if (moved !== undefined) return { _tag: "Stored" }
  if (inboxSeen !== null) {
    const here = inboxHead(advance, [mid.seq, mid.digest, ...place])
    if (here !== undefined) return { _tag: "InboxAdvanced", inboxHead: here }
  }
  return undefined
}

/** What became of a part whose row is not where its owner believes it. */
const lookAgain = (run: Run, part: Part): PartOutcome => {
  // The statement's rows have these columns.
  const [row] = run(`SELECT * FROM fermata_branches WHERE branch_id = ?`, [part.branch]) as ReadonlyArray<RawBranch>
  return missed(part, row && branchOfRow(row))
}

const setTags = (run: Run, part: Part, entries: ReadonlyArray<Entry>): void => {
  for (const entry of entries) {
    if (!changesTags(entry)) continue
    for (const [name, value] of Object.entries(tagsOf(part.run, entry) ?? {})) {
      const { number, text } = columnsOf(value)
      run(
        `INSERT INTO fermata_tags (run_id, name, text, number) VALUES (?, ?, ?, ?)
          ON CONFLICT (run_id, name) DO UPDATE SET text = excluded.text, number = excluded.number`,
        [part.run, name, text, number]
      )
    }
  }
}

const store = (run: Run, parts: ReadonlyArray<Part>): ReadonlyArray<PartOutcome> => {
  const rows: Array<Entry> = []
  const outcomes = parts.map((part): PartOutcome => {
    const outcome = move(run, part)
    // Also what turns out to be stored already has its rows.
    if (outcome === undefined) return lookAgain(run, part)
    const entries = storedEntries(part, outcome)
    for (const entry of entries) rows.push(entry)
    if (entries.some(changesInterrupts)) moveInterrupts(run, part, entries)
    if (entries.some(changesTags)) setTags(run, part, entries)
    return outcome
  })
  insertAll(run, rows)
  return outcomes
}

/** The whole commit at once: nothing else of this process runs between its statements. */
const commitNow = (run: Run, parts: ReadonlyArray<Part>): ReadonlyArray<PartOutcome> => {
  run("BEGIN IMMEDIATE", [])
  try {
    const outcomes = store(run, parts)
    run("COMMIT", [])
    return outcomes
  } catch (error) {
    try {
      run("ROLLBACK", [])
    } catch {
      // The failure has rolled back by itself.
    }
    throw error
  }
}

/** Uses the client's connection; without waiting where the client lets it. */
export const makeSqliteCommit = (db: Database): Commit => {
  const { sql } = db
  return {
    ...(isSqliteClient(sql) ? { now: (parts: ReadonlyArray<Part>) => sql.ifFree((run) => commitNow(run, parts)) } : {}),
    eventually: (parts) =>
      Effect.uninterruptible(
        Effect.scoped(
          Effect.flatMap(sql.reserve, (connection) =>
            Effect.try({
              try: () => commitNow(syncRunner(connection), parts),
              // A defect here would be the ledger's own; the writer gives its branches up then.
              catch: (error) => (error instanceof SqlError ? error : new SqlError({ cause: error }))
            })
          )
        )
      )
  }
}
