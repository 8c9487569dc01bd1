/**
 * What one attempt of a step says on output streams: collected, and stored in the order in which it was said, many
 * chunks in a transaction. The body goes on meanwhile; only one that says more than the database takes waits.
 */
import { Effect, Either, Runtime } from "effect"
import type * as OutputStream from "../OutputStream.js"
import { InvalidValue } from "../RunError.js"
import { type Step, stopped } from "./Step.js"

/** Chunks of one transaction, at most. */
const batch = 256
/** Text that waits to be stored (UTF-16 code units) at which the body waits, too. */
const maxPending = 1024 * 1024
/** Pause before the database is tried again (milliseconds of host time). */
const pause = 200

export class StepOutput {
  private pending: Array<{ readonly stream: string; readonly n: number; readonly payload: string }> = []
  private pendingText = 0
  private said = 0
  private execution: number | undefined
  private storing = false
  private waiters: Array<() => void> = []

  constructor(private readonly step: Step) {}

  /** True while something that was said is not stored yet. */
  get busy(): boolean {
    return this.storing
  }

  /** Calls back when all that was said is stored; never if the branch is gone. */
  whenStored(then: () => void): void {
    if (this.storing) this.waiters.push(then)
    else then()
  }

  /** Says one chunk. */
  emit(stream: OutputStream.Any, value: unknown, how: "again" | "once"): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { step } = this
      const encoded = step.branch.writer.fitting(stream.codec.encode(value))
      if (Either.isLeft(encoded)) {
        return Effect.die(
          new InvalidValue({ what: `chunk of output stream ${stream.name} (${step.key})`, issues: encoded.left.issues })
        )
      }
      // The same number in the same execution is the same chunk, however often it is stored.
      if (how === "once") this.execution = 1
      this.pending.push({ stream: stream.name, n: this.said++, payload: encoded.right })
      this.pendingText += encoded.right.length
      if (!this.storing) {
        this.storing = true
        Runtime.runFork(step.branch.host.runtime)(this.store)
      }
      if (this.pending.length < batch && this.pendingText < maxPending) return Effect.void
      return step.wait<void>((resume) => this.whenStored(() => resume(undefined)))
    })
  }

  private readonly store: Effect.Effect<void> = Effect.suspend(() => {
    const { step } = this
    if (step.isAbandoned) return Effect.void
    const chunks = this.pending.slice(0, batch)
    if (chunks.length === 0) return this.finished
    const { branch, host, writer } = step.branch
    const { epoch, head } = writer
    // Without a journal, or without a database that takes chunks, there is nobody to say it to.
    if (epoch === undefined || head === undefined || host.ledger.emit === undefined) return this.finished
    const { emit } = host.ledger
    // Nobody hears what depends on something that a crash may still take back.
    const prefix = step.wait<void>((resume) => writer.whenDurable(head.seq, () => resume(undefined)))
    const stored = Effect.flatMap(prefix, () =>
      emit({ branch, epoch, step: step.key, execution: this.execution, chunks })
    )
    return Effect.matchCauseEffect(stored, {
      onSuccess: (execution) => {
        this.execution = execution
        this.pending = this.pending.slice(chunks.length)
        for (const { payload } of chunks) this.pendingText -= payload.length
        return this.store
      },
      onFailure: (cause) =>
        cause._tag === "Fail" && cause.error._tag === "LedgerUnavailable"
          ? Effect.zipRight(hostPause, this.store)
          : // Fenced or evicted: whoever owns the branch now runs the body again. The outcome is refused, too.
            Effect.zipRight(
              cause._tag === "Die" && cause.defect !== stopped
                ? Effect.logWarning(`Chunks of ${branch} ${step.key} could not be stored`, cause)
                : Effect.void,
              this.finished
            )
    })
  })

  private readonly finished: Effect.Effect<void> = Effect.sync(() => {
    this.storing = false
    this.pending = []
    this.pendingText = 0
    for (const waiter of this.waiters.splice(0)) waiter()
  })
}

/** On the host's clock: a test's clock must not stop it. */
const hostPause = Effect.async<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), pause)
  return Effect.sync(() => clearTimeout(timer))
})
