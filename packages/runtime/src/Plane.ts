/**
 * The plane: a database that holds the runs, and a client of it. Workers and clients in any number of processes may have
 * the same one.
 *
 * @example
 * const Live = Worker.layer({ workflows: [Refund] }).pipe(
 *   Layer.provide(ChargeLive),
 *   Layer.provideMerge(Plane.sqlite({ filename: "app.db" }))
 * )
 */
import {
  type Ledger,
  layerPostgres,
  layerSqlite,
  type LedgerUnavailable,
  type LedgerUnusable,
  type PayloadCodec
} from "@fermata/ledger"
import { Layer, type Redacted } from "effect"
import * as Client from "./Client.js"

/** What a plane provides: the client for you, the ledger for workers. */
export type Plane = Ledger | Client.Client

/**
 * A plane in a SQLite file, which is created if there is none. Several processes of one host may share it.
 *
 * `synchronous`: `"full"` (the default) survives a loss of power; `"normal"` is faster, and may lose the last commits then,
 * though not when a process dies.
 *
 * Fails with `LedgerUnusable` if the file is not such a database, is read-only or of a newer version, and with
 * `LedgerUnavailable` if it is locked for long or the disk is full.
 */
export const sqlite = (options: {
  readonly filename: string
  readonly synchronous?: "full" | "normal"
  /** The longest payload of an entry, in UTF-16 code units of its JSON text; 4 MiB by default. */
  readonly maxPayload?: number
  /** False refuses a database of an older version instead of updating it (`LedgerUnusable`, "older version"). */
  readonly migrate?: boolean
  /** Compression and encryption of values: see `PayloadCodec`. Every process of the plane needs the same. */
  readonly codecs?: ReadonlyArray<PayloadCodec.PayloadCodec>
}): Layer.Layer<Plane, LedgerUnusable | LedgerUnavailable> => Layer.provideMerge(Client.layer, layerSqlite(options))

/**
 * A plane in a PostgreSQL database, for any number of processes on any number of hosts. `maxConnections` bounds this
 * process's pool.
 *
 * Fails with `LedgerUnavailable` if the server cannot be reached, and with `LedgerUnusable` if the database is of a newer
 * version. Errors name host and database, never credentials.
 */
export const postgres = (options: {
  readonly url: string | Redacted.Redacted
  readonly maxConnections?: number
  /** As for {@link sqlite}. */
  readonly maxPayload?: number
  /** As for {@link sqlite}. */
  readonly migrate?: boolean
  /** Compression and encryption of values: see `PayloadCodec`. Every process of the plane needs the same. */
  readonly codecs?: ReadonlyArray<PayloadCodec.PayloadCodec>
}): Layer.Layer<Plane, LedgerUnusable | LedgerUnavailable> => Layer.provideMerge(Client.layer, layerPostgres(options))
