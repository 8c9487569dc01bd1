/** Finding runs: by workflow, status, time, and the tags that their root branches were given. */
import type { SqlError } from "@effect/sql/SqlError"
import { type Entry, payloadOf, rootBranch, type RunId } from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger, RunFilter, TagFilter, Tags, TagValue } from "../Ledger.js"
import { notFound } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { branchOfRow, type Int, type RawBranch } from "./Rows.js"

/** A row of `fermata_tags`. */
export interface RawTag {
  readonly run_id: string
  readonly name: string
  readonly text: string | null
  readonly number: number | null
}

/** A tag's value in the two columns that it may be in. */
export const columnsOf = (value: TagValue): { readonly text: string | null; readonly number: number | null } =>
  typeof value === "string" ? { text: value, number: null } : { text: null, number: value }

/** The tags that an entry gives to its run: those of a root branch count. */
export const tagsOf = (run: string, entry: Pick<Entry, "branch" | "kind" | "payload">): Tags | undefined => {
  // A fork is another story of the run: it does not change what the run is found by.
  // The run's id was checked where it came from.
  if (entry.kind !== "tags.set" && entry.kind !== "run.started") return undefined
  if (entry.branch !== rootBranch(run as RunId)) return undefined
  return payloadOf({ kind: entry.kind, payload: entry.payload }).tags
}

/** True if the tags' table may change with an entry of this kind that a worker appends. */
export const changesTags = (entry: Pick<Entry, "kind">): boolean => entry.kind === "tags.set"

/** Tags of a run that just begins. */
export const insertTags = (db: Database, run: string, tags: Tags): Effect.Effect<void, SqlError> =>
  Effect.forEach(
    Object.entries(tags),
    ([name, value]) => {
      const { number, text } = columnsOf(value)
      return db.sql`INSERT INTO fermata_tags (run_id, name, text, number) VALUES (${run}, ${name}, ${text}, ${number})`
    },
    { discard: true }
  )

/** The rows of a run's tags as they stand. */
export const readTags = (db: Database, run: string): Effect.Effect<Tags, SqlError> =>
  Effect.map(db.sql<RawTag>`SELECT * FROM fermata_tags WHERE run_id = ${run} ORDER BY name`, (rows) =>
    Object.fromEntries(rows.map(({ name, number, text }) => [name, text ?? Number(number)]))
  )

/** Its operations over a database. */
export const makeFinding = (db: Database): Pick<Ledger, "list" | "count" | "tags"> => {
  const { sql } = db

  const tagged = (filter: TagFilter) => {
    const conditions = [sql`name = ${filter.name}`]
    // The indexes on values hold rows of their own kind only: each condition names it.
    if ("equals" in filter) {
      conditions.push(
        typeof filter.equals === "string"
          ? sql`text IS NOT NULL AND text = ${filter.equals}`
          : sql`number IS NOT NULL AND number = ${filter.equals}`
      )
    } else {
      conditions.push(sql`number IS NOT NULL`)
      if (filter.min !== undefined) conditions.push(sql`number >= ${filter.min}`)
      if (filter.max !== undefined) conditions.push(sql`number <= ${filter.max}`)
    }
    return sql`run_id IN (SELECT run_id FROM fermata_tags WHERE ${sql.and(conditions)})`
  }

  /** When a branch ended is when its last entry was written. */
  const ended = (comparison: "at >=" | "at <", millis: number) =>
    sql`status IN ('completed', 'failed', 'cancelled') AND EXISTS (SELECT 1 FROM fermata_journal AS last
      WHERE last.branch_id = fermata_branches.branch_id AND last.seq = fermata_branches.head
        AND last.${sql.literal(comparison)} ${millis})`

  const conditionsOf = (filter: RunFilter) => {
    const conditions = [sql`parent IS NULL`]
    if (filter.workflow !== undefined) conditions.push(sql`workflow = ${filter.workflow}`)
    if (filter.status !== undefined) conditions.push(sql`status = ${filter.status}`)
    for (const tag of filter.tags ?? []) conditions.push(tagged(tag))
    if (filter.startedAfter !== undefined) conditions.push(sql`created_at >= ${filter.startedAfter}`)
    if (filter.startedBefore !== undefined) conditions.push(sql`created_at < ${filter.startedBefore}`)
    if (filter.endedAfter !== undefined) conditions.push(ended("at >=", filter.endedAfter))
    if (filter.endedBefore !== undefined) conditions.push(ended("at <", filter.endedBefore))
    return conditions
  }

  return {
    list: Effect.fn("Ledger.list")(({ after, limit, ...filter }) =>
      db.query(
        "list runs",
        Effect.gen(function* () {
          const conditions = conditionsOf(filter)
          if (typeof after === "object") {
            conditions.push(sql`(created_at, run_id) < (${after.createdAt}, ${after.run})`)
          } else if (after !== undefined) {
            const [cursor] = yield* sql<{ readonly created_at: Int }>`SELECT created_at FROM fermata_branches
              WHERE branch_id = ${rootBranch(after)}`
            // A cursor that was purged since ends the listing rather than start it over.
            if (cursor === undefined) return []
            conditions.push(sql`(created_at, run_id) < (${Number(cursor.created_at)}, ${after})`)
          }
          const rows = yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE ${sql.and(conditions)}
            ORDER BY created_at DESC, run_id DESC LIMIT ${limit ?? 100}`
          return rows.map(branchOfRow)
        })
      )
    ),

    count: Effect.fn("Ledger.count")((filter) =>
      db.query(
        "count runs",
        Effect.map(
          sql<{ readonly n: Int }>`SELECT COUNT(*) AS n FROM fermata_branches WHERE ${sql.and(conditionsOf(filter))}`,
          ([row]) => Number(row?.n ?? 0)
        )
      )
    ),

    tags: Effect.fn("Ledger.tags")((run) =>
      db.query(
        "read a run's tags",
        Effect.gen(function* () {
          const tags = yield* readTags(db, run)
          if (Object.keys(tags).length > 0) return tags
          const known = yield* sql`SELECT 1 AS one FROM fermata_runs WHERE run_id = ${run}`
          return known.length === 0 ? yield* notFound(db, run, run) : tags
        })
      )
    )
  }
}
