/**
 * A worker: claims branches of the workflows that it knows, runs them, and lets go of those that wait. Any number per
 * database, in any number of processes; they coordinate through the database alone.
 */
import { type BranchId, canSee, type ProcessSight, type WorkerPlace } from "@fermata/contract"
import {
  type Announcement,
  type BranchInfo,
  type Claim,
  type CorruptJournal,
  Ledger,
  type LedgerError
} from "@fermata/ledger"
import { Cause, Context, Deferred, Duration, Effect, Exit, Layer, Ref, type Runtime, type Scope } from "effect"
import { BranchRun, type Rest } from "./internal/BranchRun.js"
import * as ProcessTable from "./internal/ProcessTable.js"
import type * as Workflow from "./Workflow.js"

export interface Worker {
  /** Its name in the database. */
  readonly name: string
  /** Branches that it runs now. */
  readonly running: Effect.Effect<number>
}

export const Worker = Context.GenericTag<Worker>("@fermata/runtime/Worker")

export interface WorkerOptions<Ws extends ReadonlyArray<unknown>> {
  readonly workflows: Ws
  /** How long it may be silent before others take its branches, unless it is seen to be dead; 15 seconds by default. */
  readonly lease?: Duration.DurationInput
  /** Branches that it runs at once; 1000 by default. */
  readonly concurrency?: number
  /** Parked branches kept in memory to go on without replay; 100 by default. */
  readonly residentBranches?: number
  /** Bytes that parked branches may take together, as an estimate; 64 MiB by default. */
  readonly residentBytes?: number
  /** How often it looks for work that no announcement told of; 1 second by default. */
  readonly poll?: Duration.DurationInput
}

/** Runs a worker while the layer's scope is open. It requires the handlers and services of its workflows. */
export const layer = <const Ws extends ReadonlyArray<{ readonly definition: string }>>(
  options: WorkerOptions<Ws>
): Layer.Layer<Worker, LedgerError, Ledger | Workflow.Requirements<Ws[number]>> =>
  Layer.scoped(
    Worker,
    Effect.flatMap(Effect.runtime<Workflow.Requirements<Ws[number]>>(), (runtime) =>
      // The workflows' requirements are in the runtime that was just captured.
      make(
        options as unknown as WorkerOptions<ReadonlyArray<Workflow.Any>>,
        runtime as unknown as Runtime.Runtime<never>
      )
    )
  )

const make = (
  options: WorkerOptions<ReadonlyArray<Workflow.Any>>,
  runtime: Runtime.Runtime<never>
): Effect.Effect<Worker, LedgerError, Ledger | Scope.Scope> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const concurrency = options.concurrency ?? 1000
    const poll = Duration.toMillis(options.poll ?? "1 second")
    const workflows = new Map(options.workflows.map((workflow) => [workflow.definition, workflow]))
    const definitions = [...workflows.keys()]
    const place: WorkerPlace | undefined = yield* ProcessTable.self
    const look = (other: WorkerPlace): ProcessSight =>
      canSee(place, other) ? ProcessTable.sight(other) : "cannot tell"

    const running = new Map<BranchId, BranchRun>()
    const resident = new Map<BranchId, BranchRun>()
    let residentBytes = 0
    let stopping = false
    const signal = yield* Ref.make<Deferred.Deferred<void>>(yield* Deferred.make<void>())
    const emptied = yield* Deferred.make<void>()

    const wake = (): void => {
      Deferred.unsafeDone(Effect.runSync(Ref.get(signal)), Exit.void)
    }

    const forget = (branch: BranchId): void => {
      const run = resident.get(branch)
      if (run === undefined) return
      resident.delete(branch)
      residentBytes -= run.weight
      run.evict()
    }

    const onRest = (run: BranchRun, rest: Rest): void => {
      if (running.get(run.branch) === run) running.delete(run.branch)
      if (rest === "parked") {
        resident.set(run.branch, run)
        residentBytes += run.weight
        for (const [branch] of resident) {
          if (
            resident.size <= (options.residentBranches ?? 100) &&
            residentBytes <= (options.residentBytes ?? 67_108_864)
          )
            break
          forget(branch)
        }
      }
      if (stopping && running.size === 0) Deferred.unsafeDone(emptied, Exit.void)
      wake()
    }

    // Branches that could not be used any more and may still be ours in the database are given back below.
    const lease = yield* ledger.register({ lease: Duration.toMillis(options.lease ?? "15 seconds"), place, look })
    const host = { ledger, worker: lease.worker, runtime, firing: new Set<string>(), onRest }

    const begin = (claim: Claim): Effect.Effect<void, LedgerError | CorruptJournal> => {
      const { branch, definition } = { branch: claim.branch.branch, definition: definitionOf(claim.branch) }
      const workflow = workflows.get(definition)
      if (workflow === undefined) return Effect.void
      const warm = resident.get(branch)
      if (warm !== undefined) {
        const head = warm.head
        if (head !== undefined && head.seq === claim.branch.head && head.digest === claim.branch.headDigest) {
          resident.delete(branch)
          residentBytes -= warm.weight
          return Effect.sync(() => {
            running.set(branch, warm)
            warm.reattach(claim)
          })
        }
        forget(branch)
      }
      return ledger.history(branch).pipe(
        Effect.flatMap((history) =>
          Effect.sync(() => {
            const run = new BranchRun(host, workflow, claim, history.entries)
            running.set(branch, run)
            run.start()
          })
        ),
        // Purged between the claim and now: there is nothing to run.
        Effect.catchTags({ RunNotFound: () => Effect.void, RunPurged: () => Effect.void }),
        Effect.catchTag("CorruptJournal", (error) =>
          Effect.zipRight(
            Effect.logError(error.message),
            ledger
              .open(claim)
              .release(
                {
                  _tag: "Stuck",
                  problem: JSON.stringify([{ _tag: "CorruptJournal", table: error.table, message: error.message }])
                },
                { inboxSeen: claim.branch.inboxHead }
              )
              .pipe(Effect.ignore)
          )
        )
      )
    }

    const claimSome = Effect.gen(function* () {
      for (;;) {
        const room = Math.min(concurrency - running.size, 200)
        if (room <= 0 || stopping) return
        const claims = yield* ledger.claim({ worker: lease.worker, definitions, limit: room })
        for (const claim of claims) yield* begin(claim)
        if (claims.length < room) return
      }
    })

    /** Compares what the database says is ours with what is in memory: unseen inboxes, and branches that nobody runs. */
    const reconcileOwned = Effect.gen(function* () {
      const owned = yield* ledger.ownedInboxHeads(lease.worker)
      for (const { branch, epoch, inboxHead } of owned) {
        const run = running.get(branch)
        if (run === undefined) yield* ledger.disown(branch, epoch)
        else if (run.inboxBehind(inboxHead)) run.inboxChanged()
      }
    })

    const attempt = <E>(name: string, effect: Effect.Effect<void, E>): Effect.Effect<void> =>
      Effect.catchAllCause(effect, (cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.void
          : Effect.logWarning(`worker ${lease.worker}: ${name} failed; it is tried again`, cause)
      )

    let anything = true
    const listen = (announcement: Announcement): void => {
      switch (announcement._tag) {
        case "Ready":
          return wake()
        case "Inbox":
          return running.get(announcement.branch)?.inboxChanged()
        case "Anything":
          anything = true
          return wake()
        case "Changed":
          return
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => ledger.subscribe(listen)),
      (stop) => Effect.sync(stop)
    )

    let polled = 0
    const loop = Effect.gen(function* () {
      // The signal is renewed before looking, so that what comes while looking is not lost.
      const fresh = yield* Deferred.make<void>()
      yield* Ref.set(signal, fresh)
      yield* attempt("claim", claimSome)
      const now = ledger.unsafeNow()
      if (anything || now - polled >= poll) {
        anything = false
        polled = now
        yield* attempt("look at owned branches", reconcileOwned)
      }
      const due = yield* Effect.orElseSucceed(ledger.nextWake(definitions), () => undefined)
      // Computed where the sleep begins: a clock that was moved in between must not make it longer.
      const doze = Effect.suspend(() => {
        const left = due === undefined || running.size >= concurrency ? poll : due - ledger.unsafeNow()
        return Effect.sleep(Duration.millis(Math.max(0, Math.min(poll, left))))
      })
      yield* Effect.raceFirst(Deferred.await(fresh), doze)
    })
    yield* attempt("unstick", Effect.asVoid(ledger.unstick({ definitions })))
    const fiber = yield* Effect.forkScoped(Effect.forever(loop))

    // A lost lease: others have the branches. Nothing of what is in memory may be used.
    yield* Effect.forkScoped(
      Effect.zipRight(
        lease.lost,
        Effect.sync(() => {
          stopping = true
          for (const run of running.values()) run.evict()
          for (const branch of [...resident.keys()]) forget(branch)
          running.clear()
          Deferred.unsafeDone(emptied, Exit.void)
        }).pipe(Effect.zipRight(Effect.logError(`worker ${lease.worker} lost its lease and stopped; restart it`)))
      )
    )

    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        stopping = true
        yield* Effect.fork(fiber.interruptAsFork(fiber.id()))
        for (const branch of [...resident.keys()]) forget(branch)
        for (const run of running.values()) run.shutdown()
        if (running.size > 0) yield* Deferred.await(emptied)
      })
    )

    return { name: lease.worker, running: Effect.sync(() => running.size) }
  })

const definitionOf = (branch: BranchInfo): string => `${branch.workflow}@${branch.version}`
