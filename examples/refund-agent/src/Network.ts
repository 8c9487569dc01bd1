/** What lies between a worker and the outside world. Calls get lost in it, on the way there or on the way back. */
import { Context, Effect, Layer } from "effect"

/** What is called. */
export type Endpoint = "orders" | "payments" | "mail"

/** Carries every call to the outside world. */
export class Network extends Context.Tag("refund-agent/Network")<
  Network,
  { readonly carry: <A, E>(endpoint: Endpoint, call: Effect.Effect<A, E>) => Effect.Effect<A, E> }
>() {}

/** Every call arrives, and so does every reply. */
export const calm = Layer.succeed(Network, { carry: (_, call) => call })

/** What a cut network loses: calls on their way out, or replies on their way back. */
export type Loses = "calls" | "replies"

/**
 * A network that is cut after some payments: from then on everything that moves the world is lost, and the caller waits
 * for ever. `onLoss` runs for each loss, after the lost call has had its effect or, if calls are lost, before any.
 */
export const cut = (options: {
  readonly afterPayments: number
  readonly loses: Loses
  readonly onLoss: Effect.Effect<void>
}) =>
  Layer.sync(Network, () => {
    const lost = Effect.zipRight(options.onLoss, Effect.never)
    let payments = 0
    return {
      carry: (endpoint, call) =>
        Effect.suspend(() => {
          if (endpoint === "payments") payments++
          if (endpoint === "orders" || payments <= options.afterPayments) return call
          return options.loses === "calls" ? lost : Effect.zipRight(Effect.exit(call), lost)
        })
    }
  })
