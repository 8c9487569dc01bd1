/** A new shop: its tables, and its orders from a file. */
import { SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Effect, Either, Schema } from "effect"
import * as Money from "./Money.js"

/** An order in the file: amounts as people write them. */
const WrittenOrder = Schema.Struct({
  id: Schema.String,
  currency: Money.Currency,
  paid: Schema.String,
  refunded: Schema.optionalWith(Schema.String, { default: () => "0" }),
  card: Schema.optionalWith(Schema.Literal("open", "closed"), { default: () => "open" })
})

const decode = Schema.decodeUnknownSync(Schema.parseJson(WrittenOrder))

/** Creates the database with the orders of this text (JSON lines). Bad orders are a bug in the example: it dies. */
export const create = (filename: string, orders: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE orders (
      id TEXT PRIMARY KEY, currency TEXT NOT NULL, paid INTEGER NOT NULL, refunded INTEGER NOT NULL, card TEXT NOT NULL
    )`
    yield* sql`CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)`
    yield* sql`CREATE TABLE effect_log (
      n INTEGER PRIMARY KEY, what TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
      currency TEXT, minor INTEGER, text TEXT NOT NULL
    )`
    const rows = orders
      .trim()
      .split("\n")
      .map((line) => {
        const { card, currency, id, paid, refunded } = decode(line)
        return { id, currency, paid: minor(paid, currency), refunded: minor(refunded, currency), card }
      })
    yield* sql`INSERT INTO orders ${sql.insert(rows)}`
  }).pipe(Effect.provide(SqliteClient.layer({ filename })), Effect.orDie)

const minor = (text: string, currency: Money.Currency): number =>
  Either.getOrThrowWith(Money.parse(text, currency), (problem) => new Error(problem)).minor
