/** How a branch ended, as what its caller gets: the workflow's own success or typed error, or why there is none. */
import { Defect, type Entry, payloadOf, type TerminalKind } from "@fermata/contract"
import { Effect, Either } from "effect"
import { InvalidValue, RunCancelled, RunDied } from "../RunError.js"
import type * as Workflow from "../Workflow.js"
import type * as Codec from "./Codec.js"

/** The outcome that a terminal entry records. */
export const outcomeOf = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  entry: Entry & { readonly kind: TerminalKind }
): Effect.Effect<A, E | RunCancelled | RunDied | InvalidValue> => {
  // The entry's kind and its payload's type are matched by hand: a union of entries is not a union of their kinds.
  switch (entry.kind) {
    case "run.completed": {
      const { value } = payloadOf({ kind: "run.completed", payload: entry.payload })
      return revived(workflow.codecs.success, value, `stored success of workflow ${workflow.definition}`)
    }
    case "run.failed": {
      const { error } = payloadOf({ kind: "run.failed", payload: entry.payload })
      return Effect.flatMap(
        revived(workflow.codecs.error, error, `stored error of workflow ${workflow.definition}`),
        (error) => Effect.fail(error)
      )
    }
    case "run.died": {
      const { defect } = payloadOf({ kind: "run.died", payload: entry.payload })
      return Effect.fail(new RunDied({ branch: entry.branch, defect: Defect.decode(defect) }))
    }
    case "run.cancelled": {
      const { reason } = payloadOf({ kind: "run.cancelled", payload: entry.payload })
      return Effect.fail(new RunCancelled({ branch: entry.branch, reason }))
    }
  }
}

const revived = <A>(codec: Codec.Codec<A>, value: unknown, what: string): Effect.Effect<A, InvalidValue> =>
  Either.mapLeft(codec.revive(value), ({ issues }) => new InvalidValue({ what, issues }))
