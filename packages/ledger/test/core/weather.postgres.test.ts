/** PostgreSQL going away while it is used: what was under way is tried again until it is known. */
import { describe, expect, it } from "@effect/vitest"
import { layerPostgres } from "@fermata/ledger"
import { freshPostgres, serverUrl } from "@fermata/test/Postgres"
import { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { completed, makeOwner, startRun, anyRun, stepDone } from "../outside/Owner.js"
import { openLedger } from "../outside/Place.js"

/** Ends every connection to a database, as a restart or a network does. */
const disconnectAll = (url: string) =>
  Effect.provide(
    Effect.flatMap(
      PgClient.PgClient,
      (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = ${new URL(url).pathname.slice(1)} AND pid <> pg_backend_pid()`
    ),
    PgClient.layer({ url: Redacted.make(serverUrl()), maxConnections: 1 })
  )

describe("PostgreSQL that goes away", () => {
  it.scopedLive("connections are cut again and again under a writer: every entry is there once, in order", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const ledger = yield* openLedger(layerPostgres({ url }))
      const owner = yield* makeOwner(ledger)
      const { journal, write } = yield* owner.started()
      const cuts = yield* Effect.fork(Effect.replicateEffect(disconnectAll(url), 8))
      let steps = 0
      // Until the cuts are over, and some more.
      for (let after = 0; after < 20;) {
        yield* write(stepDone(`s#${steps++}`), stepDone(`s#${steps++}`))
        if ((yield* Fiber.poll(cuts))._tag === "Some") after++
      }
      yield* Fiber.join(cuts)
      yield* journal.appendIf([completed], { inboxSeen: 0 })
      const { entries, branch } = yield* ledger.history(journal.branch)
      expect(entries.slice(1, -1).map(({ key }) => key)).toEqual(Array.from({ length: steps }, (_, n) => `s#${n}`))
      expect(branch.status).toBe("completed")
      expect((yield* ledger.verify).problems).toEqual([])
    })
  )

  it.scopedLive("operations of clients go on over cut connections, the pool's idle ones included", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const ledger = yield* openLedger(layerPostgres({ url }))
      for (let round = 0; round < 5; round++) {
        const run = anyRun()
        yield* Effect.all([startRun(ledger, run), ledger.list({}), ledger.list({})], { concurrency: "unbounded" })
        yield* disconnectAll(url)
        // Some of the pool's connections are dead and do not know it yet.
        const [receipt, row] = yield* Effect.all([startRun(ledger, run), ledger.run(run), ledger.list({})], {
          concurrency: "unbounded"
        })
        expect(receipt.created).toBe(false)
        expect(row.run).toBe(run)
      }
    })
  )

  it.scopedLive("a transaction that is cut runs again, and its writes are there once", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const ledger = yield* openLedger(layerPostgres({ url }))
      const owner = yield* makeOwner(ledger)
      const { journal } = yield* owner.started()
      yield* ledger.sql`CREATE TABLE shop (id TEXT)`
      let runs = 0
      const body = Effect.gen(function* () {
        runs++
        yield* ledger.sql`INSERT INTO shop (id) VALUES ('paid')`
        // On a fiber of its own: here every statement would use the transaction's connection.
        if (runs === 1) yield* Effect.promise(() => Effect.runPromise(disconnectAll(url)))
        yield* ledger.sql`SELECT 1`
      })
      const entry = yield* journal.transact(body, (exit) => stepDone("pay#0", exit._tag))
      expect(runs).toBe(2)
      expect(JSON.parse(entry.payload)).toMatchObject({ value: "Success" })
      expect(yield* ledger.sql`SELECT id FROM shop`).toHaveLength(1)
      expect((yield* ledger.history(journal.branch)).entries).toHaveLength(2)
    })
  )

  it.scopedLive("after a cut the listener hears again, and says that something may have been missed", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const layer = layerPostgres({ url })
      const [first, second] = [yield* openLedger(layer), yield* openLedger(layer)]
      const anything = yield* Deferred.make<void>()
      yield* disconnectAll(url)
      const stop = second.subscribe(({ _tag }) => {
        if (_tag === "Anything") Deferred.unsafeDone(anything, Effect.void)
      })
      yield* Deferred.await(anything)
      stop()
      const ready = yield* Deferred.make<void>()
      second.subscribe(({ _tag }) => {
        if (_tag === "Ready") Deferred.unsafeDone(ready, Effect.void)
      })
      yield* startRun(first, anyRun())
      yield* Deferred.await(ready)
    })
  )

  it.scopedLive("a server that is not there is a clear, typed error without credentials", () =>
    Effect.gen(function* () {
      const secret = "s3cret-pass"
      const down = yield* Effect.flip(
        Layer.build(layerPostgres({ url: `postgres://me:${secret}@127.0.0.1:1/nothing` }))
      )
      expect(down).toMatchObject({ _tag: "LedgerUnavailable", reason: "disconnected", database: "127.0.0.1:1/nothing" })
      const url = new URL(serverUrl())
      url.pathname = "/no_such_database"
      const missing = yield* Effect.flip(Layer.build(layerPostgres({ url: Redacted.make(url.href) })))
      expect(missing).toMatchObject({ _tag: "LedgerUnusable", reason: "cannot be opened" })
      for (const error of [down, missing]) {
        expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain(secret)
        if (url.password !== "") expect(JSON.stringify(error)).not.toContain(url.password)
      }
    })
  )
})
