import { describe, expect, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const main = fileURLToPath(new URL("../../bin/fermata-contract.js", import.meta.url))

const cli = (...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [main, ...args], { encoding: "utf8" })
  return { status, stderr, stdout }
}

describe("fermata-contract", () => {
  it.each([
    [["run", "--plane", "no-such-plane"], /no plane no-such-plane.*Known: reference/s],
    [["run", "--plane", "reference+noSuchFault"], /Known: reference/],
    [["run", "--plane", "reference", "--property", "XX"], /no property XX\. Known: PC, EO, FD, CV, CO, RD, FI, LV/],
    [["run", "--plane", "reference", "--probe", "CO/none"], /no probe CO\/none\. Known: PC\/kill-at-body/],
    [["run"], /--plane is missing\. Known: reference/],
    [["walk"], /no command walk\. Known: run/],
    [["run", "--plane", "reference", "--limit", "soon"], /--limit soon/],
    [["run", "--nonsense"], /--nonsense/]
  ])("%j lists what is known", (args, said) => {
    const { status, stderr, stdout } = cli(...args)
    expect(stderr).toMatch(said)
    expect({ status, stdout }).toEqual({ status: 64, stdout: "" })
  })

  it("writes all reports of a plane that conforms, shows progress, and ends with 0", () => {
    const folder = mkdtempSync(join(tmpdir(), "fermata-cli-"))
    try {
      const { status, stderr, stdout } = cli("run", "--plane", "reference", "--property", "fd", "--out", folder)
      expect(status).toBe(0)
      expect(stderr).toContain("[1/8] FD/after-resume: conforms")
      expect(stdout).toContain("FD  fork determinism  conforms  8 conforms")
      for (const file of ["report.md", "report.json", "report.xml", "report.html"])
        expect(readFileSync(join(folder, file), "utf8")).toContain("FD/fork-of-fork")
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it("ends with 1 if something violates, and says how to run it again", () => {
    const { status, stdout } = cli("run", "--plane", "reference+falsyIgnored", "--probe", "CO/falsy/zero", "--quiet")
    expect(status).toBe(1)
    expect(stdout).toContain("npx fermata-contract run --plane reference+falsyIgnored --probe CO/falsy/zero")
  })

  it("ends with 2 if nothing was decided", () => {
    const driver = fileURLToPath(new URL("drivers/bad.mjs", import.meta.url))
    const { status, stdout } = cli(
      "run",
      "--plane",
      `${process.execPath} '${driver}' hangs`,
      "--probe",
      "CO/falsy/zero",
      "--limit",
      "1"
    )
    expect(status).toBe(2)
    expect(stdout).toContain("no answer in time")
  })

  it("lists planes and probes", () => {
    expect(cli("planes").stdout).toContain("reference+doubleConsume")
    expect(cli("probes", "--property", "FI").stdout.trim().split("\n")).toHaveLength(4)
  })
})
