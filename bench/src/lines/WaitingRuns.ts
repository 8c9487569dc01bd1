/**
 * Very many runs wait for an answer: the memory of their worker with all of them beside that with a tenth of them, and how long one
 * of them takes from its answer to its result, answered in the worker's process and in another one.
 */
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import { answer } from "../Answers.js"
import { type Figure, median } from "../Figure.js"
import type { Line } from "../Line.js"
import { encodeLocation, names } from "../processes/Parameters.js"
import { millisecondsOf } from "../Rounds.js"
import * as Script from "../Script.js"
import { planeOf } from "../Target.js"
import { Asking } from "../Workflows.js"

const Answer = Schema.parseJson(
  Schema.Struct({ early: Schema.Number, late: Schema.Number, times: Schema.Array(Schema.Number) })
)

const allowed = 50

export const waitingRuns: Line = {
  name: "waiting",
  measure: (target, { waiting }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      const worker = yield* Script.start("waiting", {
        flags: ["--expose-gc"],
        parameters: { [names.location]: encodeLocation(location), [names.run]: String(waiting) }
      })
      const { early, late, times } = yield* Effect.flatMap(worker.line, Schema.decode(Answer))
      const fromHere = yield* Effect.provide(
        Effect.gen(function* () {
          const client = yield* Client.Client
          return yield* Effect.forEach(times, (_, index) =>
            Effect.gen(function* () {
              const { branch } = yield* client.describe(`waiting-${times.length + index}`)
              return yield* millisecondsOf(Effect.zipRight(answer(branch, 1, 0), client.result(Asking, branch)))
            })
          )
        }),
        planeOf(location)
      )
      const finished = (where: string, taken: ReadonlyArray<number>): Figure => ({
        what: `one of them answered ${where}, to its result`,
        measured: { value: median(taken), unit: "ms" },
        limit: { what: "50 ms", value: allowed, unit: "ms" },
        ratio: median(taken) / allowed,
        goal: { atMost: 1 },
        raw: undefined
      })
      return [
        {
          what: `${waiting.toLocaleString("en")} runs wait: the worker's memory`,
          measured: { value: late, unit: "MB" },
          limit: { what: "with a tenth of them", value: early, unit: "MB" },
          ratio: late / early,
          goal: { atMost: 1.1 },
          raw: undefined
        },
        finished("in the worker's process", times),
        finished("by another process", fromHere)
      ]
    })
}
