/**
 * The reference plane's store: runs, branches and their journals, in memory. Every write is one synchronous change, so
 * that a kill falls before or after. It outlives the sessions that use it, as a database would.
 */
import { createHash } from "node:crypto"
import { admitAppend } from "../../decisions/admitAppend.js"
import { Recovery } from "../../decisions/Recovery.js"
import { type Entry, type EntryDraft, isTerminal, payloadOf } from "../../Entry.js"
import type { BranchId, RunId } from "../../Ids.js"
import type { CanonicalWorkflow } from "../CanonicalWorkflow.js"
import type { Committed } from "../Plane.js"

/** What came from outside to a branch. `pos` is its position, from 1. */
export type InboxRow = { readonly pos: number } & (
  | { readonly kind: "answer"; readonly interrupt: string; readonly delivery: string; readonly value: unknown }
  | { readonly kind: "cancel" }
  | { readonly kind: "settlement"; readonly key: string; readonly happened: boolean; readonly value: unknown }
)

export interface Branch {
  readonly id: BranchId
  readonly run: string
  readonly parent: { readonly branch: BranchId; readonly seq: number } | undefined
  /** Its own entries; an inherited prefix is its ancestors'. */
  entries: ReadonlyArray<Entry>
  inbox: ReadonlyArray<InboxRow>
  epoch: number
  owner: string | undefined
  status: "ready" | "running" | "waiting" | "stuck"
  problem: string | undefined
  /** The key of the effect in doubt that it is stuck with. */
  doubt: string | undefined
  /** It was resumed by an answer since it last parked. */
  resumed: boolean
}

export interface Run {
  readonly workflow: CanonicalWorkflow
  readonly branches: ReadonlyArray<BranchId>
  /** What `transactional` effects wrote. */
  readonly committed: ReadonlyArray<Committed>
}

export interface Store {
  readonly runs: Map<string, Run>
  readonly branches: Map<string, Branch>
  /** The sessions that have the store open. */
  readonly alive: Set<string>
  readonly listeners: Set<() => void>
}

export const empty = (): Store => ({ runs: new Map(), branches: new Map(), alive: new Set(), listeners: new Set() })

/** A copy that shares nothing: rows are replaced, never changed in place, except for branches. */
export const copyOf = (store: Store): Store => ({
  runs: new Map(store.runs),
  branches: new Map([...store.branches].map(([id, branch]) => [id, { ...branch }])),
  alive: new Set(),
  listeners: new Set()
})

export const announce = (store: Store): void => store.listeners.forEach((listener) => listener())

/** A digest that binds a value. Keys are written in order, so that equal values have equal digests. */
export const digestOf = (value: unknown): string =>
  createHash("sha256").update(canonicalText(value)).digest("base64url").slice(0, 22)

const canonicalText = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part
  ) ?? "undefined"

const entryDigest = (previous: string, { key, kind, payload }: EntryDraft, seq: number): string =>
  createHash("sha256").update(`${previous}\n${seq}\n${kind}\n${key}\n${payload}`).digest("base64url").slice(0, 22)

/** The entries that follow `base`, with positions and digests. */
export const chain = (
  branch: BranchId,
  epoch: number,
  base: Entry | undefined,
  drafts: ReadonlyArray<EntryDraft>
): ReadonlyArray<Entry> => {
  const entries: Array<Entry> = []
  for (const draft of drafts) {
    const last = entries.at(-1) ?? base
    const seq = (last?.seq ?? 0) + 1
    entries.push({ branch, epoch, seq, at: seq, ...draft, digest: entryDigest(last?.digest ?? "", draft, seq) })
  }
  return entries
}

/** The branch's whole history: its ancestors' up to where it was forked, then its own. */
export const historyOf = (store: Store, branch: Branch): ReadonlyArray<Entry> => {
  if (branch.parent === undefined) return branch.entries
  const parent = store.branches.get(branch.parent.branch)
  const { seq } = branch.parent
  return parent === undefined
    ? branch.entries
    : [...historyOf(store, parent).filter((entry) => entry.seq <= seq), ...branch.entries]
}

/** The position at which the history does not verify, if there is one (CV). */
export const damagedAt = (history: ReadonlyArray<Entry>): number | undefined => {
  let previous = ""
  for (const entry of history) {
    if (entryDigest(previous, entry, entry.seq) !== entry.digest) return entry.seq
    previous = entry.digest
  }
  return undefined
}

/** Appends for an owner. False: it is fenced, and nothing was written. */
export const append = (
  store: Store,
  branch: Branch,
  owner: { readonly epoch: number; readonly history: ReadonlyArray<Entry>; readonly unfenced: boolean },
  entries: ReadonlyArray<Entry>
): boolean => {
  const history = historyOf(store, branch)
  const head = history.at(-1)
  const base = owner.history.at(-1)
  const last = entries.at(-1)
  const verdict = admitAppend(
    { epoch: branch.epoch, head: head?.seq ?? 0, headDigest: head?.digest ?? "", inboxHead: branch.inbox.length },
    {
      epoch: owner.epoch,
      base: base?.seq ?? 0,
      baseDigest: base?.digest ?? "",
      head: last?.seq ?? 0,
      headDigest: last?.digest ?? "",
      inboxSeen: undefined
    }
  )
  if (verdict._tag !== "Append") return owner.unfenced
  branch.entries = [...branch.entries, ...entries]
  announce(store)
  return true
}

/** What a history says, as recovery and inspection read it. */
export interface View {
  readonly recovery: Recovery
  /** Step → its recorded value, in the order of the records. */
  readonly outcomes: ReadonlyMap<string, unknown>
  /** Gate → what it was answered with, and by which delivery. */
  readonly answers: ReadonlyMap<string, { readonly value: unknown; readonly delivery: string; readonly digest: string }>
  readonly ending: Entry | undefined
}

export const viewOf = (branch: Branch, history: ReadonlyArray<Entry>): View => {
  const outcomes = new Map<string, unknown>()
  const answers = new Map<string, { value: unknown; delivery: string; digest: string }>()
  for (const { key, kind, payload } of history) {
    if (kind === "step.succeeded") outcomes.set(key, payloadOf({ kind, payload }).value)
    if (kind === "interrupt.answered") {
      const { delivery, value, valueDigest } = payloadOf({ kind, payload })
      answers.set(key, { value, delivery, digest: valueDigest })
    }
  }
  return {
    recovery: Recovery.of(branch.id, history),
    outcomes,
    answers,
    ending: history.find(({ kind }) => isTerminal(kind))
  }
}

/** Adds a branch of a run. */
export const addBranch = (
  store: Store,
  run: RunId,
  id: BranchId,
  parent: Branch["parent"],
  first: ReadonlyArray<Entry>
): Branch => {
  const known = store.runs.get(run)
  const branch: Branch = {
    id,
    run,
    parent,
    entries: first,
    inbox: [],
    epoch: 0,
    owner: undefined,
    status: "ready",
    problem: undefined,
    doubt: undefined,
    resumed: false
  }
  store.branches.set(id, branch)
  if (known !== undefined) store.runs.set(run, { ...known, branches: [...known.branches, id] })
  return branch
}
