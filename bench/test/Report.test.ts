import { describe, expect, it } from "@effect/vitest"
import { type Figure, isMet, median } from "../src/Figure.js"
import { BadUsage, parse } from "../src/Options.js"
import { json, table } from "../src/Report.js"

const figure: Figure = {
  what: "1,000 steps",
  measured: { value: 2400, unit: "steps/s" },
  limit: { what: "raw", value: 4000, unit: "commits/s" },
  ratio: 0.6,
  goal: { atLeast: 0.6 },
  raw: 4000
}

describe("a figure", () => {
  it("is met at the goal itself and missed beyond it, in the goal's direction", () => {
    expect(isMet(figure)).toBe(true)
    expect(isMet({ ...figure, ratio: 0.59 })).toBe(false)
    expect(isMet({ ...figure, goal: { atMost: 0.59 } })).toBe(false)
  })

  it("that is not a number is never met", () => {
    expect(isMet({ ...figure, ratio: median([]) })).toBe(false)
    expect(isMet({ ...figure, ratio: median([]), goal: { atMost: 1 } })).toBe(false)
  })

  it("takes the middle of its rounds", () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([9, 1, 5, 7])).toBe(6)
  })
})

describe("the report", () => {
  const outcomes = [
    { target: "sqlite", line: "keyed", figures: [figure, { ...figure, ratio: 0.5 }], failure: undefined },
    { target: "sqlite", line: "many", figures: [], failure: "out of disk" }
  ]

  it("says of every figure what it is judged by and whether its goal is met, and why a line is missing", () => {
    const text = table("SQLite", outcomes)
    expect(text).toMatch(/1,000 steps +2,400 steps\/s +4,000 commits\/s +raw +0\.60 +≥ 0\.60 +met\n/)
    expect(text).toMatch(/0\.50 +≥ 0\.60 +MISSED\n/)
    expect(text).toContain("many: not measured\nout of disk")
  })

  it("is JSON with the verdicts", () => {
    expect(JSON.parse(json(outcomes))).toMatchObject([
      { database: "sqlite", line: "keyed", figures: [{ met: true }, { met: false }] },
      { line: "many", failure: "out of disk" }
    ])
  })
})

describe("the command line", () => {
  const lines = ["keyed", "many"]

  it("measures everything by default", () => {
    expect(parse([], lines, "/d")).toEqual({
      json: false,
      targets: ["sqlite", "postgres"],
      only: undefined,
      rounds: 5,
      waiting: 100_000,
      directory: "/d"
    })
  })

  it.each([[["--only", "kyed"]], [["--rounds", "0"]], [["--waiting", "many"]], [["--fast"]]])(
    "refuses %j with a sentence",
    (args) => {
      expect(() => parse(args, lines, "/d")).toThrow(BadUsage)
    }
  )
})
