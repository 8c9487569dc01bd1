/**
 * All that a branch writes: through its journal, and folded into what is known of the history in the same breath, so
 * that the two never differ. Keeps what was given out and is not durable yet within bounds.
 */
import type { BranchId, Entry, EntryDraft, Recovery } from "@fermata/contract"
import type { BranchJournal, Fenced, LedgerError, Release } from "@fermata/ledger"
import { Cause, type Effect, Either, Exit, Option } from "effect"
import type { Refusal } from "./Codec.js"
import * as CrashPoint from "./CrashPoint.js"
import type { Mailbox } from "./Mailbox.js"
import { describeEntry } from "./Timeline.js"

/** Room for the names and digests around a value in its entry's payload (UTF-16 code units). */
const payloadMargin = 4096
/** Entries given out but not durable at which delivery pauses. */
const maxVolatile = 4096
/** Text given out (UTF-16 code units) after which delivery pauses until it is durable. */
const maxVolatileText = 16 * 1024 * 1024

/** Why a conditional write did not happen. */
export type WriteRefusal =
  /** Something came into the inbox that was not moved yet; the branch is still owned. */
  | { readonly _tag: "InboxAdvanced"; readonly inboxHead: number }
  /** The branch is lost. */
  | { readonly _tag: "Lost"; readonly cause: unknown }

const refusalOf = (cause: Cause.Cause<Fenced | LedgerError | WriteRefusal>): WriteRefusal => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return error?._tag === "InboxAdvanced" ? error : { _tag: "Lost", cause: error ?? cause }
}

export class BranchWriter {
  private journal: BranchJournal | undefined
  private textGivenOut = 0
  /** More was given out than the disk has taken: delivery pauses. */
  congested = false
  /** Rough size of what was written (bytes). */
  weight = 0

  constructor(
    private readonly branch: BranchId,
    private readonly recovery: Recovery,
    private readonly mailbox: Mailbox,
    private readonly maxPayload: number
  ) {}

  /** Writes to this journal from now on. `onLost` is not called for one that was given up for another. */
  open(journal: BranchJournal, onLost: (cause: unknown) => void): void {
    this.journal = journal
    journal.onLost((cause) => {
      if (this.journal === journal) onLost(cause)
    })
  }

  close(): void {
    this.journal?.close()
  }

  /** Position and digest of the last entry given out. */
  get head(): { readonly seq: number; readonly digest: string } | undefined {
    const { journal } = this
    return journal === undefined ? undefined : { seq: journal.head, digest: journal.headDigest }
  }

  /** The epoch under which it writes. */
  get epoch(): number | undefined {
    return this.journal?.epoch
  }

  /** True if nothing can be written any more. */
  get lost(): boolean {
    return this.journal?.lost === true
  }

  /** What would not fit into the journal is refused before it is written, as what fails its Schema is (CV). */
  readonly fitting = (encoded: Either.Either<string, Refusal>): Either.Either<string, Refusal> => {
    const limit = this.maxPayload - payloadMargin
    return Either.isRight(encoded) && encoded.right.length > limit
      ? Either.left({ issues: [`$: is too large to store (${encoded.right.length} of ${limit} characters of JSON)`] })
      : encoded
  }

  /** Gives an entry its place. It becomes durable later, in this order. */
  append(entryDraft: EntryDraft): Entry {
    const { journal } = this
    if (journal === undefined) throw new Error("a branch that is not owned cannot be appended to")
    const entry = journal.append(entryDraft)
    if (CrashPoint.armed()) {
      const detail = `${this.branch} ${entry.seq} ${describeEntry(entry)}`
      CrashPoint.pass("appended", detail)
      journal.onDurable(entry.seq, (lost) => {
        if (lost === undefined) CrashPoint.pass("durable", detail)
      })
    }
    this.recovery.apply(entry)
    this.weight += entryDraft.payload.length >> 3
    this.textGivenOut += entryDraft.payload.length
    if (this.textGivenOut > maxVolatileText) {
      this.textGivenOut = 0
      this.pauseUntil(journal, entry.seq)
    } else if (entry.seq - journal.durable > maxVolatile) {
      this.pauseUntil(journal, entry.seq - (maxVolatile >> 1))
    }
    return entry
  }

  /** Backpressure: memory does not grow faster than the disk writes. */
  private pauseUntil(journal: BranchJournal, seq: number): void {
    this.congested = true
    journal.onDurable(seq, () => {
      this.congested = false
      this.mailbox.pump()
    })
  }

  /** Appends a mark from the host unless it is refused by then. Calls back with its position; never if the branch is gone. */
  mark(entryDraft: EntryDraft, then: (seq: number | undefined) => void, refused?: () => boolean): void {
    this.mailbox.post(() => {
      let seq: number | undefined
      try {
        if (refused?.() !== true) seq = this.append(entryDraft).seq
      } finally {
        // Whoever waits must hear of it also when the journal refuses: a firing may not be interrupted while it waits.
        then(seq)
      }
    })
  }

  /** Calls back when all up to `seq` is durable; never if the branch is lost. */
  whenDurable(seq: number, then: () => void): void {
    this.journal?.onDurable(seq, (lost) => {
      if (lost === undefined) then()
    })
  }

  /** Runs a `transactional` effect: its writes and its outcome commit together, and nothing else comes between. */
  transact<A, E>(
    body: Effect.Effect<A, E>,
    outcome: (
      exit: { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }
    ) => EntryDraft,
    then: (exit: Exit.Exit<Entry, unknown> | undefined) => void,
    refused: () => boolean
  ): void {
    this.mailbox.post(() => {
      const { journal } = this
      if (journal === undefined) return
      if (refused()) return then(undefined)
      this.mailbox.hold(journal.transact(body, outcome), (exit) => {
        if (Exit.isSuccess(exit)) this.recovery.apply(exit.value)
        then(exit)
      })
    })
  }

  /** Appends if nothing came in from outside meanwhile; calls back when it is durable. */
  appendIf(
    entryDraft: EntryDraft,
    { notBefore, standing }: { readonly notBefore: number | undefined; readonly standing: string | null },
    then: (result: Either.Either<Entry | undefined, WriteRefusal>) => void
  ): void {
    const { journal } = this
    if (journal === undefined) return
    const options = { inboxSeen: this.recovery.inboxSeen, standing, ...(notBefore === undefined ? {} : { notBefore }) }
    this.mailbox.hold(journal.appendIf([entryDraft], options), (exit) => {
      if (Exit.isFailure(exit)) return then(Either.left(refusalOf(exit.cause)))
      for (const entry of exit.value) {
        if (CrashPoint.armed()) CrashPoint.pass("durable", `${this.branch} ${entry.seq} ${describeEntry(entry)}`)
        this.recovery.apply(entry)
      }
      then(Either.right(exit.value[0]))
    })
  }

  /** Lets go of the branch if nothing came in from outside after `inboxSeen`; calls back when that is durable. */
  release(how: Release, inboxSeen: number, then: (result: Either.Either<void, WriteRefusal>) => void): void {
    const { journal } = this
    if (journal === undefined) return
    this.mailbox.hold(journal.release(how, { inboxSeen }), (exit) =>
      then(Exit.isFailure(exit) ? Either.left(refusalOf(exit.cause)) : Either.void)
    )
  }
}
