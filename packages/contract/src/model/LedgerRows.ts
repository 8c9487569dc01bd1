/** The ledger model's writes: rows, handles and entries as values. Nothing here decides. */
import { type Entry, type EntryDraft, isTerminal } from "../Entry.js"
import type { BranchId } from "../Ids.js"
import type { FirstEvent, ForkPosition } from "./LedgerFacts.js"
import {
  handleKey,
  historyOf,
  type LedgerState,
  type LedgerStatus,
  type ModelBranch,
  type ModelHandle,
  type ModelInboxRow
} from "./LedgerState.js"

/** What is true of every new branch. */
export const newBranch = { status: "ready", owner: null, epoch: 0, due: true, inbox: [] } as const

/** A name for the write: the same entry after the same predecessor in the same epoch is the same write. */
export const entryAt = (branch: BranchId, draft: EntryDraft, seq: number, epoch: number): Entry => ({
  branch,
  seq,
  ...draft,
  epoch,
  at: 0,
  digest: `${branch} ${seq} ${epoch} ${draft.kind} ${draft.key} ${draft.payload}`
})

/** Digest of the entry at a position of a branch's history. */
export const digestAt = (state: LedgerState, branch: ModelBranch, seq: number): string =>
  historyOf(state, branch, seq).at(-1)?.digest ?? ""

/** A branch's row, as an append finds it. */
export const rowOf = (state: LedgerState, branch: ModelBranch) => ({
  epoch: branch.epoch,
  head: branch.head,
  headDigest: digestAt(state, branch, branch.head),
  inboxHead: branch.inbox.length
})

/** The state with this row of a branch. */
export const withBranch = (state: LedgerState, branch: ModelBranch): LedgerState => ({
  ...state,
  branches: { ...state.branches, [branch.branch]: branch }
})

/** The state with this handle. */
export const withHandle = (state: LedgerState, handle: ModelHandle): LedgerState => ({
  ...state,
  handles: { ...state.handles, [handleKey(handle.worker, handle.branch)]: handle }
})

/** The state in which the worker let go of the handle. */
export const withoutHandle = (state: LedgerState, handle: ModelHandle): LedgerState => {
  const { [handleKey(handle.worker, handle.branch)]: _, ...handles } = state.handles
  return { ...state, handles }
}

/** The worker was told that it is fenced. */
export const lose = (state: LedgerState, handle: ModelHandle): LedgerState =>
  withHandle(state, { ...handle, lost: true })

/** Takes the next position of the inbox and wakes a branch that waits, in one write (LV). */
export const accept = (branch: ModelBranch, row: Omit<ModelInboxRow, "pos">): ModelBranch => ({
  ...branch,
  inbox: [...branch.inbox, { pos: branch.inbox.length + 1, ...row }],
  ...(branch.status === "waiting" || branch.status === "stuck" ? { status: "ready", due: true } : {})
})

/** The open interrupts after an entry. */
export const openAfter = (open: ReadonlyArray<string>, entry: Entry): ReadonlyArray<string> => {
  if (entry.kind === "interrupt.opened") return [...open, entry.key]
  if (entry.kind === "interrupt.closed") return open.filter((id) => id !== entry.key)
  return isTerminal(entry.kind) ? [] : open
}

/** Status of a branch that an entry of this kind ends. */
export const endOf = (kind: Entry["kind"]): LedgerStatus =>
  kind === "run.completed" ? "completed" : kind === "run.cancelled" ? "cancelled" : "failed"

/** The branch that a fork makes. */
export const forked = (
  parent: ModelBranch,
  child: BranchId,
  position: ForkPosition,
  first: FirstEvent | undefined,
  firstDigest: string
): ModelBranch => {
  const { seq } = position
  const entries =
    first === undefined
      ? []
      : [entryAt(child, { kind: first.kind, key: first.key, payload: first.payload }, seq + 1, 0)]
  return {
    ...newBranch,
    branch: child,
    run: parent.run,
    parent: { branch: parent.branch, seq },
    firstDigest,
    head: seq + entries.length,
    entries,
    open: position.open.filter((id) => id !== first?.key)
  }
}
