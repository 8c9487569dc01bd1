/** What a ledger counts, as Effect metrics: of this process, since it started. */
import { Metric, MetricBoundaries } from "effect"

/** Entries that one commit of the journal stored: what group commit gathers. */
export const commitEntries = Metric.histogram(
  "fermata_commit_entries",
  MetricBoundaries.exponential({ start: 1, factor: 2, count: 12 }),
  "Journal entries stored by one commit"
)

/** How long a commit of the journal took, in milliseconds; those that had to be tried again included. */
export const commitMillis = Metric.histogram(
  "fermata_commit_milliseconds",
  MetricBoundaries.exponential({ start: 0.25, factor: 2, count: 16 }),
  "Duration of a journal commit in milliseconds"
)
