import { properties } from "@fermata/contract"
import { faultIds, faults, makeMatrix, type Matrix, matrixMarkdown } from "@fermata/contract/model"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"

const kept = (file: string): string => readFileSync(new URL(`../../model/${file}`, import.meta.url), "utf8")

describe("the fault matrix", () => {
  let matrix: Matrix
  // Every cell is explored: seconds on a machine that has nothing else to do.
  beforeAll(() => {
    matrix = makeMatrix()
  }, 300_000)

  const broken = (fault: string): ReadonlyArray<string> => {
    const row = matrix.rows.find((one) => one.fault === fault)
    return properties.flatMap(({ id }) => (row?.cells[id].verdict === "broken" ? [id] : []))
  }

  it("is the one that the tree keeps (`npm run contract:matrix -- --write` after a wanted change)", () => {
    expect(matrix).toEqual(JSON.parse(kept("matrix.json")))
    expect(matrixMarkdown(matrix)).toBe(kept("matrix.md"))
  })

  it("holds every property without a fault", () => {
    expect(broken("none")).toEqual([])
  })

  it("shows each fault to break what it is said to break, and nothing else", () => {
    expect(faults.map(({ id }) => id)).toEqual(faultIds)
    for (const { id, breaks } of faults) expect({ id, breaks: broken(id) }).toEqual({ id, breaks: [...breaks] })
  })

  it("separates every property from every other", () => {
    const pairs = properties.flatMap(({ id }) =>
      properties.flatMap((other) => (other.id === id ? [] : [[id, other.id] as const]))
    )
    expect(pairs.length).toBe(56)
    for (const [one, other] of pairs) {
      expect(matrix.separations[one][other].length, `${one} from ${other}`).toBeGreaterThan(0)
    }
  })

  it("reaches every fault's mechanism: each switch changes which states there are", () => {
    const [none, ...others] = matrix.rows
    for (const { fault, states } of others) expect(states, fault).not.toEqual(none?.states)
  })
})

describe("the matrix's command line", () => {
  const main = fileURLToPath(new URL("../../dist/model/main.js", import.meta.url))
  const run = (...args: ReadonlyArray<string>) => spawnSync(process.execPath, [main, ...args], { encoding: "utf8" })

  it("tells the counterexamples of a fault", () => {
    const { status, stdout } = run("--story", "fork-ignored")
    expect(status).toBe(0)
    expect(stdout).toContain("FD is broken: a fork was asked for with one value and was served another.")
  })

  it("lists what there is when it is asked for something unknown", () => {
    for (const args of [["--story", "gremlins"], ["--no-such-option"], ["--scaled", "--threads", "none"]]) {
      const { status, stderr } = run(...args)
      expect(status).toBe(2)
      expect(stderr).toContain("faults: rerun-on-resume, fork-ignored,")
    }
  })

  it("stops a scaled exploration at its memory, with the count, and says that it is not exhaustive", () => {
    const { status, stdout } = run("--scaled", "--threads", "2", "--max-gigabytes", "0.01")
    expect(status).toBe(1)
    expect(stdout).toMatch(/^\d+ distinct states/m)
    expect(stdout).toContain("NOT EXHAUSTIVE")
  })
})
