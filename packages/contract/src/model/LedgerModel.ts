/**
 * The reference model of the ledger: `step(state, action)` says what the ledger must hold afterwards and what it must
 * answer. It is pure, so that a real ledger can be driven by the same actions and compared after every one (lockstep).
 *
 * Each transition gathers facts (`LedgerFacts`), lets the contract's functions decide, and carries the verdict out. What
 * is left open is what the ledger leaves open: times and hashes.
 */
import { type EntryDraft, isTerminal } from "../Entry.js"
import type { Recovery } from "../decisions/Recovery.js"
import type { StoredRun } from "../decisions/admitStart.js"
import { type BranchId, forkBranch, rootBranch, runOf } from "../Ids.js"
import { type Decisions, shippedDecisions } from "./Decisions.js"
import {
  cancelRequested,
  deliveryFacts,
  type DigestOf,
  forkPosition,
  type ForkPosition,
  settlementFacts
} from "./LedgerFacts.js"
import { movedEntry } from "./LedgerMoves.js"
import {
  accept,
  digestAt,
  endOf,
  entryAt,
  forked,
  lose,
  newBranch,
  openAfter,
  rowOf,
  withBranch,
  withHandle,
  withoutHandle
} from "./LedgerRows.js"
import {
  type Action,
  answerKey,
  handleKey,
  historyOf,
  isOver,
  type LedgerState,
  type LedgerStatus,
  type ModelBranch,
  type ModelHandle,
  settlementKey,
  type Verdict
} from "./LedgerState.js"

/** What an action led to. */
export interface Stepped {
  readonly state: LedgerState
  readonly verdict: Verdict
}

/** How a ledger model is made. */
export interface LedgerModelOptions {
  /** The decisions that it calls; those that ship by default. */
  readonly decisions?: Decisions
  /** Digest of a JSON text; the text itself by default. A lockstep passes the ledger's, so that payloads compare. */
  readonly digestOf?: DigestOf
  /** The version of every run's workflow; `"1"` by default. */
  readonly version?: string
}

/** A model of the ledger. */
export interface LedgerModel {
  readonly step: (state: LedgerState, action: Action) => Stepped
  /** What a worker's handle stands on: the fold of the history up to its own head. */
  readonly recoveryOf: (state: LedgerState, handle: ModelHandle) => Recovery
  /** The entry that the next row of the inbox becomes, or `undefined` if the handle has moved all. */
  readonly nextMove: (state: LedgerState, handle: ModelHandle) => EntryDraft | undefined
}

const bounds = { maxPayload: 1_000_000 }

/** Makes a model of the ledger. */
export const makeLedgerModel = (options: LedgerModelOptions = {}): LedgerModel => {
  const { decisions = shippedDecisions, digestOf = (json) => json, version = "1" } = options

  const recoveryOf = (state: LedgerState, handle: ModelHandle): Recovery => {
    const branch = state.branches[handle.branch]
    return decisions.recover(handle.branch, branch === undefined ? [] : historyOf(state, branch, handle.head))
  }

  const nextMove = (state: LedgerState, handle: ModelHandle): EntryDraft | undefined => {
    const recovery = recoveryOf(state, handle)
    const row = state.branches[handle.branch]?.inbox.find(({ pos }) => pos > recovery.inboxSeen)
    return row && movedEntry(row, recovery, decisions)
  }

  const start = (state: LedgerState, action: Extract<Action, { _tag: "Start" }>): Stepped => {
    const { run, workflow, input } = action
    const known = state.runs[run]
    const stored: StoredRun = state.purged.includes(run)
      ? { _tag: "Purged" }
      : known === undefined
        ? { _tag: "Absent" }
        : { _tag: "Present", ...known }
    const request = { workflow, version, inputDigest: digestOf(input) }
    switch (decisions.admitStart(stored, request)._tag) {
      case "Existing":
        return { state, verdict: { _tag: "Started", created: false } }
      case "Conflict":
        return { state, verdict: { _tag: "RunConflict" } }
      case "Purged":
        return { state, verdict: { _tag: "RunPurged" } }
      case "Create": {
        const branch = rootBranch(run)
        const payload = JSON.stringify({ workflow, version, run: "" })
        const entries = [entryAt(branch, { kind: "run.started", key: "", payload }, 1, 0)]
        const row: ModelBranch = {
          ...newBranch,
          branch,
          run,
          parent: null,
          firstDigest: "",
          head: 1,
          entries,
          open: []
        }
        return {
          state: {
            ...state,
            runs: { ...state.runs, [run]: { run, input, ...request } },
            branches: { ...state.branches, [branch]: row }
          },
          verdict: { _tag: "Started", created: true }
        }
      }
    }
  }

  const claim = (state: LedgerState, { worker }: Extract<Action, { _tag: "Claim" }>): Stepped => {
    const branches = { ...state.branches }
    const handles = { ...state.handles }
    const claimed: Array<{ branch: BranchId; epoch: number }> = []
    for (const branch of Object.values(state.branches)) {
      if (!branch.due || branch.owner !== null) continue
      const epoch = branch.epoch + 1
      branches[branch.branch] = { ...branch, owner: worker, status: "running", due: false, epoch }
      const { head } = branch
      const headDigest = digestAt(state, branch, head)
      handles[handleKey(worker, branch.branch)] = {
        worker,
        branch: branch.branch,
        epoch,
        head,
        headDigest,
        lost: false
      }
      claimed.push({ branch: branch.branch, epoch })
    }
    claimed.sort((a, b) => (a.branch < b.branch ? -1 : 1))
    return { state: { ...state, branches, handles }, verdict: { _tag: "Claimed", branches: claimed } }
  }

  /** Appends one entry through a handle; a terminal one ends the branch in the same write. */
  const append = (state: LedgerState, handle: ModelHandle, draft: EntryDraft, conditional: boolean): Stepped => {
    const recovery = recoveryOf(state, handle)
    const allowed = decisions.admitEntry(
      { head: handle.head, over: recovery.ended !== undefined },
      {
        kind: draft.kind,
        key: draft.key,
        payloadLength: draft.payload.length,
        payloadWellFormed: draft.payload.isWellFormed()
      },
      bounds
    )
    if (allowed._tag === "Refuse") return { state, verdict: { _tag: "Refused", reason: allowed.reason } }
    const branch = state.branches[handle.branch]
    const entry = entryAt(handle.branch, draft, handle.head + 1, handle.epoch)
    const verdict = decisions.admitAppend(branch && rowOf(state, branch), {
      epoch: handle.epoch,
      base: handle.head,
      baseDigest: handle.headDigest,
      head: entry.seq,
      headDigest: entry.digest,
      inboxSeen: conditional ? recovery.inboxSeen : undefined
    })
    if (verdict._tag === "InboxAdvanced") return { state, verdict: { _tag: "InboxAdvanced" } }
    if (verdict._tag === "Fenced" || branch === undefined)
      return { state: lose(state, handle), verdict: { _tag: "Fenced" } }
    if (verdict._tag === "AlreadyAppended") return { state, verdict: { _tag: "Appended", entry } }
    const after: ModelBranch = {
      ...branch,
      head: entry.seq,
      entries: [...branch.entries, entry],
      open: openAfter(branch.open, entry),
      ...(isTerminal(entry.kind) ? { owner: null, due: false, status: endOf(entry.kind) } : {})
    }
    const held = { ...handle, head: entry.seq, headDigest: entry.digest }
    const next = withBranch(state, after)
    return {
      state: isTerminal(entry.kind) ? withoutHandle(next, handle) : withHandle(next, held),
      verdict: { _tag: "Appended", entry }
    }
  }

  const release = (state: LedgerState, handle: ModelHandle, action: Extract<Action, { _tag: "Release" }>): Stepped => {
    const branch = state.branches[handle.branch]
    const row = branch && { epoch: branch.epoch, inboxHead: branch.inbox.length }
    // One that is ready for another worker does not park: whoever claims it sees what came in.
    const inboxSeen = action.how === "Ready" ? (row?.inboxHead ?? 0) : recoveryOf(state, handle).inboxSeen
    const verdict = decisions.admitPark(row, { epoch: handle.epoch, inboxSeen })
    if (verdict._tag === "InboxAdvanced") return { state, verdict }
    if (verdict._tag === "Fenced" || branch === undefined)
      return { state: lose(state, handle), verdict: { _tag: "Fenced" } }
    const status: LedgerStatus = action.how === "Ready" ? "ready" : action.how === "Stuck" ? "stuck" : "waiting"
    const after = { ...branch, owner: null, status, due: action.how === "Ready" || action.wakes }
    return { state: withoutHandle(withBranch(state, after), handle), verdict: { _tag: "Released" } }
  }

  /** Frees branches for others; their epoch rises, so that whoever had them is fenced. */
  const free = (state: LedgerState, which: (branch: ModelBranch) => boolean): Stepped => {
    const freed = Object.values(state.branches).filter(which)
    let next = state
    for (const branch of freed) {
      next = withBranch(next, { ...branch, owner: null, status: "ready", due: true, epoch: branch.epoch + 1 })
    }
    const branches = freed.map(({ branch }) => branch).sort((a, b) => (a < b ? -1 : 1))
    return { state: next, verdict: { _tag: "Freed", branches } }
  }

  const loseWorker = (state: LedgerState, { worker, how }: Extract<Action, { _tag: "Lose" }>): Stepped => {
    // One that left says so itself; of the others `judgeOwner` says whether they may be taken from.
    const sight = how === "dead" ? "gone" : "cannot tell"
    const judged = decisions.judgeOwner({ sight, leaseUntil: 1, now: how === "lapsed" ? 1 : 0 })
    if (how !== "left" && judged._tag === "Alive") return { state, verdict: { _tag: "Freed", branches: [] } }
    const freed = free(state, ({ owner }) => owner === worker)
    const gone = [...state.gone, worker]
    if (how !== "dead") return { ...freed, state: { ...freed.state, gone } }
    const handles = Object.fromEntries(Object.entries(state.handles).filter(([, handle]) => handle.worker !== worker))
    return { ...freed, state: { ...freed.state, gone, handles } }
  }

  const deliver = (state: LedgerState, action: Extract<Action, { _tag: "Deliver" }>): Stepped => {
    const branch = state.branches[action.branch]
    const known =
      branch === undefined
        ? { over: false, interrupt: { _tag: "Unknown" as const }, deliveryUse: undefined }
        : deliveryFacts(state, branch, action)
    const digest = digestOf(action.value.json)
    const verdict = decisions.judgeDelivery(
      { run: branch === undefined ? runState(state, action.branch) : "known", ...known },
      {
        interrupt: action.interrupt,
        delivery: action.delivery,
        value: action.value.valid ? { _tag: "Valid", digest } : { _tag: "Invalid", digest }
      }
    )
    if (verdict._tag !== "Accepted" || branch === undefined) return { state, verdict: plain(verdict) }
    const { interrupt, delivery } = action
    const payload =
      `{"interrupt":${JSON.stringify(interrupt)},"delivery":${JSON.stringify(delivery)},` +
      `"value":${action.value.json},"valueDigest":${JSON.stringify(digest)}}`
    const accepted = accept(branch, { kind: "answer", key: answerKey(interrupt), delivery, payload })
    const open = branch.open.filter((id) => id !== interrupt)
    return { state: withBranch(state, { ...accepted, open }), verdict: { _tag: "Accepted" } }
  }

  const fork = (state: LedgerState, action: Extract<Action, { _tag: "Fork" }>): Stepped => {
    const run = state.runs[action.run]
    const named = state.branches[action.parent]
    const parent = run !== undefined && named?.run === action.run ? named : undefined
    const child = forkBranch(action.run, action.fork)
    const position: ForkPosition =
      parent === undefined
        ? { seq: 0, inFlight: [], nearest: { below: undefined, above: undefined }, open: [], first: undefined }
        : forkPosition(state, parent, action.at, digestOf)
    const { first, seq } = position
    const valueValid = action.at._tag !== "Interrupt" || action.at.value.valid
    const firstDigest = first === undefined ? "" : valueValid ? first.identity : "invalid"
    const existing = state.branches[child]
    const verdict = decisions.admitFork(
      {
        run: run === undefined ? (state.purged.includes(action.run) ? "purged" : "unknown") : "known",
        existing: existing && {
          parent: existing.parent?.branch ?? "",
          seq: existing.parent?.seq ?? 0,
          firstDigest: existing.firstDigest
        },
        // A terminal entry is durable, but nothing can go on from it.
        head: parent && (isOver(parent.status) ? parent.head - 1 : parent.head),
        anchor: 0,
        inFlight: position.inFlight,
        nearest: position.nearest,
        interruptOpen:
          action.at._tag === "Interrupt" ? first !== undefined && position.open.includes(first.key) : undefined
      },
      {
        parent: action.parent,
        seq,
        firstDigest,
        settlesStep: action.at._tag === "Outcome" ? action.at.step : undefined,
        valueValid
      }
    )
    switch (verdict._tag) {
      case "Fork": {
        // `admitFork` lets only positions of a known branch through.
        if (parent === undefined) return { state, verdict: { _tag: "RunNotFound" } }
        const made = forked(parent, child, position, first, firstDigest)
        return { state: withBranch(state, made), verdict: { _tag: "Forked", branch: child, seq, created: true } }
      }
      case "Existing":
        return { state, verdict: { _tag: "Forked", branch: child, seq, created: false } }
      case "UnknownCheckpoint":
        return { state, verdict: { _tag: verdict.head === undefined ? "RunNotFound" : "UnknownCheckpoint" } }
      case "CheckpointPruned":
        return { state, verdict: { _tag: "UnknownCheckpoint" } }
      case "InterruptNotOpen":
        return { state, verdict: { _tag: first === undefined ? "UnknownInterrupt" : "InterruptClosed" } }
      default:
        return { state, verdict: plain(verdict) }
    }
  }

  const cancel = (state: LedgerState, action: Extract<Action, { _tag: "Cancel" }>): Stepped => {
    const branch = state.branches[action.branch]
    const run = branch === undefined ? runState(state, action.branch) : "known"
    const verdict = decisions.admitCancel({
      run: branch === undefined && run === "known" ? "unknown" : run,
      over: branch !== undefined && isOver(branch.status),
      requested: branch !== undefined && cancelRequested(state, branch)
    })
    if (verdict._tag === "UnknownRun") return { state, verdict: { _tag: "RunNotFound" } }
    if (verdict._tag !== "Accepted" || branch === undefined) return { state, verdict: plain(verdict) }
    const payload = JSON.stringify({ reason: action.reason })
    return {
      state: withBranch(state, accept(branch, { kind: "cancel", key: "cancel", delivery: null, payload })),
      verdict: { _tag: "Accepted" }
    }
  }

  const settle = (state: LedgerState, action: Extract<Action, { _tag: "Settle" }>): Stepped => {
    const branch = state.branches[action.branch]
    const { effect, settlement } = action
    const json = settlement._tag === "DidNotHappen" ? "" : `,"value":${settlement.json}`
    const said = `"settlement":${JSON.stringify(settlement._tag)}${json}}`
    const run = branch === undefined ? runState(state, action.branch) : "known"
    const verdict = decisions.admitSettlement(
      branch === undefined
        ? { run: run === "known" ? "unknown" : run, over: false, owned: false, effect: undefined, accepted: undefined }
        : { run: "known", ...settlementFacts(state, branch, effect) },
      { digest: JSON.stringify(JSON.parse(`{${said}`)), valid: true }
    )
    if (verdict._tag === "UnderWay") return { state, verdict: { _tag: "EffectUnderWay" } }
    if (verdict._tag !== "Accepted" || branch === undefined) return { state, verdict: plain(verdict) }
    const payload = `{"effect":${JSON.stringify(effect)},${said}`
    const row = { kind: "settlement", key: settlementKey(effect), delivery: null, payload } as const
    return { state: withBranch(state, accept(branch, row)), verdict: { _tag: "Accepted" } }
  }

  const purge = (state: LedgerState, { run }: Extract<Action, { _tag: "Purge" }>): Stepped => {
    if (state.purged.includes(run)) return { state, verdict: { _tag: "RunPurged" } }
    if (state.runs[run] === undefined) return { state, verdict: { _tag: "RunNotFound" } }
    const own = Object.values(state.branches).filter((branch) => branch.run === run)
    if (own.some(({ status }) => !isOver(status))) return { state, verdict: { _tag: "RunNotOver" } }
    const { [run]: _, ...runs } = state.runs
    const branches = Object.fromEntries(Object.entries(state.branches).filter(([, branch]) => branch.run !== run))
    return { state: { ...state, runs, branches, purged: [...state.purged, run] }, verdict: { _tag: "Purged" } }
  }

  const withHeld = (
    state: LedgerState,
    { worker, branch }: { readonly worker: string; readonly branch: BranchId },
    then: (handle: ModelHandle) => Stepped
  ): Stepped => {
    const handle = state.handles[handleKey(worker, branch)]
    return handle === undefined || handle.lost ? { state, verdict: { _tag: "Lost" } } : then(handle)
  }

  const step = (state: LedgerState, action: Action): Stepped => {
    switch (action._tag) {
      case "Start":
        return start(state, action)
      case "Claim":
        return claim(state, action)
      case "Append":
        return withHeld(state, action, (handle) => append(state, handle, action.draft, action.conditional))
      case "Move":
        return withHeld(state, action, (handle) => {
          const draft = nextMove(state, handle)
          return draft === undefined
            ? { state, verdict: { _tag: "NothingToMove" } }
            : append(state, handle, draft, false)
        })
      case "Release":
        return withHeld(state, action, (handle) => release(state, handle, action))
      case "Disown": {
        const handle = state.handles[handleKey(action.worker, action.branch)]
        if (handle === undefined) return { state, verdict: { _tag: "Lost" } }
        return free(
          withoutHandle(state, handle),
          (branch) => branch.branch === handle.branch && branch.epoch === handle.epoch && branch.owner !== null
        )
      }
      case "Lose":
        return loseWorker(state, action)
      case "Deliver":
        return deliver(state, action)
      case "Fork":
        return fork(state, action)
      case "Cancel":
        return cancel(state, action)
      case "Settle":
        return settle(state, action)
      case "Unstick": {
        const branch = state.branches[action.branch]
        if (branch?.status !== "stuck") return { state, verdict: { _tag: "Unstuck", count: 0 } }
        return {
          state: withBranch(state, { ...branch, status: "ready", due: true }),
          verdict: { _tag: "Unstuck", count: 1 }
        }
      }
      case "Purge":
        return purge(state, action)
    }
  }

  return { step, recoveryOf, nextMove }
}

/** Decisions' refusals are named as the ledger's errors are; a refusal that is not is a defect of this file. */
const plain = (verdict: { readonly _tag: Extract<Verdict, { _tag: string }>["_tag"] }): Verdict =>
  // The tags left over after each caller's own cases are those without fields.
  ({ _tag: verdict._tag }) as Verdict

const runState = (state: LedgerState, branch: BranchId): "known" | "unknown" | "purged" =>
  state.purged.includes(runOf(branch)) ? "purged" : "unknown"
