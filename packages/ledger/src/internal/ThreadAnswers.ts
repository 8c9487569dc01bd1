/**
 * Interrupts of threads and their accepted answers. An interrupt is recorded with the writes of the task that asked; an
 * answer is served to that task and no other, whichever process reads the checkpoint (CO).
 */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import { judgeDelivery } from "@fermata/contract"
import type {
  AnswerReceipt,
  AskedInterrupt,
  CheckpointStore,
  CorruptCheckpoint,
  PutWrites,
  StoredCheckpoint,
  ThreadAnswer
} from "../CheckpointStore.js"
import type { Database } from "./Database.js"
import { rowDigest } from "./Digest.js"
import type { Int } from "./Rows.js"
import { damaged, lockThread } from "./ThreadRow.js"

export interface RawAsked {
  readonly thread_id: string
  readonly ns: string
  readonly interrupt_id: string
  readonly checkpoint_id: string
  readonly task_id: string
  readonly ordinal: Int
  readonly question: string
  readonly at: Int
  readonly digest: string
}

export interface RawAnswer {
  readonly thread_id: string
  readonly interrupt_id: string
  readonly delivery: string
  readonly value: string
  readonly value_digest: string
  readonly at: Int
  readonly digest: string
}

const askedDigest = (row: Omit<RawAsked, "digest">): string =>
  rowDigest(
    row.thread_id,
    row.ns,
    row.interrupt_id,
    row.checkpoint_id,
    row.task_id,
    Number(row.ordinal),
    Number(row.at),
    row.question
  )

const answerDigest = (row: Omit<RawAnswer, "digest">): string =>
  rowDigest(row.thread_id, row.interrupt_id, row.delivery, row.value_digest, Number(row.at), row.value)

const mismatch = "the digest of the row does not match its columns"

export const verifiedAsked = (row: RawAsked): Effect.Effect<RawAsked, CorruptCheckpoint> =>
  askedDigest(row) === row.digest
    ? Effect.succeed(row)
    : Effect.fail(damaged("interrupts", row.thread_id, row.interrupt_id, mismatch))

export const verifiedAnswer = (row: RawAnswer): Effect.Effect<RawAnswer, CorruptCheckpoint> =>
  answerDigest(row) === row.digest
    ? Effect.succeed(row)
    : Effect.fail(damaged("answers", row.thread_id, row.interrupt_id, mismatch))

/** Stores an interrupt. */
export const insertAsked = (db: Database, row: Omit<RawAsked, "digest">): Effect.Effect<void, SqlError> =>
  Effect.asVoid(
    db.sql`INSERT INTO fermata_thread_interrupts
        (thread_id, ns, interrupt_id, checkpoint_id, task_id, ordinal, question, at, digest)
      VALUES (${row.thread_id}, ${row.ns}, ${row.interrupt_id}, ${row.checkpoint_id}, ${row.task_id},
        ${Number(row.ordinal)}, ${row.question}, ${Number(row.at)}, ${askedDigest(row)})
      ON CONFLICT (thread_id, ns, interrupt_id) DO NOTHING`
  )

/** Stores an answer. Its keys are unique: a second one fails. */
export const insertAnswer = (db: Database, row: Omit<RawAnswer, "digest">): Effect.Effect<void, SqlError> =>
  Effect.asVoid(
    db.sql`INSERT INTO fermata_thread_answers (thread_id, interrupt_id, delivery, value, value_digest, at, digest)
      VALUES (${row.thread_id}, ${row.interrupt_id}, ${row.delivery}, ${row.value}, ${row.value_digest}, ${Number(row.at)},
        ${answerDigest(row)})`
  )

/**
 * Records the interrupts among a task's writes. A task asks one after the other, so its ordinals are those of its
 * earlier questions; one that is asked again (the body ran again) is there already.
 */
export const recordInterrupts = (db: Database, thread: string, operation: PutWrites): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    for (const { interrupt, question } of operation.interrupts) {
      const [count] = yield* db.sql<{ readonly n: Int }>`SELECT COUNT(*) AS n FROM fermata_thread_interrupts
        WHERE thread_id = ${thread} AND ns = ${operation.ns} AND checkpoint_id = ${operation.checkpoint}
          AND task_id = ${operation.task} AND interrupt_id <> ${interrupt}`
      yield* insertAsked(db, {
        thread_id: thread,
        ns: operation.ns,
        interrupt_id: interrupt,
        checkpoint_id: operation.checkpoint,
        task_id: operation.task,
        ordinal: Number(count?.n ?? 0),
        question,
        at: db.unsafeNow()
      })
    }
  })

/**
 * The accepted answers of a checkpoint's tasks. A question of a nested graph is recorded for each graph that it passed on
 * its way up; the answer belongs to the innermost.
 */
export const acceptedAnswers = (
  db: Database,
  at: { readonly thread: string; readonly ns: string; readonly id: string }
): Effect.Effect<StoredCheckpoint["answers"], SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const asked = yield* db.sql<RawAsked>`SELECT i.* FROM fermata_thread_interrupts i
      WHERE i.thread_id = ${at.thread} AND i.ns = ${at.ns} AND i.checkpoint_id = ${at.id}
        AND NOT EXISTS (SELECT 1 FROM fermata_thread_interrupts inner_
          WHERE inner_.thread_id = i.thread_id AND inner_.interrupt_id = i.interrupt_id AND length(inner_.ns) > length(i.ns))
      ORDER BY i.task_id, i.ordinal`
    const answers: Array<StoredCheckpoint["answers"][number]> = []
    for (const row of asked) {
      yield* verifiedAsked(row)
      const [answer] = yield* db.sql<RawAnswer>`SELECT * FROM fermata_thread_answers
        WHERE thread_id = ${at.thread} AND interrupt_id = ${row.interrupt_id}`
      if (answer === undefined) continue
      const { value } = yield* verifiedAnswer(answer)
      answers.push({ task: row.task_id, ordinal: Number(row.ordinal), value })
    }
    return answers
  })

/** The part of the store that is the gate. */
export const makeThreadAnswers = (db: Database): Pick<CheckpointStore, "asked" | "answer"> => ({
  asked: Effect.fn("CheckpointStore.asked")((thread, which) =>
    db.query(
      "read the questions of a thread",
      Effect.gen(function* () {
        if ("interrupt" in which) {
          const asked = yield* askedById(db, thread, which.interrupt)
          return asked === undefined ? [] : [asked]
        }
        const rows = yield* db.sql<RawAsked>`SELECT * FROM fermata_thread_interrupts
          WHERE thread_id = ${thread} AND ns = '' AND checkpoint_id = ${which.checkpoint} ORDER BY task_id, ordinal`
        const found: Array<AskedInterrupt> = []
        for (const row of rows) {
          const asked = yield* askedById(db, thread, row.interrupt_id)
          if (asked !== undefined) found.push(asked)
        }
        return found
      })
    )
  ),

  answer: Effect.fn("CheckpointStore.answer")((thread, answers) =>
    db.transaction("answer a thread", () =>
      Effect.gen(function* () {
        yield* lockThread(db, thread)
        const receipts: Array<AnswerReceipt> = []
        for (const answer of answers) receipts.push(yield* judge(db, thread, answer))
        // All of a delivery or nothing of it: what is refused leaves the others unanswered.
        if (receipts.some(({ verdict: { _tag } }) => _tag !== "Accepted" && _tag !== "Duplicate")) return receipts
        const at = db.unsafeNow()
        for (const [index, answer] of answers.entries()) {
          if (receipts[index]?.verdict._tag !== "Accepted") continue
          yield* insertAnswer(db, {
            thread_id: thread,
            interrupt_id: answer.interrupt,
            delivery: answer.delivery,
            value: answer.value,
            value_digest: answer.valueDigest,
            at
          })
          receipts[index] = { ...receipts[index], by: answer.delivery, at }
        }
        return receipts
      })
    )
  )
})

/** Gathers what the contract's decision asks for. A question is open on a branch that ends with it. */
const judge = (
  db: Database,
  thread: string,
  answer: ThreadAnswer
): Effect.Effect<AnswerReceipt, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const asked = yield* askedById(db, thread, answer.interrupt)
    const [used] = yield* db.sql<RawAnswer>`SELECT * FROM fermata_thread_answers
      WHERE thread_id = ${thread} AND delivery = ${answer.delivery}`
    if (used !== undefined) yield* verifiedAnswer(used)
    const root = asked?.path[0]
    const wentOn =
      root !== undefined &&
      (yield* db.sql`SELECT 1 FROM fermata_thread_checkpoints
        WHERE thread_id = ${thread} AND ns = ${root.ns} AND parent_id = ${root.checkpoint} LIMIT 1`).length > 0
    const verdict = judgeDelivery(
      {
        run: "known",
        over: false,
        interrupt:
          asked === undefined
            ? { _tag: "Unknown" }
            : asked.answer !== undefined
              ? { _tag: "Consumed", delivery: asked.answer.delivery, valueDigest: asked.answer.valueDigest }
              : wentOn
                ? { _tag: "Closed", reason: "the thread went on without an answer" }
                : { _tag: "Open" },
        deliveryUse: used === undefined ? undefined : { interrupt: used.interrupt_id, valueDigest: used.value_digest }
      },
      {
        interrupt: answer.interrupt,
        delivery: answer.delivery,
        value: { _tag: answer.invalid === undefined ? "Valid" : "Invalid", digest: answer.valueDigest }
      }
    )
    return { verdict, interrupt: answer.interrupt, by: asked?.answer?.delivery, at: asked?.answer?.at }
  })

const askedById = (
  db: Database,
  thread: string,
  interrupt: string
): Effect.Effect<AskedInterrupt | undefined, SqlError | CorruptCheckpoint> =>
  Effect.gen(function* () {
    const rows = yield* db.sql<RawAsked>`SELECT * FROM fermata_thread_interrupts
      WHERE thread_id = ${thread} AND interrupt_id = ${interrupt} ORDER BY length(ns)`
    for (const row of rows) yield* verifiedAsked(row)
    const innermost = rows.at(-1)
    if (innermost === undefined) return undefined
    const [answer] = yield* db.sql<RawAnswer>`SELECT * FROM fermata_thread_answers
      WHERE thread_id = ${thread} AND interrupt_id = ${interrupt}`
    if (answer !== undefined) yield* verifiedAnswer(answer)
    return {
      interrupt,
      ns: innermost.ns,
      checkpoint: innermost.checkpoint_id,
      task: innermost.task_id,
      ordinal: Number(innermost.ordinal),
      question: innermost.question,
      path: rows.map(({ checkpoint_id, ns, task_id }) => ({ ns, checkpoint: checkpoint_id, task: task_id })),
      answer:
        answer === undefined
          ? undefined
          : {
              delivery: answer.delivery,
              value: answer.value,
              valueDigest: answer.value_digest,
              at: Number(answer.at)
            }
    }
  })
