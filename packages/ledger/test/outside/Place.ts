/** Where a suite's ledgers are: a database that any number of ledgers may open. */
import type { Ledger, LedgerError } from "@fermata/ledger"
import { layerPostgres, layerSqlite, Ledger as LedgerTag } from "@fermata/ledger"
import { freshPostgres } from "@fermata/test/Postgres"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { makeOwner, type Owner } from "./Owner.js"

export interface Place {
  readonly name: string
  /** How many ledgers may share one database. */
  readonly ledgers: number
  /** A fresh database, gone with the scope; its layer opens a ledger each time that it is built. */
  readonly fresh: Effect.Effect<Layer.Layer<Ledger, LedgerError>, never, Scope.Scope>
}

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "fermata-outside-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

export const sqliteFile: Place = {
  name: "SQLite file",
  ledgers: 4,
  fresh: Effect.map(folder, (path) => layerSqlite({ filename: join(path, "ledger.db") }))
}

export const sqliteMemory: Place = {
  name: "SQLite memory",
  ledgers: 1,
  fresh: Effect.succeed(layerSqlite({ filename: ":memory:" }))
}

export const postgres: Place = {
  name: "PostgreSQL",
  ledgers: 4,
  fresh: Effect.map(freshPostgres, (url) => layerPostgres({ url, maxConnections: 6 }))
}

/** Opens another ledger on the same database. */
export const openLedger = (layer: Layer.Layer<Ledger, LedgerError>): Effect.Effect<Ledger, LedgerError, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, LedgerTag))

export interface Bench {
  /** Ledgers on one database that the tests of a suite share; each test has runs of its own. */
  readonly ledgers: readonly [Ledger, ...ReadonlyArray<Ledger>]
  /** A worker of the first of them. */
  readonly owner: Owner
}

/** Opens the suite's ledgers before its tests, and hands them to each. */
export const benchOf = (
  place: Place
): (<A, E>(body: (bench: Bench) => Effect.Effect<A, E, Scope.Scope>) => () => Effect.Effect<A, E>) => {
  const scope = Effect.runSync(Scope.make())
  let bench: Bench | undefined
  beforeAll(async () => {
    bench = await Effect.runPromise(Scope.extend(openBench(place), scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (body) => () =>
    Effect.scoped(bench === undefined ? Effect.dieMessage("the suite's ledgers are not open") : body(bench))
}

const openBench = (place: Place): Effect.Effect<Bench, LedgerError, Scope.Scope> =>
  Effect.gen(function* () {
    const layer = yield* place.fresh
    const first = yield* openLedger(layer)
    const others = yield* Effect.replicateEffect(openLedger(layer), place.ledgers - 1)
    return { ledgers: [first, ...others], owner: yield* makeOwner(first) } satisfies Bench
  })
