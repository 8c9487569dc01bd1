/** Forks of threads (FI): the copies, the answer that the branch begins with and the fork's id are one commit. */
import { Effect } from "effect"
import type { CheckpointStore } from "../CheckpointStore.js"
import { apply } from "./Checkpoints.js"
import type { Database } from "./Database.js"
import { rowDigest } from "./Digest.js"
import type { Int } from "./Rows.js"
import { insertAnswer, insertAsked } from "./ThreadAnswers.js"
import { copyEffects } from "./ThreadEffects.js"
import { damaged, lockThread } from "./ThreadRow.js"

interface RawFork {
  readonly thread_id: string
  readonly fork_id: string
  readonly request_digest: string
  readonly checkpoint_id: string
  readonly at: Int
  readonly digest: string
}

const forkDigest = (row: Omit<RawFork, "digest">): string =>
  rowDigest(row.thread_id, row.fork_id, row.request_digest, row.checkpoint_id, Number(row.at))

/** The part of the store that forks. */
export const makeThreadForks = (db: Database): Pick<CheckpointStore, "forked" | "fork"> => {
  const { sql } = db

  const read = (thread: string, fork: string) =>
    Effect.gen(function* () {
      const [row] = yield* sql<RawFork>`SELECT * FROM fermata_thread_forks
        WHERE thread_id = ${thread} AND fork_id = ${fork}`
      if (row === undefined) return undefined
      if (forkDigest(row) !== row.digest) {
        return yield* damaged("forks", thread, fork, "the digest of the row does not match its columns")
      }
      return { checkpoint: row.checkpoint_id, requestDigest: row.request_digest }
    })

  return {
    forked: Effect.fn("CheckpointStore.forked")((thread, fork) => db.query("look for a fork", read(thread, fork))),
    fork: Effect.fn("CheckpointStore.fork")((thread, fork) =>
      db.transaction("fork a thread", () =>
        Effect.gen(function* () {
          yield* lockThread(db, thread)
          const before = yield* read(thread, fork.fork)
          if (before !== undefined) return before
          // They are asked for as branches, so nothing refuses them.
          for (const put of fork.puts) yield* apply(db, thread, put)
          const at = db.unsafeNow()
          for (const [ordinal, { value, valueDigest }] of fork.answers.entries()) {
            const interrupt_id = `fork:${fork.fork}:${ordinal}`
            yield* insertAsked(db, {
              thread_id: thread,
              ns: fork.at.ns,
              interrupt_id,
              checkpoint_id: fork.at.checkpoint,
              task_id: fork.at.task,
              ordinal,
              question: "null",
              at
            })
            yield* insertAnswer(db, {
              thread_id: thread,
              interrupt_id,
              delivery: interrupt_id,
              value,
              value_digest: valueDigest,
              at
            })
          }
          yield* copyEffects(db, thread, fork.effects, fork.answers.length)
          const row = {
            thread_id: thread,
            fork_id: fork.fork,
            request_digest: fork.requestDigest,
            checkpoint_id: fork.checkpoint,
            at
          }
          yield* sql`INSERT INTO fermata_thread_forks (thread_id, fork_id, request_digest, checkpoint_id, at, digest)
            VALUES (${thread}, ${fork.fork}, ${row.request_digest}, ${row.checkpoint_id}, ${at}, ${forkDigest(row)})`
          return { checkpoint: fork.checkpoint, requestDigest: fork.requestDigest }
        })
      )
    )
  }
}
