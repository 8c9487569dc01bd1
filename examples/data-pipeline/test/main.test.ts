import { afterEach, beforeEach, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-pipeline-"))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const play = (dieAfter?: number) =>
  promisify(execFile)(process.execPath, [main], {
    env: {
      ...process.env,
      FERMATA_DATABASE: join(folder, "pipeline.db"),
      FETCH_LOG: join(folder, "fetched.log"),
      ...(dieAfter === undefined ? {} : { DIE_AFTER: String(dieAfter) })
    }
  })

it("fans out to 1,000 stations, is killed half-way, and fetches little again", async () => {
  await expect(play(500)).rejects.toMatchObject({ signal: "SIGKILL" })
  const { stdout } = await play()
  expect(stdout).toMatch(/^1000 stations, 11 left out, mean 19\.\d+ °C\n/)
  expect(stdout).toContain("left out: 7, 107, 207, 307, 407, 500, 507, 607, 707, 807, 907;")
  const fetches = (await readFile(join(folder, "fetched.log"), "utf8")).trimEnd().split("\n")
  expect(new Set(fetches).size).toBe(1000)
  // 10 stations are down and tried three times each. Beyond that only what was not durable yet is fetched again.
  expect(fetches.length).toBeLessThan(1000 + 20 + 250)
  // A third start fetches nothing.
  const { stdout: again } = await play()
  expect(again).toContain("this process fetched 0 times")
}, 60_000)
