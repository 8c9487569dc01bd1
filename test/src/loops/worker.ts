/** A worker of the agent: runs until it is killed. */
import { Worker } from "@fermata/runtime"
import { CrashPoint } from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, pass } from "../processes/Inside.js"
import { Agent, handlers } from "./Agent.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress, log: Schema.String }))

CrashPoint.install((name, detail) => {
  if (name === "appended" || name === "durable") pass(`${name} ${detail.split(" ").slice(2).join(" ")}`)
  return undefined
})

await Effect.runPromise(
  Layer.launch(
    Worker.layer({ workflows: [Agent] }).pipe(
      Layer.provide(handlers(EffectLog.open(given.log))),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
