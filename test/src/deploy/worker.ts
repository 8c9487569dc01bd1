/** A worker of the given versions, until it is killed or told to stop. */
import { Worker } from "@fermata/runtime"
import { Effect, Fiber, Layer, Schema } from "effect"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, tell } from "../processes/Inside.js"
import { orders } from "./Order.js"

const given = input(
  Schema.Struct({ plane: PlaneAddress.PlaneAddress, versions: Schema.Array(Schema.Literal("1", "2")) })
)

const fiber = Effect.runFork(
  Effect.scoped(
    Effect.zipRight(
      Layer.build(
        Worker.layer({ workflows: given.versions.map((version) => orders[version]) }).pipe(
          Layer.provide(PlaneAddress.layer(given.plane))
        )
      ),
      Effect.zipRight(
        Effect.sync(() => tell("up")),
        Effect.never
      )
    )
  )
)
// As a deployment stops it: gracefully.
process.once("SIGTERM", () => void Effect.runPromise(Fiber.interrupt(fiber)).then(() => process.exit(0)))
