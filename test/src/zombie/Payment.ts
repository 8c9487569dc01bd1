/** A workflow with a payment that must happen once and a parcel that carries its key, for owners that fall asleep. */
import { Delivery, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import { hold, pass, tell } from "../processes/Inside.js"

/** Short limits: a successor asks the receiver only when the sleeper's firing can no longer be under way. */
export const Pay = SideEffect.make("zombie/pay", {
  delivery: Delivery.once({ timeLimit: "500 millis", fireWithin: "500 millis" }),
  input: Schema.String,
  success: Schema.String
})
export const Ship = SideEffect.make("zombie/ship", {
  delivery: Delivery.keyed,
  input: Schema.String,
  success: Schema.String
})

const pay = Node.make("pay", { input: Schema.String, success: Schema.String, effects: [Pay] }, (run) => Pay(run))
const ship = Node.make("ship", { input: Schema.String, success: Schema.String, effects: [Ship] }, (receipt) =>
  Ship(receipt)
)

/** Input: the run's name. A worker claims the versions that it knows. */
export const payment = (version: string) =>
  Workflow.make("payment", { version, input: Schema.String, success: Schema.String }, (run) =>
    Effect.flatMap(pay(run), ship)
  )

/**
 * The receiver keeps its promise: what it ruled never to happen it refuses, and the handler tells so. Each handler stops the process
 * at `entered:…` before anything happens, then, alone, at `held:…`.
 */
export const handlers = (log: EffectLog) => {
  const happen = (name: string, firing: SideEffect.Firing, input: string, value: string) =>
    // A promise: what is on its way goes on, whatever becomes of who waits for it.
    Effect.promise(async () => {
      pass(`entered:${name}`)
      await hold(`held:${name}`)
      const { idempotencyKey, key } = firing
      const written = log.write({ at: key, effect: name, idempotencyKey, inputDigest: input })
      tell(written)
      if (written === "refused") throw new Error(`${key} was ruled never to happen`)
      return value
    })
  return Layer.mergeAll(
    Pay.toLayer((run, firing) => happen(Pay.name, firing, run, `paid ${run}`), {
      reconcile: (firing, run) =>
        Effect.sync(() =>
          log.rule(firing.idempotencyKey) === "happened" ? SideEffect.Happened(`paid ${run}`) : SideEffect.NeverWill
        )
    }),
    Ship.toLayer((receipt, firing) => happen(Ship.name, firing, receipt, `shipped: ${receipt}`))
  )
}
