/** Brings the ported thread to its end, from wherever it is, and tells what it holds then; may be killed on its way. */
import { Command, isInterrupted } from "@fermata/adapters/langgraph"
import { CrashPoint } from "@fermata/runtime/testing"
import { Schema } from "effect"
import * as EffectLog from "../EffectLog.js"
import { PlaneAddress } from "../PlaneAddress.js"
import { input, pass, tell } from "../processes/Inside.js"
import { config, open, ported } from "./Ported.js"

const given = input(Schema.Struct({ plane: PlaneAddress, log: Schema.String, reconciles: Schema.Boolean }))

CrashPoint.install((name, detail) => {
  const [, , kind = "", key = ""] = detail.split(" ")
  // Keys of effects name the whole way to them: their kind is enough.
  if (name === "durable") pass(kind.startsWith("effect.") ? `durable ${kind}` : `durable ${kind} ${key}`)
  return undefined
})

const log = EffectLog.open(given.log)
const plane = open(given.plane)
const graph = ported(plane, log, (what) => pass(`fired ${what}`), given.reconciles)
const { config: found } = await graph.getState(config)
const begun = "checkpoint_id" in found.configurable
let output = await graph.invoke(begun ? null : { log: [] }, config)
if (isInterrupted(output)) output = await graph.invoke(new Command({ resume: "yes" }), config)
tell(output.log)
await plane.close()
log.close()
