/**
 * The ledger: one append-only journal in a SQL database, and everything that is decided in its transactions.
 *
 * This file is its interface; `layer` builds it over any `SqlClient` of `@effect/sql-sqlite-node` or
 * `@effect/sql-pg`. No other package contains SQL.
 */
import type {
  BranchId,
  Debounce,
  DeliveryId,
  Entry,
  EntryDraft,
  ForkId,
  InterruptId,
  MessageId,
  OverlapPolicy,
  QueueLimits,
  RunId,
  ScheduleSpec,
  TerminalKind,
  WorkerPlace
} from "@fermata/contract"
import { Context, type Effect, type Scope } from "effect"
import type { SqlClient } from "@effect/sql/SqlClient"
import type { CheckpointStore } from "./CheckpointStore.js"
import type { ItemStore } from "./ItemStore.js"
import type {
  AlreadyConsumed,
  AlreadySettled,
  CorruptJournal,
  DeliveryIdReused,
  EffectInFlight,
  EffectUnderWay,
  Fenced,
  ForkIdReused,
  ImportInvalid,
  InboxAdvanced,
  InterruptClosed,
  LedgerError,
  MessageIdReused,
  ResumeValueInvalid,
  RunConflict,
  RunExists,
  RunNotFound,
  RunNotOver,
  RunOver,
  RunPurged,
  ScheduleConflict,
  ScheduleNotFound,
  SettlementInvalid,
  UnknownCheckpoint,
  UnknownEffect,
  UnknownInterrupt,
  UnknownMessage
} from "./LedgerError.js"

// ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────

/** `ready`: wants a worker. `waiting`: for an answer or a time. `stuck`: needs an operator or a corrected deployment. */
export type BranchStatus = "ready" | "running" | "waiting" | "stuck" | "completed" | "failed" | "cancelled"

/** A run's row: immutable, covered by its digest, which the first journal entry binds into the chain. */
export interface RunRow {
  readonly run: RunId
  readonly workflow: string
  readonly version: string
  /** The encoded input, JSON text. */
  readonly input: string
  readonly inputDigest: string
  readonly createdAt: number
  readonly digest: string
}

/** A value that runs are found by. */
export type TagValue = string | number

/** Tags of a run, by name. They are stored plain, whatever codecs the plane has. */
export type Tags = Readonly<Record<string, TagValue>>

/** A condition on one tag: its value, or a range of numbers that includes both ends. */
export type TagFilter =
  | { readonly name: string; readonly equals: TagValue }
  | { readonly name: string; readonly min?: number; readonly max?: number }

/** Which runs (root branches) are meant: those for which all of it holds. Times are ledger milliseconds. */
export interface RunFilter {
  readonly workflow?: string
  readonly status?: BranchStatus
  readonly tags?: ReadonlyArray<TagFilter>
  /** Started at this time or later, before this time. */
  readonly startedAfter?: number
  readonly startedBefore?: number
  /** Ended at this time or later, before this time: runs that are not over are not meant then. */
  readonly endedAfter?: number
  readonly endedBefore?: number
}

/** The last run of a page: its id, or what also stands for a run that was purged since. */
export type RunCursor = RunId | { readonly run: RunId; readonly createdAt: number }

/** A branch's row. */
export interface BranchInfo {
  readonly branch: BranchId
  readonly run: RunId
  readonly workflow: string
  readonly version: string
  readonly status: BranchStatus
  /** The branch forked from, and the position; `null` for the root. */
  readonly parent: { readonly branch: BranchId; readonly seq: number } | null
  readonly head: number
  readonly headDigest: string
  readonly epoch: number
  /** The worker that owns it, if any. */
  readonly owner: string | null
  /** The queue that it stands in; `null`: none, any worker of its definition may take it at any time. */
  readonly queue: string | null
  readonly inboxHead: number
  /** When it wants a worker next (ledger milliseconds): due time of its nearest timer, or since when it is ready. */
  readonly readyAt: number | null
  /** Why it is stuck, JSON text. */
  readonly problem: string | null
  readonly createdAt: number
  /** What its workflow takes from outside, JSON text `{signals, updates}` of names; `null`: nothing. */
  readonly accepts: string | null
  /** What its owner said of it when it let go of it last, JSON text; `null`: nothing. See {@link Release}. */
  readonly standing: string | null
}

/** An interrupt of a branch that nobody answered yet. */
export interface PendingInterrupt {
  readonly run: RunId
  readonly branch: BranchId
  readonly interrupt: InterruptId
  readonly name: string
  /** The encoded question, JSON text. */
  readonly payload: string
  /** Its checkpoint: the position of its `opened` entry. */
  readonly seq: number
  readonly openedAt: number
  /** Whom it is for; `null`: anybody. */
  readonly assignee: string | null
  /** Ledger milliseconds: when it expires, unanswered; `null`: never. */
  readonly deadline: number | null
  /** What a person is told of it, JSON text of `TaskFacts`; `null`: nothing. */
  readonly task: string | null
}

/** What came from outside, in the order in which it was accepted. */
export interface InboxRow {
  readonly branch: BranchId
  /** 1, 2, 3 … without gaps. */
  readonly pos: number
  readonly kind: "answer" | "cancel" | "settlement" | "signal" | "update"
  /** Unique on the branch: `answer:<InterruptId>`, `cancel`, `settle:<EffectKey>`, `signal:<MessageId>`, `update:<MessageId>`. */
  readonly key: string
  /** JSON text. answer: `{interrupt, delivery, value, valueDigest}`; cancel: `{reason}`; settlement: `{effect, settlement, value?}`; signal, update: `{name, message, value, valueDigest}`. */
  readonly payload: string
  readonly at: number
}

/** What a branch said on one of its streams. It is for whoever listens, and no part of the history. */
export interface Chunk {
  readonly stream: string
  /** 1, 2, 3 … without gaps, for each stream of a branch. */
  readonly pos: number
  /** The key of the step that said it. */
  readonly step: string
  /** Which execution of the step's body, 1-based: after a crash, or when a body is tried again, one more. */
  readonly execution: number
  /** 0, 1, 2 … within the execution, over all streams. */
  readonly n: number
  /** JSON text. */
  readonly payload: string
  readonly at: number
}

/** A position of a history, and the digest of the entry there. */
export interface Position {
  readonly seq: number
  readonly digest: string
}

/** A branch's history: its parent's up to the fork point, then its own entries; verified. */
export interface History {
  readonly run: RunRow
  readonly branch: BranchInfo
  readonly entries: ReadonlyArray<Entry>
}

/** A worker that registered, as its row says. */
export interface WorkerFacts {
  readonly worker: string
  /** `alive`: it renews its lease. `expired`, `dead`: others took its branches. `left`: it let go of them itself. */
  readonly state: "alive" | "dead" | "expired" | "left"
  /** 0 where it could not tell. */
  readonly pid: number
  /** Ledger milliseconds; an `alive` worker whose lease is past is silent, and its branches are free to be taken. */
  readonly leaseUntil: number
  /** Branches that it owns. */
  readonly branches: number
  /** `workflow@version`; `null` if it registered by a version of this code that did not say. */
  readonly definitions: ReadonlyArray<string> | null
}

/** Branches of one definition that are due and that no worker has. */
export interface QueueFacts {
  /** `workflow@version`. */
  readonly definition: string
  readonly depth: number
  /** When the oldest of them became due (ledger milliseconds). */
  readonly since: number
}

/** What can be said of a database's health. Gathering it reads the table of branches once. */
export interface HealthFacts {
  readonly dialect: "sqlite" | "pg"
  readonly database: string
  /** The number of the newest migration that the database has had, and that this code knows. */
  readonly schema: { readonly stored: number; readonly known: number }
  /** Ledger time (milliseconds). */
  readonly now: number
  /** How far this process's clock is ahead of the database's (milliseconds); 0 on SQLite, which has none. */
  readonly skew: number
  readonly branches: { readonly [S in BranchStatus]: number }
  readonly queues: ReadonlyArray<QueueFacts>
  /** Alive ones, and those of the last week that are not. */
  readonly workers: ReadonlyArray<WorkerFacts>
  /** The first 100. */
  readonly stuck: ReadonlyArray<BranchInfo>
  /** Branches whose owner is no living worker, the first 100: the next worker of the database frees them. */
  readonly orphaned: ReadonlyArray<BranchInfo>
}

/** A branch that a worker took, with what it needs to go on. */
export interface Claim {
  readonly run: RunRow
  readonly branch: BranchInfo
  /** `at` of the entry at the branch's head: what is appended is not before it. */
  readonly headAt: number
  /** The history's only entry, not verified; `undefined` if there are more. */
  readonly first: Entry | undefined
}

// ── Requests and receipts ───────────────────────────────────────────────────────────────────────────────────

/** A start: the same run id with the same workflow and input is the same start. */
export interface StartRequest {
  readonly run: RunId
  readonly workflow: string
  readonly version: string
  /** Encoded, strict JSON text. */
  readonly input: string
  readonly inputDigest: string
  readonly queue?: QueuePlace
  /** Not before this time (ledger milliseconds). */
  readonly startAt?: number
  /** While a run of the same workflow with this key goes on, it is the answer; see `admitDuplicate`. */
  readonly dedupe?: { readonly key: string; readonly debounce?: Debounce }
  /** What the workflow takes from outside; see {@link BranchInfo.accepts}. */
  readonly accepts?: string
  /** What it is found by from the start. A start that finds the run there changes none. */
  readonly tags?: Tags
}

/** Where a run stands in a queue. */
export interface QueuePlace {
  readonly name: string
  /** What fairness and limits by key go by; `""`: none. */
  readonly key: string
  /** Higher ones go first. */
  readonly priority: number
}

/** A signal or an update for a branch. */
export interface SendRequest {
  readonly branch: BranchId
  readonly kind: "signal" | "update"
  readonly message: MessageId
  /** The name of its definition. */
  readonly name: string
  /** The encoded value, strict JSON text, and the digest of it. */
  readonly json: string
  readonly digest: string
}

/** What became of a signal or an update; the same on every duplicate. */
export interface SendReceipt {
  readonly verdict: "Accepted" | "Duplicate"
  readonly branch: BranchId
  readonly message: MessageId
  /** When it was accepted (ledger milliseconds). */
  readonly at: number
}

/** A schedule as it is set up. */
export interface ScheduleSetup {
  readonly id: string
  readonly workflow: string
  readonly version: string
  /** Encoded, strict JSON text. */
  readonly input: string
  readonly inputDigest: string
  /** As for a start. */
  readonly accepts?: string
  readonly spec: ScheduleSpec
  readonly overlap: OverlapPolicy
  /** Milliseconds. */
  readonly catchUp: number
  /** Milliseconds. */
  readonly jitter: number
  readonly queue: QueuePlace | null
}

/** A schedule as it stands. Times are ledger milliseconds. */
export interface ScheduleState extends Omit<ScheduleSetup, "input" | "inputDigest" | "accepts"> {
  readonly paused: boolean
  /** The next time of its spec; the run is due up to `jitter` later. */
  readonly nextAt: number | null
  readonly dueAt: number | null
  /** The time of the last fire that started a run, and the run. */
  readonly lastAt: number | null
  readonly lastRun: RunId | null
  /** Fires that started a run, came too late, and were left out because the previous run went on. */
  readonly fired: number
  readonly missed: number
  readonly overlapped: number
  readonly createdAt: number
}

/** What became of a start. */
export interface StartReceipt {
  readonly branch: BranchId
  /** False if the run existed: the same start again, or the run that has the dedupe key. */
  readonly created: boolean
}

/** A queue as it was set up. */
export interface QueueSetup extends QueueLimits {
  readonly name: string
  /** While true nothing of it is claimed; what runs goes on. */
  readonly paused: boolean
}

/** A queue as it stands. Its setup is without limits if it was never set up. */
export interface QueueState extends QueueSetup {
  /** Branches that want to run and have not begun, or wait for their turn again. */
  readonly ready: number
  readonly running: number
  /** Branches that wait: for a time, an answer, an operator. */
  readonly waiting: number
  /** Since when the oldest ready one is (ledger milliseconds). */
  readonly oldestReady: number | null
}

/**
 * An answer with intent `"retry"`. The caller checked the value by the interrupt's Schema and says what it found; the
 * digest is of its canonical JSON text, and an invalid value that has such a text may have one too.
 */
export interface DeliverRequest {
  readonly branch: BranchId
  readonly interrupt: InterruptId
  readonly delivery: DeliveryId
  /** The interrupt's name as the caller knows it: an answer to another definition's interrupt is refused. */
  readonly name: string
  readonly value:
    | { readonly _tag: "Valid"; readonly json: string; readonly digest: string }
    | { readonly _tag: "Invalid"; readonly issues: ReadonlyArray<string>; readonly digest?: string }
}

/** What became of an answer; the same on every duplicate. */
export interface DeliverReceipt {
  readonly verdict: "Accepted" | "Duplicate"
  readonly branch: BranchId
  readonly interrupt: InterruptId
  readonly delivery: DeliveryId
  /** When it was accepted (ledger milliseconds). The same on every duplicate. */
  readonly at: number
  /** Set when the answer was accepted but its interrupt had closed before it was served. */
  readonly unserved: string | null
}

/** Asks for another branch (FI): after a position, at an interrupt with an answer, or with another outcome of a step. */
export interface ForkRequest {
  readonly run: RunId
  readonly fork: ForkId
  readonly parent: BranchId
  readonly at:
    /** After the entry at `seq`. */
    | { readonly _tag: "Checkpoint"; readonly seq: number }
    /** At the interrupt's `opened` entry, with an answer. */
    | {
        readonly _tag: "Interrupt"
        readonly interrupt: InterruptId
        readonly name: string
        readonly delivery: DeliveryId
        readonly value: DeliverRequest["value"]
      }
    /** Just before the recorded outcome of a step (named by its key), with another outcome. */
    | {
        readonly _tag: "Outcome"
        readonly step: string
        readonly outcome: { readonly _tag: "Succeeded" | "Failed"; readonly json: string }
      }
}

/** The branch that a fork made, and the position that it forks after. */
export interface ForkReceipt {
  readonly branch: BranchId
  readonly seq: number
  readonly created: boolean
}

/** An operator's word on an effect whose outcome is not known. */
export interface SettleRequest {
  readonly branch: BranchId
  readonly effect: string
  /** `Succeeded`/`Failed` carry the encoded outcome; `DidNotHappen` promises that the firing never will arrive. */
  readonly settlement:
    | { readonly _tag: "Succeeded"; readonly json: string }
    | { readonly _tag: "Failed"; readonly json: string }
    | { readonly _tag: "DidNotHappen" }
}

/** Chunks that one execution of a step's body said. */
export interface EmitRequest {
  readonly branch: BranchId
  /** The owner's epoch: another's chunks are refused. */
  readonly epoch: number
  readonly step: string
  /** As an earlier call returned it; `undefined` begins the step's next execution. */
  readonly execution: number | undefined
  /** In order of `n`. A chunk whose `n` is stored already is passed over. */
  readonly chunks: ReadonlyArray<Pick<Chunk, "stream" | "n" | "payload">>
}

/** How a branch stands when its owner lets go of it. */
export type Release =
  /** Waits; wants a worker again at `wakeAt` (a timer) or when something comes in. */
  | { readonly _tag: "Waiting"; readonly wakeAt: number | null; readonly standing?: string | null }
  /** Needs help; `problem` is JSON text. A timer that runs beside the problem wakes it at `wakeAt`. */
  | { readonly _tag: "Stuck"; readonly problem: string; readonly wakeAt?: number | null }
  /** Wants another worker at once (graceful shutdown, eviction). */
  | { readonly _tag: "Ready" }

// ── The owner's write handle ────────────────────────────────────────────────────────────────────────────────

/**
 * The single append buffer of one owned branch. `append` is synchronous: it gives the entry its position, time and
 * digest at once, and the ledger's writer makes it durable in order, in a commit shared with other branches.
 * Callbacks run on the writer's turn; they must not throw and must not block.
 */
export interface BranchJournal {
  readonly branch: BranchId
  readonly epoch: number
  /** Position of the last entry given out, durable or not. */
  readonly head: number
  readonly headDigest: string
  /** Position of the last durable entry. */
  readonly durable: number
  /** True when it may not be appended to: fenced, failed for good, or closed. */
  readonly lost: boolean
  /**
   * Appends and returns the stored form. `at` is max(previous `at`, ledger time, `notBefore`).
   * Throws if `lost`, while a conditional append or a transaction is under way, or if `admitEntry` refuses.
   */
  append(draft: EntryDraft, notBefore?: number): Entry
  /** Calls back once everything up to `seq` is durable, or with the loss. At once if that is known now. */
  onDurable(seq: number, callback: (lost: Fenced | LedgerError | undefined) => void): void
  /** Called once when the branch is lost. */
  onLost(callback: (cause: Fenced | LedgerError) => void): void
  /**
   * After all earlier appends are durable: appends these if nothing came in after `inboxSeen`, else changes nothing.
   * A terminal entry ends the branch in the same commit (status, owner, open interrupts).
   */
  appendIf(
    drafts: ReadonlyArray<EntryDraft>,
    options: { readonly inboxSeen: number; readonly notBefore?: number; readonly standing?: string | null }
  ): Effect.Effect<ReadonlyArray<Entry>, InboxAdvanced | Fenced | LedgerError>
  /**
   * After all earlier appends are durable: runs `body` in one database transaction under the branch's append lock and
   * appends the entry that `outcome` makes of its exit, in the same commit. A typed failure of `body` rolls back its writes and
   * still appends; a defect or interruption rolls back everything and is passed on.
   */
  transact<A, E, R>(
    body: Effect.Effect<A, E, R>,
    outcome: (
      exit: { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }
    ) => EntryDraft
  ): Effect.Effect<Entry, Fenced | LedgerError, R>
  /** Waits until all is durable, then lets go of the branch. Fails with `InboxAdvanced` (still owned) if something came in. */
  release(
    how: Release,
    options: { readonly inboxSeen: number }
  ): Effect.Effect<void, InboxAdvanced | Fenced | LedgerError>
  /** Forgets the handle without writing (eviction after a loss, process end). */
  close(): void
}

// ── The service ─────────────────────────────────────────────────────────────────────────────────────────────

/** What is announced inside the process, and across processes by notification or polling. */
export type Announcement =
  /** A branch wants a worker. */
  | { readonly _tag: "Ready" }
  /** Something came into an owned branch's inbox. */
  | { readonly _tag: "Inbox"; readonly branch: BranchId }
  /** A branch ended, got stuck, or parked: whoever watches it should look. */
  | { readonly _tag: "Changed"; readonly branch: BranchId }
  /** A running branch opened an interrupt, answered an update, or published a view. */
  | { readonly _tag: "Told"; readonly branch: BranchId }
  /** A branch said something on one of its streams. */
  | { readonly _tag: "Emitted"; readonly branch: BranchId }
  /** A schedule may be due earlier than was known. */
  | { readonly _tag: "Scheduled" }
  /** Another process wrote something (SQLite), or notifications were interrupted (PostgreSQL): look at everything. */
  | { readonly _tag: "Anything" }

/** A registered worker. */
export interface WorkerLease {
  readonly worker: string
  /** True once the lease was lost (lapsed and taken): the worker must stop using its branches. */
  readonly lost: Effect.Effect<void>
}

/** The service. Times are milliseconds of ledger time; every operation is one transaction or one read. */
/** An open interrupt that waits for a run, and the run, which is over or was purged. */
export interface AwaitedRun {
  readonly branch: BranchId
  readonly interrupt: InterruptId
  readonly name: string
  readonly run: RunId
}

/** Takes what is started in this process, for a worker of this ledger. */
export interface StartTaker {
  readonly worker: string
  /** `workflow@version`. */
  readonly definitions: ReadonlySet<string>
  /** Keeps a place for one branch; false if there is none. */
  readonly reserve: () => boolean
  /** Every place that was kept is used once: by the claim of a run that was just started, or by none. */
  readonly use: (claim: Claim | undefined) => void
}

export interface Ledger {
  readonly dialect: "sqlite" | "pg"
  /** Where it is, without credentials; for messages. */
  readonly database: string
  /** The longest payload of an entry, in UTF-16 code units of its JSON text. */
  readonly maxPayload: number
  /** Ledger time in milliseconds: the database's time where there is one, else the Clock's; estimated without a round trip. */
  readonly now: Effect.Effect<number>
  readonly unsafeNow: () => number
  readonly sql: SqlClient

  // runs
  readonly start: (
    request: StartRequest
  ) => Effect.Effect<StartReceipt, RunConflict | RunPurged | LedgerError | CorruptJournal>
  /** Starts a run unless it was started, and accepts a message for it, in one transaction. */
  readonly startAndSend: (
    request: StartRequest,
    send: Omit<SendRequest, "branch">
  ) => Effect.Effect<
    { readonly started: StartReceipt; readonly sent: SendReceipt },
    RunConflict | RunPurged | MessageIdReused | UnknownMessage | RunOver | CorruptJournal | LedgerError
  >
  readonly run: (run: RunId) => Effect.Effect<RunRow, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  readonly branch: (branch: BranchId) => Effect.Effect<BranchInfo, RunNotFound | RunPurged | LedgerError>
  readonly branches: (run: RunId) => Effect.Effect<ReadonlyArray<BranchInfo>, RunNotFound | RunPurged | LedgerError>
  /** Root branches, newest first. `after` is the last row of the previous page: what starts meanwhile moves no page. */
  readonly list: (
    options: RunFilter & { readonly after?: RunCursor; readonly limit?: number }
  ) => Effect.Effect<ReadonlyArray<BranchInfo>, LedgerError>
  /** How many runs are meant. */
  readonly count: (filter: RunFilter) => Effect.Effect<number, LedgerError>
  /** A run's tags: what its root branch was started with and set since. */
  readonly tags: (run: RunId) => Effect.Effect<Tags, RunNotFound | RunPurged | LedgerError>
  /** One query per branch of the lineage; every digest verified. */
  readonly history: (
    branch: BranchId,
    /** Entries after this one only, which the caller has read before: the chain is verified from it on. */
    after?: Position
  ) => Effect.Effect<History, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** A branch and its terminal entry, verified by its digest against the branch's row; `undefined` while it is not over. */
  readonly ending: (branch: BranchId) => Effect.Effect<
    {
      readonly branch: BranchInfo
      readonly entry: (Entry & { readonly kind: TerminalKind }) | undefined
    },
    RunNotFound | RunPurged | CorruptJournal | LedgerError
  >

  // from outside
  readonly deliver: (
    request: DeliverRequest
  ) => Effect.Effect<
    DeliverReceipt,
    | UnknownInterrupt
    | RunPurged
    | DeliveryIdReused
    | AlreadyConsumed
    | InterruptClosed
    | ResumeValueInvalid
    | CorruptJournal
    | LedgerError
  >
  readonly cancel: (
    branch: BranchId,
    reason: string | null
  ) => Effect.Effect<"Accepted" | "Duplicate" | "TooLate", RunNotFound | RunPurged | LedgerError>
  readonly settle: (
    request: SettleRequest
  ) => Effect.Effect<
    "Accepted" | "Duplicate",
    UnknownEffect | AlreadySettled | EffectUnderWay | SettlementInvalid | RunPurged | CorruptJournal | LedgerError
  >
  readonly fork: (
    request: ForkRequest
  ) => Effect.Effect<
    ForkReceipt,
    | RunNotFound
    | RunPurged
    | UnknownCheckpoint
    | UnknownInterrupt
    | InterruptClosed
    | ForkIdReused
    | EffectInFlight
    | ResumeValueInvalid
    | CorruptJournal
    | LedgerError
  >
  /** Accepts a signal or an update, once per message id. */
  readonly send: (
    request: SendRequest
  ) => Effect.Effect<
    SendReceipt,
    RunNotFound | RunPurged | UnknownMessage | MessageIdReused | RunOver | CorruptJournal | LedgerError
  >
  /**
   * What the history says of an update (`update.replied`, `update.rejected`, `inbox.unserved`), verified; `over`: no more
   * will come.
   */
  readonly reply: (
    branch: BranchId,
    update: MessageId
  ) => Effect.Effect<
    { readonly entry: Entry | undefined; readonly over: boolean },
    RunNotFound | RunPurged | CorruptJournal | LedgerError
  >
  /** The last entry with which the history publishes a view, verified. */
  readonly view: (
    branch: BranchId,
    name: string
  ) => Effect.Effect<Entry | undefined, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  readonly pendingInterrupts: (options?: {
    readonly run?: RunId
    readonly assignee?: string
    readonly name?: string
    /** Without those that runs answer. */
    readonly people?: boolean
    readonly after?: { readonly openedAt: number; readonly branch: BranchId; readonly interrupt: InterruptId }
    readonly limit?: number
  }) => Effect.Effect<ReadonlyArray<PendingInterrupt>, LedgerError>
  /** Inbox rows of a branch after `pos`, in order, digests verified. */
  readonly inbox: (
    branch: BranchId,
    after: number
  ) => Effect.Effect<ReadonlyArray<InboxRow>, CorruptJournal | LedgerError>

  // streams
  /** Stores chunks under the owner's epoch; returns the execution that they count for. */
  readonly emit: (request: EmitRequest) => Effect.Effect<number, Fenced | LedgerError>
  /** Chunks of a stream after a position, in order, digests verified; `over`: the branch has ended, and says no more. */
  readonly chunks: (options: {
    readonly branch: BranchId
    readonly stream: string
    readonly after: number
    readonly limit: number
  }) => Effect.Effect<
    { readonly chunks: ReadonlyArray<Chunk>; readonly over: boolean },
    RunNotFound | RunPurged | CorruptJournal | LedgerError
  >

  // owning
  /** Registers a worker and keeps its lease renewed (one statement) until the scope closes; then its branches are ready for others. */
  readonly register: (options: {
    readonly lease: number
    readonly place: WorkerPlace | undefined
    /** Whether another worker's process is seen to run. */
    readonly look: (place: WorkerPlace) => "running" | "gone" | "cannot tell"
    /** The definitions (`workflow@version`) that it serves, for `health` to tell. */
    readonly definitions?: ReadonlyArray<string>
  }) => Effect.Effect<WorkerLease, LedgerError, Scope.Scope>
  /** Takes branches that want a worker, oldest first; definitions are `workflow@version`. */
  readonly claim: (options: {
    readonly worker: string
    readonly definitions: ReadonlyArray<string>
    readonly limit: number
    /** Queues that it serves, besides what stands in no queue; `only`: of queues alone. */
    readonly queues?: ReadonlyArray<string>
    readonly only?: boolean
    /** False: branches of dead or lapsed workers are not freed first, since they were looked for just now. */
    readonly freeLost?: boolean
  }) => Effect.Effect<ReadonlyArray<Claim>, LedgerError | CorruptJournal>
  /** From now on what `taker` has room for is claimed in the transaction that starts it. Returns how to stop. */
  readonly takeStarts: (taker: StartTaker) => () => void
  /** The history of a claimed branch: one query per branch of the lineage; every digest verified. */
  readonly claimed: (
    claim: Claim
  ) => Effect.Effect<ReadonlyArray<Entry>, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** Open interrupts whose run is over: of these runs, of this branch, or all. Oldest first. */
  readonly awaitedRuns: (options: {
    readonly runs?: ReadonlyArray<RunId>
    readonly branch?: BranchId
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<AwaitedRun>, LedgerError>
  /** When the next branch of these definitions that no worker has is due (ledger milliseconds). */
  readonly nextWake: (
    definitions: ReadonlyArray<string>,
    /** Queues that are served; a branch that its queue holds back is not due before that may change by itself. */
    queues?: ReadonlyArray<string>,
    only?: boolean
  ) => Effect.Effect<number | undefined, LedgerError>
  /** When the next lease of a worker of another ledger lapses (ledger milliseconds). */
  readonly nextLapse: Effect.Effect<number | undefined, LedgerError>
  readonly open: (claim: Claim) => BranchJournal
  /** Branches that `worker` owns with something in their inbox beyond what was moved is for the caller to compare. */
  readonly ownedInboxHeads: (
    worker: string
  ) => Effect.Effect<
    ReadonlyArray<{ readonly branch: BranchId; readonly inboxHead: number; readonly epoch: number }>,
    LedgerError
  >
  /** Gives back a branch that its owner cannot use any more (a lost buffer, an eviction), if the epoch still is its own. */
  readonly disown: (branch: BranchId, epoch: number) => Effect.Effect<void, LedgerError>
  /** `dead` only with proof; see `judgeOwner`. */
  readonly fate: (worker: string) => Effect.Effect<"dead" | "unknown", LedgerError>
  /** Makes stuck branches ready: one branch, or all of these definitions. Returns how many. */
  readonly unstick: (
    which:
      | { readonly branch: BranchId }
      | {
          readonly definitions: ReadonlyArray<string>
          /** As for `claim`. */
          readonly queues?: ReadonlyArray<string>
          readonly only?: boolean
        }
  ) => Effect.Effect<number, LedgerError>

  /** Threads of LangGraph.js on the same database. */
  readonly checkpoints: CheckpointStore
  /** Documents that runs share: see `ItemStore`. */
  readonly items: ItemStore

  // queues
  /** Sets a queue's limits, for all workers, from now on. One that is paused stays so. */
  readonly setQueue: (setup: Omit<QueueSetup, "paused">) => Effect.Effect<void, LedgerError>
  /** Pauses a queue or lets it go on; one that was never set up gets no limits. */
  readonly pauseQueue: (name: string, paused: boolean) => Effect.Effect<void, LedgerError>
  /** Every queue that was set up or has branches that are not over, by name. */
  readonly queues: Effect.Effect<ReadonlyArray<QueueState>, LedgerError>

  // schedules
  /** Stores a schedule. False: the very same was there. `replace`: another one of this id gives way, and keeps its counts. */
  readonly createSchedule: (
    setup: ScheduleSetup,
    options: { readonly replace: boolean }
  ) => Effect.Effect<boolean, ScheduleConflict | LedgerError>
  readonly schedule: (id: string) => Effect.Effect<ScheduleState, ScheduleNotFound | LedgerError>
  /** By id; `after` is the last one of the previous page. */
  readonly schedules: (options: {
    readonly after?: string
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<ScheduleState>, LedgerError>
  /** While it is paused it fires not at all: what falls into a pause is not caught up. */
  readonly pauseSchedule: (id: string, paused: boolean) => Effect.Effect<void, ScheduleNotFound | LedgerError>
  /** Runs that it started go on. */
  readonly deleteSchedule: (id: string) => Effect.Effect<void, ScheduleNotFound | LedgerError>
  /** Starts the runs of these fire times now, beside all others; those that exist are not started again. */
  readonly startScheduled: (
    id: string,
    at: ReadonlyArray<number>
  ) => Effect.Effect<
    ReadonlyArray<StartReceipt & { readonly at: number }>,
    ScheduleNotFound | RunConflict | RunPurged | CorruptJournal | LedgerError
  >
  /** Fires what is due. */
  readonly fireSchedules: Effect.Effect<void, CorruptJournal | LedgerError>
  /** When the next schedule is due (ledger milliseconds). */
  readonly nextScheduleDue: Effect.Effect<number | undefined, LedgerError>

  // wake-ups
  /** Calls back for every announcement from now on; returns how to stop. The callback must not throw and must not block. */
  readonly subscribe: (callback: (announcement: Announcement) => void) => () => void

  // maintenance
  /** How the database and its workers stand. */
  readonly health: Effect.Effect<HealthFacts, LedgerError>
  /** Walks everything; recomputes chains and derived columns. */
  readonly verify: Effect.Effect<
    {
      readonly runs: number
      readonly branches: number
      readonly entries: number
      readonly problems: ReadonlyArray<CorruptJournal>
    },
    LedgerError
  >
  /**
   * A run with all its branches as lines of JSON, of one moment and verified. Payloads are as they are stored: sealed ones
   * stay sealed. What it said on streams is not among them.
   */
  readonly exportRun: (
    run: RunId
  ) => Effect.Effect<ReadonlyArray<string>, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** Takes a run in from lines of `exportRun`: all of it, verified, or nothing. It goes on here from where it was. */
  readonly importRun: (
    lines: ReadonlyArray<string>
  ) => Effect.Effect<
    { readonly run: RunId; readonly branches: number; readonly entries: number },
    ImportInvalid | RunExists | RunPurged | LedgerError
  >
  /** Removes a run whose branches are all terminal, and leaves a generation. */
  readonly purge: (run: RunId) => Effect.Effect<void, RunNotFound | RunPurged | RunNotOver | LedgerError>
}

/** The service's tag. */
export const Ledger = Context.GenericTag<Ledger>("@fermata/ledger/Ledger")
