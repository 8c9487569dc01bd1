import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Client, Health, Interrupt, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

const Go = Interrupt.make("go", {})
const Wait = Workflow.make("wait", { version: "1" }, () => Go())
/** Awaits what nobody journals: stuck. */
const Bad = Workflow.make("bad", { version: "1" }, () => Effect.promise(() => Promise.resolve()))
const Unknown = Workflow.make("unknown", { version: "2", input: Schema.Number }, () => Effect.void)

const quiet: Health.HealthFacts = {
  dialect: "pg",
  database: "host/plane",
  schema: { stored: 1, known: 1 },
  now: 1_000_000_000,
  skew: 0,
  branches: { ready: 0, running: 0, waiting: 0, stuck: 0, completed: 0, failed: 0, cancelled: 0 },
  queues: [],
  workers: [],
  stuck: [],
  orphaned: []
}
const worker = (facts: Partial<Health.HealthFacts["workers"][number]>): Health.HealthFacts["workers"][number] => ({
  worker: "w",
  state: "alive",
  pid: 7,
  leaseUntil: quiet.now + 1,
  branches: 0,
  definitions: [],
  ...facts
})
const kinds = (facts: Partial<Health.HealthFacts>, limits?: Health.Limits): ReadonlyArray<string> =>
  Health.findings({ ...quiet, ...facts }, limits).map(({ kind, severity }) => `${severity} ${kind}`)

describe("what an operator should know of a plane", () => {
  it.effect("tells what is stuck and what no worker serves, and nothing of what goes on or waits", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Wait, undefined, { run: "waits" })
      yield* client.start(Bad, undefined, { run: "bad" })
      yield* client.start(Unknown, 1, { run: "unknown" })
      yield* client.awaitStatus("waits", ({ status }) => status === "waiting")
      yield* client.awaitStatus("bad", ({ status }) => status === "stuck")
      const facts = yield* Health.facts
      assert.deepStrictEqual(
        { ...facts.branches },
        { ready: 1, running: 0, waiting: 1, stuck: 1, completed: 0, failed: 0, cancelled: 0 }
      )
      assert.deepStrictEqual(
        facts.workers.map(({ definitions, state }) => [state, definitions]),
        [["alive", ["wait@1", "bad@1"]]]
      )
      const found = Health.findings(facts)
      assert.deepStrictEqual(
        found.map(({ kind, subject }) => [kind, subject]),
        [
          ["stuck", "bad/main"],
          ["unserved", "unknown@2"]
        ]
      )
      assert.include(found[0]?.message ?? "", "Node")
    }).pipe(Effect.provide(Testing.worker({ workflows: [Wait, Bad] }).pipe(Layer.provideMerge(Testing.layer))))
  )

  it("is silent about a healthy plane, and puts errors first", () => {
    assert.deepStrictEqual(kinds({}), [])
    assert.deepStrictEqual(kinds({ skew: -1_000 }), [])
    assert.deepStrictEqual(kinds({ skew: -1_001 }), ["warning clock skew"])
    const queues = [{ definition: "a@1", depth: 1, since: quiet.now }]
    assert.deepStrictEqual(kinds({ skew: 5_000, queues }), ["error unserved", "warning clock skew"])
  })

  it("counts only workers whose lease holds, and does not accuse a definition that an older worker may serve", () => {
    const queues = [{ definition: "a@1", depth: 3, since: quiet.now - 60_001 }]
    assert.deepStrictEqual(kinds({ queues, workers: [worker({ definitions: ["a@1"] })] }), ["warning backlog"])
    assert.deepStrictEqual(kinds({ queues, workers: [worker({ definitions: ["a@1"] })] }, { lag: 60_001 }), [])
    assert.deepStrictEqual(kinds({ queues, workers: [worker({ definitions: ["a@2"] })] }), ["error unserved"])
    assert.deepStrictEqual(kinds({ queues, workers: [worker({ definitions: null })] }), ["warning backlog"])
    const silent = worker({ definitions: ["a@1"], leaseUntil: quiet.now - 1 })
    assert.deepStrictEqual(kinds({ queues, workers: [silent] }), ["error unserved", "warning silent worker"])
    assert.deepStrictEqual(kinds({ workers: [worker({ state: "left", leaseUntil: 0 })] }), [])
    assert.deepStrictEqual(kinds({ workers: [worker({ state: "dead", leaseUntil: quiet.now - 5 })] }), [
      "warning lost worker"
    ])
    assert.deepStrictEqual(kinds({ workers: [worker({ state: "dead", leaseUntil: quiet.now - 3_600_000 })] }), [])
  })
})
