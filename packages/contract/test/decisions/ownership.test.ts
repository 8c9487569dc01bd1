import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitPark, canSee, judgeOwner, type WorkerPlace } from "../../src/index.js"
import { combinations } from "../domains.js"

describe("judgeOwner", () => {
  it("is dead only if its process is seen to be gone; a lapsed lease is no proof", () => {
    const domain = { sight: ["running", "gone", "cannot tell"], leaseUntil: [10], now: [9, 10, 11] } as const
    for (const facts of combinations(domain)) {
      const expected = facts.sight === "gone" ? "Dead" : facts.now >= 10 ? "Expired" : "Alive"
      assert.strictEqual(judgeOwner(facts)._tag, expected)
    }
  })
})

describe("canSee", () => {
  const place: fc.Arbitrary<WorkerPlace | undefined> = fc.option(
    fc.record({
      bootId: fc.constantFrom("", "boot1", "boot2"),
      pidNamespace: fc.constantFrom("", "ns1", "ns2"),
      pid: fc.integer({ min: 1, max: 3 }),
      startTime: fc.constantFrom("1", "2")
    }),
    { nil: undefined }
  )

  it.prop(
    "only within one boot and one pid namespace, both known, and both ways alike",
    [place, place],
    ([self, other]) => {
      const known = (text: string | undefined) => text !== undefined && text !== ""
      const expected =
        known(self?.bootId) &&
        known(self?.pidNamespace) &&
        self?.bootId === other?.bootId &&
        self?.pidNamespace === other?.pidNamespace
      assert.strictEqual(canSee(self, other), expected)
      assert.strictEqual(canSee(other, self), expected)
    },
    { fastCheck: { numRuns: 1000 } }
  )
})

describe("admitPark", () => {
  const action = fc.constantFrom("inbox" as const, "look" as const, "park" as const, "claim" as const)

  it.prop(
    "LV: an owner never parks while something accepted is unseen, and a fenced one never parks",
    [fc.array(action, { maxLength: 20 })],
    ([actions]) => {
      const row = { epoch: 1, inboxHead: 0 }
      const owner = { epoch: 1, inboxSeen: 0 }
      for (const now of actions) {
        if (now === "inbox") row.inboxHead++
        if (now === "look") owner.inboxSeen = row.inboxHead
        if (now === "claim") row.epoch++
        const expected = row.epoch !== 1 ? "Fenced" : row.inboxHead === owner.inboxSeen ? "Park" : "InboxAdvanced"
        assert.strictEqual(admitPark(row, owner)._tag, expected)
      }
      assert.strictEqual(admitPark(undefined, owner)._tag, "Fenced")
    }
  )
})
