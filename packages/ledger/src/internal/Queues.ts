/**
 * Queues: whose turn it is, and their limits over all workers. Who has a slot is read off the branches' own rows, so
 * that no crash can leak one; what a claim decides, it decides under the lock of the queue's row.
 */
import type { SqlError } from "@effect/sql/SqlError"
import {
  admitFromQueue,
  freeSlots,
  isKeyFull,
  nextToken,
  type QueueFacts,
  type QueueLimits,
  rankInQueue
} from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger, QueuePlace, QueueSetup, QueueState } from "../Ledger.js"
import type { Database } from "./Database.js"
import { claimedAs, type Int, type RawBranch } from "./Rows.js"

/** A row of `fermata_queues`. */
interface RawQueue {
  readonly queue: string
  readonly concurrency: Int | null
  readonly key_concurrency: Int | null
  readonly rate_limit: Int | null
  readonly rate_per: Int | null
  readonly hold: QueueLimits["hold"]
  readonly paused: Int
  readonly full_at: Int
}

/** The operations of this file. */
export interface Queues extends Pick<Ledger, "setQueue" | "pauseQueue" | "queues"> {
  /** When one of the queue's branches of these definitions may be claimed; `undefined`: not before something is announced. */
  readonly nextTurn: (queue: string, definitions: ReadonlyArray<string>) => Effect.Effect<number | undefined, SqlError>
  /** Within a transaction: chooses up to `limit` branches whose turn it is, and takes each by `occupy`. */
  readonly take: (
    queue: string,
    definitions: ReadonlyArray<string>,
    limit: number,
    occupy: (branch: string) => Effect.Effect<ReadonlyArray<RawBranch>, SqlError>
  ) => Effect.Effect<ReadonlyArray<RawBranch>, SqlError>
  /** Within the transaction that starts a run: where it stands among those of its priority. */
  readonly rank: (place: QueuePlace) => Effect.Effect<number, SqlError>
}

const withoutLimits = (name: string): QueueSetup => ({
  name,
  concurrency: undefined,
  keyConcurrency: undefined,
  rate: undefined,
  hold: "running",
  paused: false
})

const setupOf = (row: RawQueue): QueueSetup => {
  const optional = (value: Int | null) => (value === null ? undefined : Number(value))
  const limit = optional(row.rate_limit)
  const per = optional(row.rate_per)
  return {
    name: row.queue,
    concurrency: optional(row.concurrency),
    keyConcurrency: optional(row.key_concurrency),
    rate: limit === undefined || per === undefined ? undefined : { limit, per },
    hold: row.hold,
    paused: Number(row.paused) === 1
  }
}

/** Makes them over a database. */
export const makeQueues = (db: Database): Queues => {
  const { sql } = db

  const read = (queue: string, lock: boolean) =>
    Effect.map(
      sql<RawQueue>`SELECT * FROM fermata_queues WHERE queue = ${queue} ${lock ? db.forUpdate : sql.literal("")}`,
      ([row]) => ({
        setup: row === undefined ? withoutLimits(queue) : setupOf(row),
        fullAt: Number(row?.full_at ?? 0)
      })
    )

  /** Slots that are taken, by key; nothing is counted for a queue without such limits. */
  const heldSlots = ({ concurrency, hold, keyConcurrency, name }: QueueSetup) => {
    if (concurrency === undefined && keyConcurrency === undefined) {
      return Effect.succeed<ReadonlyMap<string, number>>(new Map())
    }
    const holds =
      hold === "running"
        ? sql`owner IS NOT NULL`
        : sql`epoch > 0 AND status IN ('ready', 'running', 'waiting', 'stuck')`
    return Effect.map(
      sql<{ readonly queue_key: string; readonly held: Int }>`SELECT queue_key, COUNT(*) AS held FROM fermata_branches
        WHERE queue = ${name} AND queue IS NOT NULL AND ${holds} GROUP BY queue_key`,
      (rows): ReadonlyMap<string, number> => new Map(rows.map((row) => [row.queue_key, Number(row.held)]))
    )
  }

  const inLine = (queue: string, definitions: ReadonlyArray<string>) =>
    sql`queue = ${queue} AND queue IS NOT NULL AND owner IS NULL AND status = 'ready' AND ${sql.in(
      "definition",
      definitions.map((definition) => claimedAs(definition, queue))
    )}`

  const inTurn = sql.literal("ORDER BY priority DESC, queue_rank, ready_at")

  /** Those whom the slots admit, whatever the rate. */
  const hasSlot = (setup: QueueSetup, facts: QueueFacts) => {
    const full = [...facts.held.keys()].filter((key) => isKeyFull(setup, facts.held, key))
    const mayBegin =
      freeSlots(setup, facts) <= 0
        ? sql.literal("1 = 0")
        : full.length === 0
          ? sql.literal("1 = 1")
          : sql`NOT (${sql.in("queue_key", full)})`
    return setup.hold === "run" ? sql`(epoch > 0 OR ${mayBegin})` : mayBegin
  }

  const nextTurn: Queues["nextTurn"] = (queue, definitions) =>
    Effect.gen(function* () {
      if (definitions.length === 0) return undefined
      const { fullAt, setup } = yield* read(queue, false)
      if (setup.paused) return undefined
      const now = db.unsafeNow()
      const facts: QueueFacts = { now, held: yield* heldSlots(setup), fullAt }
      // LV: whoever lets go of a slot announces it.
      if (setup.hold === "running" && freeSlots(setup, facts) <= 0) return undefined
      const times: Array<number> = []
      const waits = sql`${inLine(queue, definitions)} AND ${hasSlot(setup, facts)}`
      const [first] = yield* sql<{
        readonly epoch: Int
      }>`SELECT epoch FROM fermata_branches WHERE ${waits} ${inTurn} LIMIT 1`
      if (first !== undefined) {
        const token = nextToken(setup, facts)
        if (token <= now || Number(first.epoch) > 0) return now
        // One that has begun needs no token.
        const begun = yield* sql`SELECT 1 AS one FROM fermata_branches WHERE ${waits} AND epoch > 0 LIMIT 1`
        if (begun.length > 0) return now
        times.push(token)
      }
      const [later] = yield* sql<{ readonly next: Int | null }>`SELECT MIN(ready_at) AS next FROM fermata_branches
        WHERE queue = ${queue} AND queue IS NOT NULL AND owner IS NULL AND status IN ('waiting', 'stuck')
          AND ready_at IS NOT NULL AND ${sql.in(
            "definition",
            definitions.map((definition) => claimedAs(definition, queue))
          )}`
      if (later !== undefined && later.next !== null) times.push(Number(later.next))
      return times.length === 0 ? undefined : Math.min(...times)
    })

  const take: Queues["take"] = (queue, definitions, limit, occupy) =>
    Effect.gen(function* () {
      // The lock first: what is counted then is true until the commit.
      const { fullAt, setup } = yield* read(queue, true)
      if (setup.paused || definitions.length === 0) return []
      const now = db.unsafeNow()
      // What waited for a time gets in line once the time has come.
      yield* sql`UPDATE fermata_branches SET status = 'ready' WHERE branch_id IN (
        SELECT branch_id FROM fermata_branches WHERE queue = ${queue} AND queue IS NOT NULL AND owner IS NULL
          AND status IN ('waiting', 'stuck') AND ready_at IS NOT NULL AND ready_at <= ${now}
        ORDER BY ready_at LIMIT ${Math.max(limit, mostPromoted)} ${db.forUpdateSkipLocked})`
      let facts: QueueFacts = { now, held: yield* heldSlots(setup), fullAt }
      const taken: Array<RawBranch> = []
      const passedOver: Array<string> = []
      while (taken.length < limit) {
        const others = passedOver.length === 0 ? sql.literal("1 = 1") : sql`NOT (${sql.in("branch_id", passedOver)})`
        const noToken = nextToken(setup, facts) > now
        const page = yield* sql<Pick<RawBranch, "branch_id" | "queue_key" | "epoch">>`
          SELECT branch_id, queue_key, epoch FROM fermata_branches
          WHERE ${inLine(queue, definitions)} AND ${hasSlot(setup, facts)} AND ${others}
            AND ${sql.literal(noToken ? "epoch > 0" : "1 = 1")}
          ${inTurn} LIMIT ${limit - taken.length} ${db.forUpdateSkipLocked}`
        const candidates = page.map(({ epoch, queue_key }) => ({ key: queue_key ?? "", begun: Number(epoch) > 0 }))
        const verdict = admitFromQueue(setup, facts, candidates)
        const held = new Map(facts.held)
        for (const index of verdict.admitted) {
          const candidate = page[index]
          if (candidate === undefined) continue
          const rows = yield* occupy(candidate.branch_id)
          taken.push(...rows)
          passedOver.push(candidate.branch_id)
          const key = candidate.queue_key ?? ""
          if (!(setup.hold === "run" && Number(candidate.epoch) > 0)) held.set(key, (held.get(key) ?? 0) + 1)
        }
        facts = { now, held, fullAt: verdict.fullAt }
        // The first of a page is always admitted, so that this ends.
        if (page.length === 0 || verdict.admitted.length === 0) break
        if (page.length === verdict.admitted.length && page.length < limit - (taken.length - page.length)) break
      }
      if (facts.fullAt !== fullAt) {
        yield* sql`UPDATE fermata_queues SET full_at = ${facts.fullAt} WHERE queue = ${queue}`
      }
      return taken
    })

  const rank: Queues["rank"] = ({ key, name, priority }) =>
    Effect.gen(function* () {
      const [lowest] = yield* sql<{ readonly rank: Int | null }>`SELECT MIN(queue_rank) AS rank FROM fermata_branches
        WHERE queue = ${name} AND queue IS NOT NULL AND owner IS NULL AND status = 'ready' AND priority = ${priority}`
      const [last] = yield* sql<{ readonly rank: Int | null }>`SELECT MAX(queue_rank) AS rank FROM fermata_branches
        WHERE queue = ${name} AND queue IS NOT NULL AND epoch = 0 AND queue_key = ${key} AND priority = ${priority}`
      const number = (row: { readonly rank: Int | null } | undefined) =>
        row === undefined || row.rank === null ? undefined : Number(row.rank)
      return rankInQueue({ lowest: number(lowest), lastOfKey: number(last) })
    })

  const store = ({ concurrency, hold, keyConcurrency, name, paused, rate }: QueueSetup) =>
    sql`INSERT INTO fermata_queues (queue, concurrency, key_concurrency, rate_limit, rate_per, hold, paused, full_at)
      VALUES (${name}, ${concurrency ?? null}, ${keyConcurrency ?? null}, ${rate?.limit ?? null}, ${rate?.per ?? null},
        ${hold}, ${paused ? 1 : 0}, 0)
      ON CONFLICT (queue) DO UPDATE SET concurrency = EXCLUDED.concurrency, key_concurrency = EXCLUDED.key_concurrency,
        rate_limit = EXCLUDED.rate_limit, rate_per = EXCLUDED.rate_per, hold = EXCLUDED.hold`

  const setQueue: Queues["setQueue"] = Effect.fn("Ledger.setQueue")((setup) =>
    db.transaction("set up a queue", (transaction) =>
      Effect.gen(function* () {
        yield* store({ ...setup, paused: false })
        transaction.announce({ _tag: "Ready" })
      })
    )
  )

  const pauseQueue: Queues["pauseQueue"] = Effect.fn("Ledger.pauseQueue")((name, paused) =>
    db.transaction("pause a queue", (transaction) =>
      Effect.gen(function* () {
        yield* store({ ...withoutLimits(name), ...(yield* read(name, true)).setup })
        yield* sql`UPDATE fermata_queues SET paused = ${paused ? 1 : 0} WHERE queue = ${name}`
        transaction.announce({ _tag: "Ready" })
      })
    )
  )

  const queues: Queues["queues"] = db.query(
    "look at queues",
    Effect.gen(function* () {
      const setups = new Map(
        (yield* sql<RawQueue>`SELECT * FROM fermata_queues`).map((row) => [row.queue, setupOf(row)])
      )
      const counts = yield* sql<{
        readonly queue: string
        readonly status: string
        readonly count: Int
        readonly oldest: Int | null
      }>`SELECT queue, status, COUNT(*) AS count, MIN(ready_at) AS oldest FROM fermata_branches
        WHERE queue IS NOT NULL AND status IN ('ready', 'running', 'waiting', 'stuck') GROUP BY queue, status`
      const names = [...new Set([...setups.keys(), ...counts.map(({ queue }) => queue)])].sort()
      return names.map((name): QueueState => {
        const own = counts.filter(({ queue }) => queue === name)
        const count = (...statuses: ReadonlyArray<string>) =>
          own.reduce((sum, row) => (statuses.includes(row.status) ? sum + Number(row.count) : sum), 0)
        const oldest = own.find(({ status }) => status === "ready")?.oldest ?? null
        return {
          ...(setups.get(name) ?? withoutLimits(name)),
          ready: count("ready"),
          running: count("running"),
          waiting: count("waiting", "stuck"),
          oldestReady: oldest === null ? null : Number(oldest)
        }
      })
    })
  )

  return { nextTurn, take, rank, setQueue, pauseQueue, queues }
}

/** Branches whose time has come that one claim puts in line. */
const mostPromoted = 200
