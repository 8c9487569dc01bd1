/**
 * Where checkpoints of LangGraph.js threads are kept, and what the gate in front of a thread decides on: its interrupts,
 * answers, forks and effects. Texts go in and come out; what they mean is the adapter's business.
 *
 * Every operation on a thread is one transaction that holds the thread's row, so that what it decides on cannot change
 * before it is written.
 */
import type { DeliveryPolicy, DeliveryVerdict } from "@fermata/contract"
import { Schema, type Effect } from "effect"
import type { LedgerError } from "./LedgerError.js"

// ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Version of a channel, as LangGraph gives it. */
export type ChannelVersion = string | number

/** A channel's version at a checkpoint, and the digest of its value. */
export type ChannelRef = readonly [version: ChannelVersion, value: string]

/** A value that a task wrote on top of a checkpoint. */
export interface StoredWrite {
  readonly task: string
  readonly idx: number
  readonly channel: string
  /** The task's path; writes are ordered by path, task and `idx`. */
  readonly path: string
  readonly value: string
}

/** A checkpoint, its columns verified. */
export interface StoredCheckpoint {
  readonly thread: string
  readonly ns: string
  readonly id: string
  readonly parent: string | null
  readonly body: string
  readonly channels: Readonly<Record<string, ChannelRef>>
  readonly metadata: string
  /** Not ordered. */
  readonly writes: ReadonlyArray<StoredWrite>
  /** Answers that were accepted for its tasks: task, ordinal of the interrupt within it, value. */
  readonly answers: ReadonlyArray<{ readonly task: string; readonly ordinal: number; readonly value: string }>
}

/** Who writes: a runner that holds the thread names itself, and is refused once it lost it. */
export interface ThreadHold {
  readonly runner: string
  readonly epoch: number
}

/** Stores a checkpoint and the values that it brings. */
export interface PutCheckpoint {
  readonly _tag: "Put"
  readonly ns: string
  readonly id: string
  readonly parent: string | null
  readonly body: string
  readonly metadata: string
  /** Channels that changed since the parent. */
  readonly changed: Readonly<Record<string, ChannelRef>>
  /** Channels that did not, with the version that the parent must have: its value is meant. */
  readonly carried: Readonly<Record<string, ChannelVersion>>
  /** Whether each carried value must be found; otherwise one that the parent does not have is left out. */
  readonly strict: boolean
  /** Texts by their digest. */
  readonly values: ReadonlyMap<string, string>
  /**
   * `next`: the checkpoint goes on from its parent, which must have no other child (with no parent: the namespace must be
   * empty). `branch`: another child was asked for.
   */
  readonly as: "next" | "branch"
  readonly hold: ThreadHold | undefined
}

/** Stores what a task wrote. */
export interface PutWrites {
  readonly _tag: "Write"
  readonly ns: string
  readonly checkpoint: string
  readonly task: string
  readonly path: string
  readonly writes: ReadonlyArray<{ readonly idx: number; readonly channel: string; readonly value: string }>
  /** True: what is there is replaced. False: the first write of an index stays. */
  readonly replace: boolean
  /** Interrupts among the writes, for the gate. */
  readonly interrupts: ReadonlyArray<{ readonly interrupt: string; readonly question: string }>
  readonly hold: ThreadHold | undefined
}

/** What is done to a thread; several in one commit take effect in order. */
export type CheckpointOperation = PutCheckpoint | PutWrites

/** What became of an operation. One that is refused leaves the others of its commit alone. */
export type CheckpointOutcome =
  { readonly _tag: "Done" } | { readonly _tag: "Refused"; readonly error: CheckpointConflict | ThreadLost }

/** Which checkpoints; fields that are left out match all. Newest first, by id. */
export interface CheckpointQuery {
  readonly thread?: string
  readonly ns?: string
  readonly id?: string
  /** Ids below this one only. */
  readonly before?: string
  /** Goes on after this one of an earlier page. */
  readonly after?: { readonly thread: string; readonly ns: string; readonly id: string }
  readonly limit: number
}

/** A question that a thread asks. */
export interface AskedInterrupt {
  readonly interrupt: string
  /** The innermost graph that asked, and its checkpoint and task. */
  readonly ns: string
  readonly checkpoint: string
  readonly task: string
  /** 0 for the task's first question. */
  readonly ordinal: number
  readonly question: string
  /** The graphs that it passed on its way up, the root first. */
  readonly path: ReadonlyArray<{ readonly ns: string; readonly checkpoint: string; readonly task: string }>
  readonly answer:
    { readonly delivery: string; readonly value: string; readonly valueDigest: string; readonly at: number } | undefined
}

/** An answer to one interrupt. */
export interface ThreadAnswer {
  readonly interrupt: string
  readonly delivery: string
  readonly value: string
  readonly valueDigest: string
  /** What is wrong with the value; nothing is consumed then. */
  readonly invalid: string | undefined
}

/** What became of an answer: as `judgeDelivery` says, with the answer that counts. */
export interface AnswerReceipt {
  readonly verdict: DeliveryVerdict
  readonly interrupt: string
  readonly by: string | undefined
  readonly at: number | undefined
}

/** A fork: copies of checkpoints, and the answer that the new branch begins with. */
export interface ThreadFork {
  readonly fork: string
  /** Of all that makes it the same fork again. */
  readonly requestDigest: string
  /** The root graph's new checkpoint. */
  readonly checkpoint: string
  readonly puts: ReadonlyArray<CheckpointOperation>
  /** Answers to the task's questions up to the forked one, in order. */
  readonly answers: ReadonlyArray<{ readonly value: string; readonly valueDigest: string }>
  /** Where they are served. */
  readonly at: { readonly ns: string; readonly checkpoint: string; readonly task: string }
  /** Effects that the task had before the question: they happened, and do not happen again. */
  readonly effects: { readonly from: string; readonly to: string }
}

/** One try of an effect in a task. */
export interface ThreadEffect {
  readonly task: string
  readonly position: string
  readonly try: number
  readonly key: string
  readonly name: string
  readonly delivery: DeliveryPolicy
  readonly input: string
  readonly inputDigest: string
  readonly attempt: number
  /** How many questions of the task were answered when it fired. */
  readonly answered: number
  readonly state: "intended" | "succeeded" | "failed" | "voided"
  readonly outcome: string
  readonly runner: string
  /** When the firing can no longer be under way, in ledger milliseconds; `null` if nobody knows. */
  readonly overAt: number | null
}

// ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────────

/** The checkpoint that this one was to follow has gone on already: another run of the thread was faster. */
export class CheckpointConflict extends Schema.TaggedError<CheckpointConflict>("fermata/CheckpointConflict")(
  "CheckpointConflict",
  {
    thread: Schema.String,
    ns: Schema.String,
    /** The common parent; `null` if the thread was thought to be new. */
    parent: Schema.NullOr(Schema.String),
    /** The checkpoint that is there. */
    child: Schema.String,
    /** The one that was refused. */
    refused: Schema.String
  }
) {
  override get message() {
    return `Thread ${this.thread}${this.ns === "" ? "" : ` (${this.ns})`}: checkpoint ${this.refused} was not stored, because ${this.parent === null ? "the thread has begun" : `${this.parent} has gone on`} with ${this.child} meanwhile. Read the thread's state and decide anew; to branch off, address the checkpoint by its checkpoint_id.`
  }
}

/** Another runner holds the thread now. Nothing was written. */
export class ThreadLost extends Schema.TaggedError<ThreadLost>("fermata/ThreadLost")("ThreadLost", {
  thread: Schema.String,
  epoch: Schema.Number
}) {
  override get message() {
    return `Thread ${this.thread}: the runner of epoch ${this.epoch} does not hold it any more. Nothing was written; whoever holds it goes on.`
  }
}

/** Another runner holds the thread. */
export class ThreadBusy extends Schema.TaggedError<ThreadBusy>("fermata/ThreadBusy")("ThreadBusy", {
  thread: Schema.String,
  /** When its lease ends if it is not renewed, in ledger milliseconds. */
  until: Schema.Number
}) {
  override get message() {
    return `Thread ${this.thread} is being run by another process, or by another call of this one. Wait for it, or try again.`
  }
}

/** Stored rows of a thread do not verify. Nothing is guessed. */
export class CorruptCheckpoint extends Schema.TaggedError<CorruptCheckpoint>("fermata/CorruptCheckpoint")(
  "CorruptCheckpoint",
  {
    table: Schema.Literal("checkpoints", "writes", "values", "interrupts", "answers", "forks", "effects"),
    thread: Schema.String,
    /** The row's key within the thread. */
    id: Schema.String,
    detail: Schema.String
  }
) {
  override get message() {
    return `Stored data of thread ${this.thread} does not verify (${this.table}, ${this.id}): ${this.detail}. Restore it from a backup, or fork the thread from a checkpoint before the damage.`
  }
}

// ── Service ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The store of threads; part of the ledger, on its database. */
export interface CheckpointStore {
  /** Does the operations in order, in one commit. */
  readonly commit: (
    thread: string,
    operations: ReadonlyArray<CheckpointOperation>
  ) => Effect.Effect<ReadonlyArray<CheckpointOutcome>, LedgerError | CorruptCheckpoint>
  /** Of these checkpoints, those that are stored. */
  readonly known: (
    thread: string,
    checkpoints: ReadonlyArray<{ readonly ns: string; readonly id: string }>
  ) => Effect.Effect<ReadonlySet<string>, LedgerError>
  /** Whether the thread has gone on from a checkpoint. */
  readonly hasChild: (thread: string, ns: string, id: string) => Effect.Effect<boolean, LedgerError>
  /** A page of checkpoints with what was written on top of them. */
  readonly find: (
    query: CheckpointQuery
  ) => Effect.Effect<ReadonlyArray<StoredCheckpoint>, LedgerError | CorruptCheckpoint>
  /** The texts of these digests, verified. */
  readonly values: (
    thread: string,
    digests: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, string>, LedgerError | CorruptCheckpoint>
  /** The thread's questions at a checkpoint of its root graph, or the question of that id. */
  readonly asked: (
    thread: string,
    which: { readonly checkpoint: string } | { readonly interrupt: string }
  ) => Effect.Effect<ReadonlyArray<AskedInterrupt>, LedgerError | CorruptCheckpoint>
  /** CO: decides on answers and stores those that are accepted, all of them or none. */
  readonly answer: (
    thread: string,
    answers: ReadonlyArray<ThreadAnswer>
  ) => Effect.Effect<ReadonlyArray<AnswerReceipt>, LedgerError | CorruptCheckpoint>
  /** The checkpoint of a fork that was made before under this id, with what it was made of. */
  readonly forked: (
    thread: string,
    fork: string
  ) => Effect.Effect<
    { readonly checkpoint: string; readonly requestDigest: string } | undefined,
    LedgerError | CorruptCheckpoint
  >
  /** FI: makes a fork, its answer included, in one commit; the checkpoint of the one that is there if it was made before. */
  readonly fork: (
    thread: string,
    fork: ThreadFork
  ) => Effect.Effect<{ readonly checkpoint: string; readonly requestDigest: string }, LedgerError | CorruptCheckpoint>
  /** Takes the thread for a runner, if nobody has it, or who has it is dead or lapsed. */
  readonly hold: (
    thread: string,
    options: {
      readonly runner: string
      readonly lease: number
      /** Whether the process of another runner is seen to be gone. */
      readonly gone: (runner: string) => boolean
    }
  ) => Effect.Effect<ThreadHold, ThreadBusy | LedgerError>
  /** Keeps the thread for another lease; false if it is lost. */
  readonly renew: (thread: string, hold: ThreadHold, lease: number) => Effect.Effect<boolean, LedgerError>
  readonly release: (thread: string, hold: ThreadHold) => Effect.Effect<void, LedgerError>
  /** The tries at a position of a task, in order. */
  readonly effects: (
    thread: string,
    task: string,
    position: string
  ) => Effect.Effect<ReadonlyArray<ThreadEffect>, LedgerError | CorruptCheckpoint>
  /** Stores a try, or what became of it. */
  readonly putEffect: (
    thread: string,
    effect: ThreadEffect,
    hold: ThreadHold
  ) => Effect.Effect<void, LedgerError | ThreadLost>
  /** Removes all that is stored of the thread. A runner that held it has lost it. */
  readonly remove: (thread: string) => Effect.Effect<void, LedgerError>
}

/** How {@link CheckpointStore.known} names a checkpoint. */
export const checkpointKey = (ns: string, id: string): string => `${id}\n${ns}`
