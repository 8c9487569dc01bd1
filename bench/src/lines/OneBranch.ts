/** One run of 1,000 steps from start to result: keyed ones, a commit each, and repeatable ones, which are pipelined. */
import { Client, type Workflow } from "@fermata/runtime"
import { Effect } from "effect"
import { interleaved, medianOf, millisecondsOf } from "../Rounds.js"
import type { Line } from "../Line.js"
import type { Target } from "../Target.js"
import { Keyed, Repeatable, running } from "../Workflows.js"

const steps = 1000

const line = <N extends string, R>(
  workflow: Workflow.Workflow<N, number, void, never, R>,
  goal: (target: Target) => number
): Line => ({
  name: workflow.name,
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      const run = Effect.gen(function* () {
        const client = yield* Client.Client
        const elapsed = yield* millisecondsOf(
          Effect.flatMap(client.start(workflow, steps), (handle) => client.result(workflow, handle))
        )
        return (steps * 1000) / elapsed
      })
      const measured = yield* Effect.provide(
        interleaved(target.raw, rounds, () => run, 3),
        running(location)
      )
      const raw = medianOf(measured, (round) => round.raw)
      return [
        {
          what: `1 branch, 1,000 ${workflow.name} steps in sequence`,
          measured: { value: medianOf(measured, (round) => round.value), unit: "steps/s" },
          limit: { what: "raw", value: raw, unit: "commits/s" },
          ratio: medianOf(measured, (round) => round.value / round.raw),
          goal: { atLeast: goal(target) },
          raw
        }
      ]
    })
})

export const keyed = line(Keyed, (target) => (target.name === "sqlite" ? 0.6 : 0.4))

export const repeatable = line(Repeatable, () => 3)
