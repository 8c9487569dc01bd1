import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { type InDoubtFacts, recoverEffect } from "../../src/index.js"
import { combinations } from "../domains.js"

const domain = {
  delivery: ["transactional", "keyed", "once", "repeatable"],
  firedBy: ["dead", "unknown"],
  overAt: [-Infinity, 0, 100, Infinity, NaN],
  now: [-1, 0, 99, 100, 101],
  reconciled: ["unavailable", "notAsked", "Happened", "NeverWill", "Unknown"]
} as const

describe("recoverEffect", () => {
  it("EO: an effect of delivery once is never fired again, every other one is", () => {
    for (const facts of combinations(domain)) {
      assert.strictEqual(recoverEffect(facts)._tag === "FireAgain", facts.delivery !== "once", JSON.stringify(facts))
    }
  })

  it("adopts or voids only on the outside's word, and leaves what nobody knows to a person", () => {
    const said = {
      Happened: "Adopt",
      NeverWill: "Void",
      Unknown: "AwaitSettlement",
      unavailable: "AwaitSettlement"
    } as const
    for (const facts of combinations({ ...domain, delivery: ["once"] as const })) {
      const verdict = recoverEffect(facts)
      if (facts.reconciled !== "notAsked") assert.strictEqual(verdict._tag, said[facts.reconciled])
      else assert.include(["AskOutside", "WaitUntil", "AwaitSettlement"], verdict._tag)
    }
  })

  it.prop(
    "asks no earlier than the firing is over for certain, and waits only for a time that comes",
    [
      fc.record({
        delivery: fc.constant("once" as const),
        firedBy: fc.constantFrom(...(["dead", "unknown"] as const)),
        overAt: fc.double(),
        now: fc.integer(),
        reconciled: fc.constant("notAsked" as const)
      })
    ],
    ([facts]) => {
      const verdict = recoverEffect(facts)
      switch (verdict._tag) {
        case "AskOutside":
          return assert.isTrue(facts.firedBy === "dead" || facts.now >= facts.overAt)
        case "WaitUntil":
          assert.isTrue(Number.isFinite(verdict.at) && verdict.at > facts.now)
          // LV: at that time it goes on.
          return assert.strictEqual(recoverEffect({ ...facts, now: verdict.at })._tag, "AskOutside")
        case "AwaitSettlement":
          return assert.isFalse(Number.isFinite(facts.overAt))
        default:
          assert.fail(verdict._tag)
      }
    },
    { fastCheck: { numRuns: 2000 } }
  )

  it("an owner proven dead is not waited for", () => {
    const facts: InDoubtFacts = { delivery: "once", firedBy: "dead", overAt: 1e15, now: 0, reconciled: "notAsked" }
    for (const overAt of [1e15, Infinity, NaN]) {
      assert.strictEqual(recoverEffect({ ...facts, overAt })._tag, "AskOutside")
    }
    assert.deepStrictEqual(recoverEffect({ ...facts, firedBy: "unknown" }), { _tag: "WaitUntil", at: 1e15 })
  })
})
