/**
 * The client: starts runs, reads them, answers their interrupts, forks, cancels and settles. Any process that reaches
 * the database may have one; it needs no worker.
 */
import type {
  BranchId,
  Checkpoint,
  DeliveryId,
  EffectKey,
  Entry,
  ForkId,
  InterruptId,
  MessageId,
  RunId,
  TaskFacts
} from "@fermata/contract"
import * as L from "@fermata/ledger"
import { Context, type Duration, Effect, Layer, type Stream } from "effect"
import type * as Interrupt from "./Interrupt.js"
import * as ClientLive from "./internal/ClientLive.js"
import type * as Node from "./Node.js"
import type * as OutputStream from "./OutputStream.js"
import type { Problem } from "./Problem.js"
import type * as Query from "./Query.js"
import type {
  InvalidId,
  InvalidValue,
  NotPublished,
  RunCancelled,
  RunDied,
  UpdateDied,
  UpdateRejected,
  UpdateUnanswered,
  WrongWorkflow
} from "./RunError.js"
import type * as RunSchedule from "./RunSchedule.js"
import type * as SideEffect from "./SideEffect.js"
import type * as Signal from "./Signal.js"
import type * as Tag from "./Tag.js"
import type * as Update from "./Update.js"
import type * as Workflow from "./Workflow.js"
import type * as WorkQueue from "./WorkQueue.js"

// ── Models ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A started run, and its root branch. */
export interface RunHandle {
  readonly run: RunId
  readonly branch: BranchId
  /** False if the same run had been started before. */
  readonly created: boolean
}

/** How a run is started. */
export interface StartOptions<T extends Tag.Schemas = Tag.None> {
  /** The run's id, which makes the start idempotent; generated if left out. */
  readonly run?: RunId | string
  /** The queue that it waits in, by definition or name. Only workers that serve the queue run it. */
  readonly queue?: WorkQueue.WorkQueue | string
  /** Needs a `queue`: what its fairness and its limits by key go by. */
  readonly key?: string
  /** Needs a `queue`: a whole number; higher ones go first. 0 if left out. */
  readonly priority?: number
  /** Begins this long after the start, at the earliest. Not together with `startAt`. */
  readonly delay?: Duration.DurationInput
  /** Begins at this time, at the earliest. */
  readonly startAt?: Date
  /**
   * While a run of this workflow (whatever its version) that was started with this key is not over, it is the answer, with
   * `created: false`; the input that is given then is not looked at.
   */
  readonly dedupeKey?: string
  /**
   * Needs a `dedupeKey`: the run begins only once no other start with the key came for `period`, and no later than
   * `maxWait` after the first. The newest runs; those before it, which never began, end as cancelled. A start that comes
   * when the run has begun is answered by that run.
   */
  readonly debounce?: { readonly period: Duration.DurationInput; readonly maxWait?: Duration.DurationInput }
  /** What the run is found by from its start; a start that finds the run there changes none. Stored plain. */
  readonly tags?: Tag.Values<T>
}

/** Which runs are meant: those for which all that is given holds. A time that is named twice is a half-open span. */
export interface RunFilter {
  readonly workflow?: string
  readonly status?: L.BranchStatus
  /** By tag, as it is stored: a value, or a range of numbers that includes both ends. */
  readonly tags?: Tag.Conditions
  /** Started at this time or later. */
  readonly startedAfter?: Date
  /** Started before this time. */
  readonly startedBefore?: Date
  /** Ended at this time or later. */
  readonly endedAfter?: Date
  /** Ended before this time. */
  readonly endedBefore?: Date
}

/** What a schedule starts, and when. */
export interface ScheduleOptions<N extends string, I, A, E, R> {
  /** Its version is the one that runs are started with, until the schedule is replaced. */
  readonly workflow: Workflow.Workflow<N, I, A, E, R>
  readonly input: I
  /** `RunSchedule.cron` or `RunSchedule.every`. */
  readonly spec: RunSchedule.ScheduleSpec
  /** What happens to a fire while the run of the one before goes on; `"skip"` if left out. */
  readonly overlap?: RunSchedule.OverlapPolicy
  /** Fires that no worker was there for are made up for if they are no older than this; one day if left out. */
  readonly catchUp?: Duration.DurationInput
  /** Each fire comes up to this much later, by the hash of the schedule's id and the fire's time; none if left out. */
  readonly jitter?: Duration.DurationInput
  readonly queue?: WorkQueue.WorkQueue | string
  readonly key?: string
  readonly priority?: number
  /** Another schedule of this id gives way. Without it that is a `ScheduleConflict`. */
  readonly replace?: boolean
}

/** Schedules. The run of a fire has the id `<schedule>/<time>`, such as `digest/2026-01-05T08:00:00.000Z`. */
export interface Schedules {
  /** Creates a schedule; false if the very same was there. */
  readonly create: <N extends string, I, A, E, R>(
    id: string,
    options: ScheduleOptions<N, I, A, E, R>
  ) => Effect.Effect<
    boolean,
    InvalidId | InvalidValue | RunSchedule.ScheduleInvalid | L.ScheduleConflict | L.LedgerError
  >
  readonly describe: (id: string) => Effect.Effect<RunSchedule.State, InvalidId | L.ScheduleNotFound | L.LedgerError>
  /** By id; 100 unless `limit` says otherwise. `after` is the id of the last one of the previous page. */
  readonly list: (options?: {
    readonly after?: string
    readonly limit?: number
  }) => Effect.Effect<ReadonlyArray<RunSchedule.State>, InvalidId | L.LedgerError>
  /** What falls into a pause is not made up for; see `backfill`. */
  readonly pause: (id: string) => Effect.Effect<void, InvalidId | L.ScheduleNotFound | L.LedgerError>
  readonly resume: (id: string) => Effect.Effect<void, InvalidId | L.ScheduleNotFound | L.LedgerError>
  /** Runs that it started go on. */
  readonly delete: (id: string) => Effect.Effect<void, InvalidId | L.ScheduleNotFound | L.LedgerError>
  /** Starts a run now, as a fire at `at` (now, if left out), whatever goes on and also while the schedule is paused. */
  readonly trigger: (
    id: string,
    at?: Date
  ) => Effect.Effect<{ readonly branch: string; readonly created: boolean }, StartScheduledError>
  /** Starts the run of every fire from `from` to `to` that has none yet, all at once, whatever goes on. 10,000 at most. */
  readonly backfill: (
    id: string,
    range: { readonly from: Date; readonly to: Date }
  ) => Effect.Effect<{ readonly started: number; readonly existing: number }, StartScheduledError>
}

/** What can go wrong with starting runs of a schedule by hand. */
export type StartScheduledError =
  InvalidId | InvalidValue | L.ScheduleNotFound | L.RunConflict | L.RunPurged | L.CorruptJournal | L.LedgerError

/** Queues, over all workers. */
export interface Queues {
  /** Sets a queue's limits from now on. A worker that is given the definition does the same when it starts. */
  readonly set: (queue: WorkQueue.WorkQueue) => Effect.Effect<void, L.LedgerError>
  /** Every queue that was set or has runs that are not over. */
  readonly list: Effect.Effect<ReadonlyArray<L.QueueState>, L.LedgerError>
  /** Nothing of it is begun or gone on with until `resume`; what runs now goes on to its next wait. */
  readonly pause: (queue: WorkQueue.WorkQueue | string) => Effect.Effect<void, InvalidId | L.LedgerError>
  readonly resume: (queue: WorkQueue.WorkQueue | string) => Effect.Effect<void, InvalidId | L.LedgerError>
}

/** An interrupt that nobody answered yet. */
export interface Pending {
  readonly run: RunId
  readonly branch: BranchId
  readonly interrupt: InterruptId
  /** The interrupt's name. */
  readonly name: string
  /** The question as encoded by its Schema. */
  readonly payload: unknown
  /** The position of its `opened` entry: the checkpoint that a fork with a value starts from. */
  readonly checkpoint: Checkpoint
  /** Ledger milliseconds. */
  readonly openedAt: number
  /** What a person is told of it, if it is a human task. `deadline` in ledger milliseconds. */
  readonly task: TaskFacts | null
}

/** What a branch waits for. */
export type WaitingFor =
  | { readonly _tag: "Answer"; readonly interrupt: InterruptId; readonly name: string }
  | { readonly _tag: "Signal"; readonly name: string }
  | { readonly _tag: "Update"; readonly name: string }
  | { readonly _tag: "Time"; readonly at: number }
  | { readonly _tag: "Worker"; readonly definition: string }
  | { readonly _tag: "Operator"; readonly problem: Problem }

/** A branch as it stands. */
export interface Description {
  readonly run: RunId
  readonly branch: BranchId
  readonly workflow: string
  readonly version: string
  readonly status: L.BranchStatus
  readonly parent: Checkpoint | null
  /** Its last durable position. */
  readonly head: number
  readonly createdAt: number
  /** Empty while it runs and when it is over. */
  readonly waitingFor: ReadonlyArray<WaitingFor>
  readonly problems: ReadonlyArray<Problem>
  /** Signals and updates that came and that the workflow had not taken when it came to rest last: `signal:<name>` → how many. */
  readonly unread: Readonly<Record<string, number>>
}

/** What became of a signal; the same on every duplicate. */
export type SignalReceipt = L.SendReceipt

/** What can go wrong with sending to a run. */
export type SendError =
  | InvalidId
  | InvalidValue
  | L.RunNotFound
  | L.RunPurged
  | L.UnknownMessage
  | L.MessageIdReused
  | L.RunOver
  | L.CorruptJournal
  | L.LedgerError

/** An operator's word on an effect whose outcome is not known. */
export type Settlement<A, E> =
  | { readonly _tag: "Happened"; readonly value: A }
  /** The receiver refused it with this typed error. */
  | { readonly _tag: "Declined"; readonly error: E }
  /** Promises that it did not happen and that the earlier firing can no longer arrive: it may be fired anew. */
  | { readonly _tag: "DidNotHappen" }

/** What can go wrong with reading a run. */
export type ReadError = L.RunNotFound | L.RunPurged | L.CorruptJournal | L.LedgerError

/**
 * Where an operation takes `RunId | BranchId | RunHandle | string`: a text that is the id of an existing branch means that
 * branch, any other text is a run id and means the run's root branch, and so does a handle. (One text can be both only
 * where a run id contains a slash; `<run>/main` always means the root branch.)
 */
export interface Client {
  /**
   * Starts a run, durably: when this returns, the run is in the database. The same `run` id again is the same run. Fails
   * with `InvalidValue` if the options contradict each other.
   */
  readonly start: <N extends string, I, A, E, R, T extends Tag.Schemas>(
    workflow: Workflow.Workflow<N, I, A, E, R, T>,
    input: I,
    options?: StartOptions<T>
  ) => Effect.Effect<
    RunHandle,
    InvalidId | InvalidValue | L.RunConflict | L.RunPurged | L.CorruptJournal | L.LedgerError
  >
  /** Waits for a run's (root branch) or a branch's end. A stuck branch is waited for: see `describe`. */
  readonly result: <N extends string, I, A, E, R>(
    workflow: Workflow.Workflow<N, I, A, E, R>,
    of: RunId | BranchId | RunHandle | string
  ) => Effect.Effect<A, E | RunCancelled | RunDied | WrongWorkflow | InvalidValue | ReadError>
  readonly describe: (of: RunId | BranchId | RunHandle | string) => Effect.Effect<Description, ReadError>
  /** Waits until the branch is as asked: over, waiting, or stuck. */
  readonly awaitStatus: (
    of: RunId | BranchId | RunHandle | string,
    until: (description: Description) => boolean
  ) => Effect.Effect<Description, ReadError>
  /** The branches of a run, root first. */
  readonly branches: (run: RunId | string) => Effect.Effect<ReadonlyArray<Description>, ReadError>
  /**
   * Root branches, newest first; 100 unless `limit` says otherwise. Runs that start meanwhile move no page. Fails with
   * `InvalidValue` for a tag that none can have or a time that is none.
   */
  readonly list: (
    options?: RunFilter & {
      /** The last one of the previous page, or its run id: with that alone, the listing ends if the run was purged since. */
      readonly after?: RunId | Pick<Description, "run" | "createdAt">
      readonly limit?: number
    }
  ) => Effect.Effect<ReadonlyArray<Description>, InvalidValue | ReadError>
  /** How many runs are meant. */
  readonly count: (filter?: RunFilter) => Effect.Effect<number, InvalidValue | L.LedgerError>
  /** A run's tags as they are stored: those that it was started with, and set since. */
  readonly tags: (run: RunId | string) => Effect.Effect<L.Tags, L.RunNotFound | L.RunPurged | L.LedgerError>
  /**
   * Interrupts that nobody answered yet, oldest first; 100 unless `limit` says otherwise. Those that wait for child runs are
   * listed only where a run or an assignee is named.
   */
  readonly pendingInterrupts: (options?: {
    readonly run?: RunId | string
    /** Only tasks that are for this person or group. */
    readonly assignee?: string
    /** Only interrupts of this name. */
    readonly name?: string
    readonly limit?: number
    /** The last one of the previous page. */
    readonly after?: Pick<Pending, "openedAt" | "branch" | "interrupt">
  }) => Effect.Effect<ReadonlyArray<Pending>, ReadError>
  /**
   * Delivers an answer. `intent` has no default: `"retry"` answers the interrupt, at most once (CO); `"fork"` makes a
   * new branch with this value from the interrupt's checkpoint (FI), named by `forkId`.
   */
  readonly resume: <N extends string, P, A>(
    interrupt: Interrupt.Answerable<N, P, A>,
    delivery: {
      readonly branch: BranchId | string
      readonly interrupt: InterruptId | string
      readonly value: A
      readonly deliveryId: DeliveryId | string
    } & ({ readonly intent: "retry" } | { readonly intent: "fork"; readonly forkId: ForkId | string })
  ) => Effect.Effect<
    (L.DeliverReceipt & { readonly _tag: "Answered" }) | (L.ForkReceipt & { readonly _tag: "Forked" }),
    | InvalidId
    | L.UnknownInterrupt
    | L.RunNotFound
    | L.RunPurged
    | L.DeliveryIdReused
    | L.AlreadyConsumed
    | L.InterruptClosed
    | L.ResumeValueInvalid
    | L.ForkIdReused
    | L.UnknownCheckpoint
    | L.EffectInFlight
    | L.CorruptJournal
    | L.LedgerError
  >
  /**
   * Sends a signal to a run (its root branch) or a branch: when this returns, it is in the database. The same `messageId`
   * again is the same signal; one is generated if none is given.
   */
  readonly signal: <N extends string, A>(
    of: RunId | BranchId | RunHandle | string,
    signal: Signal.Signal<N, A>,
    payload: A,
    options?: { readonly messageId?: MessageId | string }
  ) => Effect.Effect<SignalReceipt, SendError>
  /** Starts a run unless it was started, and sends it a signal, in one transaction. */
  readonly signalWithStart: <N extends string, I, A, E, R, M extends string, S>(
    workflow: Workflow.Workflow<N, I, A, E, R>,
    input: I,
    signal: Signal.Signal<M, S>,
    payload: S,
    options: { readonly run: RunId | string; readonly messageId?: MessageId | string }
  ) => Effect.Effect<
    { readonly run: RunHandle; readonly signal: SignalReceipt },
    L.RunConflict | Exclude<SendError, L.RunNotFound>
  >
  /** Reads what the workflow published, without waking it. */
  readonly query: <N extends string, A>(
    of: RunId | BranchId | RunHandle | string,
    query: Query.Query<N, A>
  ) => Effect.Effect<A, NotPublished | InvalidValue | ReadError>
  /**
   * Sends an update and waits for its answer. The same `updateId` again is the same update, and gets the same answer. A
   * stuck branch is waited for.
   */
  readonly update: <N extends string, I, A, E>(
    of: RunId | BranchId | RunHandle | string,
    update: Update.Update<N, I, A, E>,
    input: I,
    options?: { readonly updateId?: MessageId | string }
  ) => Effect.Effect<A, E | UpdateRejected | UpdateDied | UpdateUnanswered | SendError>
  /**
   * What a run (its root branch) or a branch says on an output stream, as it is said: from the beginning, or `after` an
   * offset. Ends when the branch is over; with `follow: false`, at what was said so far. A fork says its own from its fork
   * point on.
   */
  readonly listen: <N extends string, A>(
    stream: OutputStream.OutputStream<N, A>,
    of: RunId | BranchId | RunHandle | string,
    options?: { readonly after?: number; readonly follow?: boolean }
  ) => Stream.Stream<OutputStream.Emitted<A>, InvalidValue | ReadError>
  /** Forks a branch at a checkpoint. The same `forkId` again is the same fork. */
  readonly fork: (options: {
    readonly from: Checkpoint
    readonly forkId: ForkId | string
  }) => Effect.Effect<L.ForkReceipt, InvalidId | ForkError>
  /** Forks a branch just before a step's recorded outcome, with another outcome. */
  readonly forkWithOutcome: <N extends string, I, A, E, H extends string, S>(
    node: Node.Node<N, I, A, E, H, S>,
    options: {
      readonly branch: BranchId | string
      /** The step, as `name#n`. */
      readonly step: string
      readonly forkId: ForkId | string
      readonly outcome:
        { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }
    }
  ) => Effect.Effect<L.ForkReceipt, InvalidId | InvalidValue | ForkError>
  /** Asks for cancellation: the workflow is interrupted, its finalizers run, durably. */
  readonly cancel: (
    of: RunId | BranchId | RunHandle | string,
    options?: { readonly reason?: string }
  ) => Effect.Effect<"Accepted" | "Duplicate" | "TooLate", L.RunNotFound | L.RunPurged | L.LedgerError>
  /** Settles an effect in doubt (see `Description.problems`). */
  readonly settle: <N extends string, I, A, E, P extends "keyed" | "once" | "transactional" | "repeatable">(
    effect: SideEffect.SideEffect<N, I, A, E, P>,
    options: {
      readonly branch: BranchId | string
      readonly key: EffectKey | string
      readonly settlement: Settlement<A, E>
    }
  ) => Effect.Effect<
    "Accepted" | "Duplicate",
    | InvalidValue
    | L.UnknownEffect
    | L.AlreadySettled
    | L.EffectUnderWay
    | L.SettlementInvalid
    | L.RunPurged
    | L.CorruptJournal
    | L.LedgerError
  >
  /** Lets a stuck branch try again now (a starting worker does so by itself). */
  readonly unstick: (branch: BranchId | string) => Effect.Effect<boolean, L.LedgerError>
  /** The branch's history, verified; or what came after an entry of it that was read before. */
  readonly history: (
    of: RunId | BranchId | RunHandle | string,
    options?: { readonly after?: L.Position }
  ) => Effect.Effect<ReadonlyArray<Entry>, ReadError>
  readonly queues: Queues
  readonly schedules: Schedules
  /**
   * A run with all its branches as lines of JSON, for `import` into another database. It is a copy of one moment: the run goes
   * on here, too, unless it is over or is cancelled. What is sealed stays so, and needs its key there. Streams' chunks are
   * not among them.
   */
  readonly export: (run: RunId | string) => Stream.Stream<string, ReadError>
  /**
   * Takes in a run that was exported: all of it or nothing. Fails with `ImportInvalid`, which names the line, if a digest does
   * not verify, a line is missing, or a newer version wrote it; with `RunExists` or `RunPurged` if the id is in use or was. A run
   * that waits goes on here once it is answered and a worker knows its workflow.
   */
  readonly import: <E, R>(
    lines: Stream.Stream<string, E, R>
  ) => Effect.Effect<
    { readonly run: RunId; readonly branches: number; readonly entries: number },
    E | L.ImportInvalid | L.RunExists | L.RunPurged | L.LedgerError,
    R
  >
  /** Removes a run all of whose branches are over. */
  readonly purge: (
    run: RunId | string
  ) => Effect.Effect<void, L.RunNotFound | L.RunPurged | L.RunNotOver | L.LedgerError>
}

/** What can go wrong with forking. */
export type ForkError =
  | L.RunNotFound
  | L.RunPurged
  | L.UnknownCheckpoint
  | L.UnknownInterrupt
  | L.InterruptClosed
  | L.ForkIdReused
  | L.EffectInFlight
  | L.ResumeValueInvalid
  | L.CorruptJournal
  | L.LedgerError

/** The client's tag. */
export const Client = Context.GenericTag<Client>("@fermata/runtime/Client")

/**
 * A client of the ledger that is provided. `poll`: how often operations that wait look again without having heard anything, which only matters
 * when an announcement from another process is lost; 5 seconds by default.
 */
export const layerWith = (options: { readonly poll?: Duration.DurationInput }): Layer.Layer<Client, never, L.Ledger> =>
  Layer.effect(
    Client,
    Effect.map(L.Ledger, (ledger) => ClientLive.make(ledger, options))
  )

/** The client of the ledger that is provided. */
export const layer: Layer.Layer<Client, never, L.Ledger> = layerWith({})
