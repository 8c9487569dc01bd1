import { Plane } from "@fermata/runtime"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { validitySuite } from "./ValiditySuite.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-validity-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

validitySuite(
  "a SQLite file",
  Layer.unwrapScoped(
    Effect.map(folder, (path) => Plane.sqlite({ filename: join(path, "plane.db"), synchronous: "normal" }))
  )
)
