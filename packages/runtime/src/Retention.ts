/**
 * How long runs are kept that are over. A worker with a policy purges, every hour and in small pages, what ended longer ago:
 * it is gone with its branches, and its id is not used again.
 *
 * @example
 * Worker.layer({ workflows: [Order], retention: { order: { completed: "30 days", failed: "90 days" } } })
 */
import { Ledger, type LedgerError } from "@fermata/ledger"
import { Duration, Effect, Schedule } from "effect"

/** How long after its end a run is kept; ends that are not named are kept for ever. */
export interface Policy {
  readonly completed?: Duration.DurationInput
  readonly failed?: Duration.DurationInput
  readonly cancelled?: Duration.DurationInput
}

/** Policies by the name of a workflow (all its versions). Workflows that are not named are kept for ever. */
export type Policies = Readonly<Record<string, Policy>>

const endings = ["completed", "failed", "cancelled"] as const
const pageSize = 100

/** How often a worker looks: a run is gone at most so much later than its policy says. */
const every = Duration.hours(1)

/** Throws a `TypeError` for a span that is none. */
export const checked = (policies: Policies): Policies => {
  for (const [workflow, policy] of Object.entries(policies)) {
    for (const ending of endings) {
      const kept = policy[ending]
      if (kept === undefined) continue
      const span = Duration.decodeUnknown(kept)
      if (span._tag === "None" || !Duration.isFinite(span.value)) {
        throw new TypeError(`Retention of ${workflow}: ${ending} is no finite span of time (leave it out to keep runs)`)
      }
    }
  }
  return policies
}

/**
 * Purges what ended longer ago than the policies say; returns how many runs. A run with a fork that is not over stays until
 * that is. Others may purge at the same time.
 */
export const sweep = (policies: Policies): Effect.Effect<number, LedgerError, Ledger> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    let purged = 0
    for (const [workflow, policy] of Object.entries(checked(policies))) {
      for (const status of endings) {
        const kept = policy[status]
        if (kept === undefined) continue
        const endedBefore = ledger.unsafeNow() - Duration.toMillis(kept)
        let page = yield* ledger.list({ workflow, status, endedBefore, limit: pageSize })
        for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
          for (const { run } of page) {
            purged += yield* ledger.purge(run).pipe(
              Effect.as(1),
              Effect.catchTags({
                RunNotOver: () => Effect.succeed(0),
                RunNotFound: () => Effect.succeed(0),
                RunPurged: () => Effect.succeed(0)
              })
            )
          }
          // The cursor stands for itself: its run is gone.
          page = yield* ledger.list({ workflow, status, endedBefore, after: last, limit: pageSize })
        }
      }
    }
    return purged
  })

/** Sweeps now and then, for ever; a failure is logged, and the next time tries again. */
export const housekeeping = (policies: Policies): Effect.Effect<void, never, Ledger> =>
  sweep(policies).pipe(
    Effect.flatMap((purged) => (purged === 0 ? Effect.void : Effect.logInfo(`Retention purged ${purged} runs`))),
    Effect.catchAllCause((cause) => Effect.logWarning("Retention could not purge; it tries again later", cause)),
    Effect.repeat(Schedule.spaced(every)),
    Effect.asVoid
  )
