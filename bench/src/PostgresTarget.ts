/**
 * PostgreSQL: the server that FERMATA_TEST_POSTGRES names, or one started for the run with fsync on; raw is one `pg` connection with a
 * prepared statement.
 */
import { freshPostgres } from "@fermata/test/Postgres"
import { startPostgres } from "@fermata/test/PostgresServer"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { rawPayload, sampleSize, type Target } from "./Target.js"

export const make: Effect.Effect<Target, never, Scope.Scope> = Effect.gen(function* () {
  if (process.env["FERMATA_TEST_POSTGRES"] === undefined) {
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startPostgres()),
      (server) => Effect.promise(() => server.stop())
    )
    process.env["FERMATA_TEST_POSTGRES"] = server.url
  }
  const url = yield* freshPostgres
  const connection = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client(url)
      await client.connect()
      await client.query("CREATE TABLE raw (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload TEXT NOT NULL)")
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )
  const insert = { name: "raw", text: "INSERT INTO raw (payload) VALUES ($1)", values: [rawPayload] }
  return {
    name: "postgres",
    title: "PostgreSQL, fsync on",
    database: Effect.map(freshPostgres, (url) => ({ _tag: "Postgres", url })),
    raw: Effect.promise(async () => {
      const started = performance.now()
      for (let n = 0; n < sampleSize; n++) await connection.query(insert)
      return (sampleSize * 1000) / (performance.now() - started)
    })
  }
})
