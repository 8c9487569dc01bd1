/** Builds the ledger over a `SqlClient`, whichever of the two databases it is. */
import { type Connection } from "@effect/sql/SqlConnection"
import { SqlClient } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { type Clock, Effect, Layer, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { AppendBuffer } from "./internal/AppendBuffer.js"
import { makeAwaited } from "./internal/Awaited.js"
import { makeCheckpoints } from "./internal/Checkpoints.js"
import { makeChunks } from "./internal/Chunks.js"
import { makeClaims } from "./internal/Claims.js"
import type { Commit } from "./internal/Commit.js"
import { type Database, makeDatabase } from "./internal/Database.js"
import { makeFinding } from "./internal/Finding.js"
import { makeForks } from "./internal/Forks.js"
import { makeHealth } from "./internal/Health.js"
import { Hub } from "./internal/Hub.js"
import { makeInbox } from "./internal/Inbox.js"
import { makeItems } from "./internal/Items.js"
import { JournalWriter } from "./internal/JournalWriter.js"
import { makeLeases } from "./internal/Leases.js"
import { migrate, requireNewest } from "./internal/Migrate.js"
import { makeMessages } from "./internal/Messages.js"
import { makePgCommit } from "./internal/PgCommit.js"
import { makePurge } from "./internal/Purge.js"
import { makeQueues } from "./internal/Queues.js"
import { makeRuns } from "./internal/Runs.js"
import { makeSchedules } from "./internal/Schedules.js"
import { makeSqliteCommit } from "./internal/SqliteCommit.js"
import { makeSettlements } from "./internal/Settlements.js"
import { makeVerify } from "./internal/Verify.js"
import { sealedLedger } from "./internal/SealedLedger.js"
import { StartTakers } from "./internal/StartTakers.js"
import { makeThreadAnswers } from "./internal/ThreadAnswers.js"
import { makeThreadEffects } from "./internal/ThreadEffects.js"
import { makeThreadForks } from "./internal/ThreadForks.js"
import { makeThreadHolds } from "./internal/ThreadHolds.js"
import { makeTransfer } from "./internal/Transfer.js"
import { listen } from "./internal/Wakeups.js"
import { Ledger } from "./Ledger.js"
import type { LedgerError } from "./LedgerError.js"
import type { PayloadCodec } from "./PayloadCodec.js"

/** Options that both databases have. */
export interface LedgerOptions {
  /** Where the database is, for messages; without credentials. Default: what the client's configuration says. */
  readonly database?: string
  /** The longest payload of an entry, in UTF-16 code units of its JSON text. Default: 4 MiB. */
  readonly maxPayload?: number
  /**
   * SQLite: `"full"` (default) makes every commit survive a power loss; `"normal"` only a crash of the process, for
   * more speed. PostgreSQL has its own setting, `synchronous_commit`.
   */
  readonly synchronous?: "full" | "normal"
  /**
   * True (default) creates or updates the tables. False fails with `LedgerUnusable` (`"older version"`) instead: for
   * those who only look, or who update a database by a command of its own.
   */
  readonly migrate?: boolean
  /** How long an operation is tried again while the database is busy or away, in milliseconds. Default: 10 seconds. */
  readonly patience?: number
  /**
   * PostgreSQL: how long a transaction may do nothing before the server ends it, in milliseconds, so that a process that
   * stopped inside one keeps no locks. It bounds what a transactional handler may wait for between two statements.
   * Default: 15 seconds, as a worker's lease.
   */
  readonly idleInTransaction?: number
  /** What values pass on their way into the database, in this order. Every process that reads them needs the same. */
  readonly codecs?: ReadonlyArray<PayloadCodec>
}

/**
 * The ledger over the client of `@effect/sql-sqlite-node` or `@effect/sql-pg` that is provided. Creates or updates
 * the tables. The Clock at the time of building is the ledger's time on SQLite.
 */
export const layer = (options: LedgerOptions = {}): Layer.Layer<Ledger, LedgerError, SqlClient> =>
  Layer.scoped(Ledger, make(options))

const make = (options: LedgerOptions): Effect.Effect<Ledger, LedgerError, SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const dialect = sql.onDialectOrElse({ pg: () => "pg" as const, orElse: () => "sqlite" as const })
    const hub = new Hub()
    const time = yield* ledgerTime(sql, dialect)
    const db = makeDatabase({
      dialect,
      name: options.database ?? whereIs(sql),
      sql,
      hub,
      instance: randomUUID(),
      maxPayload: options.maxPayload ?? 4 * 1024 * 1024,
      patience: options.patience ?? 10_000,
      idleInTransaction: options.idleInTransaction ?? 15_000,
      ...time
    })
    const shared = dialect === "pg" || (yield* openSqlite(db, options.synchronous ?? "full"))
    yield* (options.migrate ?? true) ? migrate(db) : requireNewest(db)
    yield* db.syncTime

    const leases = makeLeases(db, shared)
    const queueing = makeQueues(db)
    const claims = makeClaims(db, leases, queueing)
    const takers = new StartTakers()
    const commit: Commit = dialect === "pg" ? yield* makePgCommit(db) : makeSqliteCommit(db)
    const writer = new JournalWriter(db, commit, yield* Effect.runtime<never>(), claims.forget)
    yield* Effect.addFinalizer(() => Effect.sync(() => writer.close()))
    if (shared) yield* listen(db)

    const { forget: _, hold: __, ...claiming } = claims
    const { setQueue, pauseQueue, queues } = queueing
    const { startWithin, ...running } = makeRuns(db, takers, claims, queueing)
    const ledger = {
      dialect,
      database: db.name,
      maxPayload: db.maxPayload,
      now: Effect.sync(db.unsafeNow),
      unsafeNow: db.unsafeNow,
      sql,
      ...running,
      ...makeFinding(db),
      ...makeSchedules(db, startWithin),
      setQueue,
      pauseQueue,
      queues,
      takeStarts: (taker) => takers.add(taker),
      ...makeInbox(db),
      ...makeMessages(db),
      ...makeSettlements(db),
      ...makeForks(db),
      ...makeAwaited(db),
      ...makeChunks(db),
      checkpoints: {
        ...makeCheckpoints(db),
        ...makeThreadAnswers(db),
        ...makeThreadForks(db),
        ...makeThreadHolds(db),
        ...makeThreadEffects(db)
      },
      items: makeItems(db),
      ...makeVerify(db),
      ...makePurge(db),
      ...makeTransfer(db),
      ...makeHealth(db),
      ...claiming,
      register: leases.register,
      fate: leases.fate,
      nextLapse: leases.nextLapse,
      open: (claim) => new AppendBuffer(db, writer, claim),
      subscribe: (callback) => hub.subscribe(callback)
    } satisfies Ledger
    const { codecs = [] } = options
    return codecs.length === 0 ? ledger : sealedLedger(ledger, codecs)
  })

/** SQLite: the Clock's time. PostgreSQL: the database's, read now and then, and the time passed here since. */
const ledgerTime = (sql: SqlClient, dialect: Database["dialect"]) =>
  Effect.map(Effect.clock, (clock: Clock.Clock) => {
    if (dialect === "sqlite") {
      // Whole milliseconds, as the tables have them: a test's clock may stand between two.
      return { unsafeNow: () => Math.floor(clock.unsafeCurrentTimeMillis()), syncTime: () => Effect.void }
    }
    let offset = Date.now() - performance.now()
    return {
      unsafeNow: () => Math.floor(performance.now() + offset),
      syncTime: (query: Database["query"]) =>
        Effect.suspend(() => {
          const before = performance.now()
          return Effect.map(
            query(
              "read the time",
              sql<{ readonly now: number }>`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`
            ),
            ([row]) => {
              // The answer was true somewhere between asking and hearing it.
              if (row !== undefined) offset = Number(row.now) - (before + performance.now()) / 2
            }
          )
        })
    }
  })

/** Sets what SQLite forgets between connections. True if other processes can open the same database. */
const openSqlite = (db: Database, synchronous: "full" | "normal"): Effect.Effect<boolean, LedgerError> =>
  db.query(
    "open the database",
    Effect.scoped(
      Effect.gen(function* () {
        const connection: Connection = yield* db.sql.reserve
        const pragma = (text: string) => connection.executeUnprepared(`PRAGMA ${text}`, [], undefined)
        // The driver waits in the event loop's thread: only as long as nobody notices. The rest is tried again later.
        yield* pragma("busy_timeout = 3")
        const [mode] = (yield* pragma("journal_mode = WAL")) as ReadonlyArray<{ readonly journal_mode: string }>
        yield* pragma(`synchronous = ${synchronous === "full" ? "FULL" : "NORMAL"}`)
        return mode?.journal_mode === "wal"
      }).pipe(
        // `executeUnprepared` throws what preparing throws.
        Effect.catchAllDefect((cause) => Effect.fail(new SqlError({ cause, message: "Failed to open" })))
      )
    )
  )

/** The place that a client's configuration names. */
const whereIs = (sql: SqlClient): string => {
  const config: unknown = "config" in sql ? sql.config : undefined
  if (typeof config !== "object" || config === null) return "database"
  if ("filename" in config) return String(config.filename)
  const host = "host" in config && config.host !== undefined ? String(config.host) : "localhost"
  const port = "port" in config && config.port !== undefined ? `:${String(config.port)}` : ""
  const name = "database" in config && config.database !== undefined ? `/${String(config.database)}` : ""
  return `${host}${port}${name}`
}
