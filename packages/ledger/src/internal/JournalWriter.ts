/**
 * The ledger's one writer: it drains what all branches want appended into one commit (group commit), tells each
 * branch what became of its part, and starts over. While a commit is under way the next one gathers.
 *
 * A part whose outcome is unknown (a lost connection, a busy file) is tried again until it is known: trying again is
 * harmless, since a part that is stored already does not match its base any more and is recognised.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Runtime } from "effect"
import { Fenced, type LedgerError, LedgerUnavailable, LedgerUnusable } from "../LedgerError.js"
import { commitEntries, commitMillis } from "../LedgerMetrics.js"
import { announcementsOf, type Commit, type Part, type PartOutcome, storedEntries } from "./Commit.js"
import { backoff, type Database, hostSleep } from "./Database.js"
import { causeOf, failureKind, ledgerError } from "./SqlFailure.js"

/** What a branch's append buffer offers the writer. */
export interface PartSource {
  readonly branch: string
  readonly epoch: number
  /** Takes what is to be stored next, about so much; `undefined` if there is nothing. */
  take(limits: { readonly rows: number; readonly chars: number }): Part | undefined
  /** True if `take` would return something. */
  readonly wants: boolean
  /** The part taken last is stored (or only up to its condition). */
  settled(part: Part, outcome: Extract<PartOutcome, { readonly _tag: "Stored" | "InboxAdvanced" }>): void
  /** Nothing of it will be stored any more. */
  fail(cause: Fenced | LedgerError): void
}

/** What one commit takes at most: beyond it a commit costs latency and gains nothing. */
const limits = { rows: 1024, chars: 4_000_000 }

/** Host milliseconds that a full disk is tried again before its branches are given up. */
const patience = 5_000

/**
 * Host milliseconds that appends wait for company while nobody waits for them: what is delivered before it is durable
 * (pipelining) then shares commits instead of stopping for one at each step.
 */
const lingering = 2

/** Appends that nobody waits for are stored at once when they are this many. */
const mostLingering = 256

interface Taken {
  readonly source: PartSource
  readonly part: Part
}

/** One per ledger; sources ask it to `want` them. */
export class JournalWriter {
  /** In the order in which they asked. */
  private readonly waiting = new Set<PartSource>()
  private readonly open = new Set<PartSource>()
  private scheduled: { readonly cancel: () => void; readonly urgent: boolean } | undefined
  private urgent = false
  private lingeringAppends = 0
  private committing = false
  private closed = false
  /** Why the last commit that must be tried again failed. */
  private trouble: LedgerError | undefined

  constructor(
    private readonly db: Database,
    private readonly commit: Commit,
    private readonly runtime: Runtime.Runtime<never>,
    /** Hears which branches are not held any more. */
    private readonly onForget: (branch: string, epoch: number) => void
  ) {}

  /** Makes the writer answerable for a source until it is forgotten. */
  adopt(source: PartSource): void {
    this.open.add(source)
  }

  forget(source: PartSource): void {
    this.open.delete(source)
    this.waiting.delete(source)
    this.onForget(source.branch, source.epoch)
  }

  /** The source has something to store; `urgent` if somebody waits for it. */
  want(source: PartSource, urgent: boolean): void {
    this.waiting.add(source)
    if (urgent || ++this.lingeringAppends >= mostLingering) this.urgent = true
    this.schedule()
  }

  /** Why something could not be stored for so long. */
  get whyWaiting(): LedgerError {
    return (
      this.trouble ??
      new LedgerUnavailable({
        reason: "busy",
        database: this.db.name,
        operation: "append",
        detail: "the database does not answer"
      })
    )
  }

  /** Gives up everything that is not stored. */
  close(): void {
    this.closed = true
    this.scheduled?.cancel()
    const cause = new LedgerUnusable({
      reason: "closed",
      database: this.db.name,
      detail: "the ledger was closed before everything was stored",
      advice: "Let go of branches before the ledger's scope ends; their owners' next claim goes on from what is stored"
    })
    for (const source of Array.from(this.open)) source.fail(cause)
  }

  private schedule(): void {
    if (this.committing || this.closed || this.waiting.size === 0) return
    if (this.scheduled !== undefined) {
      if (this.scheduled.urgent || !this.urgent) return
      this.scheduled.cancel()
    }
    const turn = () => {
      this.scheduled = undefined
      this.turn()
    }
    if (this.urgent) {
      // The rest of this macrotask, and what other branches do in it, joins the commit.
      const immediate = setImmediate(turn)
      this.scheduled = { urgent: true, cancel: () => clearImmediate(immediate) }
    } else {
      const timer = setTimeout(turn, lingering)
      this.scheduled = { urgent: false, cancel: () => clearTimeout(timer) }
    }
  }

  private turn(): void {
    if (this.closed) return
    this.urgent = false
    this.lingeringAppends = 0
    const taken = this.gather()
    const began = performance.now()
    // What did not fit in the commit is not made to wait for company again.
    if (this.waiting.size > 0) this.urgent = true
    const unsettled = this.settleNow(taken)
    if (unsettled.length === 0) {
      measure(taken, began)
      return this.schedule()
    }
    this.committing = true
    this.trouble = undefined
    Runtime.runCallback(this.runtime)(this.untilKnown(unsettled, 0, performance.now()), {
      onExit: (exit) => {
        this.committing = false
        measure(taken, began)
        // Only a defect of the writer itself ends here: its branches must not hang.
        if (exit._tag === "Failure") {
          const cause = ledgerError(exit.cause, "append", this.db.name)
          for (const { source } of unsettled) source.fail(cause)
        }
        this.schedule()
      }
    })
  }

  /** Commits without waiting, where that is possible; returns what is not known then. */
  private settleNow(taken: ReadonlyArray<Taken>): ReadonlyArray<Taken> {
    if (taken.length === 0) return taken
    let outcomes: ReadonlyArray<PartOutcome> | undefined
    try {
      outcomes = this.commit.now?.(taken.map(({ part }) => part))
    } catch {
      // Nothing was stored, or it is recognised as stored: the patient way finds out what is the matter.
    }
    const known = outcomes
    return known === undefined ? taken : taken.filter((one, index) => !this.settle(one, known[index]))
  }

  private gather(): ReadonlyArray<Taken> {
    const taken: Array<Taken> = []
    let rows = 0
    let chars = 0
    // A copy: a source that wants more goes to the end of the queue, not of this commit.
    for (const source of Array.from(this.waiting)) {
      if (rows >= limits.rows || chars >= limits.chars) break
      this.waiting.delete(source)
      const part = source.take({ rows: limits.rows - rows, chars: limits.chars - chars })
      if (part === undefined) continue
      taken.push({ source, part })
      rows += part.entries.length + part.conditional.length
      for (const entry of part.entries) chars += entry.payload.length
      // What it has left waits until this part is settled: a branch has one part in a commit.
      if (taken.length >= limits.rows) break
    }
    // Rows are locked in id order, so that two writers' commits cannot wait for each other.
    return taken.length < 2 ? taken : taken.sort((a, b) => (a.part.branch < b.part.branch ? -1 : 1))
  }

  private untilKnown(taken: ReadonlyArray<Taken>, attempt: number, since: number): Effect.Effect<void> {
    return Effect.flatMap(this.attempt(taken, since), (again) =>
      again.length === 0
        ? Effect.void
        : Effect.zipRight(
            hostSleep(backoff(attempt)),
            Effect.suspend(() => this.untilKnown(again, attempt + 1, since))
          )
    )
  }

  /** Tries the parts once, and gives up those that trying again would not help. Returns what must be tried again. */
  private attempt(taken: ReadonlyArray<Taken>, since: number): Effect.Effect<ReadonlyArray<Taken>> {
    return this.commit.eventually(taken.map(({ part }) => part)).pipe(
      Effect.map((outcomes) => taken.filter((one, index) => !this.settle(one, outcomes[index]))),
      Effect.catchAll((error: SqlError) => {
        const kind = failureKind(causeOf(error))
        const passing = kind === "busy" || kind === "conflict" || kind === "disconnected"
        const cause = ledgerError(causeOf(error), "append", this.db.name)
        if (passing) this.trouble = cause
        if (!this.closed && (passing || (kind === "full" && performance.now() - since < patience))) {
          return Effect.succeed(taken)
        }
        // LV: one branch's row that the database does not take must neither hurt the others nor hold them up.
        if (!this.closed && kind === "failed" && taken.length > 1) {
          const half = taken.length >> 1
          return Effect.zipWith(
            this.attempt(taken.slice(0, half), since),
            this.attempt(taken.slice(half), since),
            (first, second) => [...first, ...second]
          )
        }
        return Effect.sync(() => {
          for (const { source } of taken) source.fail(cause)
          return []
        })
      })
    )
  }

  /** False if the part must be tried again. */
  private settle({ source, part }: Taken, outcome: PartOutcome | undefined): boolean {
    if (outcome === undefined || outcome._tag === "Again") return false
    if (outcome._tag === "Fenced") {
      source.fail(new Fenced({ branch: part.branch, epoch: part.epoch }))
      return true
    }
    // What gathered during the commit has waited long enough.
    if (source.wants) this.urgent = true
    source.settled(part, outcome)
    if (source.wants) this.waiting.add(source)
    for (const announcement of announcementsOf(part, storedEntries(part, outcome), outcome._tag === "Stored")) {
      this.db.hub.publish(announcement)
    }
    return true
  }
}

/** Counts a commit that is over, however it ended. */
const measure = (taken: ReadonlyArray<Taken>, began: number): void => {
  if (taken.length === 0) return
  let entries = 0
  for (const { part } of taken) entries += part.entries.length + part.conditional.length
  commitEntries.unsafeUpdate(entries, [])
  commitMillis.unsafeUpdate(performance.now() - began, [])
}
