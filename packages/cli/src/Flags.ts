/** Options that several commands have. */
import { Options } from "@effect/cli"
import type { Client, Ledger } from "@fermata/runtime"
import { Effect, Either, Schema } from "effect"
import { readFileSync } from "node:fs"
import { UsageError } from "./CliError.js"
import * as DatabaseAddress from "./DatabaseAddress.js"
import type { LedgerUnavailable, LedgerUnusable } from "@fermata/runtime"

/** Where the database is, and how to print. */
export const common = {
  url: Options.text("url").pipe(
    Options.withDescription(`postgres://user:password@host/database; else ${DatabaseAddress.variable}`),
    Options.optional
  ),
  db: Options.text("db").pipe(Options.withDescription("The path of a SQLite file, instead of --url"), Options.optional),
  json: Options.boolean("json").pipe(Options.withDescription("Print JSON"))
}

/** The values of {@link common}. */
export type Common = Parameters<typeof DatabaseAddress.given>[0] & { readonly json: boolean }

/** The file that defines workflows, interrupts and effects. */
export const module = Options.text("module").pipe(
  Options.withAlias("m"),
  Options.withDescription("A JavaScript module that exports `workflows` and, if they need handlers, `layer`")
)

/** Runs an effect on the plane that the options name. */
export const onPlane = <A, E, R>(
  options: Common,
  effect: Effect.Effect<A, E, R>,
  { create = false }: { readonly create?: boolean } = {}
): Effect.Effect<A, E | UsageError | LedgerUnusable | LedgerUnavailable, Exclude<R, Client.Client | Ledger>> =>
  Effect.gen(function* () {
    const layer = yield* DatabaseAddress.plane(yield* DatabaseAddress.given(options), create)
    return yield* Effect.provide(effect, layer)
  })

const parseJson = Schema.decodeUnknown(Schema.parseJson())

/** The JSON value of an option: a text, `@FILE`, or `-` for standard input. Messages do not repeat it. */
export const jsonValue = (what: string, text: string): Effect.Effect<unknown, UsageError> =>
  Effect.gen(function* () {
    const source = text === "-" ? 0 : text.startsWith("@") ? text.slice(1) : undefined
    const json =
      source === undefined
        ? text
        : yield* Effect.try({
            try: () => readFileSync(source, "utf8"),
            catch: (error) =>
              new UsageError({
                what,
                detail: `cannot be read: ${error instanceof Error ? error.message : String(error)}`
              })
          })
    return yield* Effect.mapError(
      parseJson(json),
      () => new UsageError({ what, detail: `is not JSON. A text is written with its quotation marks: '"yes"'` })
    )
  })

/** A value as a definition's codec decodes it; fails with `UsageError` naming paths, not values. */
export const decoded = <A>(
  what: string,
  codec: { readonly decode: (text: string) => Either.Either<A, { readonly issues: ReadonlyArray<string> }> },
  json: unknown
): Effect.Effect<A, UsageError> =>
  Either.match(codec.decode(JSON.stringify(json)), {
    onLeft: ({ issues }) =>
      Effect.fail(new UsageError({ what, detail: `does not satisfy its Schema: ${issues.join("; ")}` })),
    onRight: Effect.succeed
  })

/** The time of an option, by ISO 8601: a date, or a date with a time (of UTC, if it ends with Z). */
export const timeOf = (what: string, text: string): Effect.Effect<Date, UsageError> => {
  const time = new Date(text)
  return /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())
    ? Effect.succeed(time)
    : Effect.fail(new UsageError({ what, detail: "is no time: it reads 2026-01-31 or 2026-01-31T08:00:00Z" }))
}
