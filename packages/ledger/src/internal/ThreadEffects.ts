/** Effects of threads' tasks: what was intended, and what became of it (EO). */
import type { DeliveryPolicy } from "@fermata/contract"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { CheckpointStore, ThreadEffect } from "../CheckpointStore.js"
import type { Database } from "./Database.js"
import { rowDigest } from "./Digest.js"
import type { Int } from "./Rows.js"
import { damaged, lockThread, lost } from "./ThreadRow.js"

interface RawEffect {
  readonly thread_id: string
  readonly task: string
  readonly position: string
  readonly try: Int
  readonly effect_key: string
  readonly name: string
  readonly delivery: string
  readonly input: string
  readonly input_digest: string
  readonly attempt: Int
  readonly answered: Int
  readonly state: string
  readonly outcome: string
  readonly runner: string
  readonly over_at: Int | null
  readonly at: Int
  readonly digest: string
}

const effectDigest = (thread: string, effect: ThreadEffect, at: number): string =>
  rowDigest(
    thread,
    effect.task,
    effect.position,
    effect.try,
    effect.key,
    effect.name,
    effect.delivery,
    effect.inputDigest,
    effect.attempt,
    effect.answered,
    effect.state,
    effect.runner,
    effect.overAt,
    at,
    effect.input,
    effect.outcome
  )

/** The part of the store that keeps effects. */
export const makeThreadEffects = (db: Database): Pick<CheckpointStore, "effects" | "putEffect"> => ({
  effects: Effect.fn("CheckpointStore.effects")((thread, task, position) =>
    db.query(
      "read effects of a task",
      Effect.gen(function* () {
        const rows = yield* db.sql<RawEffect>`SELECT * FROM fermata_thread_effects
          WHERE thread_id = ${thread} AND task = ${task} AND position = ${position} ORDER BY try`
        const tries: Array<ThreadEffect> = []
        for (const row of rows) {
          const effect = effectOfRow(row)
          if (effectDigest(thread, effect, Number(row.at)) !== row.digest) {
            const detail = "the digest of the row does not match its columns"
            return yield* damaged("effects", thread, `${task}, ${position}`, detail)
          }
          tries.push(effect)
        }
        return tries
      })
    )
  ),
  putEffect: Effect.fn("CheckpointStore.putEffect")((thread, effect, hold) =>
    db.transaction("store an effect", () =>
      Effect.gen(function* () {
        const row = yield* lockThread(db, thread)
        const fenced = lost(thread, row, hold)
        if (fenced !== undefined) return yield* fenced
        yield* insert(db, thread, effect)
      })
    )
  )
})

const insert = (db: Database, thread: string, effect: ThreadEffect): Effect.Effect<void, SqlError> => {
  const at = db.unsafeNow()
  return Effect.asVoid(
    db.sql`INSERT INTO fermata_thread_effects (thread_id, task, position, try, effect_key, name, delivery, input,
        input_digest, attempt, answered, state, outcome, runner, over_at, at, digest)
      VALUES (${thread}, ${effect.task}, ${effect.position}, ${effect.try}, ${effect.key}, ${effect.name},
        ${effect.delivery}, ${effect.input}, ${effect.inputDigest}, ${effect.attempt}, ${effect.answered},
        ${effect.state}, ${effect.outcome}, ${effect.runner}, ${effect.overAt}, ${at}, ${effectDigest(thread, effect, at)})
      ON CONFLICT (thread_id, task, position, try) DO UPDATE SET state = excluded.state, outcome = excluded.outcome,
        attempt = excluded.attempt, answered = excluded.answered, runner = excluded.runner, over_at = excluded.over_at,
        at = excluded.at, digest = excluded.digest`
  )
}

/**
 * EO: a fork inherits what its task did before the question that it answers anew, under the keys that it was done with.
 * What was in doubt stays in doubt.
 */
export const copyEffects = (
  db: Database,
  thread: string,
  { from, to }: { readonly from: string; readonly to: string },
  answers: number
): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const rows = yield* db.sql<RawEffect>`SELECT * FROM fermata_thread_effects
      WHERE thread_id = ${thread} AND task = ${from} AND answered < ${answers}`
    for (const row of rows) yield* insert(db, thread, { ...effectOfRow(row), task: to })
  })

// The digest vouches for what `insert` wrote.
const effectOfRow = (row: RawEffect): ThreadEffect => ({
  task: row.task,
  position: row.position,
  try: Number(row.try),
  key: row.effect_key,
  name: row.name,
  delivery: row.delivery as DeliveryPolicy,
  input: row.input,
  inputDigest: row.input_digest,
  attempt: Number(row.attempt),
  answered: Number(row.answered),
  state: row.state as ThreadEffect["state"],
  outcome: row.outcome,
  runner: row.runner,
  overAt: row.over_at === null ? null : Number(row.over_at)
})
