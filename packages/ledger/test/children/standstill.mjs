/** A worker that stands still inside a transaction, and goes on after others took its branches. */
import { layerPostgres, Ledger } from "@fermata/ledger"
import { input, pass, tell } from "@fermata/test/processes/Inside"
import { Effect, Schema } from "effect"

const { url, definitions, idleInTransaction } = input(
  Schema.Struct({ url: Schema.String, definitions: Schema.Array(Schema.String), idleInTransaction: Schema.Number })
)

await Effect.runPromise(
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const { worker } = yield* ledger.register({ lease: 600_000, place: undefined, look: () => "cannot tell" })
    const [claim] = yield* ledger.claim({ worker, definitions, limit: 2 })
    const body = Effect.zipRight(
      ledger.sql`SELECT 1`,
      Effect.sync(() => pass("inside"))
    )
    const outcome = yield* Effect.either(
      ledger.open(claim).transact(body, () => ({ kind: "step.succeeded", key: "late#0", payload: "{}" }))
    )
    tell(outcome._tag === "Left" ? outcome.left._tag : "stored")
  }).pipe(Effect.scoped, Effect.provide(layerPostgres({ url, idleInTransaction })))
)
