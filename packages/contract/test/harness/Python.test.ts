import { describe, expect, it } from "@effect/vitest"
import { ChildDriver, Conformance, isUndecided, isViolation } from "@fermata/contract/harness"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const template = fileURLToPath(new URL("../../templates/driver.py", import.meta.url))
const python = spawnSync("python3", ["--version"]).status === 0

const probes = [
  "PC/kill-before-effect",
  "PC/parked",
  "EO/keyed/kill-after-effect",
  "CO/second-different",
  "CO/falsy/null",
  "CO/race/4-different",
  "CO/crash-after-claim",
  "RD/racy-pair/right-first",
  "LV/answered-while-busy",
  "LV/runs/two-gates-in-one-node"
]

describe.skipIf(!python)("the Python template", () => {
  it.live(
    "is a driver whose small plane conforms",
    () =>
      Effect.gen(function* () {
        const report = yield* Conformance.run(ChildDriver.childProcess(["python3", template]), {
          probes,
          concurrency: 2
        })
        expect(report.plane).toBe("minimal Python plane")
        expect(report.findings.map(({ probe, reasons, verdict }) => ({ probe, reasons, verdict }))).toEqual(
          Conformance.select({ probes }).map(({ id }) => ({ probe: id, reasons: [], verdict: "conforms" }))
        )
      }),
    120_000
  )

  it.live("cannot express a fork, which is no violation", () =>
    Effect.gen(function* () {
      const { findings } = yield* Conformance.run(ChildDriver.childProcess(["python3", template]), {
        properties: ["FD", "FI"]
      })
      expect(new Set(findings.map(({ verdict }) => verdict))).toEqual(new Set(["cannot be expressed"]))
      expect(findings.some(({ verdict }) => isViolation(verdict) || isUndecided(verdict))).toBe(false)
    })
  )
})
