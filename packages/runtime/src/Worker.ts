/**
 * A worker: claims branches of the workflows that it knows, runs them, and lets go of those that wait. Any number per
 * database, in any number of processes; they coordinate through the database alone.
 */
import { Ledger, type LedgerError } from "@fermata/ledger"
import {
  Context,
  Duration,
  Effect,
  ExecutionStrategy,
  Exit,
  Layer,
  Runtime,
  RuntimeFlags,
  Schedule,
  Scope
} from "effect"
import { withHandlers } from "./internal/ChildRuns.js"
import * as Retention from "./Retention.js"
import * as WorkerSession from "./internal/WorkerSession.js"
import * as WorkQueue from "./WorkQueue.js"
import type * as Workflow from "./Workflow.js"

export interface Worker {
  /** Its name in the database. A new one each time it lost its lease and registered again. */
  readonly name: Effect.Effect<string>
  /** How many branches it runs now. */
  readonly running: Effect.Effect<number>
}

export const Worker = Context.GenericTag<Worker>("@fermata/runtime/Worker")

export interface WorkerOptions<Ws extends ReadonlyArray<unknown>> {
  readonly workflows: Ws
  /** How long it may be silent before others take its branches, unless it is seen to be dead; 15 seconds by default. */
  readonly lease?: Duration.DurationInput
  /** Branches that it runs at once; 1000 by default. */
  readonly concurrency?: number
  /**
   * The queues that it serves, by name or definition. `"default"` stands for the runs that are in no queue. Left out: these
   * alone. A queue that is given as a definition is set up with that definition's limits when the worker starts.
   */
  readonly queues?: ReadonlyArray<string | WorkQueue.WorkQueue>
  /** Parked branches kept in memory to go on without replay; 100 by default. */
  readonly residentBranches?: number
  /** Bytes that parked branches may take together, as an estimate; 64 MiB by default. */
  readonly residentBytes?: number
  /** How long runs are kept that are over, by the name of their workflow; for ever if left out. See `Retention`. */
  readonly retention?: Retention.Policies
  /** How often it looks for work that no announcement told of; 1 second by default. */
  readonly poll?: Duration.DurationInput
}

/**
 * Runs a worker while the layer's scope is open. It requires the handlers and services of its workflows. Closing the
 * scope lets go of its branches: firings that may not be interrupted end first.
 *
 * Fails with a `LedgerError` if the database cannot be used at the start; later failures are logged and tried again.
 */
export const layer = <const Ws extends ReadonlyArray<{ readonly definition: string }>>(
  options: WorkerOptions<Ws>
): Layer.Layer<Worker, LedgerError, Ledger | Workflow.Requirements<Ws[number]>> =>
  Layer.scoped(
    Worker,
    Effect.flatMap(Effect.runtime<Workflow.Requirements<Ws[number]>>(), (runtime) =>
      // The workflows' requirements are in the runtime that was just captured.
      make(
        options as unknown as WorkerOptions<ReadonlyArray<Workflow.Any>>,
        // Bodies and handlers are many and short: per-fiber metrics would cost more than they do.
        Runtime.disableRuntimeFlag(runtime, RuntimeFlags.RuntimeMetrics) as unknown as Runtime.Runtime<never>
      )
    )
  )

const make = (
  options: WorkerOptions<ReadonlyArray<Workflow.Any>>,
  runtime: Runtime.Runtime<never>
): Effect.Effect<Worker, LedgerError, Ledger | Scope.Scope> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const scope = yield* Effect.scope
    const firing = new Set<string>()
    const equipped = Runtime.updateContext(runtime, (context) => withHandlers(context, ledger))
    const queues = options.queues ?? [WorkQueue.defaultName]
    for (const queue of queues) if (typeof queue !== "string") yield* ledger.setQueue(WorkQueue.setupOf(queue))
    const names = queues.map((queue) => (typeof queue === "string" ? queue : queue.name))
    const open = Effect.gen(function* () {
      const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const session = yield* Scope.extend(
        WorkerSession.open({
          ledger,
          runtime: equipped,
          workflows: new Map(options.workflows.map((workflow) => [workflow.definition, workflow])),
          lease: Duration.toMillis(options.lease ?? "15 seconds"),
          poll: Duration.toMillis(options.poll ?? "1 second"),
          concurrency: options.concurrency ?? 1000,
          queues: [...new Set(names.filter((name) => name !== WorkQueue.defaultName))],
          queuesOnly: !names.includes(WorkQueue.defaultName),
          residentBranches: options.residentBranches ?? 100,
          residentBytes: options.residentBytes ?? 67_108_864,
          firing,
          log: (message, cause) => Runtime.runFork(runtime)(Effect.logWarning(message, cause))
        }),
        own
      ).pipe(Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))))
      return { session, own }
    })
    let current = yield* open
    const supervise: Effect.Effect<void> = Effect.gen(function* () {
      yield* current.session.lost
      yield* Effect.logWarning(
        `Worker ${current.session.worker} lost its lease: others have its branches. It registers anew.`
      )
      yield* Scope.close(current.own, Exit.void)
      current = yield* Effect.orDie(Effect.retry(open, Schedule.spaced("1 second")))
    })
    yield* Effect.forkScoped(Effect.forever(supervise))
    if (options.retention !== undefined) {
      const policies = Retention.checked(options.retention)
      yield* Effect.forkScoped(Effect.provideService(Retention.housekeeping(policies), Ledger, ledger))
    }
    return {
      name: Effect.sync(() => current.session.worker),
      running: Effect.sync(() => current.session.running())
    }
  })
