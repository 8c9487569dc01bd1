/**
 * The writer's commit on PostgreSQL: one statement, so one round trip. Only the branches that still are where their
 * owners believe them get their rows; all of it or nothing, by one commit.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { type Entry, isTerminal } from "@fermata/contract"
import { Effect, type Scope } from "effect"
import {
  announcementsOf,
  changesInterrupts,
  closesInterrupt,
  type Commit,
  interruptOf,
  isHeard,
  missed,
  type Part,
  updated
} from "./Commit.js"
import { channel, type Database } from "./Database.js"
import { changesTags, columnsOf, tagsOf } from "./Finding.js"
import { encodeAnnouncement } from "./Hub.js"
import { keptConnection, type PgConnection, statementDeadline } from "./PgConnection.js"
import { branchOfRow, type Int, type RawBranch } from "./Rows.js"

const holds = "(part.seen IS NULL OR branch.inbox_head = part.seen)"

// `full` says whether the condition held.
const append = `WITH part AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
      $8::text[], $9::bigint[], $10::text[], $11::bigint[], $12::text[], $13::text[])
      AS t(branch_id, epoch, base, base_digest, mid, mid_digest, head, head_digest, seen, status, ready_at, problem, standing)
  ), ok AS (
    UPDATE fermata_branches AS branch SET
      head = CASE WHEN ${holds} THEN part.head ELSE part.mid END,
      head_digest = CASE WHEN ${holds} THEN part.head_digest ELSE part.mid_digest END,
      status = CASE WHEN part.status IS NOT NULL AND ${holds} THEN part.status ELSE branch.status END,
      owner = CASE WHEN part.status IS NOT NULL AND ${holds} THEN NULL ELSE branch.owner END,
      ready_at = CASE WHEN part.status IS NOT NULL AND ${holds} THEN part.ready_at ELSE branch.ready_at END,
      problem = CASE WHEN part.status IS NOT NULL AND ${holds} THEN part.problem ELSE branch.problem END,
      standing = CASE WHEN part.status IS NOT NULL AND ${holds} THEN part.standing ELSE branch.standing END
    FROM part
    WHERE branch.branch_id = part.branch_id AND branch.epoch = part.epoch AND branch.head = part.base
      AND branch.head_digest = part.base_digest AND branch.owner IS NOT NULL
    RETURNING branch.branch_id, branch.inbox_head, ${holds} AS full
  ), stored AS (
    INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
    SELECT row.branch_id, row.seq, row.kind, row.key, row.payload, row.epoch, row.at, row.digest
    FROM unnest($14::text[], $15::bigint[], $16::text[], $17::text[], $18::text[], $19::bigint[], $20::bigint[],
      $21::text[], $22::boolean[]) AS row(branch_id, seq, kind, key, payload, epoch, at, digest, conditional)
    JOIN ok ON ok.branch_id = row.branch_id AND (ok.full OR NOT row.conditional)
  )`

const appendOnly = `${append} SELECT branch_id, inbox_head FROM ok`

// With open interrupts, tags and announcements, which most commits do not have.
const appendMore = `${append}, closed AS (
    DELETE FROM fermata_interrupts AS gate USING ok,
      unnest($23::text[], $24::text[], $25::boolean[]) AS gone(branch_id, interrupt_id, conditional)
    WHERE gate.branch_id = ok.branch_id AND gone.branch_id = ok.branch_id AND (ok.full OR NOT gone.conditional)
      AND (gone.interrupt_id IS NULL OR gone.interrupt_id = gate.interrupt_id)
  ), opened AS (
    INSERT INTO fermata_interrupts
      (branch_id, interrupt_id, run_id, name, payload, seq, opened_at, assignee, deadline, task)
    SELECT gate.branch_id, gate.interrupt_id, gate.run_id, gate.name, gate.payload, gate.seq, gate.opened_at,
      gate.assignee, gate.deadline, gate.task
    FROM unnest($26::text[], $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[], $32::bigint[],
      $33::text[], $34::bigint[], $35::text[], $36::boolean[])
      AS gate(branch_id, interrupt_id, run_id, name, payload, seq, opened_at, assignee, deadline, task, conditional)
    JOIN ok ON ok.branch_id = gate.branch_id AND (ok.full OR NOT gate.conditional)
  ), tagged AS (
    INSERT INTO fermata_tags (run_id, name, text, number)
    SELECT tag.run_id, tag.name, tag.text, tag.number
    FROM unnest($39::text[], $40::text[], $41::text[], $42::text[], $43::float8[])
      AS tag(branch_id, run_id, name, text, number)
    JOIN ok ON ok.branch_id = tag.branch_id
    ON CONFLICT (run_id, name) DO UPDATE SET text = excluded.text, number = excluded.number
  )
  SELECT branch_id, inbox_head,
    (SELECT count(pg_notify('${channel}', note.text)) FROM unnest($37::text[], $38::text[]) AS note(branch_id, text)
      WHERE note.branch_id = ok.branch_id) AS notes
  FROM ok`

/** Up to this many rows of one branch have a statement of exactly their number. */
const mostOwnRows = 8

// The commonest commit, one branch's few appends, without arrays and conditions.
const appendOwn = Array.from({ length: mostOwnRows + 1 }, (_, rows) => {
  const values = Array.from({ length: rows }, (_, row) => {
    const [seq, kind, key, payload, at, digest] = Array.from({ length: 6 }, (_, column) => `$${7 + row * 6 + column}`)
    return `(${seq}::bigint, ${kind}, ${key}, ${payload}, ${at}::bigint, ${digest})`
  })
  return `WITH ok AS (
    UPDATE fermata_branches SET head = $5, head_digest = $6
    WHERE branch_id = $1 AND epoch = $2 AND head = $3 AND head_digest = $4 AND owner IS NOT NULL
    RETURNING branch_id, epoch, inbox_head
  ), stored AS (
    INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
    SELECT ok.branch_id, row.seq, row.kind, row.key, row.payload, ok.epoch, row.at, row.digest
    FROM ok, (VALUES ${values.join(", ")}) AS row(seq, kind, key, payload, at, digest)
  )
  SELECT branch_id, inbox_head FROM ok`
})

/** True of a part that `appendOwn` can store. */
const isPlain = (part: Part): boolean =>
  part.inboxSeen === null && part.entries.length > 0 && part.entries.length <= mostOwnRows && !needsMore(part)

const ownValues = ({ branch, epoch, base, head, entries }: Part): ReadonlyArray<unknown> => {
  const values: Array<unknown> = [branch, epoch, base.seq, base.digest, head.seq, head.digest]
  for (const entry of entries) values.push(entry.seq, entry.kind, entry.key, entry.payload, entry.at, entry.digest)
  return values
}

const partColumns = (parts: ReadonlyArray<Part>): ReadonlyArray<ReadonlyArray<unknown>> => [
  parts.map((part) => part.branch),
  parts.map((part) => part.epoch),
  parts.map((part) => part.base.seq),
  parts.map((part) => part.base.digest),
  parts.map((part) => part.mid.seq),
  parts.map((part) => part.mid.digest),
  parts.map((part) => part.head.seq),
  parts.map((part) => part.head.digest),
  parts.map((part) => part.inboxSeen),
  parts.map((part) => part.letGo?.status ?? null),
  parts.map((part) => part.letGo?.readyAt ?? null),
  parts.map((part) => part.letGo?.problem ?? null),
  parts.map((part) => part.letGo?.standing ?? null)
]

/** A row of a part, and whether it depends on the part's condition. */
interface Row {
  readonly part: Part
  readonly entry: Entry
  readonly conditional: boolean
}

const rowsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<Row> =>
  parts.flatMap((part) => [
    ...part.entries.map((entry) => ({ part, entry, conditional: false })),
    ...part.conditional.map((entry) => ({ part, entry, conditional: true }))
  ])

const entryColumns = (rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<unknown>> => [
  rows.map(({ entry }) => entry.branch),
  rows.map(({ entry }) => entry.seq),
  rows.map(({ entry }) => entry.kind),
  rows.map(({ entry }) => entry.key),
  rows.map(({ entry }) => entry.payload),
  rows.map(({ entry }) => entry.epoch),
  rows.map(({ entry }) => entry.at),
  rows.map(({ entry }) => entry.digest),
  rows.map(({ conditional }) => conditional)
]

const interruptColumns = (
  db: Database,
  parts: ReadonlyArray<Part>,
  rows: ReadonlyArray<Row>
): ReadonlyArray<ReadonlyArray<unknown>> => {
  const all = rows.filter(({ entry }) => changesInterrupts(entry))
  // Statements of one command do not see each other's rows: what is opened and closed at once leaves no row.
  const closes = (by: Row, opened: Row) =>
    by.part === opened.part &&
    by.entry.seq > opened.entry.seq &&
    (isTerminal(by.entry.kind) || (closesInterrupt(by.entry) && by.entry.key === opened.entry.key))
  const opened = all
    .filter((row) => row.entry.kind === "interrupt.opened" && !all.some((other) => closes(other, row)))
    .map((row) => ({ ...row, ...interruptOf(row.entry) }))
  const gone = all.filter(({ entry }) => entry.kind !== "interrupt.opened")
  const notes = parts.flatMap((part) =>
    announcementsOf(part, part.entries, true).map((announcement) => ({
      branch: part.branch,
      text: encodeAnnouncement(db.instance, announcement)
    }))
  )
  return [
    gone.map(({ entry }) => entry.branch),
    gone.map(({ entry }) => (isTerminal(entry.kind) ? null : entry.key)),
    gone.map(({ conditional }) => conditional),
    opened.map(({ entry }) => entry.branch),
    opened.map(({ entry }) => entry.key),
    opened.map(({ part }) => part.run),
    opened.map(({ name }) => name),
    opened.map(({ payload }) => payload),
    opened.map(({ entry }) => entry.seq),
    opened.map(({ entry }) => entry.at),
    opened.map(({ assignee }) => assignee),
    opened.map(({ deadline }) => deadline),
    opened.map(({ task }) => task),
    opened.map(({ conditional }) => conditional),
    notes.map(({ branch }) => branch),
    notes.map(({ text }) => text)
  ]
}

/** Marks are never conditional. One statement changes a row once: of several values the last one counts. */
const tagColumns = (parts: ReadonlyArray<Part>): ReadonlyArray<ReadonlyArray<unknown>> => {
  const tags = parts.flatMap(({ branch, entries, run }) => {
    const last = new Map(entries.filter(changesTags).flatMap((entry) => Object.entries(tagsOf(run, entry) ?? {})))
    return [...last].map(([name, value]) => ({ branch, run, name, ...columnsOf(value) }))
  })
  return [
    tags.map(({ branch }) => branch),
    tags.map(({ run }) => run),
    tags.map(({ name }) => name),
    tags.map(({ text }) => text),
    tags.map(({ number }) => number)
  ]
}

const needsMore = (part: Part): boolean =>
  part.letGo !== null ||
  part.entries.some((entry) => changesInterrupts(entry) || isHeard(entry) || changesTags(entry)) ||
  part.conditional.some(changesInterrupts)

/**
 * The statement is planned once a session, and every row is found by its key, in the order of the parts: so rows are
 * locked in id order, and a plan that was made while the tables were small does not hurt when they are large.
 */
const planning = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off"
}

/** Takes a connection of its own for the scope. */
export const makePgCommit = (db: Database): Effect.Effect<Commit, never, Scope.Scope> => {
  // A server does not notice that its client is gone while it waits for a lock: it gives up before the client does.
  const settings = { ...planning, lock_timeout: `${Math.ceil(statementDeadline(db) * 0.8)}` }
  return Effect.map(keptConnection(db, settings), ({ use }): Commit => {
    const update = (connection: PgConnection, parts: ReadonlyArray<Part>) => {
      const [part] = parts
      if (part !== undefined && parts.length === 1 && isPlain(part)) {
        const count = part.entries.length
        return connection.run(`fermata_append_${count}`, appendOwn[count] ?? "", ownValues(part))
      }
      const rows = rowsOf(parts)
      const columns = [...partColumns(parts), ...entryColumns(rows)]
      return parts.some(needsMore)
        ? connection.run("fermata_append_more", appendMore, [
            ...columns,
            ...interruptColumns(db, parts, rows),
            ...tagColumns(parts)
          ])
        : connection.run("fermata_append", appendOnly, columns)
    }
    const store = (connection: PgConnection, parts: ReadonlyArray<Part>) =>
      Effect.gen(function* () {
        // The statements' rows have these columns.
        const found = (yield* update(connection, parts)) as ReadonlyArray<{
          readonly branch_id: string
          readonly inbox_head: Int
        }>
        const heads = new Map(found.map((row) => [row.branch_id, Number(row.inbox_head)]))
        const missing = parts.filter((part) => !heads.has(part.branch))
        const stored = new Map(
          (missing.length === 0 ? [] : yield* readBranches(connection, missing)).map((row) => [row.branch, row])
        )
        return parts.map((part) => {
          const inboxHead = heads.get(part.branch)
          return inboxHead === undefined
            ? missed(part, stored.get(part.branch as Entry["branch"]))
            : updated(part, inboxHead)
        })
      })
    return { eventually: (parts) => use((connection) => store(connection, parts)) }
  })
}

const readBranches = (
  connection: PgConnection,
  parts: ReadonlyArray<Part>
): Effect.Effect<ReadonlyArray<ReturnType<typeof branchOfRow>>, SqlError> =>
  Effect.map(
    connection.run("fermata_branches_of", "SELECT * FROM fermata_branches WHERE branch_id = ANY($1)", [
      parts.map((part) => part.branch)
    ]),
    // The statement's rows have these columns.
    (rows) => (rows as ReadonlyArray<RawBranch>).map(branchOfRow)
  )
