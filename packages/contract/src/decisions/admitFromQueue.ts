/** Which branches of a queue may run now? Its limits hold over all workers: the facts are gathered under the queue's lock. */

/** The limits of a queue. `undefined`: no such limit. */
export interface QueueLimits {
  /** Slots: branches at once. */
  readonly concurrency: number | undefined
  /** Slots for each key. Branches without a key are not limited by it. */
  readonly keyConcurrency: number | undefined
  /** At most `limit` branches begin in any `per` milliseconds, after a burst of at most `limit`. */
  readonly rate: { readonly limit: number; readonly per: number } | undefined
  /** `running`: a branch that waits has no slot. `run`: it keeps its slot from its first claim until it is over. */
  readonly hold: "running" | "run"
}

/** What is known when branches are chosen. */
export interface QueueFacts {
  /** Milliseconds. */
  readonly now: number
  /** Slots that are taken, by key. */
  readonly held: ReadonlyMap<string, number>
  /** The token bucket as one number: the time (microseconds) at which it is full again. */
  readonly fullAt: number
}

/** A branch that wants to run; `""`: it has no key. */
export interface QueueCandidate {
  readonly key: string
  /** It was claimed before, and has its token, and under `hold: "run"` its slot. */
  readonly begun: boolean
}

/** Which of the candidates run (by index), in their order, and what the bucket is then. */
export interface QueueVerdict {
  readonly admitted: ReadonlyArray<number>
  readonly fullAt: number
}

/** Microseconds that one token takes to come back. */
const tokenTime = ({ limit, per }: { readonly limit: number; readonly per: number }): number =>
  Math.ceil((per * 1000) / limit)

/** Tokens that are there now. A bucket never holds more than `limit`. */
const tokens = (rate: { readonly limit: number; readonly per: number }, fullAt: number, now: number): number =>
  Math.max(0, Math.min(rate.limit, Math.floor(rate.limit - Math.max(0, fullAt - now * 1000) / tokenTime(rate))))

/** Walks the candidates in their order and admits each that the limits allow; one that must wait does not hold up others. */
export const admitFromQueue = (
  limits: QueueLimits,
  facts: QueueFacts,
  candidates: ReadonlyArray<QueueCandidate>
): QueueVerdict => {
  const held = new Map(facts.held)
  let free = freeSlots(limits, facts)
  let left = limits.rate === undefined ? Infinity : tokens(limits.rate, facts.fullAt, facts.now)
  let { fullAt } = facts
  const admitted: Array<number> = []
  candidates.forEach(({ begun, key }, index) => {
    const hasSlot = begun && limits.hold === "run"
    if (!hasSlot && (free <= 0 || isKeyFull(limits, held, key))) return
    if (!begun && left < 1) return
    admitted.push(index)
    if (!hasSlot) {
      free--
      held.set(key, (held.get(key) ?? 0) + 1)
    }
    if (!begun && limits.rate !== undefined) {
      left--
      fullAt = Math.max(fullAt, facts.now * 1000) + tokenTime(limits.rate)
    }
  })
  return { admitted, fullAt }
}

/** Slots that are free, whatever the key; may be below zero when a limit was lowered. */
export const freeSlots = (limits: QueueLimits, facts: QueueFacts): number => {
  if (limits.concurrency === undefined) return Infinity
  let taken = 0
  for (const count of facts.held.values()) taken += count
  return limits.concurrency - taken
}

/** True if a key has all the slots that it may have. */
export const isKeyFull = (limits: QueueLimits, held: ReadonlyMap<string, number>, key: string): boolean =>
  key !== "" && limits.keyConcurrency !== undefined && (held.get(key) ?? 0) >= limits.keyConcurrency

/** When a branch may begin as far as the rate goes: now, or when the next token is there (whole milliseconds). */
export const nextToken = (limits: QueueLimits, facts: QueueFacts): number => {
  const { rate } = limits
  if (rate === undefined || tokens(rate, facts.fullAt, facts.now) >= 1) return facts.now
  return Math.max(facts.now + 1, Math.ceil((facts.fullAt - (rate.limit - 1) * tokenTime(rate)) / 1000))
}

/**
 * Fairness: where a new branch stands among those of its priority. A key's branches stand one a round, behind the round
 * that is being served, so that a key with a thousand of them does not keep another one waiting.
 */
export const rankInQueue = (
  /** The lowest rank that waits, and the highest of the same key; `undefined` if none waits. */
  waiting: { readonly lowest: number | undefined; readonly lastOfKey: number | undefined }
): number => Math.max(waiting.lowest ?? 0, waiting.lastOfKey === undefined ? 0 : waiting.lastOfKey + 1)
