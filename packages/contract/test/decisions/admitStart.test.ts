import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitCancel, admitStart, type StoredRun } from "../../src/index.js"
import { combinations } from "../domains.js"

describe("admitStart", () => {
  const start = fc.record({
    workflow: fc.constantFrom("refund", "order", ""),
    version: fc.constantFrom("1", "2"),
    inputDigest: fc.constantFrom("a", "b", "")
  })

  it.prop(
    "of any sequence of starts of one id the first creates, and decides about all others",
    [fc.array(start, { minLength: 1, maxLength: 12 }), fc.integer({ min: 0, max: 12 })],
    ([starts, purgedAt]) => {
      let stored: StoredRun = { _tag: "Absent" }
      starts.forEach((request, n) => {
        if (n === purgedAt && stored._tag === "Present") stored = { _tag: "Purged" }
        const verdict = admitStart(stored, request)
        switch (stored._tag) {
          case "Absent":
            assert.deepStrictEqual(verdict, { _tag: "Create" })
            stored = { _tag: "Present", ...request }
            return
          case "Purged":
            // Nothing late revives a purged run.
            return assert.deepStrictEqual(verdict, { _tag: "Purged" })
          case "Present":
            if (stored.workflow !== request.workflow)
              return assert.deepStrictEqual(verdict, { _tag: "Conflict", differs: "workflow" })
            if (stored.inputDigest !== request.inputDigest)
              return assert.deepStrictEqual(verdict, { _tag: "Conflict", differs: "input" })
            // A retried start that crosses a deployment is the same start.
            return assert.deepStrictEqual(verdict, { _tag: "Existing" })
        }
      })
    }
  )
})

describe("admitCancel", () => {
  it("is accepted once, while the branch is not over; later ones are inert or told that they are late", () => {
    const run = ["known", "unknown", "purged"] as const
    for (const facts of combinations({ run, over: [false, true], requested: [false, true] } as const)) {
      const expected =
        facts.run === "purged"
          ? "RunPurged"
          : facts.run === "unknown"
            ? "UnknownRun"
            : facts.requested
              ? "Duplicate"
              : facts.over
                ? "TooLate"
                : "Accepted"
      assert.strictEqual(admitCancel(facts)._tag, expected)
    }
  })
})
