import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  admitDuplicate,
  admitFromQueue,
  isKeyFull,
  nextToken,
  type QueueCandidate,
  type QueueFacts,
  type QueueLimits,
  rankInQueue
} from "../../src/index.js"

const maybe = (least: number, most: number) => fc.option(fc.integer({ min: least, max: most }), { nil: undefined })
const limits: fc.Arbitrary<QueueLimits> = fc.record({
  concurrency: maybe(1, 6),
  keyConcurrency: maybe(1, 3),
  rate: fc.option(fc.record({ limit: fc.integer({ min: 1, max: 5 }), per: fc.integer({ min: 1, max: 1000 }) }), {
    nil: undefined
  }),
  hold: fc.constantFrom("running", "run")
})
const key = fc.constantFrom("", "a", "b", "c")
const facts: fc.Arbitrary<QueueFacts> = fc.record({
  now: fc.integer({ min: 1000, max: 5000 }),
  held: fc.array(fc.tuple(key, fc.integer({ min: 0, max: 3 })), { maxLength: 4 }).map((all) => new Map(all)),
  fullAt: fc.integer({ min: 0, max: 6_000_000 })
})
const candidates: fc.Arbitrary<ReadonlyArray<QueueCandidate>> = fc.array(fc.record({ key, begun: fc.boolean() }), {
  maxLength: 12
})

describe("admitFromQueue", () => {
  it.prop(
    "never goes beyond a limit, and passes over only those that a limit holds back",
    [limits, facts, candidates],
    ([limits, facts, candidates]) => {
      const { admitted } = admitFromQueue(limits, facts, candidates)
      assert.deepStrictEqual(
        [...admitted],
        [...new Set(admitted)].sort((a, b) => a - b)
      )
      const held = new Map(facts.held)
      let total = [...held.values()].reduce((sum, count) => sum + count, 0)
      let begins = 0
      candidates.forEach(({ begun, key }, index) => {
        const needsSlot = !(begun && limits.hold === "run")
        const noSlot = (limits.concurrency !== undefined && total >= limits.concurrency) || isKeyFull(limits, held, key)
        if (!admitted.includes(index)) {
          const noToken =
            !begun &&
            limits.rate !== undefined &&
            admitFromQueue(
              { ...limits, concurrency: undefined, keyConcurrency: undefined },
              facts,
              Array.from({ length: begins + 1 }, () => ({ key: "", begun: false }))
            ).admitted.length <= begins
          return assert.isTrue((needsSlot && noSlot) || noToken, `candidate ${index} waits for nothing`)
        }
        assert.isFalse(needsSlot && noSlot, `candidate ${index} has no slot`)
        if (needsSlot) {
          total++
          held.set(key, (held.get(key) ?? 0) + 1)
        }
        if (!begun) begins++
      })
    }
  )

  it.prop(
    "lets no more than a burst and the rate begin in any stretch of time, and no fewer when asked all the time",
    [
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 400 }),
      fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 40 })
    ],
    ([limit, per, pauses]) => {
      const rate = { limit, per }
      const all = { concurrency: undefined, keyConcurrency: undefined, rate, hold: "running" } as const
      const many = Array.from({ length: 20 }, () => ({ key: "", begun: false }))
      let now = 10_000
      let fullAt = 0
      let begun = 0
      const start = now
      for (const pause of pauses) {
        now += pause
        const verdict = admitFromQueue(all, { now, held: new Map(), fullAt }, many)
        begun += verdict.admitted.length
        ;({ fullAt } = verdict)
        assert.isAtMost(begun, limit + ((now - start) * limit) / per + 1e-6)
        const next = nextToken(all, { now, held: new Map(), fullAt })
        const at = (time: number) => admitFromQueue(all, { now: time, held: new Map(), fullAt }, many).admitted.length
        // The time that is named is the first at which one may begin: no wake-up is early, and none is missed.
        assert.isAtLeast(at(next), 1)
        if (next > now) assert.strictEqual(at(next - 1), 0)
      }
    }
  )
})

describe("rankInQueue", () => {
  it.prop(
    "a key that comes to a queue full of another's branches waits for one round at most",
    [fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 20 })],
    ([noisy, quiet]) => {
      const waiting: Array<{ key: string; rank: number }> = []
      const enter = (key: string) => {
        const own = waiting.filter((one) => one.key === key).map(({ rank }) => rank)
        const rank = rankInQueue({
          lowest: waiting.length === 0 ? undefined : Math.min(...waiting.map(({ rank }) => rank)),
          lastOfKey: own.length === 0 ? undefined : Math.max(...own)
        })
        waiting.push({ key, rank })
      }
      for (let n = 0; n < noisy; n++) enter("noisy")
      for (let n = 0; n < quiet; n++) enter("quiet")
      const order = [...waiting].sort((a, b) => a.rank - b.rank).map(({ key }) => key)
      order.forEach((key, index) => {
        if (key !== "quiet") return
        const before = order.slice(0, index)
        const others = before.filter((one) => one === "noisy").length
        assert.isAtMost(others, before.length - others + 1)
      })
    }
  )
})

describe("admitDuplicate", () => {
  it("answers with the run that goes on, and lets the newest of a burst take the place of one that never began", () => {
    const facts = { now: 100, startAt: 100, debounce: undefined }
    const create = { _tag: "Create", since: 100, startAt: 100 } as const
    assert.deepStrictEqual(admitDuplicate({ ...facts, holder: { _tag: "Absent" } }), create)
    assert.deepStrictEqual(admitDuplicate({ ...facts, holder: { _tag: "Over" } }), create)
    for (const begun of [false, true]) {
      const holder = { _tag: "Going", begun, since: 40 } as const
      assert.deepStrictEqual(admitDuplicate({ ...facts, holder }), { _tag: "Existing" })
    }
    const debounce = { period: 50, maxWait: 70 }
    const going = { _tag: "Going", begun: false, since: 40 } as const
    assert.deepStrictEqual(admitDuplicate({ ...facts, debounce, holder: going }), {
      _tag: "Supersede",
      since: 40,
      startAt: 110
    })
    assert.deepStrictEqual(admitDuplicate({ ...facts, debounce, holder: { ...going, begun: true } }), {
      _tag: "Existing"
    })
    assert.deepStrictEqual(
      admitDuplicate({ ...facts, debounce: { period: 50, maxWait: undefined }, holder: { _tag: "Absent" } }),
      { ...create, startAt: 150 }
    )
  })
})
