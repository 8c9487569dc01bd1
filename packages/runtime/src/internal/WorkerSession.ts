/**
 * A worker from registration to the loss of its lease (or the end of its scope): claims branches, runs them, hands them
 * what comes from outside, and lets go of those that rest.
 */
import { type BranchId, type Entry, rootBranch, runAssignee, type RunId, runOf } from "@fermata/contract"
import {
  type Announcement,
  type BranchInfo,
  type Claim,
  claimedAs,
  Fenced,
  type Ledger,
  type LedgerError,
  LedgerUnavailable,
  type StartTaker
} from "@fermata/ledger"
import { Cause, Deferred, Effect, Exit, type Runtime, type Scope } from "effect"
import * as Metrics from "../Metrics.js"
import type { Problem } from "../Problem.js"
import type * as Workflow from "../Workflow.js"
import { type BranchHost, BranchRun, type Rest } from "./BranchRun.js"
import { answerAwaited } from "./ChildRuns.js"
import { restCounter } from "./Counters.js"
import { HostTimer } from "./HostTimer.js"
import * as ProcessTable from "./ProcessTable.js"

/** What every session of one worker shares. */
export interface SessionOptions {
  readonly ledger: Ledger
  readonly runtime: Runtime.Runtime<never>
  readonly workflows: ReadonlyMap<string, Workflow.Any>
  /** Milliseconds. */
  readonly lease: number
  readonly poll: number
  readonly concurrency: number
  /** Queues that it serves; with `queuesOnly` nothing else. */
  readonly queues: ReadonlyArray<string>
  readonly queuesOnly: boolean
  readonly residentBranches: number
  readonly residentBytes: number
  /** `once` firings under way in this process, whichever session began them. */
  readonly firing: Set<string>
  /** Logs a warning from outside an effect. */
  readonly log: (message: string, cause: unknown) => void
}

export interface Session {
  readonly worker: string
  readonly running: () => number
  /** Ends when the lease is lost. */
  readonly lost: Effect.Effect<void>
}

/** After so many losses in a row a branch is set aside. */
const mostLosses = 3

/** True if the journal refused what the branch wrote: not another owner, and not a database that is away or full. */
const isRefusal = (cause: unknown): boolean =>
  cause instanceof LedgerUnavailable ? cause.reason === "failed" : !(cause instanceof Fenced)

/**
 * LV: how often all interrupts that wait for runs are looked at (milliseconds). Whoever ends a run answers for it at once; this
 * finds what a crash came between.
 */
const awaitedEvery = 10_000

/** The most branches that one claim takes: others are served too. */
const claimAtMost = 200

const definitionOf = (branch: BranchInfo): string => `${branch.workflow}@${branch.version}`

/** Begins a session; the scope's end lets go of its branches. */
export const open = (options: SessionOptions): Effect.Effect<Session, LedgerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { ledger, workflows } = options
    const definitions = [...workflows.keys()]
    const running = new Map<BranchId, BranchRun>()
    const resident = new Map<BranchId, BranchRun>()
    const emptied = yield* Deferred.make<void>()
    let residentBytes = 0
    let stopping = false
    /** When the next branch that waits is due, as of the last look; `undefined` if that has to be looked up. */
    let due: number | undefined
    /** Something may be there to claim since the last turn began. */
    let awake = true
    /** Ends the pause between two turns. */
    let rouse: (() => void) | undefined

    const wake = (): void => {
      awake = true
      rouse?.()
    }

    const keepWarm = (run: BranchRun): void => {
      resident.set(run.branch, run)
      residentBytes += run.weight
      for (const [branch] of resident) {
        if (resident.size <= options.residentBranches && residentBytes <= options.residentBytes) break
        forget(branch)
      }
    }

    const takeWarm = (branch: BranchId): BranchRun | undefined => {
      const run = resident.get(branch)
      if (run === undefined) return undefined
      resident.delete(branch)
      residentBytes -= run.weight
      return run
    }

    const forget = (branch: BranchId): void => takeWarm(branch)?.evict()

    /** Places kept for runs that are being started in this process. */
    let reserved = 0
    /** Places kept so far. */
    let starts = 0
    /** Branches that were ours without a run at the last look, and their epochs. */
    const orphans = new Map<BranchId, number>()

    const hasRoom = (): boolean => running.size + reserved < options.concurrency

    const doneIfEmpty = (): void => {
      if (running.size + reserved === 0) Deferred.unsafeDone(emptied, Exit.void)
    }

    /** Branches that were lost again and again, not to another owner: each time their journal refused something. */
    const losses = new Map<BranchId, number>()

    /** Runs that are over, or may be, and that others may wait for. */
    const over = new Set<RunId>()

    const someOver = Effect.unsafeMakeLatch(false)
    const ended = (run: RunId): void => {
      over.add(run)
      someOver.unsafeOpen()
    }
    const tell = Effect.suspend(() => {
      const runs = [...over]
      over.clear()
      return attempt("answering for ended runs", answerAwaited(ledger, { runs }))
    })
    // The run may have ended before the question was there to be answered.
    const onAssigned = (assignee: string): void => {
      const run = runAssignee.runOf(assignee)
      if (run !== undefined) ended(run)
    }

    const onRest = (run: BranchRun, rest: Rest): void => {
      restCounter.count(rest)
      // A run's result is its root's.
      if (rest === "ended" && run.branch === rootBranch(runOf(run.branch))) ended(runOf(run.branch))
      if (rest === "lost") {
        if (isRefusal(run.lostTo)) losses.set(run.branch, (losses.get(run.branch) ?? 0) + 1)
        options.log(`Worker ${worker} lost branch ${run.branch}; it is taken up again from its journal`, run.lostTo)
      } else {
        losses.delete(run.branch)
      }
      const full = !hasRoom()
      if (running.get(run.branch) === run) running.delete(run.branch)
      if (rest === "parked" && !stopping) keepWarm(run)
      else if (rest === "parked") run.evict()
      if (stopping) doneIfEmpty()
      // One that ended left nothing to wait for but its room.
      if (rest === "ended" && !full) return
      due = undefined
      wake()
    }

    const place = yield* ProcessTable.self
    const serves = [
      ...(options.queuesOnly ? [] : definitions),
      ...options.queues.flatMap((queue) => definitions.map((definition) => claimedAs(definition, queue)))
    ]
    const lease = yield* ledger.register({ lease: options.lease, place, look: ProcessTable.sight, definitions: serves })
    const { worker } = lease
    const host: BranchHost = { ledger, worker, runtime: options.runtime, firing: options.firing, onRest, onAssigned }

    /** Lets an operator see what no worker can go on with. */
    const setAside = (claim: Claim, problem: Problem) =>
      Effect.zipRight(
        Effect.logError(problem.message),
        Effect.ignore(
          ledger
            .open(claim)
            .release({ _tag: "Stuck", problem: JSON.stringify([problem]) }, { inboxSeen: claim.branch.inboxHead })
        )
      )

    const begun = (workflow: Workflow.Any, claim: Claim, history: ReadonlyArray<Entry>): BranchRun => {
      const run = new BranchRun(host, workflow, claim, history)
      running.set(run.branch, run)
      return run
    }

    /** Runs at once what is started in this process. */
    const taker: StartTaker = {
      worker,
      definitions: new Set(definitions),
      reserve: () => {
        if (stopping || !hasRoom()) return false
        reserved++
        starts++
        return true
      },
      use: (claim) => {
        reserved--
        if (claim !== undefined) Metrics.claims.unsafeUpdate(1, [])
        // What was claimed while this stopped is let go of with the worker.
        if (stopping) return doneIfEmpty()
        const workflow = claim && workflows.get(definitionOf(claim.branch))
        if (workflow === undefined || claim?.first === undefined) return wake()
        const run = begun(workflow, claim, [claim.first])
        // Whoever started it hears of that first.
        queueMicrotask(() => run.start())
      }
    }

    const begin = (claim: Claim): Effect.Effect<void, LedgerError> => {
      const { branch, head, headDigest } = claim.branch
      const workflow = workflows.get(definitionOf(claim.branch))
      if (workflow === undefined) return Effect.void
      if ((losses.get(branch) ?? 0) >= mostLosses) {
        losses.delete(branch)
        return setAside(claim, {
          _tag: "EngineFailed",
          seq: head,
          message: `After position ${head} of ${branch} its journal could not be written ${mostLosses} times; see the worker's log.`
        })
      }
      const warm = takeWarm(branch)
      if (warm?.head?.seq === head && warm.head.digest === headDigest) {
        return Effect.sync(() => {
          running.set(branch, warm)
          warm.reattach(claim)
        })
      }
      warm?.evict()
      return ledger.claimed(claim).pipe(
        Effect.map((history) => begun(workflow, claim, history).start()),
        Effect.catchTags({
          // Taken over, ended and purged between the claim and now: there is nothing to run.
          RunNotFound: () => Effect.void,
          RunPurged: () => Effect.void,
          CorruptJournal: (error) =>
            setAside(claim, { _tag: "CorruptJournal", table: error.table, message: error.message }),
          LedgerUnusable: (error) =>
            error.reason === "sealed" ? setAside(claim, { _tag: "Sealed", message: error.message }) : Effect.fail(error)
        })
      )
    }

    /** Branches whose inbox grew while some were being claimed. */
    const heard = new Set<BranchId>()

    const claimSome = (freeLost: boolean) =>
      Effect.gen(function* () {
        for (;;) {
          const room = Math.min(options.concurrency - running.size - reserved, claimAtMost)
          if (room <= 0 || stopping) return
          heard.clear()
          const claims = yield* ledger.claim({
            worker,
            definitions,
            limit: room,
            freeLost,
            queues: options.queues,
            only: options.queuesOnly
          })
          Metrics.claims.unsafeUpdate(claims.length, [])
          for (const claim of claims) {
            yield* begin(claim)
            const { branch, parent } = claim.branch
            if (heard.has(branch)) running.get(branch)?.inboxChanged()
            // A fork waits for what its parent waited for, which may be over since.
            if (parent !== null) yield* answerAwaited(ledger, { branch })
          }
          // A claim takes from one queue: others may have more.
          if (claims.length === 0 || (claims.length < room && options.queues.length === 0)) return
        }
      })

    /** Compares what the database says is ours with what is in memory: unseen inboxes, and branches that nobody runs. */
    const lookAtOwned = Effect.gen(function* () {
      const before = starts
      const quiet = reserved === 0
      const owned = yield* ledger.ownedInboxHeads(worker)
      const known = new Map(orphans)
      orphans.clear()
      for (const { branch, epoch, inboxHead } of owned) {
        const run = running.get(branch)
        if (run?.inboxBehind(inboxHead) === true) run.inboxChanged()
        if (run !== undefined) continue
        // One that was started just now is taken up in a moment; one that is seen again without a run was not.
        if ((quiet && starts === before) || known.get(branch) === epoch) yield* ledger.disown(branch, epoch)
        else orphans.set(branch, epoch)
      }
    })

    /** What fails is tried again: by the next turn of the loop at the latest. */
    const attempt = <E>(what: string, effect: Effect.Effect<void, E>): Effect.Effect<void> =>
      Effect.catchAllCause(effect, (cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.failCause(cause as Cause.Cause<never>)
          : Effect.logWarning(`Worker ${worker}: ${what} failed; it is tried again`, cause)
      )

    let unheard = true
    let lookedAt = Number.NEGATIVE_INFINITY
    let lookForAwaited = Number.NEGATIVE_INFINITY
    /** When the next lease of another worker lapses, as of the last look. */
    let lapse: number | undefined
    /** When the next schedule is due, as of the last look; `undefined` if that has to be looked up. */
    let fires: number | undefined
    const listen = (announcement: Announcement): void => {
      switch (announcement._tag) {
        case "Ready":
          // It may be ready later: a delayed start, or one that its queue holds back.
          due = undefined
          return wake()
        case "Inbox":
          heard.add(announcement.branch)
          return running.get(announcement.branch)?.inboxChanged()
        case "Scheduled":
          fires = undefined
          return wake()
        case "Anything":
          unheard = true
          return wake()
        case "Changed":
        case "Told":
        case "Emitted":
          return
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => ledger.subscribe(listen)),
      (stop) => Effect.sync(stop)
    )

    const alarm = new HostTimer(options.runtime, () => ledger.unsafeNow())

    /** Waits until `due` (ledger milliseconds), or until woken. */
    const pauseUntil = (due: number) =>
      Effect.async<void>((resume) => {
        if (awake) return resume(Effect.void)
        rouse = () => {
          rouse = undefined
          alarm.clear()
          resume(Effect.void)
        }
        alarm.at(due, () => rouse?.())
        return Effect.sync(() => {
          rouse = undefined
          alarm.clear()
        })
      })

    /** Fires the schedules that are due. */
    const fire = Effect.gen(function* () {
      const known = fires ?? (yield* ledger.nextScheduleDue)
      if (known !== undefined && known <= ledger.unsafeNow()) yield* ledger.fireSchedules
      else if (fires !== undefined) return
      // What is announced while this looks asks for another look.
      fires = Infinity
      const next = yield* Effect.onError(ledger.nextScheduleDue, () => Effect.sync(() => (fires = undefined)))
      if (fires === Infinity) fires = next ?? Infinity
    })

    const turn = Effect.gen(function* () {
      // Reset before looking, so that what comes while looking is not lost (LV).
      awake = false
      const now = ledger.unsafeNow()
      const thorough = unheard || now - lookedAt >= options.poll || (lapse !== undefined && now >= lapse)
      if (thorough) fires = undefined
      yield* attempt("firing schedules", fire)
      if (now >= lookForAwaited) {
        lookForAwaited = now + awaitedEvery
        yield* attempt("answering for ended runs", answerAwaited(ledger, {}))
      }
      yield* attempt("claiming branches", claimSome(thorough))
      if (thorough) {
        unheard = false
        lookedAt = now
        yield* attempt("looking at owned branches", lookAtOwned)
        lapse = yield* Effect.orElseSucceed(ledger.nextLapse, () => undefined)
      }
      const full = !hasRoom()
      if (!full && (thorough || due === undefined || ledger.unsafeNow() >= due)) {
        due = Infinity
        const next = yield* Effect.orElseSucceed(
          ledger.nextWake(definitions, options.queues, options.queuesOnly),
          () => undefined
        )
        // Whoever came to rest meanwhile asked for another look.
        if (due === Infinity) due = next ?? Infinity
      }
      yield* pauseUntil(
        Math.min(lookedAt + options.poll, full ? Infinity : (due ?? 0), lapse ?? Infinity, fires ?? Infinity)
      )
    })

    // After the last of its branches ended.
    yield* Effect.addFinalizer(() => tell)
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        for (const branch of resident.keys()) forget(branch)
        for (const run of running.values()) run.shutdown()
        return running.size + reserved > 0 ? Deferred.await(emptied) : Effect.void
      })
    )
    // Stuck branches may meet corrected code now.
    yield* attempt(
      "freeing stuck branches",
      Effect.asVoid(ledger.unstick({ definitions, queues: options.queues, only: options.queuesOnly }))
    )
    yield* Effect.forkScoped(Effect.forever(turn))
    // What ends in one turn of the event loop is told in one go.
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.zipRight(
          someOver.await,
          Effect.suspend(() => {
            someOver.unsafeClose()
            return tell
          })
        )
      )
    )
    if (!options.queuesOnly) {
      yield* Effect.acquireRelease(
        Effect.sync(() => ledger.takeStarts(taker)),
        (stop) => Effect.sync(stop)
      )
    }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        stopping = true
      })
    )

    const lost = Effect.zipRight(
      lease.lost,
      Effect.sync(() => {
        // Others have the branches: nothing of what is in memory may be used.
        stopping = true
        for (const run of running.values()) run.evict()
        running.clear()
      })
    )
    return { worker, running: () => running.size, lost }
  })
