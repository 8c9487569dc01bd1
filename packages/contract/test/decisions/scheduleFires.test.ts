import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { dueOf, judgeFire, nextFire, OverlapPolicy, type ScheduleSpec, specProblem } from "../../src/index.js"

const cron = (expression: string, zone = "UTC"): ScheduleSpec => ({ _tag: "Cron", expression, zone })
const fires = (spec: ScheduleSpec, after: string, count: number): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = nextFire(spec, Date.parse(after)); at !== undefined && found.length < count; at = nextFire(spec, at)) {
    found.push(new Date(at).toISOString().slice(0, 16))
  }
  return found
}

const time = fc.integer({ min: Date.parse("2020-01-01"), max: Date.parse("2035-01-01") })
const specs = fc.oneof(
  fc.constantFrom(
    cron("*/7 * * * *", "America/New_York"),
    cron("30 2 * * *", "Europe/Berlin"),
    cron("15 1 * * SUN", "America/Havana"),
    cron("0 0 29 2 *"),
    cron("*/20 * * * * *", "Australia/Lord_Howe")
  ),
  fc.record({
    _tag: fc.constant("Interval" as const),
    every: fc.integer({ min: 1, max: 100_000_000 }),
    offset: fc.integer({ min: -100_000_000, max: 100_000_000 })
  })
)

describe("nextFire", () => {
  it.prop(
    "is later, the same for whoever asks, and passes over nothing",
    [specs, time, fc.double({ min: 0, max: 0.999, noNaN: true })],
    ([spec, after, part]) => {
      const next = nextFire(spec, after)
      if (next === undefined) return assert.fail("it fires for ever")
      assert.isAbove(next, after)
      // From anywhere between, it is the same time.
      assert.strictEqual(nextFire(spec, after + Math.floor((next - after) * part)), next)
    }
  )

  it("of a time that the clock leaves out comes as much later as the clock jumps, and of an hour that comes twice the first", () => {
    assert.deepStrictEqual(fires(cron("30 2 * * *", "America/New_York"), "2026-03-06T12:00Z", 3), [
      "2026-03-07T07:30",
      "2026-03-08T07:30",
      "2026-03-09T06:30"
    ])
    assert.deepStrictEqual(fires(cron("30 1 * * *", "America/New_York"), "2026-10-31T12:00Z", 2), [
      "2026-11-01T05:30",
      "2026-11-02T06:30"
    ])
    assert.deepStrictEqual(fires(cron("*/30 * * * *", "America/New_York"), "2026-11-01T04:40Z", 3), [
      "2026-11-01T05:00",
      "2026-11-01T05:30",
      "2026-11-01T07:00"
    ])
    // An interval knows no clock.
    assert.deepStrictEqual(fires({ _tag: "Interval", every: 3_600_000, offset: 0 }, "2026-11-01T04:40Z", 3), [
      "2026-11-01T05:00",
      "2026-11-01T06:00",
      "2026-11-01T07:00"
    ])
  })
})

describe("specProblem", () => {
  it("names what can never fire", () => {
    const now = Date.parse("2026-01-01")
    const problem = (spec: ScheduleSpec) => specProblem(spec, now)
    assert.strictEqual(problem(cron("0 9 * * MON-FRI", "Europe/Berlin")), undefined)
    assert.match(problem(cron("0 0 30 2 *")) ?? "", /never fires/)
    assert.match(problem(cron("0 0 * * *", "Mars/Base")) ?? "", /no time zone "Mars\/Base"/)
    assert.match(problem(cron("every day")) ?? "", /is not a cron expression/)
    for (const every of [0, -1, 0.5, Number.NaN, Infinity]) {
      assert.match(problem({ _tag: "Interval", every, offset: 0 }) ?? "", /at least 1/)
    }
    assert.match(problem({ _tag: "Interval", every: 1, offset: Number.NaN }) ?? "", /offset/)
  })
})

describe("dueOf", () => {
  it.prop(
    "is within the jitter, and always the same",
    [fc.string(), time, fc.integer({ min: 0, max: 100_000 })],
    ([id, at, jitter]) => {
      const due = dueOf(id, at, jitter)
      assert.isAtLeast(due, at)
      assert.isAtMost(due, at + jitter)
      assert.strictEqual(dueOf(id, at, jitter), due)
    }
  )

  it("spreads the fires of many schedules", () => {
    const dues = new Set(Array.from({ length: 100 }, (_, n) => dueOf(`schedule-${n}`, 0, 60_000)))
    assert.isAbove(dues.size, 90)
  })
})

describe("judgeFire", () => {
  it.prop(
    "never fires early or what is missed, and keeps to the policy",
    [
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 0, max: 50 }),
      fc.constantFrom(...OverlapPolicy.literals),
      fc.boolean(),
      fc.boolean()
    ],
    ([now, due, catchUp, overlap, previousGoing, waited]) => {
      const verdict = judgeFire({ now, due, catchUp, overlap, previousGoing, waited })
      if (due > now) return assert.deepStrictEqual(verdict, { _tag: "NotDue" })
      if (now - due > catchUp && !waited) {
        return assert.deepStrictEqual(verdict, { _tag: "LeaveOut", because: "missed" })
      }
      if (!previousGoing) return assert.deepStrictEqual(verdict, { _tag: "Start", cancelPrevious: false })
      const expected = {
        skip: { _tag: "LeaveOut", because: "overlap" },
        buffer: { _tag: "Wait" },
        allow: { _tag: "Start", cancelPrevious: false },
        "cancel-previous": { _tag: "Start", cancelPrevious: true }
      } as const
      assert.deepStrictEqual(verdict, expected[overlap])
    }
  )
})
