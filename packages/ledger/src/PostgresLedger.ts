/** The ledger on PostgreSQL: any number of workers on any number of machines, coordinating through it alone. */
import * as Reactivity from "@effect/experimental/Reactivity"
import { SqlClient } from "@effect/sql/SqlClient"
import { Duration, Effect, Layer, Redacted } from "effect"
import { causeOf, ledgerError } from "./internal/SqlFailure.js"
import type { Ledger } from "./Ledger.js"
import { type LedgerError, LedgerUnusable } from "./LedgerError.js"
import { layer, type LedgerOptions } from "./LedgerLayer.js"

/** Where the server is, and how to use it. */
export interface PostgresOptions extends Omit<LedgerOptions, "database" | "synchronous"> {
  /** `postgres://user:password@host:port/database`. It is never shown. */
  readonly url: string | Redacted.Redacted
  /** Default: 10. Two are kept by the ledger: one writes the journal, one hears notifications. */
  readonly maxConnections?: number
  /** How long a connection may take to come about. Default: 5 seconds. */
  readonly connectTimeout?: Duration.DurationInput
}

/** Connects and opens the ledger. A server that is down fails with `LedgerUnavailable`; one that refuses, `LedgerUnusable`. */
export const layerPostgres = (options: PostgresOptions): Layer.Layer<Ledger | SqlClient, LedgerError> => {
  const url = typeof options.url === "string" ? Redacted.make(options.url) : options.url
  if (isAmbiguous(Redacted.value(url))) return Layer.fail(ambiguous)
  const database = placeOf(Redacted.value(url))
  const client = Layer.scoped(
    SqlClient,
    Effect.flatMap(
      // Loaded where it is used: it is a tenth of what a process on SQLite would load to start.
      Effect.promise(() => import("@effect/sql-pg/PgClient")),
      (PgClient) =>
        Effect.mapError(
          PgClient.make({
            url,
            maxConnections: Math.max(4, options.maxConnections ?? 10),
            connectTimeout: options.connectTimeout ?? Duration.seconds(5),
            applicationName: "fermata"
          }),
          (error) => ledgerError(causeOf(error), "connect", database)
        )
    )
  ).pipe(Layer.provide(Reactivity.layer))
  return layer({ ...options, database }).pipe(Layer.provideMerge(client))
}

/**
 * True if the credentials are not where they should be, as in a URL whose password has `/`, `?`, `#` or `@` as they
 * are: parts of it would be taken for host and database, and named as such in messages.
 */
const isAmbiguous = (url: string): boolean => {
  if (!URL.canParse(url)) return url.includes("@")
  const { hash, pathname, search, username } = new URL(url)
  return [pathname, hash, username === "" ? search : ""].some((part) => part.includes("@"))
}

const ambiguous = new LedgerUnusable({
  reason: "cannot be opened",
  database: "PostgreSQL",
  detail: "its URL is none, or has an @ after the place of the host",
  advice:
    "Write postgres://user:password@host:port/database, and percent-encode the special characters of the password: @ is %40, / is %2F, ? is %3F, # is %23"
})

/** Host and database of a connection URL, without credentials and parameters. */
const placeOf = (url: string): string => {
  if (!URL.canParse(url)) return "PostgreSQL"
  const { host, pathname } = new URL(url)
  return `${host === "" ? "localhost" : host}${pathname}`
}
