/** Workers that start, and end as workers do: by SIGKILL, at the worst moment. */
import { Effect } from "effect"
import * as ChildProcess from "./ChildProcess.js"
import * as EffectLog from "./EffectLog.js"
import type { Loses } from "./Network.js"
import type { Stage } from "./Stage.js"

/** Starts a worker process, with a network that is cut at some point if asked. */
export const startWorker = ({ plane, shop }: Stage, cut?: { readonly afterPayments: number; readonly loses: Loses }) =>
  ChildProcess.start("./worker.js", { plane, shop, cut })

/**
 * Starts a worker whose network is cut after five payments, waits until three things were lost, and kills it: the worker
 * dies with calls in flight of which it cannot know whether they arrived. Returns how much the shop has paid by then.
 */
export const killedInFlight = (stage: Stage, loses: Loses) =>
  Effect.scoped(
    Effect.gen(function* () {
      const worker = yield* startWorker(stage, { afterPayments: 5, loses })
      yield* Effect.replicateEffect(worker.receive, 3, { discard: true })
      yield* worker.kill
      const log = yield* EffectLog.read(stage.shop)
      return log.filter(({ what }) => what === "payment").length
    })
  )
