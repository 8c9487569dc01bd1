import { describe, expect, it } from "@effect/vitest"
import { allFaults, Conformance, Driver, isUndecided, isViolation, ReferencePlane } from "@fermata/contract/harness"
import { Effect } from "effect"
import { foundBy } from "./expectedFaults.js"

const options = { timeLimit: 30_000, concurrency: 4 }

/** What only a plane of several processes or hosts can be asked. */
const inapplicable = ["EO/every-commit", "CO/hosts"]

describe("the reference plane", () => {
  it.live(
    "conforms in every probe that can be made of it",
    () =>
      Effect.gen(function* () {
        const { findings } = yield* Conformance.run(Driver.inProcess(ReferencePlane.make(), options), options)
        const others = findings.filter(({ verdict }) => verdict !== "conforms")
        expect(others.map(({ probe, reasons, verdict }) => ({ probe, reasons, verdict }))).toEqual(
          others.map(({ probe, reasons }) => ({ probe, reasons, verdict: "not applicable" }))
        )
        expect(others.map(({ probe }) => probe)).toEqual(inapplicable)
        expect(findings.map(({ probe }) => probe)).toEqual(Conformance.select({}).map(({ id }) => id))
      }),
    120_000
  )

  it.live.each(allFaults)(
    "with %s is found by the probes that look for what it breaks, and by no other",
    (fault) =>
      Effect.gen(function* () {
        const { findings } = yield* Conformance.run(Driver.inProcess(ReferencePlane.make(fault), options), options)
        expect(findings.filter(({ verdict }) => isViolation(verdict)).map(({ probe }) => probe)).toEqual(foundBy[fault])
        expect(findings.filter(({ verdict }) => isUndecided(verdict))).toEqual([])
      }),
    120_000
  )
})
