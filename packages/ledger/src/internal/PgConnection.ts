/**
 * One connection taken out of the pool and kept: for what the pooled interface cannot do, which is to prepare a
 * statement by name and to hear notifications and the end of the connection.
 */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import { Effect, Exit, Scope } from "effect"
import type { Database } from "./Database.js"

/** The part of the driver's client that is used. */
interface RawClient {
  query(
    config: { readonly name?: string; readonly text: string; readonly values?: ReadonlyArray<unknown> },
    callback: (error: unknown, result: { readonly rows: ReadonlyArray<unknown> } | undefined) => void
  ): void
  on(event: "notification", listener: (message: { readonly channel: string; readonly payload?: string }) => void): void
  on(event: "error" | "end", listener: () => void): void
  end(callback: () => void): void
  removeListener(event: string, listener: (...args: never) => void): void
}

const isRawClient = (value: unknown): value is RawClient =>
  typeof value === "object" &&
  value !== null &&
  "query" in value &&
  "on" in value &&
  "removeListener" in value &&
  "end" in value

/** Milliseconds that a statement of the writer or the listener may take: at most a third of a worker's lease. */
export const statementDeadline = ({ patience }: Pick<Database, "patience">): number =>
  Math.max(1, Math.floor(Math.min(5_000, patience / 2)))

/** A connection of one's own. */
export interface PgConnection {
  /**
   * Runs a statement that is prepared once under `name`. One that stays without an answer for too long ends the
   * connection, and fails as a lost connection does.
   */
  readonly run: (
    name: string,
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<unknown>, SqlError>
  readonly onNotification: (
    listener: (channel: string, payload: string) => void
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Ends it at once: it does not go back to the pool's other users. */
  readonly end: Effect.Effect<void>
  /** Completes when the connection is gone. */
  readonly gone: Effect.Effect<void>
}

/** Takes a connection for the scope. */
export const pgConnection = (db: Database): Effect.Effect<PgConnection, SqlError, Scope.Scope> =>
  // An acquisition that is interrupted would leak its connection, and the pool would wait for it for ever when it closes.
  Effect.flatMap(Effect.uninterruptible(db.sql.reserve), (connection: Connection) => {
    // The client of `@effect/sql-pg` keeps the driver's under this name; another client of the dialect may not.
    const client: unknown = "pg" in connection ? connection.pg : undefined
    if (!isRawClient(client)) {
      return Effect.fail(new SqlError({ cause: new Error("the SqlClient is not one of @effect/sql-pg") }))
    }
    // With a statement under way the socket is destroyed, so that nothing waits for a farewell. The pool lets go of it.
    const end = () => client.end(() => {})
    // LV: a route that was cut without a word would hold a statement until TCP gives up, a quarter of an hour later.
    const deadline = statementDeadline(db)
    return Effect.succeed<PgConnection>({
      run: (name, text, values) =>
        Effect.async((resume) => {
          const overdue = setTimeout(() => {
            end()
            const cause = Object.assign(new Error(`no answer within ${deadline} ms`), { code: "ETIMEDOUT" })
            resume(Effect.fail(new SqlError({ cause, message: "Failed to execute statement" })))
          }, deadline)
          client.query({ name, text, values }, (error, result) => {
            clearTimeout(overdue)
            resume(
              error !== null && error !== undefined
                ? Effect.fail(new SqlError({ cause: error, message: "Failed to execute statement" }))
                : Effect.succeed(result?.rows ?? [])
            )
          })
        }),
      end: Effect.sync(end),
      onNotification: (listener) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const on = (message: { readonly channel: string; readonly payload?: string }) =>
              listener(message.channel, message.payload ?? "")
            client.on("notification", on)
            return on
          }),
          (on) => Effect.sync(() => client.removeListener("notification", on))
        ),
      gone: Effect.async<void>((resume) => {
        const on = () => resume(Effect.void)
        client.on("error", on)
        client.on("end", on)
        return Effect.sync(() => {
          client.removeListener("error", on)
          client.removeListener("end", on)
        })
      })
    })
  })

/**
 * Keeps one connection over many uses: opened when first needed, with `settings` for its session, and opened anew after
 * it failed. Only one use at a time.
 */
export const keptConnection = (
  db: Database,
  settings: Readonly<Record<string, string>>
): Effect.Effect<
  { readonly use: <A>(f: (connection: PgConnection) => Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError> },
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    let kept: { readonly scope: Scope.CloseableScope; readonly connection: PgConnection } | undefined
    const giveBack = Effect.suspend(() => {
      const { scope } = kept ?? {}
      kept = undefined
      return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
    })
    /** What failed is not reset, which might wait for it again, but ended. */
    const drop = Effect.suspend(() => {
      const { scope, connection } = kept ?? {}
      kept = undefined
      return scope === undefined || connection === undefined
        ? Effect.void
        : Effect.zipRight(connection.end, Scope.close(scope, Exit.fail("dropped")))
    })
    yield* Effect.addFinalizer(() => giveBack)
    const open = Effect.uninterruptible(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const connection = yield* Effect.onError(Scope.extend(pgConnection(db), scope), () =>
          Scope.close(scope, Exit.void)
        )
        const names = Object.keys(settings)
        const set = names.map((name) => `set_config('${name}', '${settings[name] ?? ""}', false)`)
        yield* Effect.onError(connection.run("", `SELECT ${set.join(", ")}`, []), (cause) =>
          Effect.zipRight(connection.end, Scope.close(scope, Exit.failCause(cause)))
        )
        // The pool's next user must not find them.
        const reset = Effect.forEach(names, (name) => connection.run("", `RESET ${name}`, []), { discard: true })
        yield* Scope.addFinalizerExit(scope, (exit) =>
          Exit.isSuccess(exit) ? Effect.catchAll(reset, () => connection.end) : Effect.void
        )
        kept = { scope, connection }
        return connection
      })
    )
    return {
      use: (f) =>
        Effect.suspend(() => (kept === undefined ? open : Effect.succeed(kept.connection))).pipe(
          Effect.flatMap(f),
          // Which errors leave a connection usable is not worth knowing: a new one costs a few milliseconds.
          Effect.tapError(() => drop)
        )
    }
  })
