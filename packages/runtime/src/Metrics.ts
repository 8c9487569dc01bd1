/**
 * What a process counts, as Effect metrics: any exporter of Effect's (`@effect/opentelemetry`, Prometheus) takes them as
 * they are. Counters and histograms are this process's; the gauges of the plane are read from the database by `observe`.
 */
import { Ledger, LedgerMetrics } from "@fermata/ledger"
import { type Duration, Effect, Layer, Metric, MetricBoundaries, Schedule } from "effect"
import { restCounter, stepCounter } from "./internal/Counters.js"

export const { commitEntries, commitMillis } = LedgerMetrics

/** Branches that workers of this process claimed. */
export const claims = Metric.counter("fermata_claims", { description: "Branches claimed", incremental: true })

/** Steps whose body ended, tagged `outcome`: succeeded, failed, died or interrupted. */
export const steps = stepCounter.metric

/** Attempts of steps that failed with a typed error and are followed by another. */
export const retries = Metric.counter("fermata_step_retries", { description: "Steps tried again", incremental: true })

/** How long an attempt of a step took, in milliseconds, effects included. */
export const stepMillis = Metric.histogram(
  "fermata_step_milliseconds",
  MetricBoundaries.exponential({ start: 0.5, factor: 2, count: 20 }),
  "Duration of an attempt of a step in milliseconds"
)

/** Branches that workers of this process let go of, tagged `rest`: parked, ended, stuck, released or lost. */
export const rests = restCounter.metric

/** Branches of the plane, tagged `status`. Kept by {@link observe}. */
export const branches = Metric.gauge("fermata_branches", { description: "Branches by status" })

/** How long the branch that waits longest for a worker has waited, in milliseconds. Kept by {@link observe}. */
export const lagMillis = Metric.gauge("fermata_lag_milliseconds", { description: "Age of the oldest due branch" })

/**
 * Keeps the gauges of the plane: reads its facts `every` so often (30 seconds by default). One process of a plane is enough.
 * While the database is away they stay as they are.
 */
export const observe = (options: { readonly every?: Duration.DurationInput } = {}): Layer.Layer<never, never, Ledger> =>
  Layer.scopedDiscard(
    Effect.flatMap(Ledger, ({ health }) =>
      Effect.flatMap(health, (facts) =>
        Effect.sync(() => {
          for (const [status, count] of Object.entries(facts.branches)) {
            Metric.tagged(branches, "status", status).unsafeUpdate(count, [])
          }
          const oldest = Math.min(...facts.queues.map(({ since }) => since), facts.now)
          lagMillis.unsafeUpdate(facts.now - oldest, [])
        })
      ).pipe(
        Effect.catchAll((error) => Effect.logDebug("The plane's facts could not be read", error)),
        Effect.repeat(Schedule.spaced(options.every ?? "30 seconds")),
        Effect.forkScoped
      )
    )
  )
