import { Plane } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { validitySuite } from "./ValiditySuite.js"

const file = Layer.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-validity-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => Plane.sqlite({ filename: join(folder, "plane.db"), synchronous: "normal" })
  )
)

validitySuite("a SQLite file", file)
validitySuite("PostgreSQL", Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url }))))
