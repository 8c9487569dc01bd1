/** A worker with a short lease that stops at points of its firings, until it is killed. */
import { Worker } from "@fermata/runtime"
import { CrashPoint } from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, pass } from "../processes/Inside.js"
import { handlers, payment } from "./Payment.js"

const given = input(
  Schema.Struct({
    plane: PlaneAddress.PlaneAddress,
    log: Schema.String,
    /** Milliseconds. */
    lease: Schema.Number,
    versions: Schema.Array(Schema.String)
  })
)

CrashPoint.install((name, detail) => {
  // The run is left out of an effect's key.
  if (name.endsWith("-intent")) pass(`${name}:${detail.slice(detail.indexOf("|") + 1)}`)
  return undefined
})

await Effect.runPromise(
  Layer.launch(
    Worker.layer({ workflows: given.versions.map(payment), lease: given.lease }).pipe(
      Layer.provide(handlers(EffectLog.open(given.log))),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
