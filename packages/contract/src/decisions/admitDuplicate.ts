/** What becomes of a start whose dedupe key is in use? */

/** What is stored under the key. */
export type DedupeHolder =
  | { readonly _tag: "Absent" }
  /** A run that is over, or purged. */
  | { readonly _tag: "Over" }
  /** A run that goes on; `begun` if a worker ever had it. `since`: when the first start of the burst came. */
  | { readonly _tag: "Going"; readonly begun: boolean; readonly since: number }

/** Milliseconds. */
export interface Debounce {
  readonly period: number
  /** A burst is held back no longer than this, counted from its first start. */
  readonly maxWait: number | undefined
}

export type DedupeVerdict =
  /** The run that holds the key is the answer. */
  | { readonly _tag: "Existing" }
  /** The run is created and holds the key; `since` is when its burst began. */
  | { readonly _tag: "Create"; readonly since: number; readonly startAt: number }
  /** As `Create`, and the holder, which never began, ends as cancelled: the newest of a burst runs. */
  | { readonly _tag: "Supersede"; readonly since: number; readonly startAt: number }

export const admitDuplicate = (facts: {
  readonly holder: DedupeHolder
  readonly now: number
  /** When the run was to start without a debounce. */
  readonly startAt: number
  readonly debounce: Debounce | undefined
}): DedupeVerdict => {
  const { debounce, holder, now } = facts
  if (holder._tag !== "Going") return { _tag: "Create", since: now, startAt: heldBack(facts, now) }
  // One that has begun is not taken back; a burst that comes meanwhile is told of it.
  if (debounce === undefined || holder.begun) return { _tag: "Existing" }
  return { _tag: "Supersede", since: holder.since, startAt: heldBack(facts, holder.since) }
}

const heldBack = (
  {
    debounce,
    now,
    startAt
  }: { readonly debounce: Debounce | undefined; readonly now: number; readonly startAt: number },
  since: number
): number =>
  debounce === undefined
    ? startAt
    : Math.max(
        startAt,
        Math.min(now + debounce.period, debounce.maxWait === undefined ? Infinity : since + debounce.maxWait)
      )
