/**
 * Databases for tests: each test, or file of tests, takes one of its own from the server that the test run started.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, type Scope } from "effect"
import { randomBytes } from "node:crypto"

/** Of the server for tests, with credentials: the environment's FERMATA_TEST_POSTGRES. */
export const serverUrl = (): string => {
  const url = process.env["FERMATA_TEST_POSTGRES"]
  if (url === undefined || url === "")
    throw new Error("FERMATA_TEST_POSTGRES names no server: run the tests by vitest from the workspace's root")
  return url
}

/** Creates an empty database and gives its URL; it is dropped, whoever still uses it, when the scope closes. */
export const freshPostgres: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function* () {
  const server = serverUrl()
  const name = `fermata_${randomBytes(8).toString("hex")}`
  yield* Effect.acquireRelease(
    onServer(server, `CREATE DATABASE ${name} TEMPLATE template0`),
    // What a test leaves behind does not matter when the whole server goes.
    () => Effect.ignore(onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  )
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}).pipe(Effect.orDie)

const onServer = (server: string, statement: string) =>
  Effect.provide(
    Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement)),
    PgClient.layer({ url: Redacted.make(server), maxConnections: 1 })
  )
