/**
 * A named queue of runs, with limits that hold over all workers: slots, slots for each key, a rate. Runs enter it by
 * `client.start(…, { queue })`; workers serve it by `Worker.layer({ queues })`.
 *
 * @example
 * const Mail = WorkQueue.make("mail", { concurrency: 10, perKey: { concurrency: 2 }, rate: { limit: 100, per: "1 minute" } })
 * const Live = Worker.layer({ workflows: [SendMail], queues: ["default", Mail] })
 * client.start(SendMail, letter, { queue: Mail, key: letter.tenant, priority: 5 })
 */
import type { QueueSetup } from "@fermata/ledger"
import { Duration } from "effect"
import { definitionName } from "./internal/DefinitionName.js"

/** The limits of a queue; what is left out is not limited. */
export interface WorkQueueOptions {
  /** Branches that run at once, in all workers together. */
  readonly concurrency?: number
  /** The same for each key. Runs without a key are not limited by it. */
  readonly perKey?: { readonly concurrency: number }
  /** At most `limit` runs begin in any `per`, after a burst of at most `limit`; going on after a wait is not counted. */
  readonly rate?: { readonly limit: number; readonly per: Duration.DurationInput }
  /**
   * How long a slot is held. `"running"`, the default: while a worker runs the branch; one that waits for an answer or a
   * time holds none, and queues up for one when it wakes, ahead of those that have not begun. `"run"`: from the first claim until the
   * branch is over.
   */
  readonly hold?: "running" | "run"
}

/** A queue: its name and limits. */
export interface WorkQueue extends WorkQueueOptions {
  readonly name: string
}

/** Stands, among a worker's queues, for the runs that are in no queue. */
export const defaultName = "default"

/**
 * Declares a queue. Throws a `TypeError` for a name that cannot be one (`"default"` has no limits), for a limit that is not a
 * whole number of at least 1, and for a rate over no time.
 */
export const make = (name: string, options: WorkQueueOptions = {}): WorkQueue => {
  definitionName("queue", name)
  if (name === defaultName) {
    throw new TypeError(`"${defaultName}" stands for runs that are in no queue and cannot have limits: name another`)
  }
  const whole = (what: string, limit: number | undefined) => {
    if (limit === undefined || (Number.isSafeInteger(limit) && limit >= 1)) return
    throw new TypeError(`Queue ${name}: ${what} is ${limit}, and must be a whole number of at least 1 (or left out)`)
  }
  whole("concurrency", options.concurrency)
  whole("perKey.concurrency", options.perKey?.concurrency)
  whole("rate.limit", options.rate?.limit)
  if (options.rate !== undefined) whole("rate.per in milliseconds", Duration.toMillis(options.rate.per))
  return { name, ...options }
}

/** The queue as the ledger stores it. */
export const setupOf = (queue: WorkQueue): Omit<QueueSetup, "paused"> => ({
  name: queue.name,
  concurrency: queue.concurrency,
  keyConcurrency: queue.perKey?.concurrency,
  rate: queue.rate === undefined ? undefined : { limit: queue.rate.limit, per: Duration.toMillis(queue.rate.per) },
  hold: queue.hold ?? "running"
})
