/** A Clock that stands still until it is set; unlike the TestClock, setting it waits for nobody, and it may go back. */
import { Clock, Duration, Effect } from "effect"

export class HandClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  readonly currentTimeMillis = Effect.sync(() => this.time)
  readonly currentTimeNanos = Effect.sync(() => BigInt(this.time) * 1_000_000n)
  private readonly sleepers = new Set<{ readonly due: number; readonly wake: () => void }>()

  constructor(private time: number) {}

  unsafeCurrentTimeMillis(): number {
    return this.time
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.time) * 1_000_000n
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const due = this.time + Duration.toMillis(duration)
      if (due <= this.time) return resume(Effect.void)
      const sleeper = { due, wake: () => resume(Effect.void) }
      this.sleepers.add(sleeper)
      return Effect.sync(() => this.sleepers.delete(sleeper))
    })
  }

  /** Moves to `time` (milliseconds) and wakes who is due, earliest first. */
  set(time: number): void {
    this.time = time
    const due = [...this.sleepers].filter((sleeper) => sleeper.due <= time)
    for (const sleeper of due.sort((a, b) => a.due - b.due)) {
      if (this.sleepers.delete(sleeper)) sleeper.wake()
    }
  }
}
