/** Schedules: every fire starts one run, whoever fires it and however often. */
import { expect, it } from "@effect/vitest"
import { rootBranch, RunId } from "@fermata/contract"
import { jsonDigest, type Ledger, type ScheduleSetup } from "@fermata/ledger"
import { Effect, type Scope } from "effect"
import { completed, makeOwner } from "./Owner.js"
import { openLedger, type Place } from "./Place.js"

const hour = 3_600_000

const setup = (id: string, rest: Partial<ScheduleSetup> = {}): ScheduleSetup => ({
  id,
  workflow: "refund",
  version: "1",
  input: "1",
  inputDigest: jsonDigest("1"),
  spec: { _tag: "Interval", every: hour, offset: 0 },
  overlap: "skip",
  catchUp: 24 * hour,
  jitter: 0,
  queue: null,
  ...rest
})

/** Time that no worker was there: the schedule's next fire lies so many hours back. */
const rewind = (ledger: Ledger, id: string, hours: number) =>
  Effect.gen(function* () {
    const next = (Math.floor((yield* ledger.now) / hour) - hours + 1) * hour
    yield* ledger.sql`UPDATE fermata_schedules SET next_at = ${next}, due_at = ${next}, look_at = ${next}
      WHERE schedule_id = ${id}`
    return Array.from({ length: hours }, (_, n) => next + n * hour)
  })

const runOf = (id: string, at: number) => RunId.make(`${id}/${new Date(at).toISOString()}`)

export const scheduleSuite = (place: Place): void => {
  const fresh = <E>(
    body: (ledgers: readonly [Ledger, ...ReadonlyArray<Ledger>]) => Effect.Effect<void, E, Scope.Scope>
  ) =>
    Effect.scoped(
      Effect.gen(function* () {
        const layer = yield* place.fresh
        const first = yield* openLedger(layer)
        yield* body([first, ...(yield* Effect.replicateEffect(openLedger(layer), place.ledgers - 1))])
      })
    )

  it.live("what is due is fired once by many at once, in order, and the row moves on", () =>
    fresh((ledgers) =>
      Effect.gen(function* () {
        const [ledger] = ledgers
        expect(yield* ledger.createSchedule(setup("s", { overlap: "allow" }), { replace: false })).toBe(true)
        expect(yield* ledger.nextScheduleDue).toBeGreaterThan(yield* ledger.now)
        const times = yield* rewind(ledger, "s", 3)
        yield* Effect.forEach(ledgers, (one) => one.fireSchedules, { concurrency: "unbounded" })
        expect((yield* ledger.list({})).map(({ run }) => run).sort()).toEqual(times.map((at) => runOf("s", at)))
        const state = yield* ledger.schedule("s")
        expect(state).toMatchObject({ fired: 3, missed: 0, overlapped: 0, lastAt: times[2] })
        expect(state.nextAt).toBeGreaterThan(yield* ledger.now)
        // As after a commit whose reply was lost, or from a backup: the ids are taken, nothing runs twice.
        yield* rewind(ledger, "s", 3)
        yield* ledger.fireSchedules
        expect(yield* ledger.list({})).toHaveLength(3)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live("what is older than the catch-up window is left out and counted, also a long backlog of it", () =>
    fresh(([ledger]) =>
      Effect.gen(function* () {
        yield* ledger.createSchedule(setup("s", { catchUp: 2 * hour, overlap: "allow" }), { replace: false })
        yield* rewind(ledger, "s", 250)
        for (let n = 0; n < 3; n++) yield* ledger.fireSchedules
        const { fired, missed } = yield* ledger.schedule("s")
        expect(fired + missed).toBe(250)
        expect(fired).toBe(2)
      })
    )
  )

  it.live("the policies for overlaps: left out, waiting, beside, and instead of the run that goes on", () =>
    fresh(([ledger]) =>
      Effect.gen(function* () {
        const owner = yield* makeOwner(ledger)
        for (const overlap of ["skip", "buffer", "cancel-previous"] as const) {
          yield* ledger.createSchedule(setup(overlap, { overlap }), { replace: false })
          const times = yield* rewind(ledger, overlap, 2)
          const [first = 0, second = 0] = times
          yield* ledger.fireSchedules
          const state = yield* ledger.schedule(overlap)
          const counts = [state.fired, state.overlapped]
          expect(counts).toEqual(overlap === "skip" ? [1, 1] : overlap === "buffer" ? [1, 0] : [2, 0])
          const previous = yield* ledger.branch(rootBranch(runOf(overlap, first)))
          expect(previous.inboxHead).toBe(overlap === "cancel-previous" ? 1 : 0)
          if (overlap !== "buffer") continue
          // It is looked at again by and by, and starts once the one before is over.
          expect(state.nextAt).toBe(second)
          const owned = yield* owner.own(previous.branch)
          yield* owned.write(completed)
          yield* ledger.sql`UPDATE fermata_schedules SET look_at = 1 WHERE schedule_id = ${overlap}`
          yield* ledger.fireSchedules
          expect(yield* ledger.schedule(overlap)).toMatchObject({ fired: 2, lastRun: runOf(overlap, second) })
        }
      })
    )
  )

  it.live("a schedule that exists is the same, in conflict, or replaced; what is paused or deleted fires not", () =>
    fresh(([ledger]) =>
      Effect.gen(function* () {
        yield* ledger.createSchedule(setup("s"), { replace: false })
        expect(yield* ledger.createSchedule(setup("s"), { replace: false })).toBe(false)
        const other = setup("s", { input: "2", inputDigest: jsonDigest("2"), jitter: 5 })
        expect(yield* Effect.flip(ledger.createSchedule(other, { replace: false }))).toMatchObject({
          _tag: "ScheduleConflict",
          differs: ["input", "jitter"]
        })
        expect(yield* ledger.createSchedule(other, { replace: true })).toBe(true)
        yield* ledger.pauseSchedule("s", true)
        expect(yield* ledger.nextScheduleDue).toBeUndefined()
        yield* ledger.pauseSchedule("s", false)
        expect(yield* ledger.nextScheduleDue).toBeGreaterThan(0)
        const receipts = yield* ledger.startScheduled("s", [0, hour, 0])
        expect(receipts.map(({ created }) => created)).toEqual([true, true, false])
        expect((yield* ledger.schedules({ limit: 10 })).map(({ id }) => id)).toEqual(["s"])
        expect(yield* ledger.schedules({ limit: 10, after: "s" })).toEqual([])
        yield* rewind(ledger, "s", 2)
        yield* ledger.deleteSchedule("s")
        yield* ledger.fireSchedules
        expect(yield* ledger.list({})).toHaveLength(2)
        for (const late of [ledger.schedule("s"), ledger.pauseSchedule("s", true), ledger.startScheduled("s", [1])]) {
          expect(yield* Effect.flip(Effect.asVoid(late))).toMatchObject({ _tag: "ScheduleNotFound", schedule: "s" })
        }
      })
    )
  )
}
