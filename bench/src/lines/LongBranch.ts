/**
 * Step 50,000 beside step 1,000: two runs, one long and one short, take turns at 500 keyed steps each, so that both are
 * measured in the same seconds. The rate is taken between the first and the last firing of a turn.
 */
import { Client } from "@fermata/runtime"
import type { Entry } from "@fermata/contract"
import { Effect } from "effect"
import { answer, awaitQuestion } from "../Answers.js"
import { median } from "../Figure.js"
import type { Line } from "../Line.js"
import { interleaved, medianOf } from "../Rounds.js"
import { Asking, running } from "../Workflows.js"

const long = 50_000
const short = 1000
const turn = 500

const bytesOf = (entry: Entry): number =>
  Buffer.byteLength(entry.payload) + Buffer.byteLength(entry.key) + entry.digest.length

/** Bytes a step in the last turn of a history. */
const bytesPerStep = (history: ReadonlyArray<Entry>): number => {
  // A keyed step has three entries; a whole number of them keeps the mix of kinds the same.
  const last = history
    .filter((entry) => entry.kind !== "interrupt.opened" && entry.kind !== "interrupt.answered")
    .slice(-3 * turn)
  return (3 * last.reduce((sum, entry) => sum + bytesOf(entry), 0)) / last.length
}

export const longBranch: Line = {
  name: "long",
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      let fired: Array<number> = []
      const measured = Effect.gen(function* () {
        const client = yield* Client.Client
        const begin = (looks: number) =>
          Effect.tap(client.start(Asking, { looks, touches: 0 }), (handle) => awaitQuestion(handle.branch, 1))
        const far = yield* begin(long)
        const near = yield* begin(short)
        const turnOf = (handle: Client.RunHandle, round: number) =>
          Effect.gen(function* () {
            fired = []
            yield* answer(handle.branch, round + 1, turn)
            yield* awaitQuestion(handle.branch, round + 2)
            return ((turn - 1) * 1000) / ((fired.at(-1) ?? Number.NaN) - (fired[0] ?? Number.NaN))
          })
        const nearRates: Array<number> = []
        const farRounds = yield* interleaved(target.raw, rounds, (round) =>
          Effect.gen(function* () {
            const rate = yield* turnOf(far, round)
            nearRates.push(yield* turnOf(near, round))
            return rate
          })
        )
        const raw = medianOf(farRounds, (round) => round.raw)
        const farBytes = bytesPerStep(yield* client.history(far))
        const nearBytes = bytesPerStep(yield* client.history(near))
        // The first rate belongs to the unmeasured round.
        const nearMeasured = nearRates.slice(1)
        return [
          {
            what: "keyed steps from step 50,000 of a branch on",
            measured: { value: medianOf(farRounds, (round) => round.value), unit: "steps/s" as const },
            limit: { what: "from step 1,000 on", value: median(nearMeasured), unit: "steps/s" as const },
            ratio: median(farRounds.map((round, index) => round.value / (nearMeasured[index] ?? Number.NaN))),
            goal: { atLeast: 0.9 },
            raw
          },
          {
            what: "journal bytes of a step there",
            measured: { value: farBytes, unit: "bytes/step" as const },
            limit: { what: "from step 1,000 on", value: nearBytes, unit: "bytes/step" as const },
            ratio: farBytes / nearBytes,
            goal: { atMost: 1.05 },
            raw
          }
        ]
      })
      return yield* Effect.provide(measured, running(location, { onTouch: () => void fired.push(performance.now()) }))
    })
}
