/**
 * Runs LangGraph.js's own `runPregelTests` with this package's saver. Nothing of LangGraph.js's tests is kept here: the
 * script takes the path of a checkout of langchain-ai/langgraphjs, copies its core to a temporary folder, and removes it.
 *
 *   node packages/adapters/peer/pregel.mjs <checkout> [sqlite | postgres | stock] [part of a test's name]
 *
 * `stock` runs them with LangGraph.js's own in-memory saver: what fails there fails for other reasons than the saver.
 *
 * Needs a build (`npm run build`) and vitest; for PostgreSQL, FERMATA_TEST_POSTGRES as for the other tests.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const [checkout, database = "sqlite", name] = process.argv.slice(2)
if (checkout === undefined || !["sqlite", "postgres", "stock"].includes(database)) {
  console.error(
    "usage: node packages/adapters/peer/pregel.mjs <checkout> [sqlite | postgres | stock] [part of a test's name]"
  )
  process.exit(2)
}
const workspace = fileURLToPath(new URL("../../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "fermata-pregel-"))
try {
  cpSync(join(resolve(checkout), "libs/langgraph-core/src"), join(folder, "src"), { recursive: true })
  symlinkSync(join(workspace, "node_modules"), join(folder, "node_modules"))
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  // The file runs its tests with a saver of its own when it is imported.
  const suite = join(folder, "src/tests/pregel.test.ts")
  const text = readFileSync(suite, "utf8")
  const own = "runPregelTests(() => new MemorySaverAssertImmutable());"
  if (!text.includes(own)) throw new Error(`${suite} is not as this script knows it: it does not end with ${own}`)
  writeFileSync(suite, text.replace(own, ""))
  const saver = join(workspace, "packages/adapters/dist/langgraph-checkpoint/index.js")
  writeFileSync(
    join(folder, "src/tests/fermata.test.ts"),
    `import { FermataSaver } from ${JSON.stringify(saver)}
import pg from "pg"
import { MemorySaver } from "@langchain/langgraph-checkpoint"
import { runPregelTests } from "./pregel.test.js"
const savers = []
const databases = []
const server = process.env.FERMATA_TEST_POSTGRES
const onServer = async (statement) => {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  await client.query(statement)
  await client.end()
}
const make = async () => {
  if (${JSON.stringify(database)} === "stock") return Object.assign(new MemorySaver(), { close: () => {} })
  if (${JSON.stringify(database)} === "sqlite") return FermataSaver.sqlite({ filename: ":memory:" })
  const name = "fermata_pregel_" + process.pid + "_" + databases.length
  databases.push(name)
  await onServer("CREATE DATABASE " + name)
  const url = new URL(server)
  url.pathname = "/" + name
  return FermataSaver.postgres({ url: url.href, maxConnections: 4 })
}
afterEach(async () => {
  for (const saver of savers.splice(0)) await saver.close()
  for (const name of databases.splice(0)) await onServer("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
})
runPregelTests(async () => {
  const saver = await make()
  savers.push(saver)
  return saver
})
`
  )
  writeFileSync(
    join(folder, "vitest.config.mjs"),
    `export default { test: { globals: true, include: ["src/tests/fermata.test.ts"], testTimeout: 60000, pool: "forks",
  setupFiles: ["src/tests/setup.node.ts"]${database === "postgres" ? `, globalSetup: [${JSON.stringify(join(workspace, "test/setup/postgres.ts"))}]` : ""},
  server: { deps: { inline: [/fermata-pregel-.*\\/src\\//] } } } }\n`
  )
  const { status } = spawnSync(
    process.execPath,
    [
      join(workspace, "node_modules/vitest/vitest.mjs"),
      "run",
      "--root",
      folder,
      "--maxWorkers=1",
      "--minWorkers=1",
      ...(name === undefined ? [] : ["-t", name])
    ],
    { stdio: "inherit", cwd: folder }
  )
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
