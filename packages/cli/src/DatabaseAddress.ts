/** Where the plane is: a SQLite file or a PostgreSQL URL, from an option or the environment. The URL is never shown. */
import { type LedgerUnavailable, type LedgerUnusable, Plane } from "@fermata/runtime"
import { Effect, type Layer, Option, Redacted } from "effect"
import { existsSync } from "node:fs"
import { UsageError } from "./CliError.js"

/** A database as the command line names it. */
export type DatabaseAddress =
  | { readonly _tag: "Sqlite"; readonly filename: string }
  | { readonly _tag: "Postgres"; readonly url: Redacted.Redacted }

/** The environment's variable for it. */
export const variable = "FERMATA_DATABASE"

/**
 * Reads an address: `postgres://…` or `postgresql://…`, `sqlite:PATH`, or a path. Fails with `UsageError` for another
 * scheme, without repeating the text, which may hold a password.
 */
export const parse = (text: string): Effect.Effect<DatabaseAddress, UsageError> => {
  if (/^postgres(ql)?:\/\//.test(text)) return Effect.succeed({ _tag: "Postgres", url: Redacted.make(text) })
  const path = text.startsWith("sqlite:") ? text.slice("sqlite:".length) : text
  if (path.trim() === "" || path.includes("://")) {
    return Effect.fail(
      new UsageError({
        what: "the database",
        detail: "is neither postgres://user:password@host:port/database nor the path of a SQLite file"
      })
    )
  }
  return Effect.succeed({ _tag: "Sqlite", filename: path })
}

/** The address that was given, by `--url`, by `--db`, or else by the environment. */
export const given = (options: {
  readonly url: Option.Option<string>
  readonly db: Option.Option<string>
}): Effect.Effect<DatabaseAddress, UsageError> => {
  if (Option.isSome(options.url) && Option.isSome(options.db)) {
    return Effect.fail(new UsageError({ what: "the database", detail: "is given twice: use --url or --db" }))
  }
  const named = Option.orElse(options.url, () => options.db)
  return Option.match(
    Option.orElse(named, () => Option.fromNullable(process.env[variable])),
    {
      onNone: () =>
        Effect.fail(new UsageError({ what: "the database", detail: `is not named: use --url, --db, or ${variable}` })),
      onSome: parse
    }
  )
}

/**
 * The plane there. `create` may make a SQLite file and create or update tables; without it both are refused, so that
 * looking at a database changes nothing.
 */
export const plane = (
  address: DatabaseAddress,
  create: boolean
): Effect.Effect<Layer.Layer<Plane.Plane, LedgerUnusable | LedgerUnavailable>, UsageError> => {
  if (address._tag === "Postgres") {
    return Effect.succeed(Plane.postgres({ url: address.url, maxConnections: 4, migrate: create }))
  }
  const { filename } = address
  if (!create && !existsSync(filename)) {
    return Effect.fail(
      new UsageError({
        what: "the database",
        detail: `${filename} does not exist. "fermata migrate" and "fermata worker" create one`
      })
    )
  }
  return Effect.succeed(Plane.sqlite({ filename, migrate: create }))
}

/** The address as text that {@link parse} reads, with its credentials: for the environment of a child process only. */
export const text = (address: DatabaseAddress): string =>
  address._tag === "Postgres" ? Redacted.value(address.url) : `sqlite:${address.filename}`
