import { FermataSaver } from "@fermata/adapters/langgraph-checkpoint"
import { freshPostgres } from "@fermata/test/Postgres"
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation"
import { Effect, Exit, Scope } from "effect"

// The suite makes a checkpointer for each of many groups of specs, some of which use the same thread ids: one database
// with its pool serves them all, and is emptied of what a group left.
const scope = Effect.runSync(Scope.make())
let shared: FermataSaver | undefined

const suite = {
  checkpointerName: "FermataSaver on PostgreSQL",
  beforeAll: async () => {
    const url = await Effect.runPromise(Scope.extend(freshPostgres, scope))
    shared = FermataSaver.postgres({ url, maxConnections: 4 })
  },
  beforeAllTimeout: 60_000,
  afterAll: async () => {
    await shared?.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  },
  createCheckpointer: () => {
    if (shared === undefined) throw new Error("not started")
    return shared
  },
  destroyCheckpointer: async (saver: FermataSaver) => {
    const threads = new Set<string>()
    for await (const { config } of saver.list({})) threads.add(String(config.configurable?.["thread_id"]))
    for (const thread of threads) await saver.deleteThread(thread)
  }
}

validate(suite)
deltaChannelHistoryTests(suite)
