/**
 * The ledger as a value: what its tables hold and what its workers believe, without a database.
 *
 * States are immutable and share structure. An entry's `at` is always 0 and its digest names the write that made it, so
 * that two states are equal exactly if the ledger's own rows would be, times and hashes aside.
 */
import type { Entry, EntryDraft } from "../Entry.js"
import type { BranchId, DeliveryId, ForkId, InterruptId, RunId } from "../Ids.js"

/** Status of a branch, as the ledger reports it. */
export type LedgerStatus = "ready" | "running" | "waiting" | "stuck" | "completed" | "failed" | "cancelled"

/** What a run was started with. */
export interface ModelRun {
  readonly run: RunId
  readonly workflow: string
  readonly version: string
  readonly input: string
  readonly inputDigest: string
}

/** A row of a branch's inbox; `delivery` is set for answers. */
export interface ModelInboxRow {
  readonly pos: number
  readonly kind: "answer" | "cancel" | "settlement"
  readonly key: string
  readonly delivery: DeliveryId | null
  /** JSON text, as the ledger stores it. */
  readonly payload: string
}

/** A branch: its row, its own entries and its inbox. */
export interface ModelBranch {
  readonly branch: BranchId
  readonly run: RunId
  readonly parent: { readonly branch: BranchId; readonly seq: number } | null
  /** Identity of a fork's first event; empty for the root and for plain forks. */
  readonly firstDigest: string
  readonly status: LedgerStatus
  readonly owner: string | null
  readonly epoch: number
  readonly head: number
  /** True if a worker may claim it now. */
  readonly due: boolean
  readonly entries: ReadonlyArray<Entry>
  readonly inbox: ReadonlyArray<ModelInboxRow>
  /** Interrupts that pending work shows, by id. */
  readonly open: ReadonlyArray<string>
}

/** A worker's write handle on a branch: what it believes, which another owner may have made untrue. */
export interface ModelHandle {
  readonly worker: string
  readonly branch: BranchId
  readonly epoch: number
  /** The position and digest that it appends after. */
  readonly head: number
  readonly headDigest: string
  /** It was told that it is fenced: it may not write again. */
  readonly lost: boolean
}

/** The whole ledger. */
export interface LedgerState {
  readonly runs: Readonly<Record<string, ModelRun>>
  readonly purged: ReadonlyArray<string>
  readonly branches: Readonly<Record<string, ModelBranch>>
  /** Handles that their workers hold, by `<worker> <branch>`. */
  readonly handles: Readonly<Record<string, ModelHandle>>
  /** Workers whose process is gone or that left: their names are not used again. */
  readonly gone: ReadonlyArray<string>
}

/** Before anything happened. */
export const emptyLedger: LedgerState = { runs: {}, purged: [], branches: {}, handles: {}, gone: [] }

/** A value that a client delivers; `digest` is of its canonical text. */
export interface ModelValue {
  readonly valid: boolean
  readonly json: string
}

/** One thing that a worker or somebody outside does to the ledger. */
export type Action =
  | { readonly _tag: "Start"; readonly run: RunId; readonly workflow: string; readonly input: string }
  /** The worker takes every branch that wants one. */
  | { readonly _tag: "Claim"; readonly worker: string }
  /** Appends and waits until it is durable; `conditional`: only if nothing came in beyond what the worker moved. */
  | {
      readonly _tag: "Append"
      readonly worker: string
      readonly branch: BranchId
      readonly draft: EntryDraft
      readonly conditional: boolean
    }
  /** Moves the next row of the inbox into the journal, as the entry that `serveInboxRow` makes of it. */
  | { readonly _tag: "Move"; readonly worker: string; readonly branch: BranchId }
  /** Lets go of the branch; `wakes`: it wants a worker at once, although it waits or is stuck (a timer that is due). */
  | {
      readonly _tag: "Release"
      readonly worker: string
      readonly branch: BranchId
      readonly how: "Waiting" | "Stuck" | "Ready"
      readonly wakes: boolean
    }
  /** Gives back a branch whose handle cannot be used. */
  | { readonly _tag: "Disown"; readonly worker: string; readonly branch: BranchId }
  /**
   * The worker's branches are freed for others: it left, its process is provably gone, or its lease lapsed. One that
   * `lapsed` still runs and holds its handles (a zombie), as does one that `left` without closing them; one that is `dead` has none.
   */
  | { readonly _tag: "Lose"; readonly worker: string; readonly how: "left" | "dead" | "lapsed" }
  /** An answer with intent `"retry"`. */
  | {
      readonly _tag: "Deliver"
      readonly branch: BranchId
      readonly interrupt: InterruptId
      readonly name: string
      readonly delivery: DeliveryId
      readonly value: ModelValue
    }
  | {
      readonly _tag: "Fork"
      readonly run: RunId
      readonly fork: ForkId
      readonly parent: BranchId
      readonly at: ForkAt
    }
  | { readonly _tag: "Cancel"; readonly branch: BranchId; readonly reason: string | null }
  | {
      readonly _tag: "Settle"
      readonly branch: BranchId
      readonly effect: string
      readonly settlement: Settlement
    }
  | { readonly _tag: "Unstick"; readonly branch: BranchId }
  | { readonly _tag: "Purge"; readonly run: RunId }

/** Where a fork begins, and with what. */
export type ForkAt =
  | { readonly _tag: "Checkpoint"; readonly seq: number }
  | {
      readonly _tag: "Interrupt"
      readonly interrupt: InterruptId
      readonly name: string
      readonly delivery: DeliveryId
      readonly value: ModelValue
    }
  | { readonly _tag: "Outcome"; readonly step: string; readonly outcome: "Succeeded" | "Failed"; readonly json: string }

/** An operator's word. `json` is the outcome of `Succeeded` and `Failed`. */
export type Settlement =
  | { readonly _tag: "Succeeded"; readonly json: string }
  | { readonly _tag: "Failed"; readonly json: string }
  | { readonly _tag: "DidNotHappen" }

/** What the ledger answered. Tags are those of the ledger's receipts and typed refusals. */
export type Verdict =
  | { readonly _tag: "Started"; readonly created: boolean }
  | {
      readonly _tag: "Claimed"
      readonly branches: ReadonlyArray<{ readonly branch: BranchId; readonly epoch: number }>
    }
  | { readonly _tag: "Appended"; readonly entry: Entry }
  | { readonly _tag: "NothingToMove" }
  | { readonly _tag: "Released" }
  | { readonly _tag: "InboxAdvanced" }
  | { readonly _tag: "Fenced" }
  /** The handle was fenced before, or is not there: the call is a defect of its caller. */
  | { readonly _tag: "Lost" }
  | { readonly _tag: "Refused"; readonly reason: string }
  | { readonly _tag: "Freed"; readonly branches: ReadonlyArray<BranchId> }
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "TooLate" }
  | { readonly _tag: "Forked"; readonly branch: BranchId; readonly seq: number; readonly created: boolean }
  | { readonly _tag: "Unstuck"; readonly count: number }
  | { readonly _tag: "Purged" }
  | { readonly _tag: LedgerRefusal }

/** Tags of the ledger's typed refusals. */
export type LedgerRefusal =
  | "RunConflict"
  | "RunPurged"
  | "RunNotFound"
  | "RunNotOver"
  | "UnknownInterrupt"
  | "DeliveryIdReused"
  | "AlreadyConsumed"
  | "InterruptClosed"
  | "ResumeValueInvalid"
  | "UnknownCheckpoint"
  | "ForkIdReused"
  | "EffectInFlight"
  | "UnknownEffect"
  | "AlreadySettled"
  | "EffectUnderWay"
  | "SettlementInvalid"

/** True if a branch of this status takes no more entries. */
export const isOver = (status: LedgerStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"

/** A branch of the lineage, root first, and the positions of the history that it holds. */
export interface Ancestor {
  readonly branch: ModelBranch
  readonly from: number
  readonly to: number
}

/** The branches that a history is made of, root first. */
export const lineageOf = (state: LedgerState, branch: ModelBranch): ReadonlyArray<Ancestor> => {
  const lineage: Array<Ancestor> = []
  let to = branch.head
  let current: ModelBranch | undefined = branch
  while (current !== undefined) {
    lineage.unshift({ branch: current, from: (current.parent?.seq ?? 0) + 1, to })
    if (current.parent === null) break
    to = Math.min(to, current.parent.seq)
    current = state.branches[current.parent.branch]
  }
  return lineage
}

/** A branch's history up to `upTo`: its ancestors' entries up to the fork points, then its own. */
export const historyOf = (state: LedgerState, branch: ModelBranch, upTo = branch.head): ReadonlyArray<Entry> =>
  lineageOf(state, branch)
    .flatMap(({ branch: { entries }, from, to }) => entries.filter(({ seq }) => seq >= from && seq <= to))
    .filter(({ seq }) => seq <= upTo)

/** The key of a handle. */
export const handleKey = (worker: string, branch: BranchId): string => `${worker} ${branch}`

/** The inbox key of an answer. */
export const answerKey = (interrupt: string): string => `answer:${interrupt}`

/** The inbox key of a settlement. */
export const settlementKey = (effect: string): string => `settle:${effect}`
