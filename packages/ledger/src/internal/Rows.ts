/** Rows as the drivers return them, and the models that they are decoded to. PostgreSQL returns BIGINT as text. */
import type { BranchId, Entry, EntryKind, InterruptId, RunId } from "@fermata/contract"
import type { BranchInfo, BranchStatus, InboxRow, PendingInterrupt, RunRow } from "../Ledger.js"

/** A 64-bit integer column: number (SQLite) or decimal text (PostgreSQL). */
export type Int = number | string

/** A row of `fermata_runs`. */
export interface RawRun {
  readonly run_id: string
  readonly workflow: string
  readonly version: string
  readonly input: string
  readonly input_digest: string
  readonly created_at: Int
  readonly digest: string
}

/** A row of `fermata_branches`. */
export interface RawBranch {
  readonly branch_id: string
  readonly run_id: string
  readonly workflow: string
  readonly version: string
  readonly definition: string
  readonly parent: string | null
  readonly fork_seq: Int | null
  readonly fork_digest: string
  readonly anchor: Int
  readonly status: string
  readonly head: Int
  readonly head_digest: string
  readonly epoch: Int
  readonly owner: string | null
  readonly ready_at: Int | null
  readonly inbox_head: Int
  readonly problem: string | null
  readonly created_at: Int
  readonly queue: string | null
  readonly queue_key: string | null
  readonly priority: Int | null
  readonly queue_rank: Int | null
  readonly accepts: string | null
  readonly standing: string | null
}

/** A row of `fermata_journal`. */
export interface RawEntry {
  readonly branch_id: string
  readonly seq: Int
  readonly kind: string
  readonly key: string
  readonly payload: string
  readonly epoch: Int
  readonly at: Int
  readonly digest: string
}

/** A row of `fermata_inbox`. */
export interface RawInbox {
  readonly branch_id: string
  readonly pos: Int
  readonly kind: string
  readonly key: string
  readonly delivery: string | null
  readonly payload: string
  readonly at: Int
  readonly digest: string
}

/** A row of `fermata_interrupts`. */
export interface RawInterrupt {
  readonly branch_id: string
  readonly interrupt_id: string
  readonly run_id: string
  readonly name: string
  readonly payload: string
  readonly seq: Int
  readonly opened_at: Int
  readonly assignee: string | null
  readonly deadline: Int | null
  readonly task: string | null
}

// Ids were checked when they entered and kinds are covered by the digest, which readers verify: hence the casts.

/** The run that a row is. */
export const runOfRow = (row: RawRun): RunRow => ({
  run: row.run_id as RunId,
  workflow: row.workflow,
  version: row.version,
  input: row.input,
  inputDigest: row.input_digest,
  createdAt: Number(row.created_at),
  digest: row.digest
})

/** What a worker claims by: a queued branch is out of reach of claims that do not name its queue. */
export const claimedAs = (definition: string, queue: string | null): string =>
  // No definition's name has a bar.
  queue === null ? definition : `${definition}|${queue}`

/** The branch that a row is. */
export const branchOfRow = (row: RawBranch): BranchInfo => ({
  branch: row.branch_id as BranchId,
  run: row.run_id as RunId,
  workflow: row.workflow,
  version: row.version,
  status: row.status as BranchStatus,
  parent: row.parent === null ? null : { branch: row.parent as BranchId, seq: Number(row.fork_seq) },
  head: Number(row.head),
  headDigest: row.head_digest,
  epoch: Number(row.epoch),
  owner: row.owner,
  queue: row.queue,
  inboxHead: Number(row.inbox_head),
  readyAt: row.ready_at === null ? null : Number(row.ready_at),
  problem: row.problem,
  createdAt: Number(row.created_at),
  accepts: row.accepts,
  standing: row.standing
})

/** The entry that a row is; not verified yet. */
export const entryOfRow = (row: RawEntry): Entry => ({
  branch: row.branch_id as BranchId,
  seq: Number(row.seq),
  kind: row.kind as EntryKind,
  key: row.key,
  payload: row.payload,
  epoch: Number(row.epoch),
  at: Number(row.at),
  digest: row.digest
})

/** A row of `fermata_journal`, its columns named as an entry's fields. */
export interface NamedEntry extends Omit<RawEntry, "branch_id"> {
  readonly branch: string
}

/** As {@link entryOfRow}; where numbers come as numbers the row is the entry: a long history is not held twice. */
export const entryOfNamed = (row: NamedEntry): Entry =>
  typeof row.seq === "number" && typeof row.epoch === "number" && typeof row.at === "number"
    ? (row as Entry)
    : entryOfRow({ ...row, branch_id: row.branch })

/** The inbox row that a row is; not verified yet. */
export const inboxOfRow = (row: RawInbox): InboxRow => ({
  branch: row.branch_id as BranchId,
  pos: Number(row.pos),
  kind: row.kind as InboxRow["kind"],
  key: row.key,
  payload: row.payload,
  at: Number(row.at)
})

/** The open interrupt that a row is. */
export const interruptOfRow = (row: RawInterrupt): PendingInterrupt => ({
  run: row.run_id as RunId,
  branch: row.branch_id as BranchId,
  interrupt: row.interrupt_id as InterruptId,
  name: row.name,
  payload: row.payload,
  seq: Number(row.seq),
  openedAt: Number(row.opened_at),
  assignee: row.assignee,
  deadline: row.deadline === null ? null : Number(row.deadline),
  task: row.task
})

/** True if a branch of this status takes no more entries. */
export const isOver = (status: BranchStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"
