/**
 * This plane under the contract's harness, on both databases, with real processes, kills and races: every probe but those
 * that take the longest and that the crash sweep and the races of this folder ask in their own way. With
 * FERMATA_ALL_PROBES=1 these too.
 */
import { ChildDriver, Conformance } from "@fermata/contract/harness"
import * as Program from "@fermata/test/processes/Program"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"

/** Probes at once: each waits for its processes as much as it computes. */
const concurrency = 2

const drivers = [
  ["SQLite", "sqlite"],
  ["PostgreSQL", "postgres"]
] as const

const costly = /^(CO\/race\/(8|16)-|EO\/every-commit$)/
const probes = Conformance.select({})
  .map(({ id }) => id)
  .filter((id) => process.env["FERMATA_ALL_PROBES"] === "1" || !costly.test(id))

/** What a plane without a server between its processes cannot be asked, and what this machine may not allow. */
const mayBeInapplicable = new Set(["CO/hosts"])

describe.each(drivers)("on %s", (name, script) => {
  it.live(
    "the plane conforms in every probe",
    () =>
      Effect.gen(function* () {
        const command = Program.programFile(`planes/${script}`)
        const report = yield* Conformance.run(ChildDriver.childProcess([process.execPath, command]), {
          concurrency,
          probes
        })
        expect(report.plane).toBe(`Fermata on ${name}`)
        expect(report.findings.map(({ probe }) => probe)).toEqual(probes)
        const others = report.findings.filter(
          ({ probe, verdict }) =>
            verdict !== "conforms" && !(verdict === "not applicable" && mayBeInapplicable.has(probe))
        )
        expect(others.map(({ notes, probe, reasons, verdict }) => ({ probe, verdict, reasons, notes }))).toEqual([])
      }),
    1_200_000
  )
})
