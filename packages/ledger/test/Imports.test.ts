/** What a process loads that uses the ledger as it is built. */
import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const packageRoot = fileURLToPath(new URL("..", import.meta.url))

/** Which of the database drivers are loaded once the statements have run. */
const loadedBy = (statements: string): unknown =>
  JSON.parse(
    execFileSync(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `import { createRequire } from "node:module"
         ${statements}
         const loaded = Object.keys(createRequire(import.meta.url).cache)
         const has = (name) => loaded.some((file) => file.includes("/node_modules/" + name + "/"))
         console.log(JSON.stringify({ pg: has("pg"), sqlite: has("better-sqlite3") }))`
      ],
      { cwd: packageRoot, encoding: "utf8" }
    )
  )

describe("a process that imports the ledger", () => {
  it("loads no driver of PostgreSQL before PostgreSQL is used", () => {
    expect(loadedBy(`await import("@fermata/ledger")`)).toEqual({ pg: false, sqlite: true })
    // The same look, at a process that does load it.
    expect(loadedBy(`await import("@fermata/ledger"); await import("@effect/sql-pg/PgClient")`)).toEqual({
      pg: true,
      sqlite: true
    })
  })
})
