/** Taking branches that want a worker, and saying when the next one will. Only due rows are touched (LV, cost). */
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import { Array as Arr, Effect } from "effect"
import type { BranchInfo, Claim, Ledger } from "../Ledger.js"
import { CorruptJournal } from "../LedgerError.js"
import { verifyRun } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { readLineage } from "./History.js"
import type { Leases } from "./Leases.js"
import type { Queues } from "./Queues.js"
import { branchOfRow, claimedAs, entryOfRow, type Int, type RawBranch, type RawRun, runOfRow } from "./Rows.js"

/** The operations of this file. */
export interface Claims extends Pick<Ledger, "claim" | "disown" | "nextWake" | "ownedInboxHeads" | "unstick"> {
  /** A branch is held by its owner here, though it was not claimed: it must not be handed out as if its claim was lost. */
  readonly hold: (branch: string, epoch: number) => void
  /** A claim's branch is not held any more: it may be handed out to its owner again. */
  readonly forget: (branch: string, epoch: number) => void
}

/** What a claim says of a branch besides its row: its run, and of the entry at its head, if that is its own. */
interface Background extends RawRun {
  readonly branch_id: string
  readonly head_seq: Int | null
  readonly head_kind: string
  readonly head_key: string
  /** Of a first entry only: others may be large. */
  readonly first_payload: string
  readonly head_epoch: Int
  readonly head_at: Int
  readonly head_digest: string
}

/** SQLite unites a limited number of queries: more definitions than this are looked at in several. */
const mostUnited = 200

/** What a claim takes from: the branches that stand in no queue, or a queue. */
type Source =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Unqueued"; readonly seen: ReadonlyArray<string> }
  | { readonly _tag: "Queue"; readonly name: string }

const nothing: Source = { _tag: "Nothing" }

/** Makes them over a database, its leases and its queues. */
export const makeClaims = (db: Database, leases: Leases, queues: Pick<Queues, "nextTurn" | "take">): Claims => {
  const { sql } = db
  /** Claims so far: what has work is served in turn. */
  let turns = 0
  /** What was handed out and is held, by branch: to find what a claim took whose reply was lost. */
  const handed = new Map<string, number>()
  /** Workers whose last claim's reply did not come. */
  const uncertain = new Set<string>()

  /** Branches that are due, oldest first: each definition's oldest, then the oldest of all, without sorting the backlog. */
  const dueBranches = (definitions: ReadonlyArray<string>, limit: number) =>
    Effect.gen(function* () {
      const now = db.unsafeNow()
      // SQLite plans a statement anew at each run if a limit is a bare parameter: several times what running it costs.
      const most = sql`(${limit} + 0)`
      const due: Array<{ readonly branch_id: string; readonly ready_at: Int }> = []
      for (const some of Arr.chunksOf(definitions, mostUnited)) {
        const oldest = (definition: string) =>
          sql`SELECT * FROM (SELECT branch_id, ready_at FROM fermata_branches WHERE definition = ${definition}
            AND owner IS NULL AND ready_at IS NOT NULL AND ready_at <= ${now} ORDER BY ready_at LIMIT ${most}) AS due`
        due.push(...(yield* sql<(typeof due)[number]>`${sql.join(" UNION ALL ", false)(some.map(oldest))}`))
      }
      return due
        .sort((a, b) => Number(a.ready_at) - Number(b.ready_at))
        .slice(0, limit)
        .map((row) => row.branch_id)
    })

  /** PostgreSQL: the branches are chosen again where they are taken, and those that another worker is taking are left. */
  const isCandidate = (definitions: ReadonlyArray<string>, limit: number, now: number) =>
    // As an array it is computed once: a join could run it again, and lock and take more than the limit.
    sql`branch_id = ANY (ARRAY (SELECT due.branch_id
      FROM (VALUES ${sql.csv(definitions.map((definition) => sql`(${definition}::text)`))}) AS wanted (definition)
      CROSS JOIN LATERAL (SELECT branch_id, ready_at FROM fermata_branches AS branch
        WHERE branch.definition = wanted.definition AND owner IS NULL AND ready_at IS NOT NULL AND ready_at <= ${now}
        ORDER BY ready_at LIMIT ${limit} ${db.forUpdateSkipLocked}) AS due
      ORDER BY due.ready_at LIMIT ${limit}))`

  const occupy = (worker: string, which: Fragment) => sql<RawBranch>`UPDATE fermata_branches
    SET owner = ${worker}, status = 'running', epoch = epoch + 1, ready_at = NULL, problem = NULL
    WHERE ${which} RETURNING *`

  /** Takes what is due; `seen` was, a moment ago. */
  const occupyDue = ({ definitions, limit, worker }: Parameters<Ledger["claim"]>[0], seen: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const now = db.unsafeNow()
      if (db.dialect === "pg") return yield* occupy(worker, isCandidate(definitions, limit, now))
      const rows: Array<RawBranch> = []
      const occupyAll = (branches: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          for (const branch of branches) {
            const free = sql`branch_id = ${branch} AND owner IS NULL AND ready_at IS NOT NULL AND ready_at <= ${now}`
            rows.push(...(yield* occupy(worker, free)))
          }
        })
      yield* occupyAll(seen)
      // Another process was quicker with some; that there is nothing else cannot be concluded from it (LV).
      if (rows.length < seen.length) yield* occupyAll(yield* dueBranches(definitions, limit - rows.length))
      return rows
    })

  const take = (
    transaction: Transaction,
    options: Parameters<Ledger["claim"]>[0],
    source: Source,
    afterLostReply: boolean
  ) =>
    Effect.gen(function* () {
      const { definitions, limit, worker } = options
      const rows =
        source._tag === "Nothing"
          ? []
          : source._tag === "Unqueued"
            ? yield* occupyDue(options, source.seen)
            : yield* queues.take(source.name, definitions, limit, (branch) =>
                occupy(worker, sql`branch_id = ${branch} AND owner IS NULL AND status = 'ready'`)
              )
      const lost = afterLostReply
        ? (yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE owner = ${options.worker}`).filter(
            (row) => handed.get(row.branch_id) !== Number(row.epoch) && !rows.some((r) => r.branch_id === row.branch_id)
          )
        : []
      const branches = [...lost, ...rows].map(branchOfRow)
      if (branches.length === 0) return []
      const backgrounds = yield* backgroundsOf(branches)
      const claims: Array<Claim> = []
      for (const branch of branches) {
        const claim = yield* Effect.catchTag(
          claimOf(branch, backgrounds.get(branch.branch)),
          "CorruptJournal",
          (damage) => Effect.as(setAside(transaction, branch, damage), undefined)
        )
        if (claim !== undefined) claims.push(claim)
      }
      return claims
    })

  /** The runs of branches, and the entries at their heads, by branch. */
  const backgroundsOf = (branches: ReadonlyArray<BranchInfo>) =>
    Effect.map(
      sql<Background>`SELECT run.*, branch.branch_id, entry.seq AS head_seq, entry.kind AS head_kind,
          entry.key AS head_key, CASE WHEN entry.seq = 1 THEN entry.payload END AS first_payload,
          entry.epoch AS head_epoch, entry.at AS head_at, entry.digest AS head_digest
        FROM fermata_branches AS branch
        JOIN fermata_runs AS run ON run.run_id = branch.run_id
        LEFT JOIN fermata_journal AS entry ON entry.branch_id = branch.branch_id AND entry.seq = branch.head
        WHERE ${sql.in(
          "branch.branch_id",
          branches.map(({ branch }) => branch)
        )}`,
      (rows) => new Map(rows.map((row) => [row.branch_id, row]))
    )

  const claimOf = (
    branch: BranchInfo,
    background: Background | undefined
  ): Effect.Effect<Claim, SqlError | CorruptJournal> =>
    Effect.gen(function* () {
      if (background === undefined) {
        // Held without a run it would be given back and claimed again without end (LV).
        return yield* new CorruptJournal({ table: "runs", id: branch.run, seq: null, detail: "the row is missing" })
      }
      const run = yield* verifyRun(runOfRow(background))
      if (background.head_seq === null) return { run, branch, headAt: yield* inheritedTime(branch), first: undefined }
      const headAt = Number(background.head_at)
      if (Number(background.head_seq) !== 1) return { run, branch, headAt, first: undefined }
      const first = entryOfRow({
        branch_id: background.branch_id,
        seq: background.head_seq,
        kind: background.head_kind,
        key: background.head_key,
        payload: background.first_payload,
        epoch: background.head_epoch,
        at: background.head_at,
        digest: background.head_digest
      })
      return { run, branch, headAt, first }
    })

  /** A fork without entries of its own stands on an ancestor's. */
  const inheritedTime = (branch: BranchInfo): Effect.Effect<number, SqlError | CorruptJournal> =>
    Effect.gen(function* () {
      for (const { branch: ancestor, from, to } of yield* readLineage(db, branch)) {
        if (from > branch.head || to < branch.head) continue
        const [row] = yield* sql<{ readonly at: Int }>`SELECT at FROM fermata_journal
          WHERE branch_id = ${ancestor.branch} AND seq = ${branch.head}`
        if (row !== undefined) return Number(row.at)
      }
      // The history does not verify then, and says so when it is read.
      return branch.createdAt
    })

  /** One damaged run must not keep a worker from all others: its branch waits for an operator. */
  const setAside = (transaction: Transaction, branch: BranchInfo, damage: CorruptJournal) =>
    Effect.gen(function* () {
      const problem = JSON.stringify([{ _tag: "CorruptJournal", table: damage.table, message: damage.message }])
      yield* sql`UPDATE fermata_branches SET owner = NULL, status = 'stuck', ready_at = NULL, problem = ${problem}
        WHERE branch_id = ${branch.branch}`
      transaction.announce({ _tag: "Changed", branch: branch.branch })
      if (branch.queue !== null) transaction.announce({ _tag: "Ready" })
    })

  const claim: Claims["claim"] = Effect.fn("Ledger.claim")((options) =>
    Effect.gen(function* () {
      if (options.freeLost ?? true) yield* leases.freeForeign(options.worker)
      if (options.definitions.length === 0 || options.limit < 1) return []
      // An idle look takes no write lock.
      const { definitions, limit, worker } = options
      const only = options.only ?? false
      const seen = only
        ? []
        : yield* db.query("look for work", dueBranches(definitions, db.dialect === "pg" ? 1 : limit))
      const sources: Array<Source> = seen.length === 0 ? [] : [{ _tag: "Unqueued", seen }]
      for (const name of options.queues ?? []) {
        const turn = yield* db.query("look at a queue", queues.nextTurn(name, definitions))
        if (turn !== undefined && turn <= db.unsafeNow()) sources.push({ _tag: "Queue", name })
      }
      // One source a transaction: it locks one queue, and none keeps the others from being served.
      const source = sources[turns++ % Math.max(1, sources.length)]
      if (source === undefined && !uncertain.has(worker)) return []
      const claims = yield* db.transaction("claim branches", (transaction) => {
        const claimed = take(transaction, options, source ?? nothing, uncertain.has(worker))
        // Until the reply is there: if this try's is lost, the next one looks for what it took (LV).
        uncertain.add(worker)
        return claimed
      })
      uncertain.delete(worker)
      for (const { branch } of claims) handed.set(branch.branch, branch.epoch)
      return claims
    })
  )

  const nextWake: Claims["nextWake"] = (definitions, served = [], only = false) =>
    db.query(
      "look for the next wake-up",
      Effect.gen(function* () {
        const times: Array<number> = []
        for (const queue of served) {
          const turn = yield* queues.nextTurn(queue, definitions)
          if (turn !== undefined) times.push(turn)
        }
        if (only) return times.length === 0 ? undefined : Math.min(...times)
        for (const some of Arr.chunksOf(definitions, mostUnited)) {
          const earliest = (definition: string) =>
            sql`SELECT MIN(ready_at) AS next FROM fermata_branches
              WHERE definition = ${definition} AND owner IS NULL AND ready_at IS NOT NULL`
          const rows = yield* sql<{ readonly next: Int | null }>`${sql.join(" UNION ALL ", false)(some.map(earliest))}`
          for (const { next } of rows) if (next !== null) times.push(Number(next))
        }
        return times.length === 0 ? undefined : Math.min(...times)
      })
    )

  const ownedInboxHeads: Claims["ownedInboxHeads"] = Effect.fn("Ledger.ownedInboxHeads")((worker) =>
    db.query(
      "read owned branches",
      Effect.map(sql<RawBranch>`SELECT * FROM fermata_branches WHERE owner = ${worker} ORDER BY branch_id`, (rows) =>
        rows.map(branchOfRow).map(({ branch, inboxHead, epoch }) => ({ branch, inboxHead, epoch }))
      )
    )
  )

  const unstick: Claims["unstick"] = Effect.fn("Ledger.unstick")((which) =>
    db.transaction("make stuck branches ready", (transaction) =>
      Effect.gen(function* () {
        if ("definitions" in which && which.definitions.length === 0) return 0
        const chosen =
          "branch" in which
            ? sql`branch_id = ${which.branch}`
            : sql.in(
                "definition",
                which.definitions.flatMap((definition) => [
                  ...(which.only === true ? [] : [definition]),
                  ...(which.queues ?? []).map((queue) => claimedAs(definition, queue))
                ])
              )
        const rows = yield* sql`UPDATE fermata_branches
          SET status = 'ready', ready_at = ${db.unsafeNow()}, problem = NULL
          WHERE status = 'stuck' AND ${chosen} RETURNING branch_id`
        if (rows.length > 0) transaction.announce({ _tag: "Ready" })
        return rows.length
      })
    )
  )

  const disown: Claims["disown"] = Effect.fn("Ledger.disown")((branch, epoch) =>
    db.transaction("give a branch back", (transaction) =>
      Effect.gen(function* () {
        const rows = yield* sql`UPDATE fermata_branches
          SET owner = NULL, status = 'ready', ready_at = ${db.unsafeNow()}, epoch = epoch + 1
          WHERE branch_id = ${branch} AND epoch = ${epoch} AND owner IS NOT NULL RETURNING branch_id`
        if (rows.length > 0) transaction.announce({ _tag: "Ready" })
        handed.delete(branch)
      })
    )
  )

  const hold: Claims["hold"] = (branch, epoch) => void handed.set(branch, epoch)

  const forget: Claims["forget"] = (branch, epoch) => {
    if (handed.get(branch) === epoch) handed.delete(branch)
  }

  return { claim, disown, nextWake, ownedInboxHeads, unstick, hold, forget }
}
