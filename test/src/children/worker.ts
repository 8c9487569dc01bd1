/** A worker of parents and children: runs until it is killed. */
import { Worker } from "@fermata/runtime"
import { CrashPoint } from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, pass } from "../processes/Inside.js"
import { Boat, Convoy, handlers } from "./Convoy.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress, log: Schema.String }))

CrashPoint.install((name, detail) => {
  const [branch = "", , kind = "", key = ""] = detail.split(" ")
  // Ids of children are not known before: they begin with their parent's.
  const who = branch.startsWith("c/") ? "parent" : "child"
  if (name === "durable") pass(`${who} ${kind.startsWith("effect.") ? kind : `${kind} ${key}`.trim()}`)
  return undefined
})

await Effect.runPromise(
  Layer.launch(
    Worker.layer({ workflows: [Convoy, Boat] }).pipe(
      Layer.provide(handlers(EffectLog.open(given.log))),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
