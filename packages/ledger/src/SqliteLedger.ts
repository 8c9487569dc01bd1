/** The ledger on a SQLite file: the embedded default. Several processes may share one file. */
import * as Reactivity from "@effect/experimental/Reactivity"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { makeSqliteClient } from "./internal/SqliteClient.js"
import { causeOf, ledgerError } from "./internal/SqlFailure.js"
import type { Ledger } from "./Ledger.js"
import type { LedgerError } from "./LedgerError.js"
import { layer, type LedgerOptions } from "./LedgerLayer.js"

/** Where the file is, and how to use it. */
export interface SqliteOptions extends Omit<LedgerOptions, "database"> {
  /** A path, or `":memory:"`. The file is created if need be; its folder is not. */
  readonly filename: string
}

/**
 * Opens the file and the ledger in it. A file that is no database, cannot be opened or written, or is of a newer
 * version fails with `LedgerUnusable`; one that stays locked, or a full disk, with `LedgerUnavailable`.
 */
export const layerSqlite = (options: SqliteOptions): Layer.Layer<Ledger | SqlClient, LedgerError> => {
  const { filename } = options
  const client = Layer.scoped(
    SqlClient,
    Effect.mapError(makeSqliteClient(filename), (error) => ledgerError(causeOf(error), "open the database", filename))
  ).pipe(Layer.provide(Reactivity.layer))
  return layer({ ...options, database: filename }).pipe(Layer.provideMerge(client))
}
