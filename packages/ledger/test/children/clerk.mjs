/** One of several processes that share a ledger: starts runs of its own, and works on whatever is there until all is done. */
import { completionsOf, work } from "./work.mjs"
import { layerPostgres, layerSqlite } from "@fermata/ledger"
import { input, race } from "@fermata/test/processes/Inside"
import { Effect, Schema } from "effect"

const { filename, url, name, runs, total } = input(
  Schema.Struct({
    filename: Schema.optional(Schema.String),
    url: Schema.optional(Schema.String),
    name: Schema.String,
    runs: Schema.Number,
    total: Schema.Number
  })
)

race()
await Effect.runPromise(
  Effect.scoped(work({ name, runs, done: Effect.map(completionsOf, (count) => count === total) })).pipe(
    Effect.provide(url === undefined ? layerSqlite({ filename }) : layerPostgres({ url, maxConnections: 4 }))
  )
)
