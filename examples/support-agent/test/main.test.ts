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
  folder = await mkdtemp(join(tmpdir(), "fermata-support-"))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const play = async (...args: ReadonlyArray<string>) => {
  const env = { ...process.env, FERMATA_DATABASE: join(folder, "support.db") }
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env })
  return stdout.trimEnd().split("\n")
}

it("asks the model once for each answer, waits for a person across processes, and pays once", async () => {
  expect(await play("order-1")).toEqual([
    "the model is asked",
    "the model is asked",
    "waiting for a person: start me again with yes or no"
  ])
  // Another process: what the model said is served from the journal.
  expect(await play("order-1", "yes")).toEqual([
    "the bank pays 120 for order-1",
    "the model is asked",
    "Your money is on its way."
  ])
  expect(await play("order-1", "no")).toEqual(["Your money is on its way."])
  expect(await play("order-2")).toEqual([
    "the model is asked",
    "the model is asked",
    "the bank pays 9 for order-2",
    "the model is asked",
    "Your money is on its way."
  ])
}, 60_000)
