/**
 * Looking into a history without loading it: page by page from its start, by key, or at one position. What is shown is
 * verified; the first thing that is not fails the look (CV).
 */
import type { SqlError } from "@effect/sql/SqlError"
import { type Entry, type EntryKind, type EntryPayloads, payloadOf } from "@fermata/contract"
import { Effect } from "effect"
import type { RunRow } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import type { Database } from "./Database.js"
import { entryDigest } from "./Digest.js"
import type { Ancestor } from "./History.js"
import { isIndexedKind, isMessageKind } from "./migrations.js"
import { entryOfRow, type RawEntry } from "./Rows.js"

/** Entries about an effect's key; intents and outcomes alike. */
const isEffectKind =
  "kind IN ('effect.intended', 'effect.succeeded', 'effect.failed', 'effect.voided', 'effect.refused')"

const kindsOf = { gate: isIndexedKind, effect: isEffectKind, message: isMessageKind }

/** Rows read at a time: bounds memory, and how long a walk holds a connection. */
export const pageSize = 1000

/**
 * Lets timers, sockets and other fibers have their turn. SQLite answers at once, so that a long walk would otherwise hold
 * the thread until leases lapse.
 */
export const letOthersRun: Effect.Effect<void> = Effect.async((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})

/** The digest that the history's entry `seq` + 1 chains over; `undefined` if the entry at `seq` is missing. */
export const digestAt = (
  db: Database,
  run: Pick<RunRow, "digest">,
  lineage: ReadonlyArray<Ancestor>,
  seq: number
): Effect.Effect<string | undefined, SqlError> => {
  if (seq === 0) return Effect.succeed(run.digest)
  const holder = lineage.find(({ from, to }) => from <= seq && seq <= to)
  return holder === undefined
    ? Effect.succeed(undefined)
    : Effect.map(
        db.sql<{ readonly digest: string }>`
          SELECT digest FROM fermata_journal WHERE branch_id = ${holder.branch.branch} AND seq = ${seq}`,
        ([row]) => row?.digest
      )
}

/** One page of a branch's own entries after position `after` and up to `to`, in order, as stored. */
export const entriesAfter = (
  db: Database,
  branch: string,
  after: number,
  to: number
): Effect.Effect<ReadonlyArray<Entry>, SqlError> =>
  Effect.map(
    db.sql<RawEntry>`
      SELECT * FROM fermata_journal WHERE branch_id = ${branch} AND seq > ${after} AND seq <= ${to}
      ORDER BY seq LIMIT ${pageSize}`,
    (rows) => rows.map(entryOfRow)
  )

/** That nothing stands where an entry should. */
export const missingEntry = (branch: string, seq: number): CorruptJournal =>
  new CorruptJournal({ table: "journal", id: branch, seq, detail: `entry ${seq} is missing` })

/** What is wrong with what stands at `seq`, after an entry with digest `previous`. */
export const entryProblem = (
  entry: Entry | undefined,
  branch: string,
  seq: number,
  previous: string
): CorruptJournal | undefined => {
  if (entry === undefined || entry.seq !== seq) return missingEntry(branch, seq)
  if (entryDigest(previous, entry) === entry.digest) return undefined
  return new CorruptJournal({
    table: "journal",
    id: branch,
    seq,
    detail: "the entry's digest does not match its columns and predecessor"
  })
}

/** Walks a history from its start, page by page, until `visit` returns false. */
export const walkHistory = (
  db: Database,
  run: Pick<RunRow, "digest">,
  lineage: ReadonlyArray<Ancestor>,
  visit: (entry: Entry) => boolean
): Effect.Effect<void, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    let digest = run.digest
    for (const { branch, from, to } of lineage) {
      let seq = from - 1
      while (seq < to) {
        const page = yield* entriesAfter(db, branch.branch, seq, to)
        if (page.length === 0) return yield* missingEntry(branch.branch, seq + 1)
        if (page.length === pageSize) yield* letOthersRun
        for (const entry of page) {
          const problem = entryProblem(entry, branch.branch, seq + 1, digest)
          if (problem !== undefined) return yield* problem
          digest = entry.digest
          seq = entry.seq
          if (!visit(entry)) return
        }
      }
    }
  })

/**
 * The history's entries under these keys, in order: of gates (`interrupt.*`, `inbox.unserved`) and messages (by index), or of effects
 * (which have none: this reads the branches through). Each is verified by its digest over its stored predecessor's: no
 * gate is opened or shut by a row that was tampered with.
 */
export const entriesByKey = (
  db: Database,
  run: Pick<RunRow, "digest">,
  lineage: ReadonlyArray<Ancestor>,
  keys: ReadonlyArray<string>,
  of: "gate" | "effect" | "message" = "gate",
  /** Only from this position on. */
  since = 0
): Effect.Effect<ReadonlyArray<Entry>, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const found: Array<Entry> = []
    for (const { branch, from, to } of lineage) {
      if (to < from) continue
      const rows = yield* db.sql<RawEntry & { readonly previous: string | null }>`
        SELECT *, (SELECT p.digest FROM fermata_journal p WHERE p.branch_id = j.branch_id AND p.seq = j.seq - 1) AS previous
        FROM fermata_journal j
        WHERE branch_id = ${branch.branch} AND ${db.sql.in("key", keys)} AND ${db.sql.literal(kindsOf[of])} AND seq <= ${to} AND seq >= ${since}
        ORDER BY seq`
      for (const row of rows) {
        const entry = entryOfRow(row)
        const previous = row.previous ?? (yield* digestAt(db, run, lineage, entry.seq - 1))
        if (previous === undefined) return yield* missingEntry(branch.branch, entry.seq - 1)
        const problem = entryProblem(entry, branch.branch, entry.seq, previous)
        if (problem !== undefined) return yield* problem
        found.push(entry)
      }
    }
    return found
  })

/** The first own entry of a branch, which the transaction that made the branch may have written. */
export const firstOwnEntry = (
  db: Database,
  run: Pick<RunRow, "digest">,
  lineage: ReadonlyArray<Ancestor>,
  { branch, from, to }: Ancestor
): Effect.Effect<Entry | undefined, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    if (to < from) return undefined
    const [entry] = yield* entriesAfter(db, branch.branch, from - 1, from)
    const previous = yield* digestAt(db, run, lineage, from - 1)
    if (previous === undefined) return yield* missingEntry(branch.branch, from - 1)
    const problem = entryProblem(entry, branch.branch, from, previous)
    return problem === undefined ? entry : yield* problem
  })

/** The entry's payload if it is of this kind. */
export const payloadIf = <K extends EntryKind>(kind: K, entry: Entry): EntryPayloads[K] | undefined =>
  entry.kind === kind ? payloadOf({ kind, payload: entry.payload }) : undefined
