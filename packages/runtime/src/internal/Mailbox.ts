/**
 * What is to happen to one branch, one after the other. A job runs when the one before it is over: its fibers are at
 * rest, what it asked of the journal has been answered, and the disk keeps up. So nothing that a job decides by can
 * change under it.
 *
 * Nothing that a job throws escapes into the process: it is the branch's own failure, and others go on.
 */
import { type Effect, type Exit, Runtime } from "effect"

/** How long one turn of the host's event loop may be used before others get theirs (milliseconds). */
const turn = 8

/** What the mailbox needs of its branch. */
export interface MailboxHooks {
  /** True while the next job has to wait: an activation is under way, or more was given out than the disk has taken. */
  readonly blocked: () => boolean
  /** A turn of the host's event loop was used up, and there is more to do. */
  readonly onTurn: () => void
  /** Nothing is left to do, and nothing runs. */
  readonly onIdle: () => void
  /** A job, or what was called back for it, threw. */
  readonly onFailure: (error: unknown) => void
}

export class Mailbox {
  private jobs: Array<() => void> = []
  private next = 0
  /** An asynchronous operation that a job began is under way. */
  private busy = false
  /** A job, or what is called back for one, runs. */
  private handling = false
  private closed = false

  constructor(
    private readonly runtime: Runtime.Runtime<never>,
    private readonly hooks: MailboxHooks
  ) {}

  /** Handles `job` in its turn. Dropped once the mailbox is closed. */
  post(job: () => void): void {
    if (this.closed) return
    this.jobs.push(job)
    this.pump()
  }

  /** Puts jobs in front of whatever still waits. */
  postFirst(jobs: ReadonlyArray<() => void>): void {
    this.jobs = [...jobs, ...this.jobs.slice(this.next)]
    this.next = 0
  }

  /** Drops what waits, and takes nothing more. */
  close(): void {
    this.closed = true
    this.jobs = []
    this.next = 0
  }

  /** Nothing is under way that the next job would have to wait for. */
  private get free(): boolean {
    return !this.busy && !this.closed && !this.hooks.blocked()
  }

  /**
   * Runs a job, or what is called back for one, so that its failure is this branch's. Nothing else is handled before it
   * is over: what it posts waits for the next `pump`, also when the event loop called it outside of one.
   */
  guard(job: () => void): void {
    const within = this.handling
    this.handling = true
    try {
      job()
    } catch (error) {
      this.hooks.onFailure(error)
    } finally {
      this.handling = within
    }
  }

  /** Handles what waits, as far as it may be handled now. */
  pump(): void {
    if (this.handling) return
    const deadline = performance.now() + turn
    let handled = 0
    while (this.free) {
      const job = this.jobs[this.next++]
      if (job === undefined) {
        this.next = 0
        this.guard(this.hooks.onIdle)
        if (this.jobs.length === 0) return
        continue
      }
      if (this.next === this.jobs.length || this.next > 1024) {
        this.jobs.splice(0, this.next)
        this.next = 0
      }
      this.guard(job)
      if ((++handled & 15) === 0 && performance.now() > deadline) {
        setImmediate(() => {
          if (this.free) this.guard(this.hooks.onTurn)
          this.pump()
        })
        return
      }
    }
  }

  /** Runs an operation with the mailbox held; what is made of its exit comes before the next job. */
  hold<A, E>(effect: Effect.Effect<A, E>, then: (exit: Exit.Exit<A, E>) => void): void {
    this.busy = true
    Runtime.runFork(this.runtime)(effect).addObserver((exit) => {
      if (this.closed) return
      this.busy = false
      this.guard(() => then(exit))
      this.pump()
    })
  }
}
