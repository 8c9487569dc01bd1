/** This plane under the contract's harness: every probe, on both databases, with real processes, kills and races. */
import { ChildDriver, Conformance } from "@fermata/contract/harness"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fileURLToPath } from "node:url"

/** Probes at once: each waits for its processes as much as it computes. */
const options = { concurrency: 2 }

const drivers = [
  ["SQLite", "sqlite"],
  ["PostgreSQL", "postgres"]
] as const

/** What a plane without a server between its processes cannot be asked, and what this machine may not allow. */
const mayBeInapplicable = new Set(["CO/hosts"])

describe.each(drivers)("on %s", (name, script) => {
  it.live(
    "the plane conforms in every probe",
    () =>
      Effect.gen(function* () {
        const command = fileURLToPath(new URL(`../dist/planes/${script}.js`, import.meta.url))
        const report = yield* Conformance.run(ChildDriver.childProcess([process.execPath, command]), options)
        expect(report.plane).toBe(`Fermata on ${name}`)
        expect(report.findings.map(({ probe }) => probe)).toEqual(Conformance.select({}).map(({ id }) => id))
        const others = report.findings.filter(
          ({ probe, verdict }) =>
            verdict !== "conforms" && !(verdict === "not applicable" && mayBeInapplicable.has(probe))
        )
        expect(others.map(({ notes, probe, reasons, verdict }) => ({ probe, verdict, reasons, notes }))).toEqual([])
      }),
    1_200_000
  )
})
