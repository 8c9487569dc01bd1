/**
 * Chunks: what runs say while they run (tokens, progress), for whoever listens. They decide nothing and are not part of
 * the history, so they are rows of their own: in one order for each stream of a branch, written under the owner's
 * epoch, and never changed.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { BranchStatus, Chunk, EmitRequest, Ledger } from "../Ledger.js"
import { CorruptJournal, Fenced } from "../LedgerError.js"
import { branchNotFound, lockBranch } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { chunkDigest } from "./Digest.js"
import { type Int, isOver, type RawBranch } from "./Rows.js"

/** A row of `fermata_chunks`. */
interface RawChunk {
  readonly branch_id: string
  readonly stream: string
  readonly pos: Int
  readonly step: string
  readonly execution: Int
  readonly n: Int
  readonly payload: string
  readonly at: Int
  readonly digest: string
}

export const makeChunks = (db: Database): Pick<Ledger, "emit" | "chunks"> => ({
  emit: Effect.fn("Ledger.emit")((request) =>
    Effect.suspend(() => {
      // If the reply to a commit is lost this runs again: it must find its own rows, not begin another execution.
      let execution = request.execution
      return db.transaction("emit chunks", (transaction) =>
        Effect.gen(function* () {
          const branch = yield* lockBranch(db, request.branch)
          if (branch === undefined || branch.epoch !== request.epoch || branch.owner === null) {
            return yield* new Fenced({ branch: request.branch, epoch: request.epoch })
          }
          execution ??= yield* nextExecution(db, request)
          const written = yield* writtenBefore(db, request, execution)
          const heads = yield* headsOf(db, request)
          const at = db.unsafeNow()
          for (const { n, payload, stream } of request.chunks) {
            if (written.has(n)) continue
            const pos = (heads.get(stream) ?? 0) + 1
            heads.set(stream, pos)
            const row = { branch: request.branch, stream, pos, step: request.step, execution, n, payload, at }
            yield* db.sql`
              INSERT INTO fermata_chunks (branch_id, stream, pos, step, execution, n, payload, at, digest)
              VALUES (${row.branch}, ${stream}, ${pos}, ${row.step}, ${execution}, ${n}, ${payload}, ${at}, ${chunkDigest(row)})`
          }
          transaction.announce({ _tag: "Emitted", branch: request.branch })
          return execution
        })
      )
    })
  ),

  chunks: Effect.fn("Ledger.chunks")(({ after, branch, limit, stream }) =>
    db.query(
      "read chunks",
      Effect.gen(function* () {
        // One statement, so that a branch that is over is not thought to have said less than it did.
        const rows = yield* db.sql<Pick<RawBranch, "status"> & (RawChunk | { readonly pos: null })>`
          SELECT b.status, c.* FROM fermata_branches b
          LEFT JOIN fermata_chunks c ON c.branch_id = b.branch_id AND c.stream = ${stream} AND c.pos > ${after}
          WHERE b.branch_id = ${branch} ORDER BY c.pos LIMIT ${limit}`
        const [first] = rows
        if (first === undefined) return yield* branchNotFound(db, branch)
        const chunks: Array<Chunk> = []
        let pos = after
        for (const row of rows) {
          if (row.pos === null) continue
          const chunk = yield* verified(row)
          if (chunk.pos !== ++pos) return yield* missing(branch, pos)
          chunks.push(chunk)
        }
        return { chunks, over: isOver(first.status as BranchStatus) }
      })
    )
  )
})

/** Executions of a step are counted by the chunks that they left: one that said nothing confuses nobody. */
const nextExecution = (db: Database, { branch, step }: EmitRequest): Effect.Effect<number, SqlError> =>
  Effect.map(
    db.sql<{ readonly last: Int | null }>`
      SELECT MAX(execution) AS last FROM fermata_chunks WHERE branch_id = ${branch} AND step = ${step}`,
    ([row]) => Number(row?.last ?? 0) + 1
  )

const writtenBefore = (
  db: Database,
  { branch, chunks, step }: EmitRequest,
  execution: number
): Effect.Effect<ReadonlySet<number>, SqlError> =>
  Effect.map(
    db.sql<Pick<RawChunk, "n">>`
      SELECT n FROM fermata_chunks
      WHERE branch_id = ${branch} AND step = ${step} AND execution = ${execution} AND n >= ${chunks[0]?.n ?? 0}`,
    (rows) => new Set(rows.map(({ n }) => Number(n)))
  )

/** The last position of every stream that is written to; the branch's row is locked, so nobody else takes the next. */
const headsOf = (db: Database, { branch, chunks }: EmitRequest): Effect.Effect<Map<string, number>, SqlError> =>
  Effect.gen(function* () {
    const heads = new Map<string, number>()
    for (const stream of new Set(chunks.map((chunk) => chunk.stream))) {
      const [row] = yield* db.sql<{ readonly last: Int | null }>`
        SELECT MAX(pos) AS last FROM fermata_chunks WHERE branch_id = ${branch} AND stream = ${stream}`
      heads.set(stream, Number(row?.last ?? 0))
    }
    return heads
  })

const verified = (row: RawChunk): Effect.Effect<Chunk, CorruptJournal> => {
  const chunk = {
    stream: row.stream,
    pos: Number(row.pos),
    step: row.step,
    execution: Number(row.execution),
    n: Number(row.n),
    payload: row.payload,
    at: Number(row.at)
  }
  return chunkDigest({ branch: row.branch_id, ...chunk }) === row.digest
    ? Effect.succeed(chunk)
    : Effect.fail(
        new CorruptJournal({
          table: "chunks",
          id: row.branch_id,
          seq: chunk.pos,
          detail: `the digest of a chunk of ${row.stream} does not match its columns`
        })
      )
}

const missing = (branch: string, pos: number): CorruptJournal =>
  new CorruptJournal({ table: "chunks", id: branch, seq: pos, detail: "the chunk is missing" })

const auditPage = 1000

/** Verifies every chunk of a branch; the problems that it finds. */
export const auditChunks = (db: Database, branch: string): Effect.Effect<ReadonlyArray<CorruptJournal>, SqlError> =>
  Effect.gen(function* () {
    const problems: Array<CorruptJournal> = []
    let stream = ""
    let pos = 0
    for (;;) {
      const rows = yield* db.sql<RawChunk>`
        SELECT * FROM fermata_chunks WHERE branch_id = ${branch} AND (stream, pos) > (${stream}, ${pos})
        ORDER BY stream, pos LIMIT ${auditPage}`
      for (const row of rows) {
        if (row.stream !== stream) pos = 0
        if (Number(row.pos) !== pos + 1) problems.push(missing(branch, pos + 1))
        const chunk = yield* Effect.either(verified(row))
        if (chunk._tag === "Left") problems.push(chunk.left)
        stream = row.stream
        pos = Number(row.pos)
      }
      if (rows.length < auditPage) return problems
    }
  })
