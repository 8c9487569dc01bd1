/** What a caller asks of a start, checked: queue, time, dedupe key; and the client's view of queues. */
import { DefinitionName, idProblem } from "@fermata/contract"
import type { Ledger, LedgerError, StartRequest } from "@fermata/ledger"
import { Duration, Effect } from "effect"
import type { Queues, StartOptions } from "../Client.js"
import { type InvalidId, InvalidValue } from "../RunError.js"
import * as WorkQueue from "../WorkQueue.js"
import { checkedId } from "./BranchAddress.js"

const checkQueue = checkedId("queue", DefinitionName)

const nameOf = (queue: WorkQueue.WorkQueue | string): Effect.Effect<string, InvalidId> =>
  checkQueue(typeof queue === "string" ? queue : queue.name)

/** The longest a start may be put off: times beyond are no dates. */
const mostMillis = 8.64e15

/** A start's options as the ledger takes them. `now`: ledger milliseconds. */
export const checkedStart = (
  options: StartOptions,
  now: number
): Effect.Effect<Pick<StartRequest, "queue" | "startAt" | "dedupe">, InvalidId | InvalidValue> =>
  Effect.gen(function* () {
    const { debounce, dedupeKey, delay, key, priority = 0, startAt } = options
    const issues: Array<string> = []
    const name = options.queue === undefined ? undefined : yield* nameOf(options.queue)
    const queue = name === undefined || name === WorkQueue.defaultName ? undefined : name
    if (queue === undefined && key !== undefined) issues.push("key: needs a queue")
    if (queue === undefined && options.priority !== undefined) issues.push("priority: needs a queue")
    for (const [what, text] of [
      ["key", key],
      ["dedupeKey", dedupeKey]
    ] as const) {
      const problem = text === undefined ? undefined : idProblem(text)
      if (problem !== undefined) issues.push(`${what}: ${problem}`)
    }
    if (!Number.isSafeInteger(priority)) issues.push("priority: is not a whole number")
    if (delay !== undefined && startAt !== undefined) issues.push("delay: contradicts startAt; give one of them")
    const wait = delay === undefined ? 0 : millisOf(delay)
    const at = startAt === undefined ? undefined : startAt.getTime()
    if (!isWait(wait)) issues.push("delay: is not a finite, positive span of time")
    if (at !== undefined && Number.isNaN(at)) issues.push("startAt: is not a time")
    if (debounce !== undefined && dedupeKey === undefined) issues.push("debounce: needs a dedupeKey")
    const period = debounce === undefined ? 0 : millisOf(debounce.period)
    const maxWait = debounce?.maxWait === undefined ? undefined : millisOf(debounce.maxWait)
    if (debounce !== undefined && !(isWait(period) && period > 0)) {
      issues.push("debounce.period: is not a finite span of time above zero")
    }
    if (maxWait !== undefined && !isWait(maxWait)) issues.push("debounce.maxWait: is not a finite span of time")
    if (issues.length > 0) return yield* new InvalidValue({ what: "options of a start", issues })
    const time = at ?? (delay === undefined ? undefined : Math.ceil(now + wait))
    return {
      ...(queue === undefined ? {} : { queue: { name: queue, key: key ?? "", priority } }),
      ...(time === undefined ? {} : { startAt: time }),
      ...(dedupeKey === undefined
        ? {}
        : {
            dedupe: {
              key: dedupeKey,
              ...(debounce === undefined
                ? {}
                : {
                    debounce: {
                      period: Math.ceil(period),
                      maxWait: maxWait === undefined ? undefined : Math.ceil(maxWait)
                    }
                  })
            }
          })
    }
  })

const isWait = (millis: number): boolean => millis >= 0 && millis <= mostMillis

/** Not a number for what is no span of time at all. */
const millisOf = (duration: Duration.DurationInput): number => {
  try {
    return Duration.toMillis(duration)
  } catch {
    return Number.NaN
  }
}

/** The client's operations on queues. */
export const queues = (ledger: Ledger): Queues => {
  const pause = (paused: boolean) =>
    Effect.fn(paused ? "Queues.pause" : "Queues.resume")(function* (
      queue: WorkQueue.WorkQueue | string
    ): Effect.fn.Return<void, InvalidId | LedgerError> {
      yield* ledger.pauseQueue(yield* nameOf(queue), paused)
    })
  return {
    set: Effect.fn("Queues.set")((queue) => ledger.setQueue(WorkQueue.setupOf(queue))),
    list: ledger.queues,
    pause: pause(true),
    resume: pause(false)
  }
}
