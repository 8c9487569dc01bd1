/** A process that answers an interrupt at the same moment as others do, heat after heat. */
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, race, receive, tell } from "../processes/Inside.js"
import { Heat, type Verdict } from "./Answers.js"
import { Approval } from "./Gate.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress }))

const answer = (branch: string, { deliveryId, value }: Heat["answers"][number]) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const verdict = { deliveryId, value, by: null, at: null }
    return yield* client.resume(Approval, { branch, interrupt: "approval#1", value, deliveryId, intent: "retry" }).pipe(
      Effect.map((receipt): Verdict =>
        receipt._tag === "Answered"
          ? { ...verdict, verdict: receipt.verdict, by: receipt.delivery, at: receipt.at }
          : { ...verdict, verdict: receipt._tag }
      ),
      Effect.catchTag("AlreadyConsumed", (refusal) =>
        Effect.succeed<Verdict>({ ...verdict, verdict: refusal._tag, by: refusal.by, at: refusal.at })
      ),
      Effect.catchAll((refusal) => Effect.succeed<Verdict>({ ...verdict, verdict: refusal._tag }))
    )
  })

const heats = Effect.forever(
  Effect.gen(function* () {
    const heat = yield* Effect.promise(() => receive(Heat))
    race(heat.start)
    tell(yield* Effect.forEach(heat.answers, (one) => answer(heat.branch, one), { concurrency: "unbounded" }))
  })
)

await Effect.runPromise(Effect.provide(heats, PlaneAddress.layer(given.plane)))
