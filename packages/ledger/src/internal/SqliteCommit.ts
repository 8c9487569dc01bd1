/** The writer's commit on SQLite: one immediate transaction, a statement for the branches and few for the rows. */
import type { Connection } from "@effect/sql/SqlConnection"
import { type Entry, isTerminal } from "@fermata/contract"
import { Effect } from "effect"
import { changesInterrupts, type CommitParts, interruptOf, missed, type Part, type PartOutcome, storedEntries, updated } from "./Commit.js"
import type { Database } from "./Database.js"
import { branchOfRow, type RawBranch } from "./Rows.js"

/** Up to this many rows have a statement of exactly their number; more are cut into statements of the largest. */
const exactRows = 16
const mostRows = 64

const insertRows = Array.from(
  { length: mostRows + 1 },
  (_, rows) =>
    `INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest) VALUES ${Array.from({ length: rows }, () => "(?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`
)

// The commonest part, one branch's appends, has a statement without conditions.
const updateOne = `UPDATE fermata_branches SET head = ?, head_digest = ?
  WHERE branch_id = ? AND epoch = ? AND head = ? AND head_digest = ? AND owner IS NOT NULL RETURNING branch_id, inbox_head`

// `let_go` and the positions past `mid` apply only while nothing came in (LV: no lost wake-up).
const updateMany = `UPDATE fermata_branches SET
    head = CASE WHEN part.seen IS NULL OR inbox_head = part.seen THEN part.head ELSE part.mid END,
    head_digest = CASE WHEN part.seen IS NULL OR inbox_head = part.seen THEN part.head_digest ELSE part.mid_digest END,
    status = CASE WHEN part.status IS NOT NULL AND (part.seen IS NULL OR inbox_head = part.seen) THEN part.status ELSE fermata_branches.status END,
    owner = CASE WHEN part.status IS NOT NULL AND (part.seen IS NULL OR inbox_head = part.seen) THEN NULL ELSE owner END,
    ready_at = CASE WHEN part.status IS NOT NULL AND (part.seen IS NULL OR inbox_head = part.seen) THEN part.ready_at ELSE fermata_branches.ready_at END,
    problem = CASE WHEN part.status IS NOT NULL AND (part.seen IS NULL OR inbox_head = part.seen) THEN part.problem ELSE fermata_branches.problem END
  FROM (SELECT value ->> 0 AS id, value ->> 1 AS epoch, value ->> 2 AS base, value ->> 3 AS base_digest,
      value ->> 4 AS mid, value ->> 5 AS mid_digest, value ->> 6 AS head, value ->> 7 AS head_digest, value ->> 8 AS seen,
      value ->> 9 AS status, value ->> 10 AS ready_at, value ->> 11 AS problem
    FROM json_each(?)) AS part
  WHERE branch_id = part.id AND fermata_branches.epoch = part.epoch AND fermata_branches.head = part.base
    AND fermata_branches.head_digest = part.base_digest AND owner IS NOT NULL
  RETURNING branch_id, inbox_head`

interface UpdatedRow {
  readonly branch_id: string
  readonly inbox_head: number
}

const updateOf = (parts: ReadonlyArray<Part>): readonly [string, ReadonlyArray<unknown>] => {
  const [part] = parts
  if (parts.length === 1 && part !== undefined && part.inboxSeen === null && part.letGo === null) {
    const { branch, epoch, base, head } = part
    return [updateOne, [head.seq, head.digest, branch, epoch, base.seq, base.digest]]
  }
  const values = parts.map(({ branch, epoch, base, mid, head, inboxSeen, letGo }) => [
    branch,
    epoch,
    base.seq,
    base.digest,
    mid.seq,
    mid.digest,
    head.seq,
    head.digest,
    inboxSeen,
    letGo?.status ?? null,
    letGo?.readyAt ?? null,
    letGo?.problem ?? null
  ])
  return [updateMany, [JSON.stringify(values)]]
}

const insertAll = (connection: Connection, rows: ReadonlyArray<Entry>) =>
  Effect.gen(function* () {
    for (let start = 0; start < rows.length; ) {
      const left = rows.length - start
      const count = left >= mostRows ? mostRows : Math.min(left, exactRows)
      const params: Array<unknown> = []
      for (let index = start; index < start + count; index++) {
        const row = rows[index]
        if (row === undefined) continue
        params.push(row.branch, row.seq, row.kind, row.key, row.payload, row.epoch, row.at, row.digest)
      }
      yield* connection.execute(insertRows[count] ?? "", params, undefined)
      start += count
    }
  })

const moveInterrupts = (connection: Connection, part: Part, entries: ReadonlyArray<Entry>) =>
  Effect.gen(function* () {
    for (const entry of entries) {
      if (entry.kind === "interrupt.opened") {
        const { name, payload } = interruptOf(entry)
        yield* connection.execute(
          `INSERT INTO fermata_interrupts (branch_id, interrupt_id, run_id, name, payload, seq, opened_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
          [part.branch, entry.key, part.run, name, payload, entry.seq, entry.at],
          undefined
        )
      } else if (entry.kind === "interrupt.closed") {
        yield* connection.execute(
          `DELETE FROM fermata_interrupts WHERE branch_id = ? AND interrupt_id = ?`,
          [part.branch, entry.key],
          undefined
        )
      } else if (isTerminal(entry.kind)) {
        yield* connection.execute(`DELETE FROM fermata_interrupts WHERE branch_id = ?`, [part.branch], undefined)
      }
    }
  })

export const makeSqliteCommit = (db: Database): CommitParts => {
  const store = (connection: Connection, parts: ReadonlyArray<Part>) =>
    Effect.gen(function* () {
      const [update, params] = updateOf(parts)
      // The statement's rows have these columns.
      const found = (yield* connection.execute(update, params, undefined)) as ReadonlyArray<UpdatedRow>
      const heads = new Map(found.map((row) => [row.branch_id, row.inbox_head]))
      const outcomes: Array<PartOutcome> = []
      const rows: Array<Entry> = []
      for (const part of parts) {
        const inboxHead = heads.get(part.branch)
        if (inboxHead === undefined) {
          const [row] = (yield* connection.execute(
            `SELECT * FROM fermata_branches WHERE branch_id = ?`,
            [part.branch],
            undefined
          )) as ReadonlyArray<RawBranch>
          outcomes.push(missed(part, row && branchOfRow(row)))
          continue
        }
        const outcome = updated(part, inboxHead)
        const entries = storedEntries(part, outcome)
        outcomes.push(outcome)
        for (const entry of entries) rows.push(entry)
        if (entries.some(changesInterrupts)) yield* moveInterrupts(connection, part, entries)
      }
      yield* insertAll(connection, rows)
      return outcomes
    })

  return (parts) =>
    Effect.uninterruptible(
      Effect.scoped(
        Effect.flatMap(db.sql.reserve, (connection) =>
          Effect.gen(function* () {
            yield* connection.execute("BEGIN IMMEDIATE", [], undefined)
            const outcomes = yield* store(connection, parts)
            yield* connection.execute("COMMIT", [], undefined)
            return outcomes
          }).pipe(
            // Not begun is not to be rolled back; the statement then fails and says nothing new.
            Effect.tapError(() => Effect.ignore(connection.execute("ROLLBACK", [], undefined)))
          )
        )
      )
    )
}
