/** SQLite: files in a folder of their own; raw is `better-sqlite3` on a file beside them, WAL, `synchronous=FULL`. */
import { Effect, type Scope } from "effect"
import Database from "better-sqlite3"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { rawPayload, sampleSize, type Target } from "./Target.js"

/** `parent` decides the disk that is measured; it is created if it does not exist. */
export const make = (parent: string): Effect.Effect<Target, never, Scope.Scope> =>
  Effect.gen(function* () {
    mkdirSync(parent, { recursive: true })
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(parent, "sqlite-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const database = yield* Effect.acquireRelease(
      Effect.sync(() => new Database(join(folder, "raw.db"))),
      (database) => Effect.sync(() => database.close())
    )
    database.pragma("journal_mode = WAL")
    database.pragma("synchronous = FULL")
    database.exec("CREATE TABLE raw (n INTEGER PRIMARY KEY, payload TEXT NOT NULL)")
    const insert = database.prepare<[string]>("INSERT INTO raw (payload) VALUES (?)")
    let made = 0
    return {
      name: "sqlite",
      title: "SQLite, one file, WAL, synchronous=FULL",
      database: Effect.sync(() => ({ _tag: "Sqlite", filename: join(folder, `${++made}.db`) })),
      raw: Effect.sync(() => {
        const started = performance.now()
        for (let n = 0; n < sampleSize; n++) insert.run(rawPayload)
        return (sampleSize * 1000) / (performance.now() - started)
      })
    }
  })
