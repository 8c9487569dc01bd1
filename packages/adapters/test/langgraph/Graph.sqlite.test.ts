import { Fermata } from "@fermata/adapters/langgraph"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, it } from "vitest"
import { graphSuite } from "./graphSuite.js"

const folder = mkdtempSync(join(tmpdir(), "fermata-graph-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

graphSuite("a SQLite file", () => Promise.resolve(Fermata.sqlite({ filename: join(folder, "suite.db") })))

const child = fileURLToPath(new URL("./killed.mjs", import.meta.url))

it("a process killed in a node's middle loses nothing: nodes with an outcome do not run again", () => {
  const files = [join(folder, "killed.db"), join(folder, "effects.log")]
  const first = spawnSync(process.execPath, [child, ...files, "begin"], { encoding: "utf8" })
  assert.strictEqual(first.signal, "SIGKILL", first.stderr)
  const output: unknown = JSON.parse(execFileSync(process.execPath, [child, ...files, "go on"], { encoding: "utf8" }))
  assert.deepStrictEqual(output, { log: ["one", "task", "two", "three"] })
  // The effects' own log: the cut node ran again from its top, its task did not.
  assert.deepStrictEqual(readFileSync(join(folder, "effects.log"), "utf8").trim().split("\n"), [
    "one",
    "two",
    "task",
    "two",
    "after task",
    "three"
  ])
})

it("the program of the page runs as it stands", () => {
  const root = fileURLToPath(new URL("../../../../", import.meta.url))
  const [, program = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, "docs/from-langgraph.md"), "utf8")) ?? []
  // Inside the clone, so that it finds the packages.
  mkdirSync(join(root, ".tmp"), { recursive: true })
  const place = mkdtempSync(join(root, ".tmp", "graph-"))
  try {
    writeFileSync(join(place, "program.mjs"), program)
    const said = execFileSync(process.execPath, ["program.mjs"], { cwd: place, encoding: "utf8" })
    assert.strictEqual(said, "{ approve: 1200 }\npaid\n")
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})
