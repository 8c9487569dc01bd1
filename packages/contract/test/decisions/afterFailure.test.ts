import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { afterKeyedDefect, afterTypedError, mayStillFire } from "../../src/index.js"
import { combinations } from "../domains.js"

describe("afterKeyedDefect", () => {
  it("LV: fires again with growing pauses, and asks a person in the end", () => {
    const pauses: Array<number> = []
    for (let tries = 1; tries < 100; tries++) {
      const verdict = afterKeyedDefect(tries)
      if (verdict._tag === "AwaitSettlement") break
      pauses.push(verdict.after)
    }
    assert.deepStrictEqual(pauses, [200, 800, 3200, 12_800])
    assert.strictEqual(afterKeyedDefect(1000)._tag, "AwaitSettlement")
  })
})

describe("mayStillFire", () => {
  it.prop("EO: never at or after the time that its successor waits for", [fc.nat(), fc.nat()], ([elapsed, within]) => {
    assert.strictEqual(mayStillFire(elapsed, within), elapsed < within)
    assert.isFalse(mayStillFire(within, within))
    assert.isFalse(mayStillFire(Number.NaN, within))
  })
})

describe("afterTypedError", () => {
  it("retries so often as the policy says, and nothing that is final or that nobody waits for", () => {
    const domain = {
      attempt: [1, 2, 3, 4],
      retries: [undefined, 0, 1, 3],
      passing: [true, false],
      withdrawn: [true, false],
      late: [true, false]
    } as const
    for (const facts of combinations(domain)) {
      const verdict = afterTypedError(facts)
      const admitted = facts.passing && !facts.withdrawn && !facts.late && facts.attempt <= (facts.retries ?? 0)
      const expected = admitted ? "Retry" : "Final"
      assert.strictEqual(verdict, expected, JSON.stringify(facts))
    }
    // One attempt, and so many more.
    const attempts = [1, 2, 3, 4, 5].filter(
      (attempt) => afterTypedError({ attempt, retries: 3, passing: true, withdrawn: false, late: false }) === "Retry"
    )
    assert.deepStrictEqual(attempts, [1, 2, 3])
  })
})
