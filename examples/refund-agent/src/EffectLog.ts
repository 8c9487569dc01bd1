/** The shop's effect log: one row for everything that it was asked to do, in the order in which it did it. */
import { SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Effect, Schema } from "effect"
import * as Money from "./Money.js"

/** What happened. */
export const What = Schema.Literal(
  "payment",
  "payment asked for again",
  "payment declined",
  "key closed",
  "letter",
  "letter asked for again"
)
export type What = typeof What.Type

/** One row. */
export interface Entry {
  readonly n: number
  readonly what: What
  /** The idempotency key that the caller handed over. */
  readonly key: string
  readonly request: string
  readonly amount: Money.Money | undefined
  readonly text: string
}

/** Appends a row and gives its number. */
export const write =
  (sql: SqlClient.SqlClient) =>
  (entry: {
    readonly what: What
    readonly key: string
    readonly request: string
    readonly amount?: Money.Money
    readonly text?: string
  }) =>
    Effect.map(
      sql<{ n: number }>`INSERT INTO effect_log ${sql.insert({
        what: entry.what,
        key: entry.key,
        request: entry.request,
        currency: entry.amount?.currency ?? null,
        minor: entry.amount?.minor ?? null,
        text: entry.text ?? ""
      })} RETURNING n`,
      (rows) => rows[0]?.n ?? 0
    )

const Row = Schema.Struct({
  n: Schema.Int,
  what: What,
  key: Schema.String,
  request: Schema.String,
  currency: Schema.NullOr(Money.Currency),
  minor: Schema.NullOr(Schema.Int),
  text: Schema.String
})

/** The whole log of a shop's database, which is only read. */
export const read = (filename: string): Effect.Effect<ReadonlyArray<Entry>> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql`SELECT n, what, key, request, currency, minor, text FROM effect_log ORDER BY n`
    return (yield* Schema.decodeUnknown(Schema.Array(Row))(rows)).map(({ currency, minor, ...row }) => ({
      ...row,
      amount: currency === null || minor === null ? undefined : { currency, minor }
    }))
  }).pipe(Effect.provide(SqliteClient.layer({ filename, readonly: true, disableWAL: true })), Effect.orDie)
