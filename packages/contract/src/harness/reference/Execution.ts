/** What becomes of a branch that a worker of the reference plane has claimed. */
import { Effect } from "effect"
import { admitPark } from "../../decisions/ownership.js"
import type { EntryDraft } from "../../Entry.js"
import { Fenced, type Invalid, type Owner, Pass, Stuck } from "./Pass.js"
import * as Store from "./Store.js"

/** Runs a branch that was just claimed until it is over, parked, stuck or fenced. `found`: after a crash. */
export const execute = (owner: Owner, branch: Store.Branch, found: boolean): Effect.Effect<void> => {
  const run = owner.store.runs.get(branch.run)
  if (run === undefined) return Effect.void
  const pass = new Pass(owner, branch, found)
  const rest = (status: "waiting" | "stuck", problem?: Stuck) =>
    Effect.sync(() => {
      if (branch.epoch !== pass.epoch) return
      branch.status = status
      branch.owner = undefined
      branch.problem = problem?.problem
      branch.doubt = problem?.doubt
      branch.resumed = false
      Store.announce(owner.store)
    })
  const end = (draft: EntryDraft) =>
    Effect.zipRight(
      pass.write(draft),
      Effect.sync(() => (branch.owner = undefined))
    )
  const attempt: Effect.Effect<void, Fenced | Stuck | Invalid> = Effect.gen(function* () {
    if (pass.cancelled()) {
      return yield* end({ kind: "run.cancelled", key: "", payload: JSON.stringify({ reason: null }) })
    }
    const seen = branch.inbox.length
    const result = yield* pass.steps(run.workflow.steps, [], "")
    if (result !== undefined) {
      return yield* end({ kind: "run.completed", key: "", payload: JSON.stringify({ value: result.value }) })
    }
    yield* pass.flush
    const inboxSeen = owner.faults.has("lostWakeUp") ? branch.inbox.length : seen
    const verdict = admitPark({ epoch: branch.epoch, inboxHead: branch.inbox.length }, { epoch: pass.epoch, inboxSeen })
    // LV: what came in meanwhile is served before the branch may sleep.
    if (verdict._tag === "InboxAdvanced") return yield* attempt
    if (verdict._tag === "Fenced") return yield* new Fenced()
    return yield* rest("waiting")
  })
  return attempt.pipe(
    Effect.catchTags({
      Stuck: (stuck) => rest("stuck", stuck),
      Invalid: ({ problem }) =>
        end({ kind: "run.failed", key: "", payload: JSON.stringify({ error: problem }) }).pipe(
          Effect.catchTag("Fenced", () => Effect.void)
        ),
      Fenced: () => Effect.void
    }),
    // A handler that died leaves its effect in doubt: nothing goes on without help.
    Effect.catchAllDefect((defect) => rest("stuck", new Stuck({ problem: String(defect), doubt: undefined })))
  )
}
