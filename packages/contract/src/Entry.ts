/**
 * The journal's entries: what a branch's history is made of.
 *
 * An *event* is delivered to the workflow, one per activation; a *mark* is never delivered: it was issued by a
 * deterministic command and is matched in order, or is looked up by key. A *terminal* entry is a branch's last.
 */
import { Schema } from "effect"
import type { BranchId } from "./Ids.js"

export const eventKinds = [
  "run.started",
  "step.succeeded",
  "step.failed",
  "step.died",
  "step.interrupted",
  "interrupt.answered",
  "timer.fired",
  "cancel.requested",
  "signal.received",
  "update.received",
  "interrupt.expired"
] as const

export const markKinds = [
  "step.retried",
  "effect.intended",
  "effect.succeeded",
  "effect.failed",
  "effect.voided",
  "effect.refused",
  "interrupt.opened",
  "interrupt.closed",
  "timer.started",
  "loop.snapshot",
  "inbox.unserved",
  "patch.taken",
  "update.replied",
  "update.rejected",
  "view.published",
  "tags.set"
] as const

export const terminalKinds = ["run.completed", "run.failed", "run.died", "run.cancelled"] as const

export const EntryKind = Schema.Literal(...eventKinds, ...markKinds, ...terminalKinds)
export type EntryKind = typeof EntryKind.Type
export type EventKind = (typeof eventKinds)[number]
export type MarkKind = (typeof markKinds)[number]
export type TerminalKind = (typeof terminalKinds)[number]

const events: ReadonlySet<string> = new Set(eventKinds)
const terminals: ReadonlySet<string> = new Set(terminalKinds)

/** True if entries of this kind are delivered to the workflow. */
export const isEvent = (kind: EntryKind): kind is EventKind => events.has(kind)

/** True if an entry of this kind ends its branch. */
export const isTerminal = (kind: EntryKind): kind is TerminalKind => terminals.has(kind)

/** One stored entry. `payload` is JSON text; `at` is milliseconds since the epoch, in the ledger's time. */
export interface Entry {
  readonly branch: BranchId
  /** Position in the branch's history, 1, 2, 3 …; a fork's own entries continue after its fork point. */
  readonly seq: number
  readonly kind: EntryKind
  /** What the entry is about: a StepKey, EffectKey, InterruptId, TimerId or inbox key; empty for the run itself. */
  readonly key: string
  readonly payload: string
  /** The fencing epoch of the owner that wrote it; 0 for entries written by a client's transaction (start, fork). */
  readonly epoch: number
  readonly at: number
  /** SHA-256 over all columns, chained over the predecessor's digest; base64url. */
  readonly digest: string
}

/** An entry before the append buffer gave it its position, time and digest. */
export interface EntryDraft {
  readonly kind: EntryKind
  readonly key: string
  /** JSON text. */
  readonly payload: string
}

/** What identifies one try of an effect at a position of a step; part of every `effect.*` payload. */
export interface EffectIdentity {
  readonly step: string
  /** Ordinal of the call within the step's body, or the caller's explicit key prefixed by `k:`. */
  readonly position: string
  /** 0 for the first try at this position; one more whenever the previous try is closed. */
  readonly try: number
  /** The step's attempt (1-based) that wrote the entry. */
  readonly attempt: number
  readonly effect: string
  readonly delivery: "transactional" | "keyed" | "once" | "repeatable"
  /** Digest of the encoded input. */
  readonly input: string
}

/** Payloads by kind: the parsed form of {@link Entry.payload}. Encoded values are plain JSON. */
export interface EntryPayloads {
  /** `run` is the digest of the run row, which binds workflow, version and input into the chain. */
  readonly "run.started": {
    readonly workflow: string
    readonly version: string
    readonly run: string
    /** What the run was started with, by name. */
    readonly tags?: Readonly<Record<string, string | number>>
  }
  readonly "step.succeeded": {
    readonly node: string
    readonly input: string
    readonly value: unknown
    /** Present on the first event of a fork that edits this outcome. */
    readonly edited?: true
  }
  readonly "step.failed": {
    readonly node: string
    readonly input: string
    readonly error: unknown
    readonly edited?: true
  }
  readonly "step.died": { readonly node: string; readonly input: string; readonly defect: unknown }
  readonly "step.interrupted": { readonly node: string; readonly input: string }
  /** `inbox` is the inbox position it came from; absent on a fork's first event. */
  readonly "interrupt.answered": {
    readonly value: unknown
    readonly delivery: string
    readonly valueDigest: string
    readonly inbox?: number
  }
  readonly "timer.fired": Record<string, never>
  readonly "cancel.requested": { readonly reason: string | null; readonly inbox: number }
  /** Attempt `attempt` ended with a typed error; the next starts at `due` (ledger milliseconds). */
  readonly "step.retried": {
    readonly node: string
    readonly attempt: number
    readonly error: unknown
    readonly due: number
  }
  readonly "effect.intended": EffectIdentity & {
    readonly value: unknown
    /** The worker that wrote the intent. */
    readonly worker: string
    /** `once` only: the latest ledger time at which the handler may be entered. */
    readonly fireBefore?: number
    /** `once` only: the handler's own time limit in milliseconds. */
    readonly timeLimit?: number
  }
  readonly "effect.succeeded": EffectIdentity & {
    readonly value: unknown
    readonly by: OutcomeSource
    readonly inbox?: number
  }
  readonly "effect.failed": EffectIdentity & {
    readonly error: unknown
    readonly by: OutcomeSource
    readonly inbox?: number
  }
  /** It never happened and never will: the next try may fire. */
  readonly "effect.voided": EffectIdentity & {
    readonly by: "reconcile" | "operator" | "owner"
    readonly inbox?: number
  }
  /** It happened, but its value was refused by its Schema: an operator settles it. */
  readonly "effect.refused": EffectIdentity & { readonly issue: string }
  /** `task`: what a person is told of it, and until when it may be answered. */
  readonly "interrupt.opened": { readonly name: string; readonly payload: unknown; readonly task?: TaskFacts }
  /** Nobody answered in time; the deadline in ledger milliseconds. It and an answer exclude each other (CO). */
  readonly "interrupt.expired": { readonly deadline: number }
  readonly "signal.received": MessageFacts
  readonly "update.received": MessageFacts
  /** The answer to an update, keyed as its request. */
  readonly "update.replied":
    | { readonly name: string; readonly value: unknown }
    | { readonly name: string; readonly error: unknown }
    | { readonly name: string; readonly defect: unknown }
  /** The workflow's validation refused the update: nothing was done. */
  readonly "update.rejected": { readonly name: string; readonly reason: string }
  /** What a query reads from now on. */
  readonly "view.published": { readonly value: unknown }
  /** These tags have these values from now on; others keep theirs. */
  readonly "tags.set": { readonly tags: Readonly<Record<string, string | number>> }
  readonly "interrupt.closed": { readonly reason: "withdrawn" | "ended" }
  readonly "timer.started": { readonly due: number }
  /** The state that a loop's iteration begins with; `at` is the branch's time then. Replaces what earlier ones wrote. */
  readonly "loop.snapshot": {
    readonly iteration: number
    readonly at: number
    /** Positions of the messages that the iteration before took, and of the marks that it wrote; rising. */
    readonly own?: ReadonlyArray<number>
    readonly state: unknown
  }
  /** An accepted inbox row that could not be served; the reason shows in its receipt. */
  readonly "inbox.unserved": { readonly inbox: number; readonly reason: string }
  /** From here on the branch takes the path of the patch that the key names. */
  readonly "patch.taken": Record<string, never>
  readonly "run.completed": { readonly value: unknown }
  readonly "run.failed": { readonly error: unknown }
  readonly "run.died": { readonly defect: unknown }
  readonly "run.cancelled": { readonly reason: string | null }
}

/** What the outside sent to a branch: a signal or an update, by the name of its definition. */
export interface MessageFacts {
  readonly name: string
  /** Chosen by the sender: each is delivered once. */
  readonly message: string
  readonly value: unknown
  readonly inbox: number
}

/** What a person who is to answer an interrupt is told. */
export interface TaskFacts {
  readonly title?: string
  readonly description?: string
  readonly assignee?: string
  /** Ledger milliseconds: when it expires, unanswered. */
  readonly deadline?: number
  /** JSON Schema of the encoded answer. */
  readonly form?: unknown
}

/** Who said what became of an effect. */
export type OutcomeSource = "handler" | "reconcile" | "operator" | "transaction"

/** Parses an entry's payload. The chain was verified on read, so its shape is the one that was written. */
export const payloadOf = <K extends EntryKind>(entry: {
  readonly kind: K
  readonly payload: string
}): EntryPayloads[K] =>
  // The digest chain vouches for the text, and only this package's writers produce it.
  JSON.parse(entry.payload) as EntryPayloads[K]
