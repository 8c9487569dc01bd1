/**
 * A `SqlClient` over one `better-sqlite3` connection, for the ledger's hot path: statements are prepared once and
 * found by their text, and whoever has reserved the connection may run them without an Effect each.
 */
import type * as Reactivity from "@effect/experimental/Reactivity"
import * as Client from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import Sqlite, { type Statement as Prepared } from "better-sqlite3"
import { Context, Effect, type Scope } from "effect"

/** A connection whose statements can also be run synchronously. Throws the driver's errors. */
export interface SyncConnection extends Connection {
  readonly runSync: (sql: string, params: ReadonlyArray<unknown>) => ReadonlyArray<unknown>
}

/** The client, and its shortcut for whoever needs no waiting. */
export interface SqliteClient extends Client.SqlClient {
  /** Runs `use` at once if nobody holds the connection; `undefined` if somebody does. */
  readonly ifFree: <A>(use: (run: SyncConnection["runSync"]) => A) => A | undefined
}

/** True of the clients that this file makes. */
export const isSqliteClient = (sql: Client.SqlClient): sql is SqliteClient => "ifFree" in sql

/** Prepared statements kept; more texts than that come from callers who write their own SQL. */
const mostStatements = 256

/** Opens the file for the scope. */
export const makeSqliteClient = (
  filename: string
): Effect.Effect<SqliteClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const database = yield* Effect.acquireRelease(
      Effect.try({
        // The driver waits for locks in the event loop's thread: only as long as nobody notices.
        try: () => new Sqlite(filename, { timeout: 3 }),
        catch: (cause) => new SqlError({ cause, message: "Failed to open" })
      }),
      (open) => Effect.sync(() => open.close())
    )
    const connection = connectionOf(database)
    const turn = yield* Effect.makeSemaphore(1)
    let held = false
    // A single statement holds the connection as a transaction does: it must not get into another's transaction.
    const acquirer = Effect.uninterruptibleMask((restore) =>
      Effect.zipRight(
        restore(turn.take(1)),
        Effect.zipRight(
          Effect.addFinalizer(() => {
            held = false
            return turn.release(1)
          }),
          Effect.sync(() => {
            held = true
            return connection
          })
        )
      )
    )
    const client = yield* Client.make({
      acquirer,
      transactionAcquirer: acquirer,
      compiler: Statement.makeCompilerSqlite(),
      spanAttributes: [["db.system.name", "sqlite"]]
    })
    const ifFree: SqliteClient["ifFree"] = (use) => (held ? undefined : use(connection.runSync))
    return Object.assign(client, { ifFree })
  })

const connectionOf = (database: InstanceType<typeof Sqlite>): SyncConnection => {
  const statements = new Map<string, Prepared>()
  const prepared = (sql: string) => {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const statement = database.prepare(sql)
    if (statements.size >= mostStatements) statements.clear()
    statements.set(sql, statement)
    return statement
  }
  const runSync = (sql: string, params: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
    const statement = prepared(sql)
    if (statement.reader) return statement.all(...params)
    statement.run(...params)
    return []
  }
  const attempt = <A>(run: () => A) =>
    Effect.try({ try: run, catch: (cause) => new SqlError({ cause, message: "Failed to execute statement" }) })
  const execute: Connection["execute"] = (sql, params, transformRows) =>
    Effect.withFiberRuntime((fiber) =>
      attempt(() => {
        // A caller's wish for BigInt integers holds for this statement only.
        const safe = Context.get(fiber.currentContext, Client.SafeIntegers)
        if (safe) prepared(sql).safeIntegers(true)
        try {
          const rows = runSync(sql, params)
          // A statement's rows are objects, whatever its columns.
          return transformRows === undefined ? rows : transformRows(rows as ReadonlyArray<object>)
        } finally {
          if (safe) prepared(sql).safeIntegers(false)
        }
      })
    )
  return {
    runSync,
    execute,
    executeUnprepared: execute,
    executeRaw: (sql, params) =>
      attempt(() => {
        const statement = prepared(sql)
        return statement.reader ? statement.all(...params) : statement.run(...params)
      }),
    executeValues: (sql, params) =>
      attempt(() => {
        const statement = prepared(sql)
        if (!statement.reader) {
          statement.run(...params)
          return []
        }
        try {
          return statement.raw(true).all(...params) as ReadonlyArray<ReadonlyArray<unknown>>
        } finally {
          statement.raw(false)
        }
      }),
    executeStream: () => Effect.dieMessage("SQLite results are not streamed")
  }
}

/** How whoever reserved a connection of SQLite runs a statement. Throws an `SqlError`. */
export const syncRunner = (connection: Connection): SyncConnection["runSync"] => {
  if ("runSync" in connection) {
    // Only `connectionOf` gives a connection this name.
    const { runSync } = connection as SyncConnection
    return (sql, params) => {
      try {
        return runSync(sql, params)
      } catch (cause) {
        throw new SqlError({ cause, message: "Failed to execute statement" })
      }
    }
  }
  // Another client of SQLite: the driver is synchronous all the same, its Effect only wraps it.
  return (sql, params) => {
    const exit = Effect.runSyncExit(Effect.either(connection.execute(sql, params, undefined)))
    if (exit._tag === "Failure") throw new SqlError({ cause: exit.cause, message: "Failed to execute statement" })
    if (exit.value._tag === "Left") throw exit.value.left
    return exit.value.right
  }
}
