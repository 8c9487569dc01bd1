/**
 * Interleaved rounds: raw, item, raw, item, raw. A machine that is shared gets faster and slower by the second; an item is
 * judged by the raw rate just before and just after it, and the median of several rounds counts.
 */
import { Effect } from "effect"
import { median } from "./Figure.js"

/** One measurement, and the mean of the raw rates (commits a second) on both sides of it. */
export interface Round {
  readonly value: number
  readonly raw: number
}

/** Runs `item` a few times unmeasured, as round 0: a worker is measured once it is compiled. Then `rounds` times. */
export const interleaved = <E, R>(
  raw: Effect.Effect<number>,
  rounds: number,
  item: (round: number) => Effect.Effect<number, E, R>,
  warmUps = 1
): Effect.Effect<ReadonlyArray<Round>, E, R> =>
  Effect.gen(function* () {
    for (let done = 0; done < warmUps; done++) yield* item(0)
    const measured: Array<Round> = []
    let before = yield* raw
    for (let round = 1; round <= rounds; round++) {
      const value = yield* item(round)
      const after = yield* raw
      measured.push({ value, raw: (before + after) / 2 })
      before = after
    }
    return measured
  })

/** The median of what `of` makes of each round. */
export const medianOf = (rounds: ReadonlyArray<Round>, of: (round: Round) => number): number => median(rounds.map(of))

/** How long the effect takes on the host's monotonic clock, in milliseconds. */
export const millisecondsOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const started = performance.now()
    return Effect.map(effect, () => performance.now() - started)
  })
