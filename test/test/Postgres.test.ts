import { PgClient } from "@effect/sql-pg"
import { freshPostgres, serverUrl } from "@fermata/test/Postgres"
import { startPostgres } from "@fermata/test/PostgresServer"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"

const query = <A extends object>(url: string, statement: string) =>
  Effect.provide(
    Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe<A>(statement)),
    PgClient.layer({ url: Redacted.make(url), maxConnections: 1, connectTimeout: 5000 })
  )

describe("freshPostgres", () => {
  it.scoped("gives each caller an empty database of its own", () =>
    Effect.gen(function* () {
      const [a, b] = yield* Effect.all([freshPostgres, freshPostgres], { concurrency: 2 })
      yield* query(a, "CREATE TABLE t (n int)")
      yield* query(b, "CREATE TABLE t (n int)")
      expect(a).not.toBe(b)
    })
  )

  it.effect("drops the database with its scope, though a session is still open", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const url = yield* Scope.extend(freshPostgres, scope)
      const name = new URL(url).pathname.slice(1)
      yield* Effect.gen(function* () {
        const session = yield* PgClient.PgClient
        yield* session`SELECT 1`
        yield* Scope.close(scope, Exit.void)
      }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })))
      expect(yield* query(serverUrl(), `SELECT datname FROM pg_database WHERE datname = '${name}'`)).toEqual([])
    })
  )

  it.scoped("runs on a server that flushes its log", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      expect(yield* query(url, "SHOW fsync")).toEqual([{ fsync: "on" }])
      expect(yield* query(url, "SHOW synchronous_commit")).toEqual([{ synchronous_commit: "on" }])
    })
  )
})

describe("startPostgres", () => {
  it.scoped("crashes and comes back with what was committed", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (server) => Effect.promise(server.stop)
      )
      yield* query(server.url, "CREATE TABLE t AS SELECT 1 AS n")
      yield* Effect.promise(server.crash)
      expect(Exit.isFailure(yield* Effect.exit(query(server.url, "SELECT n FROM t")))).toBe(true)
      yield* Effect.promise(server.start)
      expect(yield* query(server.url, "SELECT n FROM t")).toEqual([{ n: 1 }])
    })
  )
})
