/**
 * The append buffer of one owned branch: gives entries their place, time and digest at once, and offers them to the
 * writer in order. It is the only thing that appends to its branch, so recorded order is the order of `append`.
 */
import { admitAppend, admitEntry, type BranchId, type Entry, type EntryDraft, isTerminal } from "@fermata/contract"
import { Effect, Either, FiberRef } from "effect"
import type { BranchJournal, Claim, Release } from "../Ledger.js"
import { EntryRefused, Fenced, InboxAdvanced, type LedgerError, LedgerUnusable } from "../LedgerError.js"
import { lockBranch } from "./BranchRows.js"
import { endedBy, letGoOf, type Part, type PartOutcome, type Position, storableTime } from "./Commit.js"
import type { Database } from "./Database.js"
import { entryDigest } from "./Digest.js"
import type { JournalWriter, PartSource } from "./JournalWriter.js"
import { type BodyExit, typedExit } from "./TransactionExit.js"

type Loss = Fenced | LedgerError

/** A conditional append or a release that waits for its turn, and who is told of it. */
interface Condition {
  readonly drafts: ReadonlyArray<EntryDraft>
  readonly notBefore: number | undefined
  readonly inboxSeen: number | null
  /** What is said of the branch if an entry here ends it. */
  readonly standing: string | null
  readonly letGo: Part["letGo"]
  readonly done: (result: Either.Either<ReadonlyArray<Entry>, InboxAdvanced | Loss>) => void
}

interface Waiter {
  readonly seq: number
  readonly callback: (lost: Loss | undefined) => void
}

/** See `BranchJournal` for what an owner may do with it. */
export class AppendBuffer implements BranchJournal, PartSource {
  readonly branch: BranchId
  readonly epoch: number
  head: number
  headDigest: string
  durable: number

  private readonly run: string
  private readonly queued: boolean
  private lastAt: number
  private pending: Array<Entry> = []
  private condition: Condition | undefined
  /** The condition is part of the commit under way. */
  private conditionTaken = false
  /** A conditional append, a release or a transaction is under way: nothing may get between. */
  private exclusive = false
  private over = false
  private ended = false
  private loss: Loss | undefined
  private readonly waiters: Array<Waiter> = []
  private readonly lossListeners: Array<(cause: Loss) => void> = []
  private durableDigest: string

  constructor(
    private readonly db: Database,
    private readonly writer: JournalWriter,
    claim: Claim
  ) {
    this.branch = claim.branch.branch
    this.run = claim.branch.run
    this.queued = claim.branch.queue !== null
    this.epoch = claim.branch.epoch
    this.head = claim.branch.head
    this.headDigest = claim.branch.headDigest
    this.durable = claim.branch.head
    this.durableDigest = claim.branch.headDigest
    this.lastAt = claim.headAt
    writer.adopt(this)
  }

  get lost(): boolean {
    return this.ended || this.loss !== undefined
  }

  append(draft: EntryDraft, notBefore?: number): Entry {
    if (this.loss !== undefined) throw this.loss
    if (this.ended) throw new Fenced({ branch: this.branch, epoch: this.epoch })
    if (this.exclusive) {
      throw new Error(`Branch ${this.branch}: append while a conditional append or a transaction is under way`)
    }
    const entry = this.entryAfter({ seq: this.head, digest: this.headDigest }, draft, notBefore)
    this.advance(entry)
    this.pending.push(entry)
    this.writer.want(this, isUrgent(draft))
    return entry
  }

  onDurable(seq: number, callback: (lost: Loss | undefined) => void): void {
    if (seq <= this.durable) return callback(undefined)
    if (this.lost) return callback(this.lossNow())
    // Callers ask in rising order, nearly always: look for the place from the end.
    let place = this.waiters.length
    while (place > 0 && (this.waiters[place - 1]?.seq ?? 0) > seq) place--
    this.waiters.splice(place, 0, { seq, callback })
    this.writer.want(this, true)
  }

  onLost(callback: (cause: Loss) => void): void {
    if (this.loss !== undefined) return callback(this.loss)
    this.lossListeners.push(callback)
  }

  appendIf(
    drafts: ReadonlyArray<EntryDraft>,
    options: { readonly inboxSeen: number; readonly notBefore?: number; readonly standing?: string | null }
  ): Effect.Effect<ReadonlyArray<Entry>, InboxAdvanced | Fenced | LedgerError> {
    return this.conditionally({
      drafts,
      notBefore: options.notBefore,
      inboxSeen: options.inboxSeen,
      standing: options.standing ?? null,
      letGo: null
    })
  }

  release(
    how: Release,
    options: { readonly inboxSeen: number }
  ): Effect.Effect<void, InboxAdvanced | Fenced | LedgerError> {
    const released = Effect.suspend(() =>
      this.conditionally({
        drafts: [],
        notBefore: undefined,
        // LV: parking is conditional on the inbox. A branch that wants another worker has its inbox read there.
        inboxSeen: how._tag === "Ready" ? null : options.inboxSeen,
        standing: null,
        letGo: letGoOf(how, this.db.unsafeNow())
      })
    )
    return Effect.suspend(() => {
      // LV: an owner that leaves must not wait without end for a database that is away; its lease ends by itself.
      const giveUp = setTimeout(() => this.fail(this.writer.whyWaiting), this.db.patience)
      return Effect.ensuring(
        Effect.asVoid(released),
        Effect.sync(() => clearTimeout(giveUp))
      )
    })
  }

  transact<A, E, R>(
    body: Effect.Effect<A, E, R>,
    outcome: (exit: BodyExit<A, E>) => EntryDraft
  ): Effect.Effect<Entry, Fenced | LedgerError, R> {
    return Effect.suspend(() => {
      if (this.lost) return Effect.fail(this.lossNow())
      this.beExclusive()
      // The body's spans are its caller's, whatever the ledger does about its own statements.
      const transaction = Effect.flatMap(FiberRef.get(FiberRef.currentTracerEnabled), (traced) =>
        Effect.zipRight(
          this.awaitDurable(this.head),
          Effect.suspend(() => this.runTransaction(Effect.withTracerEnabled(body, traced), outcome))
        )
      )
      return Effect.ensuring(
        Effect.tapError(transaction, (cause) => Effect.sync(() => this.fail(cause))),
        Effect.sync(() => {
          this.exclusive = false
        })
      )
    })
  }

  close(): void {
    if (this.lost) return
    this.finish()
    this.settleAll(this.lossNow())
  }

  // ── What the writer calls ─────────────────────────────────────────────────────────────────────────────────

  get wants(): boolean {
    return this.pending.length > 0 || (this.condition !== undefined && !this.conditionTaken)
  }

  take(limits: { readonly rows: number; readonly chars: number }): Part | undefined {
    if (this.lost || !this.wants) return undefined
    const entries = this.takePending(limits)
    const base = { seq: this.durable, digest: this.durableDigest }
    const mid = positionOf(entries, base)
    const part = { branch: this.branch, run: this.run, queued: this.queued, epoch: this.epoch, base, mid, entries }
    const last = entries.at(-1)
    if (last !== undefined && isTerminal(last.kind)) {
      return { ...part, head: mid, inboxSeen: null, conditional: [], letGo: endedBy(last.kind) }
    }
    const condition = this.pending.length === 0 ? this.condition : undefined
    if (condition === undefined) return { ...part, head: mid, inboxSeen: null, conditional: [], letGo: null }
    this.conditionTaken = true
    const conditional: Array<Entry> = []
    let head: Position = mid
    for (const draft of condition.drafts) {
      const entry = this.entryAfter(head, draft, condition.notBefore, conditional.at(-1)?.at)
      conditional.push(entry)
      head = { seq: entry.seq, digest: entry.digest }
    }
    const end = conditional.at(-1)
    const letGo = end !== undefined && isTerminal(end.kind) ? endedBy(end.kind, condition.standing) : condition.letGo
    return { ...part, head, inboxSeen: condition.inboxSeen, conditional, letGo }
  }

  settled(part: Part, outcome: Extract<PartOutcome, { readonly _tag: "Stored" | "InboxAdvanced" }>): void {
    if (this.lost) return
    const reached = outcome._tag === "Stored" ? part.head : part.mid
    if (outcome._tag === "Stored") for (const entry of part.conditional) this.advance(entry)
    this.durable = reached.seq
    this.durableDigest = reached.digest
    const condition = this.conditionTaken ? this.condition : undefined
    if (condition !== undefined) {
      this.conditionTaken = false
      this.condition = undefined
      this.exclusive = false
    }
    if (outcome._tag === "Stored" && part.letGo !== null) this.finish()
    this.callWaiters()
    condition?.done(
      outcome._tag === "Stored"
        ? Either.right(part.conditional)
        : Either.left(new InboxAdvanced({ branch: this.branch, inboxHead: outcome.inboxHead }))
    )
  }

  fail(cause: Loss): void {
    if (this.lost) return
    this.loss = cause
    this.finish()
    this.settleAll(cause)
    for (const listener of this.lossListeners.splice(0)) call(() => listener(cause))
  }

  // ── Inside ────────────────────────────────────────────────────────────────────────────────────────────────

  private conditionally(
    condition: Omit<Condition, "done">
  ): Effect.Effect<ReadonlyArray<Entry>, InboxAdvanced | Fenced | LedgerError> {
    return Effect.async((resume) => {
      if (this.lost) return resume(Effect.fail(this.lossNow()))
      this.beExclusive()
      // What the journal must not store is refused here, before anything is decided by it.
      for (const draft of condition.drafts) {
        try {
          this.check(this.head, draft)
        } catch (refusal) {
          this.exclusive = false
          return resume(Effect.die(refusal))
        }
      }
      this.conditionTaken = false
      this.condition = { ...condition, done: (result) => resume(result) }
      this.writer.want(this, true)
    })
  }

  private runTransaction<A, E, R>(
    body: Effect.Effect<A, E, R>,
    outcome: (exit: BodyExit<A, E>) => EntryDraft
  ): Effect.Effect<Entry, Fenced | LedgerError, R> {
    const base = { seq: this.head, digest: this.headDigest }
    const request = { epoch: this.epoch, base: base.seq, baseDigest: base.digest, inboxSeen: undefined }
    let attempted: Entry | undefined
    return Effect.tap(
      this.db.transaction("run a transactional effect", () =>
        Effect.gen(this, function* () {
          const row = yield* lockBranch(this.db, this.branch)
          const verdict = admitAppend(row, {
            ...request,
            head: attempted?.seq ?? base.seq + 1,
            headDigest: attempted?.digest ?? ""
          })
          // The commit's reply was lost, and it had happened: the body must not run again.
          if (verdict._tag === "AlreadyAppended" && attempted !== undefined) return attempted
          if (verdict._tag !== "Append" || row?.owner === null) {
            return yield* new Fenced({ branch: this.branch, epoch: this.epoch })
          }
          const exit = yield* Effect.exit(this.db.sql.withTransaction(body))
          const draft = outcome(yield* typedExit(exit))
          const entry = this.entryAfter(base, draft, undefined)
          attempted = entry
          yield* this.db.sql`UPDATE fermata_branches SET head = ${entry.seq}, head_digest = ${entry.digest}
            WHERE branch_id = ${this.branch}`
          yield* this.db.sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
            VALUES (${entry.branch}, ${entry.seq}, ${entry.kind}, ${entry.key}, ${entry.payload}, ${entry.epoch},
              ${entry.at}, ${entry.digest})`
          return entry
        })
      ),
      (entry) =>
        Effect.sync(() => {
          this.advance(entry)
          this.durable = entry.seq
          this.durableDigest = entry.digest
          this.callWaiters()
        })
    )
  }

  private awaitDurable(seq: number): Effect.Effect<void, Loss> {
    return Effect.async((resume) => {
      this.onDurable(seq, (lost) => resume(lost === undefined ? Effect.void : Effect.fail(lost)))
    })
  }

  private beExclusive(): void {
    if (this.exclusive) {
      throw new Error(`Branch ${this.branch}: a conditional append or a transaction is under way already`)
    }
    this.exclusive = true
  }

  private check(head: number, draft: EntryDraft): void {
    const verdict = admitEntry(
      { head, over: this.over },
      {
        kind: draft.kind,
        key: draft.key,
        payloadLength: draft.payload.length,
        payloadWellFormed: draft.payload.isWellFormed()
      },
      { maxPayload: this.db.maxPayload }
    )
    if (verdict._tag === "Refuse") {
      throw new EntryRefused(this.branch, draft.kind, draft.key, verdict.reason)
    }
  }

  private entryAfter(previous: Position, draft: EntryDraft, notBefore: number | undefined, after = this.lastAt): Entry {
    this.check(previous.seq, draft)
    const fields = {
      branch: this.branch,
      seq: previous.seq + 1,
      kind: draft.kind,
      key: draft.key,
      payload: draft.payload,
      epoch: this.epoch,
      at: Math.max(after, this.db.unsafeNow(), storableTime(notBefore ?? 0))
    }
    return { ...fields, digest: entryDigest(previous.digest, fields) }
  }

  /** The entry is given out: the next one comes after it. */
  private advance(entry: Entry): void {
    this.head = entry.seq
    this.headDigest = entry.digest
    this.lastAt = entry.at
    if (isTerminal(entry.kind)) this.over = true
  }

  private takePending(limits: { readonly rows: number; readonly chars: number }): Array<Entry> {
    const { pending } = this
    let chars = 0
    let count = 0
    while (count < pending.length && (count === 0 || (count < limits.rows && chars < limits.chars))) {
      chars += pending[count]?.payload.length ?? 0
      count++
    }
    if (count === pending.length) {
      this.pending = []
      return pending
    }
    return pending.splice(0, count)
  }

  private callWaiters(): void {
    let count = 0
    while (count < this.waiters.length && (this.waiters[count]?.seq ?? 0) <= this.durable) count++
    for (const { callback } of this.waiters.splice(0, count)) call(() => callback(undefined))
  }

  private settleAll(cause: Loss): void {
    this.pending = []
    const { condition } = this
    this.condition = undefined
    for (const { callback } of this.waiters.splice(0)) call(() => callback(cause))
    condition?.done(Either.left(cause))
  }

  private finish(): void {
    this.ended = true
    this.writer.forget(this)
  }

  private lossNow(): Loss {
    return (
      this.loss ??
      new LedgerUnusable({
        reason: "closed",
        database: this.db.name,
        detail: `branch ${this.branch} was let go of by this owner`,
        advice: "Claim it again"
      })
    )
  }
}

/** How much of a payload is looked at: an effect's identity comes first, a large outcome after it. */
const identityLength = 4096

/**
 * True of what is stored without waiting for company. EO: what the outside did is in doubt until its outcome is durable;
 * a question is not asked before it is. A repeatable effect's outcome may wait: it wrote no intent.
 */
const isUrgent = ({ kind, payload }: EntryDraft): boolean => {
  if (kind === "interrupt.opened" || kind === "effect.refused" || kind === "update.replied") return true
  if (kind !== "effect.succeeded" && kind !== "effect.failed") return false
  return !payload.slice(0, identityLength).includes(`"delivery":"repeatable"`)
}

const positionOf = (entries: ReadonlyArray<Entry>, base: Position): Position => {
  const last = entries.at(-1)
  return last === undefined ? base : { seq: last.seq, digest: last.digest }
}

/** A callback's defect is its own: it must not stop the writer, and must not pass unseen. */
const call = (callback: () => void): void => {
  try {
    callback()
  } catch (defect) {
    setImmediate(() => {
      throw defect
    })
  }
}
