import { Fermata } from "@fermata/adapters/langgraph"
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Exit, Scope } from "effect"
import { afterAll } from "vitest"
import { graphSuite } from "./graphSuite.js"

const scope = Effect.runSync(Scope.make())

graphSuite("PostgreSQL", async () =>
  Fermata.postgres({ url: await Effect.runPromise(Scope.extend(freshPostgres, scope)), maxConnections: 4 })
)

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
