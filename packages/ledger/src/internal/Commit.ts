/**
 * What one commit of the journal's writer consists of, and how what became of it is told afterwards.
 *
 * A commit has one part per branch. A part moves the branch from `base` to `mid` whatever happened in its inbox, and
 * from there to `head` (and to another status) only while nothing came in after `inboxSeen`. Either way the branch
 * must still be where its owner believes it: same epoch, same head, same digest, still owned (fencing).
 */
import type { SqlError } from "@effect/sql/SqlError"
import { admitAppend, admitPark, type Entry, isTerminal, payloadOf, type TerminalKind } from "@fermata/contract"
import type { Effect } from "effect"
import type { Announcement, BranchInfo, BranchStatus, PendingInterrupt, Release } from "../Ledger.js"

/** A position in a journal and the digest of the entry there. */
export interface Position {
  readonly seq: number
  readonly digest: string
}

/** One branch's part of a commit. */
export interface Part {
  readonly branch: string
  readonly run: string
  /** It stands in a queue: letting go of it may let another one run. */
  readonly queued: boolean
  readonly epoch: number
  readonly base: Position
  readonly mid: Position
  readonly head: Position
  /** `null`: unconditional, and `mid` is `head`. */
  readonly inboxSeen: number | null
  /** From `base` to `mid`. */
  readonly entries: ReadonlyArray<Entry>
  /** From `mid` to `head`. */
  readonly conditional: ReadonlyArray<Entry>
  /** The status that it takes when it lets go of the branch, with `head`; `null`: stays owned. */
  readonly letGo: {
    readonly status: BranchStatus
    readonly readyAt: number | null
    readonly problem: string | null
    readonly standing: string | null
  } | null
}

/** What became of a part. */
export type PartOutcome =
  | { readonly _tag: "Stored" }
  /** Only up to `mid`: something had come in. */
  | { readonly _tag: "InboxAdvanced"; readonly inboxHead: number }
  | { readonly _tag: "Fenced" }
  /** Not stored, and nothing speaks against storing it. */
  | { readonly _tag: "Again" }

/** Stores parts in one commit, each all or nothing up to its condition. */
export interface Commit {
  /** At once, without a fiber; `undefined` if it would have to wait. Throws what `eventually` would deal with. */
  readonly now?: (parts: ReadonlyArray<Part>) => ReadonlyArray<PartOutcome> | undefined
  readonly eventually: (parts: ReadonlyArray<Part>) => Effect.Effect<ReadonlyArray<PartOutcome>, SqlError>
}

/** The outcome of a part whose branch row was updated and had this inbox head. */
export const updated = (part: Part, inboxHead: number): PartOutcome => {
  const { epoch, inboxSeen } = part
  const verdict = admitPark({ epoch, inboxHead }, { epoch, inboxSeen: inboxSeen ?? inboxHead })
  return verdict._tag === "InboxAdvanced" ? { _tag: "InboxAdvanced", inboxHead } : { _tag: "Stored" }
}

/**
 * The outcome of a part whose branch row did not match: the contract says whether the row is the very one that the
 * part leads to (a commit whose reply was lost) or someone else's.
 */
export const missed = (part: Part, row: BranchInfo | undefined): PartOutcome => {
  const request = { epoch: part.epoch, base: part.base.seq, baseDigest: part.base.digest }
  const full = admitAppend(row, {
    ...request,
    head: part.head.seq,
    headDigest: part.head.digest,
    inboxSeen: part.inboxSeen ?? undefined
  })
  // Purged: the id is not used again, so that nothing this late can be stored.
  if (row === undefined) return { _tag: "Fenced" }
  if (full._tag === "InboxAdvanced") return { _tag: "Again" }
  if (full._tag === "AlreadyAppended") {
    // A part that lets go is stored only if the branch has no owner: a release alone moves no position.
    return part.letGo === null || row.owner === null ? { _tag: "Stored" } : { _tag: "Again" }
  }
  if (full._tag === "Append") return row.owner === null ? { _tag: "Fenced" } : { _tag: "Again" }
  const upToMid = admitAppend(row, {
    ...request,
    head: part.mid.seq,
    headDigest: part.mid.digest,
    inboxSeen: undefined
  })
  return upToMid._tag === "AlreadyAppended" ? { _tag: "InboxAdvanced", inboxHead: row.inboxHead } : { _tag: "Fenced" }
}

/** The entries of a part that are stored with this outcome. */
export const storedEntries = (part: Part, outcome: PartOutcome): ReadonlyArray<Entry> => {
  switch (outcome._tag) {
    case "Stored":
      return part.conditional.length === 0 ? part.entries : [...part.entries, ...part.conditional]
    case "InboxAdvanced":
      return part.entries
    case "Fenced":
    case "Again":
      return []
  }
}

/** How a branch stands that ended with an entry of this kind. */
export const endedBy = (kind: TerminalKind, standing: string | null = null): Part["letGo"] => {
  const status = kind === "run.completed" ? "completed" : kind === "run.cancelled" ? "cancelled" : "failed"
  return { status, readyAt: null, problem: null, standing }
}

/** A time as the columns take it: whole milliseconds, not before what was asked for. */
export const storableTime = <T extends number | null>(millis: T): T | number =>
  millis === null ? millis : Math.min(Math.ceil(millis), Number.MAX_SAFE_INTEGER)

/** How a branch stands that its owner releases. */
export const letGoOf = (how: Release, now: number): Part["letGo"] => {
  switch (how._tag) {
    case "Waiting":
      return { status: "waiting", readyAt: storableTime(how.wakeAt), problem: null, standing: how.standing ?? null }
    case "Stuck":
      return { status: "stuck", readyAt: storableTime(how.wakeAt ?? null), problem: how.problem, standing: null }
    case "Ready":
      return { status: "ready", readyAt: now, problem: null, standing: null }
  }
}

/** An interrupt's row as its `opened` entry makes it. */
export const interruptOf = (
  entry: Pick<Entry, "payload">
): Pick<PendingInterrupt, "name" | "payload" | "assignee" | "deadline" | "task"> => {
  const { name, payload, task } = payloadOf({ kind: "interrupt.opened", payload: entry.payload })
  return {
    name,
    payload: JSON.stringify(payload) ?? "null",
    assignee: task?.assignee ?? null,
    deadline: task?.deadline ?? null,
    task: task === undefined ? null : JSON.stringify(task)
  }
}

/** True if an entry of this kind closes its interrupt without an answer. */
export const closesInterrupt = (entry: Entry): boolean =>
  entry.kind === "interrupt.closed" || entry.kind === "interrupt.expired"

/** True if somebody outside may wait for such an entry. */
export const isHeard = (entry: Entry): boolean =>
  entry.kind === "interrupt.opened" ||
  entry.kind === "update.replied" ||
  entry.kind === "update.rejected" ||
  entry.kind === "view.published"

/** True if the open interrupts' table changes with an entry of this kind. */
export const changesInterrupts = (entry: Entry): boolean =>
  entry.kind === "interrupt.opened" || closesInterrupt(entry) || isTerminal(entry.kind)

/** What is announced once a part is stored. */
export const announcementsOf = (
  part: Part,
  entries: ReadonlyArray<Entry>,
  stored: boolean
): ReadonlyArray<Announcement> => {
  // The branch id was checked where the claim came from.
  const branch = part.branch as Entry["branch"]
  const changed: Announcement = { _tag: "Changed", branch }
  if (stored && part.letGo !== null) {
    if (part.letGo.status === "ready") return [{ _tag: "Ready" }]
    // LV: a slot is free that others wait for.
    return part.queued ? [changed, { _tag: "Ready" }] : [changed]
  }
  // An ending comes with letting go.
  return entries.some(isHeard) ? [{ _tag: "Told", branch }] : []
}
