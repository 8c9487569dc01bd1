/** What the crashes left in doubt, and what the shop said of it: read from the runs' own journals. */
import { payloadOf } from "@fermata/contract"
import { Client } from "@fermata/runtime"
import { Effect } from "effect"

/** How many payments were in doubt, by what had become of them. */
export interface Doubts {
  /** They had happened (or had been declined): the shop's answer was recorded. */
  readonly happened: number
  /** They had not, and never will: made anew under another key. */
  readonly never: number
}

/** Counts the answers of `reconcile` in the histories of these runs. */
export const count = (runs: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const histories = yield* Effect.forEach(runs, (run) => client.history(run))
    const entries = histories.flat()
    const happened = entries.filter(
      (entry) =>
        (entry.kind === "effect.succeeded" || entry.kind === "effect.failed") &&
        payloadOf({ kind: entry.kind, payload: entry.payload }).by === "reconcile"
    )
    return {
      happened: happened.length,
      never: entries.filter(({ kind }) => kind === "effect.voided").length
    } satisfies Doubts
  })
