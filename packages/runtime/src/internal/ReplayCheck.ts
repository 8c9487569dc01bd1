/**
 * New code against old histories: does this workflow do what a stored history shows? Nothing is run but the workflow's
 * body: no node, no effect, no database.
 *
 * @example
 * const history = yield* HistoryFile.read(readFileSync("history.json", "utf8"))
 * yield* Replay.check(Refund, history)
 */
import type { History } from "@fermata/ledger"
import { Effect, type Runtime, Schema } from "effect"
import type { HandlerOf } from "../SideEffect.js"
import type * as Workflow from "../Workflow.js"
import { checkEveryPrefix, checkWhole } from "./Replay.js"

/** The code does not do what the history has. */
export class ReplayDiverged extends Schema.TaggedError<ReplayDiverged>("fermata/ReplayDiverged")("ReplayDiverged", {
  branch: Schema.String,
  /** The first position at which they differ. */
  seq: Schema.Number,
  detail: Schema.String
}) {
  override get message() {
    return `The history of ${this.branch} does not replay (position ${this.seq}): ${this.detail}`
  }
}

/**
 * Replays a history with this code; fails with `ReplayDiverged`, which names the first divergence. `prefixes: "every"`
 * (the default) replays from every prefix, as crashes could have it, at a cost that grows with the square of the
 * length; `"whole"` replays once.
 */
export const check = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  history: History,
  options: { readonly prefixes?: "every" | "whole" } = {}
): Effect.Effect<void, ReplayDiverged, Exclude<R, HandlerOf<string>>> =>
  Effect.gen(function* () {
    const { branch } = history.branch
    if (history.run.workflow !== workflow.name) {
      yield* new ReplayDiverged({
        branch,
        seq: 1,
        detail: `the history is of workflow ${history.run.workflow}, not of ${workflow.name}`
      })
    }
    const runtime = yield* Effect.runtime<Exclude<R, HandlerOf<string>>>()
    const replays = options.prefixes === "whole" ? checkWhole : checkEveryPrefix
    // A replay uses the workflow's pure services only, which are in R without the handlers.
    const found = yield* replays(
      workflow as unknown as Workflow.Any,
      history,
      runtime as unknown as Runtime.Runtime<never>
    )
    if (found !== undefined) yield* new ReplayDiverged({ branch, seq: found.seq, detail: found.message })
  })
