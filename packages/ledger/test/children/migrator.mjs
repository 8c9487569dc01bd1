/** Opens a ledger whose migration can be stopped half-way: the process stands still between two of its statements. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { layer, Ledger } from "@fermata/ledger"
import { input, pass, race } from "@fermata/test/processes/Inside"
import { Context, Effect, Layer, Redacted, Schema } from "effect"

const { filename, url } = input(
  Schema.Struct({ filename: Schema.optional(Schema.String), url: Schema.optional(Schema.String) })
)

const client = url === undefined ? SqliteClient.layer({ filename }) : PgClient.layer({ url: Redacted.make(url) })

const stoppable = Layer.map(client, (context) => {
  const sql = Context.get(context, SqlClient)
  const unsafe = (...args) => Effect.tap(sql.unsafe(...args), () => Effect.sync(() => pass("statement")))
  return Context.add(
    context,
    SqlClient,
    Object.assign((...args) => sql(...args), sql, { unsafe })
  )
})

race()
await Effect.runPromise(
  Effect.flatMap(Ledger, (ledger) => ledger.verify).pipe(Effect.provide(layer().pipe(Layer.provide(stoppable))))
)
