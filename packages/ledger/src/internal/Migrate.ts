/** Brings a database to the newest shape, once, however many processes come at it at the same time. */
import * as Migrator from "@effect/sql/Migrator"
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Effect } from "effect"
import { type LedgerError, LedgerUnusable } from "../LedgerError.js"
import type { Database } from "./Database.js"
import { migrations, newestMigration } from "./migrations.js"
import { causeOf, failureKind, ledgerError } from "./SqlFailure.js"
import { SqlError } from "@effect/sql/SqlError"

const table = "fermata_migrations"

/** Any number that nobody else uses: PostgreSQL's lock under which migrations run. */
const lock = 0x0fe41a7a

const run = Migrator.make({})({ loader: Migrator.fromRecord(migrations), table })

/** The number of the newest migration that the database has had; 0 for an empty one. */
export const storedVersion = ({ dialect, sql }: Database): Effect.Effect<number, SqlError> =>
  Effect.gen(function* () {
    const found = yield* dialect === "pg"
      ? sql`SELECT 1 WHERE to_regclass(${table}) IS NOT NULL`
      : sql`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ${table}`
    if (found.length === 0) return 0
    const [row] = yield* sql<{ readonly version: number | null }>`SELECT MAX(migration_id) AS version
      FROM ${sql(table)}`
    return row?.version ?? 0
  })

const refuseNewer = (db: Database, found: number): Effect.Effect<void, LedgerUnusable> =>
  found > newestMigration
    ? Effect.fail(
        new LedgerUnusable({
          reason: "newer version",
          database: db.name,
          detail: `its tables are of version ${found}, this code knows ${newestMigration}`,
          advice: "Use a newer version of this package; nothing was changed"
        })
      )
    : Effect.void

/** Refuses a database whose tables are not of the version that this code writes; changes nothing. */
export const requireNewest = (db: Database): Effect.Effect<void, LedgerError> =>
  Effect.gen(function* () {
    const found = yield* db.query("open the database", storedVersion(db))
    yield* refuseNewer(db, found)
    if (found === newestMigration) return
    yield* new LedgerUnusable({
      reason: "older version",
      database: db.name,
      detail:
        found === 0
          ? "it has no tables of this package"
          : `its tables are of version ${found}, this code writes ${newestMigration}`,
      advice: "Check the address, or update it by `fermata migrate`; nothing was changed"
    })
  })

/** Creates or updates the tables; refuses a database that is newer than this code. */
export const migrate = (db: Database): Effect.Effect<void, LedgerError> => {
  const { sql } = db
  const version = storedVersion(db)

  return Effect.gen(function* () {
    // The usual case takes no lock.
    const found = yield* db.query("open the database", version)
    yield* refuseNewer(db, found)
    if (found === newestMigration) return
    yield* db.transaction("prepare the tables", () =>
      Effect.gen(function* () {
        // The transaction is the lock on SQLite; on PostgreSQL this one ends with it, also when this process dies.
        if (db.dialect === "pg") {
          yield* sql`SELECT pg_advisory_xact_lock(${lock})`
          // The Migrator looks for its table by a statement that would fail, and with it this transaction.
          yield* sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (migration_id INTEGER PRIMARY KEY,
            created_at TIMESTAMPTZ NOT NULL DEFAULT now(), name TEXT NOT NULL)`
        }
        yield* refuseNewer(db, yield* version)
        yield* Effect.provideService(run, SqlClient, sql)
      }).pipe(
        Effect.sandbox,
        // The Migrator says a failed statement as a defect around the driver's error.
        Effect.mapError((cause) => failureOf(db, cause))
      )
    )
  })
}

const failureOf = (db: Database, cause: Cause.Cause<unknown>): LedgerError | SqlError => {
  const failure = Cause.squash(cause)
  if (failure instanceof LedgerUnusable) return failure
  const inner =
    failure instanceof SqlError
      ? failure
      : failure instanceof Error && failure.cause instanceof SqlError
        ? failure.cause
        : undefined
  if (inner !== undefined && failureKind(causeOf(inner)) !== "failed") return inner
  return new LedgerUnusable({
    reason: "migration failed",
    database: db.name,
    detail: ledgerError(inner === undefined ? failure : causeOf(inner), "prepare the tables", db.name).message,
    advice: "Nothing was changed; the database may hold tables of these names that are not this package's"
  })
}
