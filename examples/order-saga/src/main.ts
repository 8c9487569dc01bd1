/**
 * `npm start -w @fermata/example-order-saga`: fulfils four orders in a process that is killed three times, and prints what
 * became of them. Exit code 1 if anything was done twice, or not undone.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { deedsOf } from "./Outside.js"

const worker = fileURLToPath(new URL("./worker.js", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "fermata-orders-"))
try {
  for (const die of [2, 4, 7]) {
    const { signal, stderr } = spawnSync(process.execPath, [worker, folder, String(die)], { encoding: "utf8" })
    if (signal !== "SIGKILL") throw new Error(`the worker was to be killed: ${stderr}`)
    console.log(`killed after deed ${die}`)
  }
  const { stderr, stdout } = spawnSync(process.execPath, [worker, folder], { encoding: "utf8" })
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  const deeds = deedsOf(join(folder, "outside.log"))
  const of = (order: string) =>
    deeds
      .filter((deed) => deed.order === order)
      .map(({ what }) => what)
      .join(", ")
  const expected: Record<string, string> = {
    "o-1": "hold, charge, book",
    "o-2": "",
    "o-3": "hold, charge, refund, release",
    "o-4": "hold, charge, release"
  }
  for (const [order, wanted] of Object.entries(expected)) {
    console.log(`the outside did for ${order}: ${of(order) || "nothing"}`)
    if (of(order) !== wanted) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
