/**
 * What a loop's snapshot replaces, and when one may be taken.
 *
 * Keys inside iteration `i` of loop `name#n` begin with `name#n/i/`; nested loops nest. Names contain no `#`, so a key
 * splits in one way only. A snapshot replaces what its own loop's iterations wrote before it, and nothing else: what
 * fibers beside the loop wrote is still delivered, in order (PC, RD).
 */
import { type Entry, payloadOf } from "../Entry.js"

/** The prefix of all keys inside one iteration of a loop. */
export const iterationScope = (loop: string, iteration: number): string => `${loop}/${iteration}/`

/** The loops that a key is inside of, outermost first. Total: a key outside of every loop is inside of none. */
export const loopsAround = (key: string): ReadonlyArray<string> => {
  const loops: Array<string> = []
  for (const found of key.matchAll(/#\d+(?=\/\d+\/)/g)) loops.push(key.slice(0, found.index + found[0].length))
  return loops
}

/** The step that an effect's key names, as its step key reads; see `effectKey`. */
const stepOfEffect = (effect: string): string => {
  const end = effect.lastIndexOf("|")
  const step = effect.slice(effect.lastIndexOf("|", end - 1) + 1, end)
  return step.includes("%") ? step.replaceAll("%7E", "~").replaceAll("%7C", "|").replaceAll("%25", "%") : step
}

/** The key that says whose an entry is: of an effect's entries that of its step. What is nobody's has none. */
const ownerOf = ({ key, kind }: Pick<Entry, "key" | "kind">): string | undefined => {
  if (kind.startsWith("effect.")) return stepOfEffect(key)
  return kind.startsWith("step.") ||
    kind.startsWith("interrupt.") ||
    kind.startsWith("timer.") ||
    kind === "loop.snapshot" ||
    kind === "patch.taken"
    ? key
    : undefined
}

/** True if an entry's key does not say which iteration it belongs to: the snapshot after it has to. */
export const isClaimed = (entry: Pick<Entry, "key" | "kind">): boolean => ownerOf(entry) === undefined

/** What replay takes of a history with snapshots. */
export interface LoopReplay<E> {
  /** What is replayed, in order. */
  readonly kept: ReadonlyArray<E>
  /** What a later snapshot replaces, in order: nothing of it is delivered or matched. */
  readonly replaced: ReadonlyArray<E>
  /**
   * By position: the last snapshot of each loop that goes on from it. `alone`: the event that it reacted to was replaced,
   * so that it stands for an activation of its own. `own`: positions of what the loop's iterations up to there took and
   * wrote, as their snapshots say.
   */
  readonly resumptions: ReadonlyMap<number, { readonly alone: boolean; readonly own: ReadonlyArray<number> }>
}

/**
 * What does replay skip? A loop's first snapshot marks where it was entered and is kept; its last one is where it goes on;
 * what its iterations wrote and took before that is replaced. `isEvent` says which entries begin an activation.
 */
export const loopReplay = <E extends Pick<Entry, "key" | "kind" | "payload" | "seq">>(
  history: ReadonlyArray<E>,
  isEvent: (entry: E) => boolean
): LoopReplay<E> => {
  const last = new Map<string, number>()
  // What names no step of its own: messages that an iteration took, what it published and replied.
  const claimed = new Set<number>()
  const claims = new Map<string, Array<number>>()
  for (const { key, kind, payload, seq } of history) {
    if (kind !== "loop.snapshot") continue
    last.set(key, seq)
    const { own = [] } = payloadOf({ kind: "loop.snapshot", payload })
    for (const position of own) claimed.add(position)
    const before = claims.get(key)
    if (before === undefined) claims.set(key, [...own])
    else before.push(...own)
  }
  if (last.size === 0) return { kept: history, replaced: [], resumptions: new Map() }
  const kept: Array<E> = []
  const replaced: Array<E> = []
  const resumptions = new Map<number, { readonly alone: boolean; readonly own: ReadonlyArray<number> }>()
  const entered = new Set<string>()
  let eventKept = true
  for (const entry of history) {
    const owner = ownerOf(entry)
    const superseded =
      owner === undefined
        ? claimed.has(entry.seq)
        : loopsAround(owner).some((loop) => (last.get(loop) ?? entry.seq) > entry.seq)
    const snapshot = entry.kind === "loop.snapshot"
    const again = snapshot && entered.has(entry.key)
    const keep = !superseded && !(again && entry.seq !== last.get(entry.key))
    if (isEvent(entry)) eventKept = keep
    if (!keep) {
      replaced.push(entry)
      continue
    }
    if (snapshot) entered.add(entry.key)
    if (again) {
      resumptions.set(entry.seq, { alone: !eventKept, own: claims.get(entry.key) ?? [] })
      // What follows belongs to the activation that this one begins.
      eventKept = true
    }
    kept.push(entry)
  }
  return { kept, replaced, resumptions }
}

/** May the next iteration's snapshot be taken? */
export type SnapshotVerdict =
  | { readonly _tag: "Take" }
  /** What an iteration began must end with it: a snapshot would cut it off from its own past. */
  | { readonly _tag: "Outlived"; readonly by: ReadonlyArray<string> }

/** `waiting`: keys of the commands that the branch waits for. `fibers`: those of the iteration that have not ended. */
export const admitSnapshot = (
  loop: string,
  iteration: number,
  facts: { readonly waiting: Iterable<string>; readonly fibers: number }
): SnapshotVerdict => {
  const scope = iterationScope(loop, iteration)
  const by = [...facts.waiting].filter((key) => key.startsWith(scope))
  if (by.length > 0) return { _tag: "Outlived", by }
  return facts.fibers === 0
    ? { _tag: "Take" }
    : { _tag: "Outlived", by: [facts.fibers === 1 ? "a fiber" : `${facts.fibers} fibers`] }
}
