import { afterEach, beforeEach, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-reminders-"))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const remind = async (count: number) => {
  const env = { ...process.env, FERMATA_DATABASE: join(folder, "reminders.db") }
  const { stdout } = await promisify(execFile)(process.execPath, [main, String(count)], { env })
  return stdout.trimEnd().split("\n")
}

it("reminds of each time once, over the lives of two processes", async () => {
  const said = [...(await remind(2)), ...(await remind(1))]
  expect(said).toHaveLength(3)
  expect(new Set(said).size).toBe(3)
  for (const line of said) expect(line).toMatch(/^water the plants \(plants\/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z\)$/)
}, 60_000)
