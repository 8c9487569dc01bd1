/** One pending wake-up on the host's Clock, so that TestClock drives it; spans beyond the host's limit are chunked. */
import { Duration, Effect, type Fiber, FiberId, Runtime } from "effect"

/** `setTimeout` fires at once beyond this (milliseconds). */
const longest = 2 ** 31 - 1

export class HostTimer {
  private fiber: Fiber.RuntimeFiber<void> | undefined
  private due: number | undefined

  constructor(
    private readonly runtime: Runtime.Runtime<never>,
    private readonly now: () => number
  ) {}

  /** Calls back at `due` (ledger milliseconds), never before. Replaces an earlier wake-up. */
  at(due: number, callback: () => void): void {
    if (this.due === due && this.fiber !== undefined) return
    this.clear()
    this.due = due
    const wait: Effect.Effect<void> = Effect.suspend(() => {
      const left = due - this.now()
      return left <= 0 ? Effect.void : Effect.zipRight(Effect.sleep(Duration.millis(Math.min(left, longest))), wait)
    })
    const fiber = Runtime.runFork(this.runtime)(wait)
    this.fiber = fiber
    fiber.addObserver(() => {
      if (this.fiber !== fiber) return
      this.fiber = undefined
      this.due = undefined
      callback()
    })
  }

  clear(): void {
    const fiber = this.fiber
    this.fiber = undefined
    this.due = undefined
    fiber?.unsafeInterruptAsFork(FiberId.none)
  }
}
