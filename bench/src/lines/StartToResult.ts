/** A run of one keyed step, from `start` to `result`, on an idle worker: what a caller waits at least. */
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { median } from "../Figure.js"
import type { Line } from "../Line.js"
import { interleaved, medianOf, millisecondsOf } from "../Rounds.js"
import { Keyed, running } from "../Workflows.js"

const runs = 100

/** Milliseconds allowed at this raw rate. */
const allowed = (raw: number): number => (5 * 1000) / raw + 1

export const startToResult: Line = {
  name: "latency",
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      const run = Effect.gen(function* () {
        const client = yield* Client.Client
        const one = millisecondsOf(Effect.flatMap(client.start(Keyed, 1), (handle) => client.result(Keyed, handle)))
        return median(yield* Effect.replicateEffect(one, runs))
      })
      const measured = yield* Effect.provide(
        interleaved(target.raw, rounds, () => run, 3),
        running(location)
      )
      return [
        {
          what: "1 run of one step, start to result",
          measured: { value: medianOf(measured, (round) => round.value), unit: "ms" },
          limit: { what: "5 raw commits + 1 ms", value: medianOf(measured, (round) => allowed(round.raw)), unit: "ms" },
          ratio: medianOf(measured, (round) => round.value / allowed(round.raw)),
          goal: { atMost: 1 },
          raw: medianOf(measured, (round) => round.raw)
        }
      ]
    })
}
