/** A worker that talks until it is killed. */
import { Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as PlaneAddress from "../PlaneAddress.js"
import { input } from "../processes/Inside.js"
import { Talk } from "./Talk.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress }))

await Effect.runPromise(
  Layer.launch(Worker.layer({ workflows: [Talk] }).pipe(Layer.provide(PlaneAddress.layer(given.plane))))
)
