import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Plane } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { clientAnsweringSuite } from "./clientAnsweringSuite.js"
import { clientReadingSuite } from "./clientReadingSuite.js"

const file = Layer.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-client-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => Plane.sqlite({ filename: join(folder, "plane.db"), synchronous: "normal" })
  )
)

const postgres = Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url })))

for (const suite of [clientReadingSuite, clientAnsweringSuite]) {
  suite("SQLite in memory", Testing.layer)
  suite("a SQLite file", file)
  suite("PostgreSQL", postgres)
}
