/** Faults that users of durable execution met elsewhere, as small inputs with the right behaviour, on both databases. */
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Plane } from "@fermata/runtime"
import { answerCases } from "./AnswerCases.js"
import { outcomeCases } from "./OutcomeCases.js"

const file = Layer.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-cases-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => Plane.sqlite({ filename: join(folder, "plane.db"), synchronous: "normal" })
  )
)
const postgres = Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url, maxConnections: 4 })))

for (const [name, plane] of [
  ["a SQLite file", file],
  ["PostgreSQL", postgres]
] as const) {
  answerCases(name, plane)
  outcomeCases(name, plane)
}
