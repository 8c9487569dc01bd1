/** A process that is client and worker in one: starts its runs, helps with everybody's, and waits for its own to end. */
import { Client, Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, tell } from "../processes/Inside.js"
import { Chain, handlers } from "./Chain.js"

const given = input(
  Schema.Struct({
    plane: PlaneAddress.PlaneAddress,
    log: Schema.String,
    name: Schema.String,
    runs: Schema.Number,
    steps: Schema.Number
  })
)

const work = Effect.gen(function* () {
  const client = yield* Client.Client
  const runs = Array.from({ length: given.runs }, (_, n) => `${given.name}-${n}`)
  const start = (run: string) => client.start(Chain, { run, steps: given.steps }, { run })
  const half = Math.floor(runs.length / 2)
  yield* Effect.forEach(runs.slice(0, half), start, { concurrency: 8 })
  tell("half of them started")
  yield* Effect.forEach(runs.slice(half), start, { concurrency: 8 })
  return yield* Effect.forEach(runs, (run) => client.result(Chain, run), { concurrency: "unbounded" })
})

tell(
  await Effect.runPromise(
    Effect.provide(
      work,
      Worker.layer({ workflows: [Chain] }).pipe(
        Layer.provide(handlers(EffectLog.open(given.log))),
        Layer.provideMerge(PlaneAddress.layer(given.plane))
      )
    )
  )
)
