/**
 * The database as the ledger uses it: which dialect, what time it is, transactions that take their lock at once and
 * are retried where trying again is right, and driver errors said as the ledger's.
 */
import { type SqlClient, TransactionConnection } from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import { Effect, Exit } from "effect"
import type { Announcement } from "../Ledger.js"
import type { LedgerError } from "../LedgerError.js"
import { directSql } from "./DirectSql.js"
import { encodeAnnouncement, type Hub } from "./Hub.js"
import { causeOf, failureKind, ledgerError } from "./SqlFailure.js"

/** PostgreSQL's notification channel. */
export const channel = "fermata"

/** What a transaction's body may ask for besides SQL. */
export interface Transaction {
  /** Announces after the commit, and only if it happens: here at once, and to other processes on PostgreSQL. */
  readonly announce: (announcement: Announcement) => void
}

/** The handle that every part of the ledger is made from. */
export interface Database {
  readonly dialect: "sqlite" | "pg"
  /** Where it is, without credentials. */
  readonly name: string
  readonly sql: SqlClient
  readonly hub: Hub
  /** This ledger's name among those that share the database. */
  readonly instance: string
  /** The longest payload, in UTF-16 code units. */
  readonly maxPayload: number
  /** How long an operation is retried, in milliseconds of host time. */
  readonly patience: number
  /** Ledger time in milliseconds, without a round trip. */
  readonly unsafeNow: () => number
  /** Reads the database's clock again (PostgreSQL; nothing to do on SQLite). */
  readonly syncTime: Effect.Effect<void, LedgerError>
  /** `FOR UPDATE` on PostgreSQL; nothing on SQLite, where the transaction holds the only write lock. */
  readonly forUpdate: Fragment
  /** `FOR UPDATE SKIP LOCKED` on PostgreSQL, nothing on SQLite. */
  readonly forUpdateSkipLocked: Fragment
  /**
   * Runs `body` in one transaction. It may run more than once (lost conflicts, a busy file, a lost connection), so it
   * must be a function of the database alone; if the reply to a commit was lost it runs again, so what it does must be
   * idempotent. Any failure of `body` rolls back.
   */
  readonly transaction: <A, E, R>(
    operation: string,
    body: (transaction: Transaction) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | LedgerError, R>
  /** Runs statements outside a transaction; retried in the same way. */
  readonly query: <A, E, R>(
    operation: string,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | LedgerError, R>
}

/** Waits on the host's clock: a test's clock must not stop a retry. */
export const hostSleep = (millis: number): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Back-off before try `attempt` (0, 1, …): doubles to about 50 ms, jittered so that rivals part. */
export const backoff = (attempt: number): number => Math.min(50, 1 << Math.min(attempt, 10)) * (0.5 + Math.random())

/** Makes the handle over a client. */
export const makeDatabase = (options: {
  readonly dialect: "sqlite" | "pg"
  readonly name: string
  readonly sql: SqlClient
  readonly hub: Hub
  readonly instance: string
  readonly maxPayload: number
  /** How long an operation is retried, in milliseconds of host time. */
  readonly patience: number
  /** PostgreSQL: how long a transaction may do nothing before the server ends it, in milliseconds. */
  readonly idleInTransaction: number
  readonly unsafeNow: () => number
  readonly syncTime: (query: Database["query"]) => Effect.Effect<void, LedgerError>
}): Database => {
  const { dialect, name, hub, instance } = options
  const sql = directSql(options.sql)
  // LV: a process that stops inside a transaction must not keep its locks. For the transaction only, and in one round
  // trip: the settings of a pooled connection are its owner's.
  const begin =
    dialect === "sqlite"
      ? "BEGIN IMMEDIATE"
      : `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${Math.max(1, Math.floor(options.idleInTransaction))}`
  const run = (connection: Connection, statement: string) => connection.execute(statement, [], undefined)

  const once = <A, E, R>(body: (transaction: Transaction) => Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.scoped(
        Effect.gen(function* () {
          // An acquisition from the pg pool that is interrupted would leak its connection.
          const connection = yield* dialect === "sqlite" ? restore(sql.reserve) : sql.reserve
          const announcements: Array<Announcement> = []
          yield* run(connection, begin)
          const exit = yield* Effect.exit(
            restore(
              Effect.provideService(
                Effect.suspend(() => body({ announce: (announcement) => void announcements.push(announcement) })),
                TransactionConnection,
                [connection, 0]
              )
            )
          )
          const finish =
            dialect === "sqlite" || announcements.length === 0
              ? run(connection, "COMMIT")
              : Effect.zipRight(
                  connection.execute(
                    `SELECT pg_notify('${channel}', note) FROM unnest($1::text[]) AS note`,
                    [announcements.map((announcement) => encodeAnnouncement(instance, announcement))],
                    undefined
                  ),
                  run(connection, "COMMIT")
                )
          if (Exit.isFailure(exit)) {
            // A connection that was lost has rolled back already.
            yield* Effect.ignore(run(connection, "ROLLBACK"))
            return yield* exit
          }
          yield* Effect.tapError(finish, () => Effect.ignore(run(connection, "ROLLBACK")))
          for (const announcement of announcements) hub.publish(announcement)
          return exit.value
        })
      )
    )

  const retried = <A, E, R>(
    operation: string,
    effect: Effect.Effect<A, E | SqlError, R>
  ): Effect.Effect<A, Exclude<E, SqlError> | LedgerError, R> =>
    Effect.suspend(() => {
      const started = performance.now()
      const attempt = (n: number): Effect.Effect<A, Exclude<E, SqlError> | LedgerError, R> =>
        Effect.catchAll(effect, (error) => {
          // The conditional type cannot be narrowed by a test on its member.
          if (!(error instanceof SqlError)) return Effect.fail(error as Exclude<E, SqlError>)
          const kind = failureKind(causeOf(error))
          const again = kind === "busy" || kind === "conflict" || kind === "disconnected"
          return again && performance.now() - started < options.patience
            ? Effect.zipRight(hostSleep(backoff(n)), attempt(n + 1))
            : Effect.fail(ledgerError(causeOf(error), operation, name))
        })
      return attempt(0)
    })

  // The ledger's operations are spans; a span for each of their statements besides would cost more than the statement.
  const query: Database["query"] = (operation, effect) => Effect.withTracerEnabled(retried(operation, effect), false)
  return {
    dialect,
    name,
    sql,
    hub,
    instance,
    maxPayload: options.maxPayload,
    patience: options.patience,
    unsafeNow: options.unsafeNow,
    syncTime: options.syncTime(query),
    forUpdate: sql.literal(dialect === "pg" ? "FOR UPDATE" : ""),
    forUpdateSkipLocked: sql.literal(dialect === "pg" ? "FOR UPDATE SKIP LOCKED" : ""),
    transaction: (operation, body) => Effect.withTracerEnabled(retried(operation, once(body)), false),
    query
  }
}
