/** Who carries out the declared side effects: each handler passes the firing's idempotency key on. */
import { Effect, Layer } from "effect"
import { Assessor } from "./Assessor.js"
import { Assess, LookUp, Notify, Pay } from "./Refund.js"
import { Shop } from "./Shop.js"

const LookUpLive = LookUp.toLayer((order) => Effect.flatMap(Shop, (shop) => shop.lookUp(order)))

const AssessLive = Assess.toLayer((asked) => Effect.flatMap(Assessor, (model) => model.assess(asked)))

const PayLive = Pay.toLayer(
  (payment, { idempotencyKey }) => Effect.flatMap(Shop, (shop) => shop.pay(idempotencyKey, payment)),
  {
    // Asked after a crash, when nobody knows whether the payment was made.
    reconcile: ({ idempotencyKey }, payment) =>
      Effect.flatMap(Shop, (shop) => shop.whatBecameOf(idempotencyKey, payment))
  }
)

const NotifyLive = Notify.toLayer((notice, { idempotencyKey }) =>
  Effect.flatMap(Shop, (shop) => shop.notify(idempotencyKey, notice))
)

/** All four, for whoever runs the workflow. */
export const layer = Layer.mergeAll(LookUpLive, AssessLive, PayLive, NotifyLive)
