/** The client's operations on schedules: checks what enters, and works out the times that are asked for. */
import { DefinitionName, nextFire, type OverlapPolicy, specProblem } from "@fermata/contract"
import type { Ledger } from "@fermata/ledger"
import { Duration, Effect } from "effect"
import type { ScheduleOptions, Schedules } from "../Client.js"
import { InvalidValue } from "../RunError.js"
import { ScheduleInvalid } from "../RunSchedule.js"
import { checkedId } from "./BranchAddress.js"
import { startedAs } from "./ClientMessages.js"
import { encoded } from "./EncodedValue.js"
import { checkedStart } from "./Starting.js"

const checkSchedule = checkedId("schedule id", DefinitionName)

/** Fires that one backfill may start: more is likely a slip of a date. */
const mostBackfilled = 10_000

/** A day. */
const defaultCatchUp = Duration.days(1)
const defaultOverlap: OverlapPolicy = "skip"

export const schedules = (ledger: Ledger): Schedules => ({
  create: Effect.fn("Schedules.create")(function* <N extends string, I, A, E, R>(
    id: string,
    options: ScheduleOptions<N, I, A, E, R>
  ) {
    const name = yield* checkSchedule(id)
    const { input, spec, workflow } = options
    const catchUp = Duration.toMillis(options.catchUp ?? defaultCatchUp)
    const jitter = Duration.toMillis(options.jitter ?? 0)
    const problem = specProblem(spec, ledger.unsafeNow())
    const issues = [
      ...(problem === undefined ? [] : [`spec: ${problem}`]),
      ...(isSpan(catchUp) ? [] : ["catchUp: is not a finite span of time"]),
      ...(isSpan(jitter) ? [] : ["jitter: is not a finite span of time"])
    ]
    if (issues.length > 0) return yield* new ScheduleInvalid({ schedule: name, issues })
    const { queue } = yield* checkedStart(
      {
        ...(options.queue === undefined ? {} : { queue: options.queue }),
        ...(options.key === undefined ? {} : { key: options.key }),
        ...(options.priority === undefined ? {} : { priority: options.priority })
      },
      ledger.unsafeNow()
    )
    const json = yield* encoded(workflow.codecs.input, input, `input of workflow ${workflow.name}`, ledger.maxPayload)
    return yield* ledger.createSchedule(
      {
        id: name,
        ...startedAs(workflow, json),
        spec,
        overlap: options.overlap ?? defaultOverlap,
        catchUp: Math.floor(catchUp),
        jitter: Math.floor(jitter),
        queue: queue ?? null
      },
      { replace: options.replace ?? false }
    )
  }),

  describe: Effect.fn("Schedules.describe")(function* (id) {
    return yield* ledger.schedule(yield* checkSchedule(id))
  }),

  list: Effect.fn("Schedules.list")(function* (options = {}) {
    const limit = Math.max(1, Math.min(10_000, Math.floor(options.limit ?? 100)))
    const after = options.after === undefined ? {} : { after: yield* checkSchedule(options.after) }
    return yield* ledger.schedules({ ...after, limit })
  }),

  pause: Effect.fn("Schedules.pause")(function* (id) {
    return yield* ledger.pauseSchedule(yield* checkSchedule(id), true)
  }),

  resume: Effect.fn("Schedules.resume")(function* (id) {
    return yield* ledger.pauseSchedule(yield* checkSchedule(id), false)
  }),

  delete: Effect.fn("Schedules.delete")(function* (id) {
    return yield* ledger.deleteSchedule(yield* checkSchedule(id))
  }),

  trigger: Effect.fn("Schedules.trigger")(function* (id, at) {
    const name = yield* checkSchedule(id)
    const time = at === undefined ? ledger.unsafeNow() : at.getTime()
    if (Number.isNaN(time)) return yield* new InvalidValue({ what: "time of a trigger", issues: ["$: is not a time"] })
    return yield* Effect.map(ledger.startScheduled(name, [time]), ([receipt]) => ({
      // One time was asked for.
      branch: receipt?.branch ?? "",
      created: receipt?.created ?? false
    }))
  }),

  backfill: Effect.fn("Schedules.backfill")(function* (id, range) {
    const name = yield* checkSchedule(id)
    const from = range.from.getTime()
    const to = range.to.getTime()
    const refuse = (issue: string) => new InvalidValue({ what: `backfill of schedule ${name}`, issues: [issue] })
    if (Number.isNaN(from) || Number.isNaN(to)) return yield* refuse("from and to: must be times")
    if (to > ledger.unsafeNow()) return yield* refuse("to: lies in the future, where the schedule fires by itself")
    const { spec } = yield* ledger.schedule(name)
    const times: Array<number> = []
    for (let at = nextFire(spec, from - 1); at !== undefined && at <= to; at = nextFire(spec, at)) {
      if (times.length >= mostBackfilled) {
        return yield* refuse(`from and to: hold more than ${mostBackfilled} fires; ask for a part at a time`)
      }
      times.push(at)
    }
    const receipts = yield* ledger.startScheduled(name, times)
    return {
      started: receipts.filter(({ created }) => created).length,
      existing: receipts.filter((one) => !one.created).length
    }
  })
})

const isSpan = (millis: number): boolean => millis >= 0 && millis <= Number.MAX_SAFE_INTEGER
