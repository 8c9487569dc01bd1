/**
 * The order in which a thread's checkpoints and writes become durable: the order in which LangGraph asked for them, so
 * that what a crash leaves is always a prefix of what was executed (RD).
 *
 * LangGraph does not wait for its saver, and may ask for the writes of a task before the checkpoint that the task runs on
 * was asked for, since it asks for that one when the checkpoint before it is stored. Such writes wait for their
 * checkpoint. LangGraph's next request follows the answer to the last one without a turn of the event loop in between; if
 * the queue is empty and a turn has passed, no such checkpoint is on its way, and the writes are stored on their own.
 */
import { type CheckpointOperation, checkpointKey, type CheckpointOutcome } from "@fermata/ledger"

/** The part of the store that the queue needs. */
export interface Sink {
  readonly commit: (operations: ReadonlyArray<CheckpointOperation>) => Promise<ReadonlyArray<CheckpointOutcome>>
  readonly known: (
    checkpoints: ReadonlyArray<{ readonly ns: string; readonly id: string }>
  ) => Promise<ReadonlySet<string>>
}

interface Waiting {
  readonly operation: CheckpointOperation
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/** Most operations in one commit. */
const batch = 256

/** Checkpoints of a thread that are remembered as stored. */
const remembered = 64

export class ThreadQueue {
  private readonly waiting: Array<Waiting> = []
  private readonly stored = new Set<string>()
  private running: Promise<void> | undefined

  constructor(private readonly sink: Sink) {}

  /** Does the operation after all that were given before it. Rejects with the store's error, or what it refused. */
  add(operation: CheckpointOperation): Promise<void> {
    return new Promise((done, failed) => {
      this.waiting.push({ operation, done, failed })
      this.running ??= this.drain()
    })
  }

  get isIdle(): boolean {
    return this.running === undefined
  }

  /** When nothing is left to do, and LangGraph has had its turn to ask for what follows. */
  async idle(): Promise<void> {
    while (this.running !== undefined) {
      await this.running
      await new Promise((turn) => setImmediate(turn))
    }
  }

  private async drain(): Promise<void> {
    // What is asked for in the same turn shares the commit.
    await Promise.resolve()
    while (this.waiting.length > 0) {
      const before = this.waiting.length
      try {
        const ready = await this.takeReady()
        if (ready.length > 0) await this.commit(ready)
        else {
          await new Promise((turn) => setImmediate(turn))
          if (this.waiting.length === before) await this.commit(this.waiting.splice(0, batch))
        }
      } catch (error) {
        // Looking for checkpoints failed: so would all that waits.
        for (const { failed } of this.waiting.splice(0)) failed(error)
      }
    }
    this.running = undefined
  }

  /** The operations that may be stored now; writes whose checkpoint is not stored stay, in order. */
  private async takeReady(): Promise<ReadonlyArray<Waiting>> {
    const candidates = this.waiting.slice(0, batch)
    const unsure = candidates.flatMap(({ operation }) =>
      operation._tag === "Write" && !this.stored.has(checkpointKey(operation.ns, operation.checkpoint))
        ? [{ ns: operation.ns, id: operation.checkpoint }]
        : []
    )
    if (unsure.length > 0) {
      for (const key of await this.sink.known(unsure)) this.remember(key)
    }
    const coming = new Set<string>()
    const ready: Array<Waiting> = []
    const held: Array<Waiting> = []
    for (const waiting of candidates) {
      const { operation } = waiting
      if (operation._tag === "Put") {
        const key = checkpointKey(operation.ns, operation.id)
        coming.add(key)
        ready.push(waiting)
        // Writes that came before their checkpoint follow it in the same commit.
        for (const early of held.splice(0)) (isOf(early, key) ? ready : held).push(early)
        continue
      }
      const key = checkpointKey(operation.ns, operation.checkpoint)
      ;(this.stored.has(key) || coming.has(key) ? ready : held).push(waiting)
    }
    this.waiting.splice(0, candidates.length, ...held)
    return ready
  }

  private async commit(operations: ReadonlyArray<Waiting>): Promise<void> {
    try {
      const outcomes = await this.sink.commit(operations.map(({ operation }) => operation))
      for (const [index, { done, failed, operation }] of operations.entries()) {
        const outcome = outcomes[index]
        if (outcome?._tag === "Done") {
          if (operation._tag === "Put") this.remember(checkpointKey(operation.ns, operation.id))
          done()
        } else failed(outcome?.error ?? new Error("the store did not say what became of an operation"))
      }
    } catch (error) {
      for (const { failed } of operations) failed(error)
    }
  }

  private remember(key: string): void {
    this.stored.add(key)
    for (const oldest of this.stored) {
      if (this.stored.size <= remembered) break
      this.stored.delete(oldest)
    }
  }
}

const isOf = ({ operation }: Waiting, key: string): boolean =>
  operation._tag === "Write" && checkpointKey(operation.ns, operation.checkpoint) === key
