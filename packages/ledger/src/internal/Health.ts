/** How a database and its workers stand, for operators and for monitoring. Reads only. */
import { Effect, Option, Schema } from "effect"
import type { BranchStatus, HealthFacts, Ledger, WorkerFacts } from "../Ledger.js"
import type { Database } from "./Database.js"
import { storedVersion } from "./Migrate.js"
import { newestMigration } from "./migrations.js"
import { branchOfRow, type Int, type RawBranch } from "./Rows.js"

interface RawWorkerFacts {
  readonly worker_id: string
  readonly state: WorkerFacts["state"]
  readonly pid: Int
  readonly lease_until: Int
  readonly serves: string | null
  readonly branches: Int
}

/** Rows of a list that an operator reads. */
const most = 100

const decodeServes = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Schema.String)))

const none: { [S in BranchStatus]: number } = {
  ready: 0,
  running: 0,
  waiting: 0,
  stuck: 0,
  completed: 0,
  failed: 0,
  cancelled: 0
}

/** Makes the operation over a database. */
export const makeHealth = (db: Database): Pick<Ledger, "health"> => {
  const { sql } = db

  /** The database's time was somewhere between asking and hearing it. */
  const skew = Effect.gen(function* () {
    if (db.dialect === "sqlite") return 0
    const before = Date.now()
    const [row] = yield* sql<{ readonly now: number }>`
      SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`
    return row === undefined ? 0 : Math.round((before + Date.now()) / 2 - Number(row.now))
  })

  const gather: Effect.Effect<HealthFacts, Effect.Effect.Error<typeof skew>> = Effect.gen(function* () {
    yield* Effect.ignore(db.syncTime)
    const stored = yield* storedVersion(db)
    const clock = yield* skew
    const now = db.unsafeNow()
    const counts = yield* sql<{ readonly status: BranchStatus; readonly n: Int }>`
      SELECT status, COUNT(*) AS n FROM fermata_branches GROUP BY status`
    const queues = yield* sql<{ readonly definition: string; readonly depth: Int; readonly since: Int }>`
      SELECT definition, COUNT(*) AS depth, MIN(ready_at) AS since FROM fermata_branches
      WHERE owner IS NULL AND ready_at IS NOT NULL AND ready_at <= ${now} GROUP BY definition ORDER BY definition`
    const workers = yield* sql<RawWorkerFacts>`
      SELECT worker_id, state, pid, lease_until, serves,
        (SELECT COUNT(*) FROM fermata_branches WHERE owner = worker_id) AS branches
      FROM fermata_workers ORDER BY lease_until DESC, worker_id LIMIT 1000`
    const stuck = yield* sql<RawBranch>`
      SELECT * FROM fermata_branches WHERE status = 'stuck' ORDER BY created_at, branch_id LIMIT ${most}`
    const orphaned = yield* sql<RawBranch>`
      SELECT * FROM fermata_branches WHERE owner IS NOT NULL
        AND owner NOT IN (SELECT worker_id FROM fermata_workers WHERE state = 'alive' AND lease_until >= ${now})
      ORDER BY created_at, branch_id LIMIT ${most}`
    const branches = { ...none }
    for (const { n, status } of counts) branches[status] = Number(n)
    return {
      dialect: db.dialect,
      database: db.name,
      schema: { stored, known: newestMigration },
      now,
      skew: clock,
      branches,
      queues: queues.map(({ definition, depth, since }) => ({
        definition,
        depth: Number(depth),
        since: Number(since)
      })),
      workers: workers.map((row) => ({
        worker: row.worker_id,
        state: row.state,
        pid: Number(row.pid),
        leaseUntil: Number(row.lease_until),
        branches: Number(row.branches),
        definitions: row.serves === null ? null : Option.getOrNull(decodeServes(row.serves))
      })),
      stuck: stuck.map(branchOfRow),
      orphaned: orphaned.map(branchOfRow)
    }
  })

  return { health: db.query("look at the database's health", gather) }
}
