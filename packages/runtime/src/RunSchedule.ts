/**
 * When a schedule starts runs: by a cron expression in a time zone, or at an interval. `client.schedules` creates and runs
 * them; any worker of the database fires them.
 *
 * @example
 * yield* client.schedules.create("digest", {
 *   workflow: SendDigest,
 *   input: "all",
 *   spec: RunSchedule.cron("0 9 * * MON-FRI", { zone: "Europe/Berlin" }),
 *   overlap: "skip"
 * })
 */
import type { ScheduleSpec } from "@fermata/contract"
import type { ScheduleState } from "@fermata/ledger"
import { Duration, Schema } from "effect"

export type { OverlapPolicy, ScheduleSpec } from "@fermata/contract"
/** A schedule as it stands: its spec and policies, when it fires next, what it started last, and counts. */
export type State = ScheduleState

/**
 * By the local time of a zone (an IANA name; UTC if left out). Five fields: minute, hour, day of the month, month, day of the
 * week; or six, with seconds first. Each time of the local clock fires once: of an hour that the clock shows twice only the
 * first, and a time that it leaves out fires as much later as the clock jumps. Checked when the schedule is created.
 */
export const cron = (expression: string, options: { readonly zone?: string } = {}): ScheduleSpec => ({
  _tag: "Cron",
  expression,
  zone: options.zone ?? "UTC"
})

/**
 * At an interval of elapsed time, counted from 1970-01-01T00:00Z plus `offset`: every hour is at the full hours of UTC, whenever
 * the schedule was created. Whole milliseconds. Checked when the schedule is created.
 */
export const every = (
  interval: Duration.DurationInput,
  options: { readonly offset?: Duration.DurationInput } = {}
): ScheduleSpec => ({
  _tag: "Interval",
  every: Duration.toMillis(interval),
  offset: Duration.toMillis(options.offset ?? 0)
})

/** A schedule that cannot be: its cron never fires or is none, its zone is unknown, its interval is zero. Nothing was written. */
export class ScheduleInvalid extends Schema.TaggedError<ScheduleInvalid>("fermata/ScheduleInvalid")("ScheduleInvalid", {
  schedule: Schema.String,
  issues: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Schedule ${this.schedule} is invalid: ${this.issues.join("; ")}. Nothing was written.`
  }
}
