/** Several real processes on one database: migrations raced and killed half-way, and work shared. */
import { migrations } from "../../src/internal/migrations.js"
import { describe, expect, it } from "@effect/vitest"
import { type Ledger, layerPostgres, layerSqlite } from "@fermata/ledger"
import { freshPostgres } from "@fermata/test/Postgres"
import * as Child from "@fermata/test/processes/Child"
import * as Race from "@fermata/test/processes/Race"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { openLedger } from "../outside/Place.js"

const script = (name: string) => fileURLToPath(new URL(`../children/${name}.mjs`, import.meta.url))

const sqliteAddress = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-processes-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  ),
  (path) => ({ filename: join(path, "ledger.db") })
)
const postgresAddress = Effect.map(freshPostgres, (url) => ({ url }))

const open = (address: { readonly filename: string } | { readonly url: string }) =>
  openLedger("url" in address ? layerPostgres(address) : layerSqlite(address))

const tables = (ledger: Ledger) =>
  Effect.map(
    ledger.dialect === "pg"
      ? ledger.sql<{
          readonly name: string
        }>`SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'fermata_%' ORDER BY 1`
      : ledger.sql<{
          readonly name: string
        }>`SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'fermata_%' ORDER BY 1`,
    (rows) => rows.map(({ name }) => name)
  )

for (const [name, addressOf] of [
  ["SQLite", sqliteAddress],
  ["PostgreSQL", postgresAddress]
] as const) {
  describe(`on ${name}`, () => {
    it.scopedLive(
      "8 processes open an empty database at once, one is killed in the middle of the migration: all end well",
      () =>
        Effect.gen(function* () {
          const address = yield* addressOf
          const race = yield* Race.make
          // It stands between two statements of its migration, and holds the lock.
          const victim = yield* Child.spawn(script("migrator"), { input: address, stopAt: ["statement#10"] })
          yield* victim.stopped("statement")
          const others = yield* Effect.all(
            Array.from({ length: 7 }, () => Child.spawn(script("migrator"), { input: address, race: race.file })),
            { concurrency: "unbounded" }
          )
          yield* race.start(others)
          const ending = yield* victim.kill
          expect(ending.signal).toBe("SIGKILL")
          for (const other of others) yield* other.success
          const ledger = yield* open(address)
          const undisturbed = yield* open(yield* addressOf)
          expect(yield* tables(ledger)).toEqual(yield* tables(undisturbed))
          expect(yield* ledger.sql`SELECT migration_id FROM fermata_migrations`).toHaveLength(
            Object.keys(migrations).length
          )
        })
    )

    it.scopedLive("4 processes share the work of one database: every run is done once, and everything verifies", () =>
      Effect.gen(function* () {
        const address = yield* addressOf
        const race = yield* Race.make
        const [runs, total] = [15, 60]
        const clerks = yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (clerk) => Child.spawn(script("clerk"), { input: { ...address, name: clerk, runs, total }, race: race.file }),
          { concurrency: "unbounded" }
        )
        yield* race.start(clerks)
        for (const clerk of clerks) yield* clerk.success
        const ledger = yield* open(address)
        expect(yield* ledger.list({ status: "completed", limit: 1000 })).toHaveLength(total)
        const verified = yield* ledger.verify
        expect(verified).toMatchObject({ runs: total, branches: total, entries: total * 5, problems: [] })
      })
    )
  })
}
