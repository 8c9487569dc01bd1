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
  folder = await mkdtemp(join(tmpdir(), "fermata-tenants-"))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

it("serves what is urgent first, and the quiet tenant in turn with the noisy one", async () => {
  const env = { ...process.env, FERMATA_DATABASE: join(folder, "tenants.db") }
  const { stdout } = await promisify(execFile)(process.execPath, [main], { env })
  const lines = stdout.trimEnd().split("\n")
  expect(lines).toHaveLength(8)
  expect(lines[0]).toBe("report 1 of urgent")
  // The quiet one came after five orders of the other, and waits for one round each time.
  expect(lines.slice(1, 3).sort()).toEqual(["report 1 of noisy", "report 1 of quiet"])
  expect(lines.slice(3, 5).sort()).toEqual(["report 2 of noisy", "report 2 of quiet"])
  expect(lines.slice(5)).toEqual(["report 3 of noisy", "report 4 of noisy", "report 5 of noisy"])
}, 60_000)
