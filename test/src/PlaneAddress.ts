/** Where a plane's database is, in a form that a test can hand to its child processes. */
import type { Ledger, LedgerUnavailable, LedgerUnusable } from "@fermata/ledger"
import { type Client, Plane } from "@fermata/runtime"
import { Effect, type Layer, Schema, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freshPostgres } from "./Postgres.js"

export const PlaneAddress = Schema.Union(
  Schema.TaggedStruct("Sqlite", { filename: Schema.String }),
  Schema.TaggedStruct("Postgres", { url: Schema.String, maxConnections: Schema.optional(Schema.Number) })
)
export type PlaneAddress = typeof PlaneAddress.Type

/** The databases that every test of this package runs on. */
export const databases = ["SQLite", "PostgreSQL"] as const

/** The plane at the address. */
export const layer = (
  address: PlaneAddress
): Layer.Layer<Ledger | Client.Client, LedgerUnusable | LedgerUnavailable> =>
  address._tag === "Sqlite"
    ? Plane.sqlite({ filename: address.filename })
    : Plane.postgres({
        url: address.url,
        ...(address.maxConnections === undefined ? {} : { maxConnections: address.maxConnections })
      })

/** A folder that is removed when the scope closes. */
export const freshFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** An empty database of its own, removed when the scope closes. */
export const fresh = (database: (typeof databases)[number]): Effect.Effect<PlaneAddress, never, Scope.Scope> =>
  database === "SQLite"
    ? Effect.map(freshFolder, (folder) => ({ _tag: "Sqlite", filename: join(folder, "plane.db") }))
    : Effect.map(freshPostgres, (url) => ({ _tag: "Postgres", url }))
