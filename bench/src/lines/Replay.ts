/**
 * 10,000 keyed steps are recorded and the run parks; a new worker, which has nothing of it in memory, is timed from the
 * answer to the result: the history is read from the database, every digest verified, every step served.
 */
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import type { Line } from "../Line.js"
import { median } from "../Figure.js"
import { interleaved, medianOf, millisecondsOf } from "../Rounds.js"
import { answer, awaitQuestion } from "../Answers.js"
import { Asking, running } from "../Workflows.js"

const steps = 10_000

export const replay: Line = {
  name: "replay",
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      const liveRates: Array<number> = []
      const record = Effect.gen(function* () {
        const client = yield* Client.Client
        const handle = yield* client.start(Asking, { looks: 0, touches: steps })
        const elapsed = yield* millisecondsOf(awaitQuestion(handle.branch, 1))
        liveRates.push((steps * 1000) / elapsed)
        return handle
      })
      const finish = (handle: Client.RunHandle) =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const elapsed = yield* millisecondsOf(
            Effect.zipRight(answer(handle.branch, 1, 0), client.result(Asking, handle))
          )
          return (steps * 1000) / elapsed
        })
      const measured = yield* interleaved(target.raw, Math.min(rounds, 3), () =>
        Effect.gen(function* () {
          const handle = yield* Effect.provide(record, running(location))
          return yield* Effect.provide(finish(handle), running(location))
        })
      )
      // The first live rate belongs to the unmeasured round.
      const live = liveRates.slice(1)
      return [
        {
          what: "replay of 10,000 keyed steps from the database",
          measured: { value: medianOf(measured, (round) => round.value), unit: "steps/s" },
          limit: { what: "live", value: median(live), unit: "steps/s" },
          ratio: median(measured.map((round, index) => round.value / (live[index] ?? Number.NaN))),
          goal: { atLeast: 10 },
          raw: medianOf(measured, (round) => round.raw)
        }
      ]
    })
}
