/**
 * The part of a history that is still to be replayed, cut into activations: an event, the marks that the workflow's own
 * commands issue in reaction to it, and the marks that the host wrote until the next event.
 *
 * Commands issue their marks in a deterministic order, so each is matched against the next one that the history has.
 */
import { type Entry, isEvent, isTerminal, loopReplay } from "@fermata/contract"

/** Marks that a workflow's command issues; all others come from the host, between activations. */
const commandMarks: ReadonlySet<string> = new Set([
  "timer.started",
  "interrupt.opened",
  "interrupt.closed",
  "loop.snapshot",
  "patch.taken",
  "update.replied",
  "update.rejected",
  "view.published",
  "tags.set"
])

/** True for marks that a workflow's command issues. */
export const isCommandMark = (kind: string): boolean => commandMarks.has(kind)

/** The code and the history disagree. */
export interface Divergence {
  readonly seq: number
  readonly history: string
  readonly code: string
}

/** The step that an effect's key names: `<branch>|<step>|<position>`, and only the branch may contain more bars. */
const stepOf = (effectKey: string): string => {
  const end = effectKey.lastIndexOf("|")
  return effectKey.slice(effectKey.lastIndexOf("|", end - 1) + 1, end)
}

/** How an entry reads in messages. */
export const describeEntry = (entry: { readonly kind: string; readonly key: string }): string =>
  entry.key === "" ? entry.kind : `${entry.kind} ${entry.key}`

export class Timeline {
  private next = 0
  private expected: Array<Entry> = []
  private matched = 0
  private last = true
  private bare = true
  private cut = false

  /** Steps that have an outcome in the history: of their effects only firings that an interruption waits for still count. */
  private readonly ended = new Set<string>()

  /** Of the current activation: the host wrote marks after it, so that somebody ran all that it sets off. */
  private hosted = false

  private entries: ReadonlyArray<Entry>
  /** Positions of the snapshots that loops go on from, and whether each is an activation of its own. */
  private resumptions: ReturnType<typeof loopReplay>["resumptions"]
  /** Loops that were entered, or will be, and go on from a later snapshot that was not reached yet. */
  private readonly resuming: Set<string>
  /** What loops' snapshots replace: nothing of it is delivered or matched. */
  replaced: ReadonlyArray<Entry>

  /** `complete`: nothing follows the entries, because their end was recorded. */
  constructor(
    history: ReadonlyArray<Entry>,
    private readonly complete = false
  ) {
    const { kept, replaced, resumptions } = loopReplay(
      history,
      (entry) => isEvent(entry.kind) || isTerminal(entry.kind)
    )
    this.entries = kept
    this.replaced = replaced
    this.resumptions = resumptions
    this.resuming = new Set(kept.filter(({ seq }) => resumptions.has(seq)).map(({ key }) => key))
    for (const entry of kept) if (isEvent(entry.kind) && entry.kind.startsWith("step.")) this.ended.add(entry.key)
  }

  /** True if the history ends with the event that was taken last: nothing shows that anybody ran what it sets off. */
  get endsBare(): boolean {
    return this.last && this.bare
  }

  /**
   * The next event, and the host's marks before the event after it, less those that say nothing more.
   * A terminal entry is returned like an event: it ends the history.
   */
  advance(): { readonly event: Entry; readonly marks: ReadonlyArray<Entry> } | undefined {
    const event = this.entries[this.next]
    if (event === undefined) return undefined
    let end = this.next + 1
    while (end < this.entries.length) {
      const entry = this.entries[end]
      if (entry === undefined || this.begins(entry)) break
      end++
    }
    const marks = this.entries.slice(this.next + 1, end)
    this.next = end
    this.last = end >= this.entries.length
    this.bare = marks.length === 0
    // A fork may begin between a command's marks; those that follow were not inherited.
    this.cut = !this.last && this.entries[end]?.branch !== this.entries[end - 1]?.branch
    this.expected = marks.filter((entry) => isCommandMark(entry.kind))
    this.hosted = this.expected.length < marks.length
    this.matched = 0
    return { event, marks: marks.filter((entry) => !isCommandMark(entry.kind) && !this.isSpent(entry)) }
  }

  /** True for what an activation begins with. */
  private begins(entry: Entry): boolean {
    return isEvent(entry.kind) || isTerminal(entry.kind) || this.resumptions.get(entry.seq)?.alone === true
  }

  /** The snapshot that comes next in this activation, if a loop goes on from it. */
  get resumption(): Entry | undefined {
    const entry = this.expected[this.matched]
    return entry !== undefined && this.resumptions.has(entry.seq) ? entry : undefined
  }

  /** What the iterations took and wrote that the snapshot at `seq` replaces. */
  ownAt(seq: number): ReadonlyArray<number> {
    return this.resumptions.get(seq)?.own ?? []
  }

  /** The loop of {@link resumption} goes on. */
  passResumption(): void {
    this.matched++
  }

  /** A loop went on from its snapshot. */
  resumed(loop: string): void {
    this.resuming.delete(loop)
  }

  /** True if the loop that was entered goes on from a later snapshot. */
  resumesLater(loop: string): boolean {
    return this.resuming.has(loop)
  }

  /** True for what a step that ended recorded of its effects: its outcome stands for all of it. */
  private isSpent(entry: Entry): boolean {
    if (!entry.kind.startsWith("effect.") || !this.ended.has(stepOf(entry.key))) return false
    // An operator's settlement counts as a row of the inbox, and a `once` intent as a firing, wherever they stand.
    return !entry.payload.includes('"inbox":') && !entry.payload.includes('"delivery":"once"')
  }

  /**
   * Matches a mark that the code issues. `"new"`: the history does not have it yet, append it. `"cut"`: the fork began
   * before it; it belongs in front of what the fork's first event brings.
   */
  match(kind: string, key: string): Entry | Divergence | "new" | "cut" {
    const entry = this.expected[this.matched]
    if (entry === undefined) {
      if (this.last) return "new"
      if (this.cut) return "cut"
      const following = this.entries[this.next]
      return {
        seq: following?.seq ?? 0,
        history: following === undefined ? "nothing" : describeEntry(following),
        code: describeEntry({ kind, key })
      }
    }
    if (entry.kind !== kind || entry.key !== key) {
      return { seq: entry.seq, history: describeEntry(entry), code: describeEntry({ kind, key }) }
    }
    this.matched++
    return entry
  }

  /**
   * Whether the history has a mark at this place that code of an earlier deployment does not issue: `"recorded"`, the
   * next one is it; `"new"`, nobody can have passed this place with durable consequences; `"absent"`, somebody did,
   * with code that has no such mark.
   */
  decide(kind: string, key: string): "recorded" | "new" | "absent" {
    const next = this.expected[this.matched]
    if (next !== undefined) return next.kind === kind && next.key === key ? "recorded" : "absent"
    if (this.hosted) return "absent"
    if (this.last) return this.complete ? "absent" : "new"
    if (!this.cut) return "absent"
    // The fork was cut before its parent's marks: its own stand behind its first event.
    let end = this.next + 1
    for (let entry = this.entries[end]; entry !== undefined; entry = this.entries[++end]) {
      if (isEvent(entry.kind) || isTerminal(entry.kind)) break
      if (entry.kind === kind && entry.key === key) return "recorded"
    }
    return end === this.next + 1 && end >= this.entries.length && !this.complete ? "new" : "absent"
  }

  /** A mark that the history has and the code did not issue in this activation. */
  leftover(): Divergence | undefined {
    const entry = this.expected[this.matched]
    return entry === undefined ? undefined : { seq: entry.seq, history: describeEntry(entry), code: "nothing" }
  }

  /** Nothing is expected any more: what is issued now is new. */
  finish(): void {
    this.entries = []
    // Memory does not grow with a loop's iterations.
    this.replaced = []
    this.resumptions = new Map()
    this.resuming.clear()
    this.next = 0
    this.cut = false
    this.hosted = false
    this.expected = []
    this.matched = 0
    this.last = true
  }
}
