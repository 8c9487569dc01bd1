/** The Clock and the Random of a branch: both are functions of its history (RD). */
import { createHash } from "node:crypto"
import { Chunk, Clock, Duration, Effect, Random } from "effect"

/** Time as of the event being delivered; sleeping is a durable timer. */
export class WorkflowClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  readonly currentTimeMillis = Effect.sync(() => this.unsafeCurrentTimeMillis())
  readonly currentTimeNanos = Effect.sync(() => this.unsafeCurrentTimeNanos())

  constructor(
    private readonly time: () => number,
    private readonly timer: (millis: number) => Effect.Effect<void>
  ) {}

  unsafeCurrentTimeMillis(): number {
    return this.time()
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.time()) * 1_000_000n
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.suspend(() => {
      const millis = Duration.toMillis(duration)
      return Number.isFinite(millis)
        ? this.timer(Math.max(0, millis))
        : Effect.die(new RangeError("A durable timer needs a finite duration: to wait for ever, wait for an interrupt"))
    })
  }
}

/**
 * A stream of pseudo-random numbers (sfc32), seeded by the run: a fork replays its inherited draws alike. Not for
 * secrets.
 */
export class WorkflowRandom implements Random.Random {
  readonly [Random.RandomTypeId]: Random.RandomTypeId = Random.RandomTypeId
  private a: number
  private b: number
  private c: number
  private counter = 1

  readonly next = Effect.sync(() => this.draw())
  readonly nextBoolean = Effect.sync(() => this.draw() < 0.5)
  readonly nextInt = Effect.sync(() => Math.floor(this.draw() * Number.MAX_SAFE_INTEGER))

  constructor(seed: string) {
    const digest = createHash("sha256").update(seed).digest()
    this.a = digest.readUInt32LE(0)
    this.b = digest.readUInt32LE(4)
    this.c = digest.readUInt32LE(8)
    for (let round = 0; round < 12; round++) this.word()
  }

  nextRange(min: number, max: number): Effect.Effect<number> {
    return Effect.sync(() => min + (max - min) * this.draw())
  }

  nextIntBetween(min: number, max: number): Effect.Effect<number> {
    return Effect.sync(() => min + Math.floor((max - min) * this.draw()))
  }

  shuffle<A>(elements: Iterable<A>): Effect.Effect<Chunk.Chunk<A>> {
    return Effect.sync(() => {
      const rest = [...elements]
      const shuffled: Array<A> = []
      while (rest.length > 0) shuffled.push(...rest.splice(Math.floor(this.draw() * rest.length), 1))
      return Chunk.fromIterable(shuffled)
    })
  }

  /** 53 bits in [0, 1). */
  private draw(): number {
    return ((this.word() >>> 5) * 67_108_864 + (this.word() >>> 6)) / 9_007_199_254_740_992
  }

  private word(): number {
    const result = (((this.a + this.b) | 0) + this.counter) | 0
    this.counter = (this.counter + 1) | 0
    this.a = this.b ^ (this.b >>> 9)
    this.b = (this.c + (this.c << 3)) | 0
    this.c = ((this.c << 21) | (this.c >>> 11)) + result
    this.c |= 0
    return result >>> 0
  }
}
