/**
 * A process is killed in its 1,001st step; a new one finishes the run. Timed from its start to the result, beside a `node` that
 * only imports the same modules: what is left is opening the database, taking the branch over without waiting for
 * its lease, and the replay.
 */
import { Effect } from "effect"
import { median } from "../Figure.js"
import type { Line } from "../Line.js"
import { encodeLocation, names } from "../processes/Parameters.js"
import { millisecondsOf } from "../Rounds.js"
import * as Script from "../Script.js"

/** Milliseconds allowed over the bare imports. */
const allowance = 120

export const restart: Line = {
  name: "restart",
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      const script = (mode: string, run: string) =>
        Script.start("restart", {
          parameters: { [names.location]: encodeLocation(location), [names.mode]: mode, [names.run]: run }
        })
      const bare = Effect.scoped(millisecondsOf(Effect.flatMap(script("import", ""), (child) => child.line)))
      const recovery = (run: string) =>
        Effect.scoped(
          Effect.gen(function* () {
            const first = yield* script("record", run)
            yield* first.line
            yield* first.kill
            return yield* millisecondsOf(Effect.flatMap(script("finish", run), (second) => second.line))
          })
        )
      const measured: Array<{ readonly bare: number; readonly recovery: number }> = []
      for (let round = 0; round <= rounds; round++) {
        const before = yield* bare
        const recovered = yield* recovery(`restarted-${round}`)
        const after = yield* bare
        // The first round warms the disk's cache.
        if (round > 0) measured.push({ bare: (before + after) / 2, recovery: recovered })
      }
      return [
        {
          what: "killed after 1,000 steps, new process to result",
          measured: { value: median(measured.map((round) => round.recovery)), unit: "ms" },
          limit: {
            what: `bare imports + ${allowance} ms`,
            value: median(measured.map((round) => round.bare + allowance)),
            unit: "ms"
          },
          ratio: median(measured.map((round) => round.recovery / (round.bare + allowance))),
          goal: { atMost: 1 },
          raw: undefined
        }
      ]
    })
}
