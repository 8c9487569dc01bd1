/**
 * The contract as vitest suites: one for each property, a test for each of its probes, for any plane that has a driver.
 *
 * @example
 * import { ChildDriver } from "@fermata/contract/harness"
 * import { contractSuites } from "@fermata/contract/vitest"
 *
 * contractSuites(ChildDriver.childProcess(["python3", "driver.py"]))
 */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Conformance from "../harness/Conformance.js"
import type { Driver, DriverError } from "../harness/Driver.js"
import type { Hello } from "../harness/Plane.js"
import type { Probe } from "../harness/Probe.js"
import type { Finding } from "../harness/Verdict.js"
import { type PropertyId, properties } from "../Property.js"

/** Which tests there are, and how long they may take. */
export interface SuiteOptions extends Conformance.Selection {
  /** Milliseconds for any one answer of the driver. */
  readonly timeLimit?: number
  /** Milliseconds for one test; 120,000 by default. A plane that is slow has violated nothing. */
  readonly testTimeout?: number
}

/** A probe's test failed: the plane broke the property, or nothing could be decided. */
export class ContractViolation extends Error {
  override readonly name = "ContractViolation"
  constructor(readonly finding: Finding) {
    const { log, notes, reasons, rerun, title, verdict } = finding
    super(
      [
        `${verdict}: ${title}`,
        ...reasons.map((reason) => `- ${reason}`),
        "What was done and seen:",
        ...notes.map((note) => `  ${note}`),
        "The effect log:",
        ...log.map((line) => `  ${JSON.stringify(line)}`),
        `To see it alone: ${rerun}`
      ].join("\n")
    )
  }
}

/**
 * Runs one probe as its test does: succeeds with why it was skipped, or with nothing if the plane conforms; a divergence
 * that the plane's own documentation names counts as one all the same.
 */
export const check = (
  driver: Driver,
  hello: Hello,
  probe: Probe,
  options: Pick<SuiteOptions, "timeLimit"> = {}
): Effect.Effect<string | undefined, ContractViolation> =>
  Effect.flatMap(Conformance.examine(driver, hello, probe, options), (finding) => {
    switch (finding.verdict) {
      case "conforms":
        return Effect.succeed(undefined)
      case "not applicable":
      case "cannot be expressed":
        return Effect.succeed(finding.reasons.join("; "))
      default:
        return Effect.fail(new ContractViolation(finding))
    }
  })

/** Declares the suites. To be called where `describe` may be. */
export const contractSuites = (driver: Driver, options: SuiteOptions = {}): void => {
  const probes = Conformance.select(options)
  const hello: Effect.Effect<Hello, DriverError> = Effect.runSync(Effect.cached(driver.hello))
  const of = (property: PropertyId) => probes.filter((probe) => probe.property === property)
  for (const { id, name, statement } of properties) {
    if (of(id).length === 0) continue
    describe(`${id}, ${name}: ${statement}`, () => {
      for (const probe of of(id)) {
        it(
          `${probe.title} (${probe.id})`,
          async (context) => {
            const test = Effect.flatMap(hello, (introduced) => check(driver, introduced, probe, options))
            const skipped = await Effect.runPromise(Effect.either(test))
            if (skipped._tag === "Left") throw skipped.left
            if (skipped.right !== undefined) context.skip(skipped.right)
          },
          options.testTimeout ?? 120_000
        )
      }
    })
  }
}
