/** A worker of the soak: runs until it is killed, stopped or told to stop. */
import { Worker } from "@fermata/runtime"
import { Effect, Fiber, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input } from "../processes/Inside.js"
import { handlers, Soak } from "./Load.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress, log: Schema.String }))

const fiber = Effect.runFork(
  Layer.launch(
    // A short lease, so that a worker that stands still for some seconds comes back as a zombie.
    Worker.layer({ workflows: [Soak], lease: "3 seconds" }).pipe(
      Layer.provide(handlers(EffectLog.open(given.log))),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
process.once("SIGTERM", () => void Effect.runPromise(Fiber.interrupt(fiber)).then(() => process.exit(0)))
