/** Plays the demonstration as `npm start` does: processes, SIGKILL and all. It runs what `npm run build` made. */
import { SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { cp, mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the example in a temporary directory of its own. */
const main = (temporary: string, ...args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve) => {
    const entry = fileURLToPath(new URL("../dist/main.js", import.meta.url))
    const env = { ...process.env, NO_COLOR: "1", TMPDIR: temporary }
    const child = execFile(process.execPath, [entry, ...args], { env }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr })
    )
  })

describe("the demonstration", () => {
  let temporary: string
  let played: Ended
  let kept: string
  beforeAll(async () => {
    temporary = await mkdtemp(join(tmpdir(), "refund-agent-test-"))
    played = await main(temporary, "--keep")
    kept = join(temporary, (await readdir(temporary)).find((name) => name.startsWith("refund-agent-")) ?? "")
  }, 120_000)
  afterAll(() => rm(temporary, { recursive: true, force: true }))

  it("survives three kills, and pays everything exactly once", () => {
    expect(played.stderr).toBe("")
    expect(played.code).toBe(0)
    expect(played.stdout.match(/SIGKILL {2}/g)).toHaveLength(3)
    expect(played.stdout).toContain("53 lines: 39 started a run, 14 were turned away")
    expect(played.stdout).toContain(
      "27 payments: 310.00 CHF, 1,112.43 EUR, 222.41 GBP, 16,201 JPY, 13.755 KWD, 352.50 USD"
    )
    expect(played.stdout).toContain("exactly once")
  })

  it("says of every request what was done, or who refused it and why", () => {
    const outcomes = played.stdout.slice(played.stdout.indexOf("What became of each request"))
    const outcome = (request: string) => outcomes.split("\n").find((line) => line.startsWith(`   ${request} `))
    expect(outcome("R-1001")).toMatch(/Zoë Krüger +49\.90 EUR {2}paid +P-\d{4}, granted by model$/)
    expect(outcome("R-1002")).toMatch(/山田 太郎 +1,200 JPY {2}paid/)
    expect(outcome("R-1004")).toMatch(/refused +by rules: the amount is not positive$/)
    expect(outcome("R-1009")).toMatch(/refused +by shop: the shop has no order O-9999$/)
    expect(outcome("R-1016")).toMatch(/refused +by rules: the order is refunded already$/)
    expect(outcome("R-1018")).toMatch(/25,000,000\.00 USD {2}refused +by rules: that is more than was paid$/)
    expect(outcome("R-1020")).toMatch(/paid +P-\d{4}, granted by Ben$/)
    expect(outcome("R-1026")).toMatch(/refused +by model: /)
    expect(outcome("R-1027")).toMatch(/refused +by Chidi: /)
    expect(outcome("R-1029")).toMatch(/refused +by shop: the customer's card is closed$/)
    expect(played.stdout).toMatch(/line 11 +R-1010 again: it is the same run/)
    expect(played.stdout).toMatch(/line 39 +R-1011 again, with another input: refused/)
  })

  it("accepts one answer, however many come", () => {
    expect(played.stdout).toContain("R-1008  Amélie: Accepted")
    expect(played.stdout).toContain("R-1008  Amélie: Duplicate  (the same delivery again)")
    expect(played.stdout).toContain("R-1008  Amélie: AlreadyConsumed by delivery R-1008-click-1  (a second click)")
    const race = played.stdout.split("\n").filter((line) => line.includes("at once with another process"))
    expect(race.filter((line) => line.includes("Accepted"))).toHaveLength(1)
    expect(race.filter((line) => line.includes("AlreadyConsumed"))).toHaveLength(1)
  })

  it("shows what was refused on one branch and approved on the other", () => {
    expect(played.stdout).toContain("another answer, as a retry: AlreadyConsumed")
    expect(played.stdout).toContain("another answer, as a fork:  R-1030/what-if")
    expect(played.stdout).toMatch(/refused by Chidi +paid 480\.00 EUR/)
  })

  it("is plain text when nobody looks at a terminal", () => {
    expect(played.stdout).not.toContain("\u001b")
    expect(played.stdout).not.toContain("\r")
  })

  it("leaves nothing behind unless it is told to, and then says where", async () => {
    expect(played.stdout).toContain(`The databases are in ${kept}`)
    const empty = await mkdtemp(join(temporary, "empty-"))
    expect((await main(empty)).code).toBe(0)
    expect(await readdir(empty)).toEqual([])
  }, 120_000)

  it.each([
    [
      "a payment is missing",
      "DELETE FROM effect_log WHERE what = 'payment' AND request = 'R-1001'",
      "R-1001: the payment of 49.90 EUR is missing"
    ],
    [
      "a payment is doubled",
      "INSERT INTO effect_log (what, key, request, currency, minor, text) SELECT what, key || 'x', request, currency, minor, text FROM effect_log WHERE what = 'payment' AND request = 'R-1008'",
      "R-1008: paid 2 times"
    ]
  ])("ends with exit code 1 if %s", async (_, tampering, finding) => {
    const copy = join(temporary, "tampered")
    await cp(kept, copy, { recursive: true })
    expect((await main(temporary, "--audit", copy)).code).toBe(0)
    await Effect.runPromise(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(tampering)).pipe(
        Effect.provide(SqliteClient.layer({ filename: join(copy, "shop.db") }))
      )
    )
    const audited = await main(temporary, "--audit", copy)
    await rm(copy, { recursive: true })
    expect(audited.code).toBe(1)
    expect(audited.stdout).toContain(finding)
  })
})
