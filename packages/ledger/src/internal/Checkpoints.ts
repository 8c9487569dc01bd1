/**
 * Checkpoints of threads, in SQL. A commit holds the thread's row, decides on what is stored then, and writes; so of two
 * runs that go on from one checkpoint the second learns it here, and neither writes over the other.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import {
  type ChannelRef,
  CheckpointConflict,
  checkpointKey,
  type CheckpointOperation,
  type CheckpointOutcome,
  type CheckpointQuery,
  type CheckpointStore,
  type CorruptCheckpoint,
  type PutCheckpoint,
  type PutWrites,
  type StoredCheckpoint,
  type StoredWrite
} from "../CheckpointStore.js"
import type { Database } from "./Database.js"
import { rowDigest, valueDigest } from "./Digest.js"
import type { Int } from "./Rows.js"
import { acceptedAnswers, recordInterrupts } from "./ThreadAnswers.js"
import { damaged, lockThread, lost } from "./ThreadRow.js"

interface RawCheckpoint {
  readonly thread_id: string
  readonly ns: string
  readonly checkpoint_id: string
  readonly parent_id: string | null
  readonly body: string
  readonly channels: string
  readonly metadata: string
  readonly at: Int
  readonly digest: string
}

interface RawWrite {
  readonly thread_id: string
  readonly ns: string
  readonly checkpoint_id: string
  readonly task_id: string
  readonly idx: Int
  readonly channel: string
  readonly path: string
  readonly value: string
  readonly digest: string
}

/** Of all columns but the digest itself. */
const checkpointDigest = (row: Omit<RawCheckpoint, "digest">): string =>
  rowDigest(
    row.thread_id,
    row.ns,
    row.checkpoint_id,
    row.parent_id,
    Number(row.at),
    row.channels,
    row.metadata,
    row.body
  )

const writeDigest = (row: Omit<RawWrite, "digest">): string =>
  rowDigest(row.thread_id, row.ns, row.checkpoint_id, row.task_id, Number(row.idx), row.channel, row.path, row.value)

/** Rows per statement: below every driver's bound on parameters. */
const batch = 400

/** Stores one operation inside a transaction that holds the thread; what it is refused for. */
export const apply = (db: Database, thread: string, operation: CheckpointOperation) =>
  operation._tag === "Put" ? put(db, thread, operation) : write(db, thread, operation)

/** The part of the store that keeps checkpoints. */
export const makeCheckpoints = (
  db: Database
): Pick<CheckpointStore, "commit" | "known" | "hasChild" | "find" | "values" | "remove"> => {
  const { sql } = db

  const commit: CheckpointStore["commit"] = Effect.fn("CheckpointStore.commit")((thread, operations) =>
    db.transaction("store checkpoints", () =>
      Effect.gen(function* () {
        const row = yield* lockThread(db, thread)
        const outcomes: Array<CheckpointOutcome> = []
        for (const operation of operations) {
          const fenced = lost(thread, row, operation.hold)
          const refused = fenced ?? (yield* apply(db, thread, operation))
          outcomes.push(refused === undefined ? { _tag: "Done" } : { _tag: "Refused", error: refused })
        }
        return outcomes
      })
    )
  )

  const known: CheckpointStore["known"] = (thread, checkpoints) =>
    db.query(
      "look for checkpoints",
      Effect.gen(function* () {
        const found = new Set<string>()
        for (const { ns, id } of checkpoints) {
          const rows = yield* sql`SELECT 1 FROM fermata_thread_checkpoints
            WHERE thread_id = ${thread} AND ns = ${ns} AND checkpoint_id = ${id}`
          if (rows.length > 0) found.add(checkpointKey(ns, id))
        }
        return found
      })
    )

  const hasChild: CheckpointStore["hasChild"] = (thread, ns, id) =>
    db.query(
      "look for a checkpoint's children",
      Effect.map(
        sql`SELECT 1 FROM fermata_thread_checkpoints
          WHERE thread_id = ${thread} AND ns = ${ns} AND parent_id = ${id} AND checkpoint_id <> ${id} LIMIT 1`,
        (rows) => rows.length > 0
      )
    )

  const find: CheckpointStore["find"] = Effect.fn("CheckpointStore.find")((query) =>
    db.query(
      "read checkpoints",
      Effect.gen(function* () {
        const found: Array<StoredCheckpoint> = []
        for (const row of yield* page(db, query)) {
          const at = { thread: row.thread_id, ns: row.ns, id: row.checkpoint_id }
          const { channels } = yield* verified(row)
          const writes = yield* writesOf(db, at)
          const answers = yield* acceptedAnswers(db, at)
          found.push({
            ...at,
            parent: row.parent_id,
            body: row.body,
            channels,
            metadata: row.metadata,
            writes,
            answers
          })
        }
        return found
      })
    )
  )

  const values: CheckpointStore["values"] = (thread, digests) =>
    db.query(
      "read values of checkpoints",
      Effect.gen(function* () {
        const texts = new Map<string, string>()
        for (let from = 0; from < digests.length; from += batch) {
          const rows = yield* sql<{ readonly value_digest: string; readonly value: string }>`
            SELECT value_digest, value FROM fermata_thread_values
            WHERE thread_id = ${thread} AND ${sql.in("value_digest", digests.slice(from, from + batch))}`
          for (const row of rows) {
            if (valueDigest(row.value) !== row.value_digest) {
              return yield* damaged("values", thread, row.value_digest, "the value does not match its digest")
            }
            texts.set(row.value_digest, row.value)
          }
        }
        const missing = digests.find((digest) => !texts.has(digest))
        if (missing !== undefined) return yield* damaged("values", thread, missing, "the value is missing")
        return texts
      })
    )

  const remove: CheckpointStore["remove"] = Effect.fn("CheckpointStore.remove")((thread) =>
    db.transaction("delete a thread", () =>
      Effect.gen(function* () {
        yield* lockThread(db, thread)
        yield* sql`DELETE FROM fermata_thread_checkpoints WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_writes WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_values WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_interrupts WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_answers WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_forks WHERE thread_id = ${thread}`
        yield* sql`DELETE FROM fermata_thread_effects WHERE thread_id = ${thread}`
        yield* sql`UPDATE fermata_threads SET epoch = epoch + 1, runner = NULL, lease_until = 0 WHERE thread_id = ${thread}`
      })
    )
  )

  return { commit, known, hasChild, find, values, remove }
}

const verified = (
  row: RawCheckpoint
): Effect.Effect<{ readonly channels: Readonly<Record<string, ChannelRef>> }, CorruptCheckpoint> =>
  checkpointDigest(row) === row.digest
    ? // The digest vouches for the text, which `put` wrote.
      Effect.sync(() => ({ channels: JSON.parse(row.channels) as Readonly<Record<string, ChannelRef>> }))
    : Effect.fail(
        damaged("checkpoints", row.thread_id, row.checkpoint_id, "the digest of the row does not match its columns")
      )

const page = (db: Database, query: CheckpointQuery) => {
  const { sql } = db
  const conditions = [sql`1 = 1`]
  if (query.thread !== undefined) conditions.push(sql`thread_id = ${query.thread}`)
  if (query.ns !== undefined) conditions.push(sql`ns = ${query.ns}`)
  if (query.id !== undefined) conditions.push(sql`checkpoint_id = ${query.id}`)
  if (query.before !== undefined) conditions.push(sql`checkpoint_id < ${query.before}`)
  if (query.after !== undefined) {
    const { id, ns, thread } = query.after
    conditions.push(sql`(checkpoint_id, thread_id, ns) < (${id}, ${thread}, ${ns})`)
  }
  return sql<RawCheckpoint>`SELECT * FROM fermata_thread_checkpoints WHERE ${sql.and(conditions)}
    ORDER BY checkpoint_id DESC, thread_id DESC, ns DESC LIMIT ${query.limit}`
}

const writesOf = (
  db: Database,
  at: { readonly thread: string; readonly ns: string; readonly id: string }
): Effect.Effect<ReadonlyArray<StoredWrite>, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const rows = yield* db.sql<RawWrite>`SELECT * FROM fermata_thread_writes
      WHERE thread_id = ${at.thread} AND ns = ${at.ns} AND checkpoint_id = ${at.id}`
    const writes: Array<StoredWrite> = []
    for (const row of rows) {
      if (writeDigest(row) !== row.digest) {
        const detail = "the digest of the row does not match its columns"
        return yield* damaged("writes", at.thread, `${at.id}, task ${row.task_id}, ${row.idx}`, detail)
      }
      const { channel, path, task_id: task, value } = row
      writes.push({ task, idx: Number(row.idx), channel, path, value })
    }
    return writes
  })

/** Stores a checkpoint; what it is refused for. */
const put = (
  db: Database,
  thread: string,
  operation: PutCheckpoint
): Effect.Effect<CheckpointConflict | undefined, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const { sql } = db
    const { id, ns } = operation
    // A run that saves at its end only names the checkpoint that it stores again as that one's own parent.
    const parent = operation.parent === id ? yield* parentOf(db, thread, ns, id) : operation.parent
    if (operation.as === "next") {
      // The head's compare-and-set: who goes on from a checkpoint that has gone on already lost a race.
      const [child] = yield* sql<{ readonly checkpoint_id: string }>`
        SELECT checkpoint_id FROM fermata_thread_checkpoints
        WHERE thread_id = ${thread} AND ns = ${ns} AND checkpoint_id <> ${id}
          AND ${parent === null ? sql`1 = 1` : sql`parent_id = ${parent}`} LIMIT 1`
      if (child !== undefined) {
        return new CheckpointConflict({ thread, ns, parent, child: child.checkpoint_id, refused: id })
      }
    }
    const channels = { ...(yield* carriedChannels(db, thread, operation)), ...operation.changed }
    for (const [digest, value] of operation.values) {
      yield* sql`INSERT INTO fermata_thread_values (thread_id, value_digest, value) VALUES (${thread}, ${digest}, ${value})
        ON CONFLICT (thread_id, value_digest) DO NOTHING`
    }
    const row = {
      thread_id: thread,
      ns,
      checkpoint_id: id,
      parent_id: parent,
      body: operation.body,
      channels: JSON.stringify(channels),
      metadata: operation.metadata,
      at: db.unsafeNow()
    }
    // A run that saves at its end only stores its last checkpoint twice: the later one is the whole one.
    yield* sql`INSERT INTO fermata_thread_checkpoints
        (thread_id, ns, checkpoint_id, parent_id, body, channels, metadata, at, digest)
      VALUES (${thread}, ${ns}, ${id}, ${parent}, ${row.body}, ${row.channels}, ${row.metadata}, ${row.at}, ${checkpointDigest(row)})
      ON CONFLICT (thread_id, ns, checkpoint_id) DO UPDATE SET parent_id = excluded.parent_id, body = excluded.body,
        channels = excluded.channels, metadata = excluded.metadata, at = excluded.at, digest = excluded.digest`
    return undefined
  })

/** FD: the values that the checkpoint shares with its own parent, by the parent's row; never by a version that another branch may have, too. */
const carriedChannels = (
  db: Database,
  thread: string,
  operation: PutCheckpoint
): Effect.Effect<Record<string, ChannelRef>, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const wanted = Object.entries(operation.carried)
    const carried: Record<string, ChannelRef> = {}
    if (wanted.length === 0) return carried
    // A checkpoint that is stored again carries its own values besides its parent's.
    for (const id of [operation.id, operation.parent]) {
      if (id === null) continue
      const [row] = yield* db.sql<RawCheckpoint>`SELECT * FROM fermata_thread_checkpoints
        WHERE thread_id = ${thread} AND ns = ${operation.ns} AND checkpoint_id = ${id}`
      if (row === undefined) continue
      const { channels } = yield* verified(row)
      for (const [channel, version] of wanted) {
        const ref = channels[channel]
        if (ref !== undefined && ref[0] === version && !Object.hasOwn(carried, channel)) carried[channel] = ref
      }
    }
    const missing = operation.strict ? wanted.find(([channel]) => !Object.hasOwn(carried, channel)) : undefined
    if (missing !== undefined) {
      const detail = `the value of channel ${missing[0]}, version ${missing[1]}, is not with its parent ${operation.parent}`
      return yield* damaged("checkpoints", thread, operation.id, detail)
    }
    return carried
  })

const parentOf = (db: Database, thread: string, ns: string, id: string) =>
  Effect.map(
    db.sql<{ readonly parent_id: string | null }>`SELECT parent_id FROM fermata_thread_checkpoints
      WHERE thread_id = ${thread} AND ns = ${ns} AND checkpoint_id = ${id}`,
    ([row]) => row?.parent_id ?? null
  )

const write = (
  db: Database,
  thread: string,
  operation: PutWrites
): Effect.Effect<undefined, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const { sql } = db
    for (const { channel, idx, value } of operation.writes) {
      const row = {
        thread_id: thread,
        ns: operation.ns,
        checkpoint_id: operation.checkpoint,
        task_id: operation.task,
        idx,
        channel,
        path: operation.path,
        value
      }
      const digest = writeDigest(row)
      // PC: an outcome that is stored is what later steps were built on; a second one of the same task does not replace it.
      yield* sql`INSERT INTO fermata_thread_writes
          (thread_id, ns, checkpoint_id, task_id, idx, channel, path, value, digest)
        VALUES (${thread}, ${row.ns}, ${row.checkpoint_id}, ${row.task_id}, ${idx}, ${channel}, ${row.path}, ${value}, ${digest})
        ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) ${
          operation.replace
            ? sql.literal(
                "DO UPDATE SET channel = excluded.channel, path = excluded.path, value = excluded.value, digest = excluded.digest"
              )
            : sql.literal("DO NOTHING")
        }`
    }
    yield* recordInterrupts(db, thread, operation)
    return undefined
  })
