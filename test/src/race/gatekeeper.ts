/** The process that runs the gated workflow, until it is killed. */
import { Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input } from "../processes/Inside.js"
import { Gate, handlers } from "./Gate.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress, log: Schema.String }))

await Effect.runPromise(
  Layer.launch(
    Worker.layer({ workflows: [Gate] }).pipe(
      Layer.provide(handlers(EffectLog.open(given.log))),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
