import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitSettlement, type SettlementFacts } from "../../src/index.js"
import { combinations } from "../domains.js"

const domain = {
  run: ["known", "unknown", "purged"],
  over: [false, true],
  owned: [false, true],
  effect: [
    undefined,
    ...(["intended", "refused", "succeeded", "failed", "voided"] as const).map((state) => ({ state }))
  ],
  accepted: [undefined, { digest: "a" }, { digest: "b" }],
  digest: ["a"],
  valid: [true, false]
} as const

describe("admitSettlement", () => {
  it("accepts one only for an effect that nobody has decided, on a branch that is not over", () => {
    for (const { digest, valid, ...facts } of combinations(domain)) {
      const { _tag } = admitSettlement(facts, { digest, valid })
      const undecided = facts.effect?.state === "intended" || facts.effect?.state === "refused"
      const open = facts.run === "known" && !facts.over && undecided && facts.accepted === undefined
      const possible = open && !facts.owned
      assert.strictEqual(_tag === "UnderWay", open && facts.owned)
      assert.strictEqual(_tag === "Accepted", possible && valid)
      assert.strictEqual(_tag === "SettlementInvalid", possible && !valid)
      // The same again is a duplicate also when its step, or its run, is over since.
      assert.strictEqual(_tag === "Duplicate", facts.run === "known" && facts.accepted?.digest === digest)
      assert.strictEqual(_tag === "RunPurged", facts.run === "purged")
      assert.strictEqual(
        _tag === "UnknownEffect",
        facts.run === "unknown" || (facts.run === "known" && facts.effect === undefined && facts.accepted === undefined)
      )
    }
  })

  const settlement = fc.record({
    digest: fc.constantFrom("happened", "failed", "did not happen"),
    valid: fc.boolean(),
    recorded: fc.boolean()
  })

  it.prop(
    "EO: of any sequence of settlements one effect accepts at most one",
    [fc.array(settlement, { maxLength: 12 })],
    ([settlements]) => {
      const facts: { -readonly [K in keyof SettlementFacts]: SettlementFacts[K] } = {
        run: "known",
        over: false,
        owned: false,
        effect: { state: "intended" },
        accepted: undefined
      }
      let accepted = 0
      for (const { digest, valid, recorded } of settlements) {
        const verdict = admitSettlement(facts, { digest, valid })
        if (verdict._tag === "Accepted") {
          accepted++
          facts.accepted = { digest }
        }
        if (verdict._tag === "Duplicate") assert.strictEqual(digest, facts.accepted?.digest)
        if (recorded && facts.accepted !== undefined) facts.effect = undefined
      }
      assert.isAtMost(accepted, 1)
      assert.strictEqual(accepted, settlements.some(({ valid }) => valid) ? 1 : 0)
    }
  )
})
