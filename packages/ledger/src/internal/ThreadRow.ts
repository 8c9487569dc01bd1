/** The row of a thread, which every transaction on it holds; who holds the thread is written there. */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { CorruptCheckpoint, type ThreadHold, ThreadLost } from "../CheckpointStore.js"
import type { Database } from "./Database.js"
import type { Int } from "./Rows.js"

/** A row of `fermata_threads`. */
export interface RawThread {
  readonly epoch: Int
  /** Who runs the thread now. */
  readonly runner: string | null
  readonly lease_until: Int
}

/** Takes the thread's row for the transaction; makes it if there is none. */
export const lockThread = (db: Database, thread: string): Effect.Effect<RawThread, SqlError> =>
  Effect.gen(function* () {
    const locked = db.sql<RawThread>`
      SELECT epoch, runner, lease_until FROM fermata_threads WHERE thread_id = ${thread} ${db.forUpdate}`
    const [row] = yield* locked
    if (row !== undefined) return row
    yield* db.sql`INSERT INTO fermata_threads (thread_id, epoch, runner, lease_until) VALUES (${thread}, 0, NULL, 0)
      ON CONFLICT (thread_id) DO NOTHING`
    const [made] = yield* locked
    return made ?? { epoch: 0, runner: null, lease_until: 0 }
  })

/** Fencing: a runner that lost the thread writes nothing. Who holds none is subject to the compare-and-set alone. */
export const lost = (thread: string, row: RawThread, hold: ThreadHold | undefined): ThreadLost | undefined =>
  hold === undefined || (row.runner === hold.runner && Number(row.epoch) === hold.epoch)
    ? undefined
    : new ThreadLost({ thread, epoch: hold.epoch })

/** Stored data that does not verify. */
export const damaged = (
  table: CorruptCheckpoint["table"],
  thread: string,
  id: string,
  detail: string
): CorruptCheckpoint => new CorruptCheckpoint({ table, thread, id, detail })
