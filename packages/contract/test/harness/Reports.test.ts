import { describe, expect, it } from "@effect/vitest"
import {
  Conformance,
  Driver,
  exitCode,
  type Finding,
  type Hello,
  ReferencePlane,
  Report,
  Reports
} from "@fermata/contract/harness"
import { Effect, Schema } from "effect"

const probes = ["CO/second-different", "FI/retry-is-no-fork"]

/** The reference plane that takes a second answer for a fork, with a documentation of its own. */
const documented = (documentation: Hello["documentation"]) => {
  const plane = ReferencePlane.make("retryForks")
  return Driver.inProcess({ ...plane, hello: { ...plane.hello, documentation } })
}

const verdicts = (documentation: Hello["documentation"]) =>
  Effect.map(Conformance.run(documented(documentation), { probes }), (report) => ({
    code: exitCode(report),
    verdicts: report.findings.map(({ verdict }) => verdict)
  }))

describe("what a divergence is depends on the documentation alone", () => {
  it.live("that claims the property: it is violated", () =>
    Effect.gen(function* () {
      const claims = { about: "CO", stance: "claims", says: "once", source: "docs" } as const
      expect(yield* verdicts([claims])).toEqual({
        code: 1,
        verdicts: ["violates its own documentation", "undocumented divergence"]
      })
    })
  )

  it.live("that says otherwise: the divergence is documented, and nothing is violated", () =>
    Effect.gen(function* () {
      const says = { stance: "diverges", says: "a second answer is a branch", source: "docs" } as const
      expect(
        yield* verdicts([
          { about: "CO", ...says },
          { about: "FI/retry-is-no-fork", ...says }
        ])
      ).toEqual({
        code: 0,
        verdicts: ["documented divergence", "documented divergence"]
      })
    })
  )

  it.live("a statement about the probe goes before one about its property", () =>
    Effect.gen(function* () {
      const claims = { about: "CO", stance: "claims", says: "once", source: "docs" } as const
      const but = { about: "CO/second-different", stance: "diverges", says: "but", source: "docs" } as const
      const found = yield* verdicts([claims, but])
      expect(found.verdicts[0]).toBe("documented divergence")
    })
  )
})

const hostile = `<script>alert("1")</script> & ]]> | \u0000 \ud800`

const finding = (verdict: Finding["verdict"]): Finding => ({
  probe: "CO/second-different",
  property: "CO",
  title: `a title with ${hostile}`,
  verdict,
  reasons: [`a reason with ${hostile}`],
  notes: [`a note with ${hostile}`],
  log: [
    {
      kind: "fire",
      run: "r",
      step: "s",
      effect: hostile,
      delivery: "once",
      key: "",
      input: [hostile],
      value: "v",
      who: "p1"
    }
  ],
  documentation: { about: "CO", stance: "claims", says: hostile, source: "docs" },
  rerun: "npx fermata-contract run --plane x --probe CO/second-different",
  milliseconds: 12
})

const report: Report = {
  plane: `plane ${hostile}`,
  version: "1",
  driver: hostile,
  harness: "h",
  findings: [
    finding("violates its own documentation"),
    finding("conforms"),
    finding("no answer in time"),
    finding("not applicable")
  ]
}

describe("reports", () => {
  it("HTML holds what planes say as text, and needs nothing from elsewhere", () => {
    const page = Reports.html(report)
    expect(page).not.toContain("<script>alert")
    expect(page).toContain("&lt;script&gt;")
    expect(page).not.toMatch(/(src|href)="(?!#)/)
  })

  it("JUnit counts violations as failures and what was not decided as errors", () => {
    const xml = Reports.junit(report)
    expect(xml).toContain('tests="4" failures="1" errors="1" skipped="1"')
    expect(xml).not.toContain("\u0000")
    expect(xml.isWellFormed()).toBe(true)
  })

  it("Markdown and the table show the evidence and how to run a probe again", () => {
    expect(Reports.markdown(report)).toContain(
      "Again: `npx fermata-contract run --plane x --probe CO/second-different`"
    )
    expect(Reports.table(report, { colours: false })).toContain("  npx fermata-contract run")
  })

  it.live("a report survives JSON", () =>
    Effect.gen(function* () {
      const found = yield* Conformance.run(Driver.inProcess(ReferencePlane.make()), { probes })
      expect(yield* Schema.decodeUnknown(Schema.parseJson(Report))(JSON.stringify(found))).toEqual(found)
      expect(exitCode(found)).toBe(0)
    })
  )
})
