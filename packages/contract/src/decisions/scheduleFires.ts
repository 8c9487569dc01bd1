/** When does a schedule fire, and what becomes of a fire? Nothing but the schedule, the time and the stored facts decide. */
import { Cron, Either, Hash, Schema } from "effect"

/**
 * When a schedule fires. `Cron`: an expression of five fields (or six, with seconds first), in the local time of a zone.
 * `Interval`: every so many milliseconds, counted from 1970-01-01T00:00Z plus `offset`, whatever the clocks of any zone do.
 */
export const ScheduleSpec = Schema.Union(
  Schema.TaggedStruct("Cron", { expression: Schema.String, zone: Schema.String }),
  Schema.TaggedStruct("Interval", { every: Schema.Number, offset: Schema.Number })
)
export type ScheduleSpec = typeof ScheduleSpec.Type

/**
 * What happens to a fire while the run of the one before it goes on. `skip`: it is left out. `buffer`: it waits until that
 * run is over. `allow`: it starts beside it. `cancel-previous`: it starts, and that run is asked to cancel.
 */
export const OverlapPolicy = Schema.Literal("skip", "buffer", "allow", "cancel-previous")
export type OverlapPolicy = typeof OverlapPolicy.Type

export const isOverlapPolicy = Schema.is(OverlapPolicy)

/** What is wrong with a spec, or `undefined`: it fires at some time after `now` (milliseconds). */
export const specProblem = (spec: ScheduleSpec, now: number): string | undefined => {
  if (spec._tag === "Interval") {
    if (!Number.isSafeInteger(spec.every) || spec.every < 1) {
      return `an interval is a whole number of milliseconds of at least 1, not ${spec.every}`
    }
    return Number.isSafeInteger(spec.offset) ? undefined : `the offset is not a whole number of milliseconds`
  }
  if (!isZone(spec.zone))
    return `there is no time zone ${JSON.stringify(spec.zone)}; use a name such as Europe/Berlin or UTC`
  const cron = Cron.parse(spec.expression, spec.zone)
  if (Either.isLeft(cron)) {
    return `${JSON.stringify(spec.expression)} is not a cron expression: ${cron.left.message}`
  }
  return nextFire(spec, now) === undefined
    ? `${JSON.stringify(spec.expression)} never fires: no date is like that`
    : undefined
}

const isZone = (zone: string): boolean => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

/** Parsing and finding a zone cost more than the search. */
const parsed = new Map<string, Cron.Cron | undefined>()
const mostParsed = 1000

const cronOf = ({
  expression,
  zone
}: {
  readonly expression: string
  readonly zone: string
}): Cron.Cron | undefined => {
  const key = `${zone} ${expression}`
  if (!parsed.has(key)) {
    if (parsed.size >= mostParsed) parsed.clear()
    parsed.set(key, Either.getOrUndefined(Cron.parse(expression, zone)))
  }
  return parsed.get(key)
}

/**
 * The first time (milliseconds) after `after` at which it fires; `undefined` if there is none. Each time of the local clock
 * fires once: of an hour that comes twice the first, and a time that a change of the clock leaves out fires as much later
 * as the clock jumps.
 */
export const nextFire = (spec: ScheduleSpec, after: number): number | undefined => {
  if (spec._tag === "Interval") {
    const { every, offset } = spec
    return (Math.floor((after - offset) / every) + 1) * every + offset
  }
  const cron = cronOf(spec)
  if (cron === undefined) return undefined
  try {
    // A search from within a change of the clock must not lead back.
    for (let from = after; from < after + 4 * hour; from += hour) {
      const at = Cron.next(cron, new Date(from)).getTime()
      if (at > after) return at
    }
    return undefined
  } catch {
    // It says so by throwing, after it looked at all dates that there may be.
    return undefined
  }
}

const hour = 3_600_000

/** When a fire is due: up to `jitter` milliseconds later, the same for the same schedule and time wherever it is asked. */
export const dueOf = (schedule: string, at: number, jitter: number): number =>
  jitter < 1 ? at : at + ((Hash.string(`${schedule} ${at}`) >>> 0) % (Math.floor(jitter) + 1))

export type FireVerdict =
  | { readonly _tag: "NotDue" }
  | { readonly _tag: "Start"; readonly cancelPrevious: boolean }
  /** Left out: it came too late for the catch-up window, or the previous run goes on. */
  | { readonly _tag: "LeaveOut"; readonly because: "missed" | "overlap" }
  /** Later, when the previous run is over. */
  | { readonly _tag: "Wait" }

/** What becomes of the next fire of a schedule? */
export const judgeFire = (facts: {
  readonly now: number
  readonly due: number
  /** Milliseconds. A fire that is later than this is left out: no worker was there in time. */
  readonly catchUp: number
  readonly overlap: OverlapPolicy
  /** The run of the fire before goes on. */
  readonly previousGoing: boolean
  /** The fire was seen in time and had to wait for that run: it is not missed. */
  readonly waited: boolean
}): FireVerdict => {
  const { catchUp, due, now, overlap, previousGoing, waited } = facts
  if (due > now) return { _tag: "NotDue" }
  if (now - due > catchUp && !waited) return { _tag: "LeaveOut", because: "missed" }
  if (!previousGoing || overlap === "allow") return { _tag: "Start", cancelPrevious: false }
  switch (overlap) {
    case "skip":
      return { _tag: "LeaveOut", because: "overlap" }
    case "buffer":
      return { _tag: "Wait" }
    case "cancel-previous":
      return { _tag: "Start", cancelPrevious: true }
  }
}
