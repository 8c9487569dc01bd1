/** The suites on the reference plane, and on planes with one fault each: a suite that cannot fail proves nothing. */
import { assert, describe, it } from "@effect/vitest"
import { allFaults, allProbes, Driver, ReferencePlane } from "@fermata/contract/harness"
import { check, contractSuites, ContractViolation } from "@fermata/contract/vitest"
import { Effect } from "effect"
import { foundBy } from "../harness/expectedFaults.js"

contractSuites(Driver.inProcess(ReferencePlane.make()))

describe("a plane with a fault", () => {
  for (const fault of allFaults) {
    it.live(`fails in tests of its property, with evidence: ${fault}`, () =>
      Effect.gen(function* () {
        const driver = Driver.inProcess(ReferencePlane.make(fault))
        const hello = yield* driver.hello
        const [first] = foundBy[fault]
        const probe = allProbes.find(({ id }) => id === first)
        if (probe === undefined) return yield* Effect.dieMessage(`nothing finds ${fault}`)
        const violation = yield* Effect.flip(check(driver, hello, probe))
        assert.instanceOf(violation, ContractViolation)
        assert.include(violation.message, probe.title)
        assert.include(violation.message, probe.id)
        assert.isNotEmpty(violation.finding.reasons)
      })
    )
  }
})
