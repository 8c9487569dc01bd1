/** Runs are found by tags, status and time, on both databases. */
import { assert, describe, it } from "@effect/vitest"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { Effect, Layer, Schema } from "effect"
import { Client, Interrupt, Ledger, Worker, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"
import { refusedAs } from "./ClientFixture.js"

const Approval = Interrupt.make("approval", { answer: Schema.String })

/** Takes its stage from what it waits for, so that tests decide when tags are set. */
const Order = Workflow.make(
  "order",
  {
    version: "1",
    success: Schema.String,
    tags: { tenant: Schema.String, cents: Schema.NumberFromString, stage: Schema.String, weight: Schema.Number }
  },
  () =>
    Effect.gen(function* () {
      yield* Workflow.tag({ stage: "begun", weight: 1 })
      yield* Workflow.tag({ stage: "waiting" })
      const answer = yield* Approval()
      yield* Workflow.tag({ stage: answer })
      return answer
    })
)

const Wrong = Workflow.make("wrong", { version: "1", tags: { stage: Schema.String } }, () =>
  Effect.catchAllDefect(Workflow.tag({ stage: 3 }), () => Workflow.tag({ stage: "refused" }))
)

const names = (found: ReadonlyArray<Client.Description>) => found.map(({ run }) => String(run))

describe.each(PlaneAddress.databases)("tags on %s", (database) => {
  const plane = Layer.unwrapScoped(Effect.map(PlaneAddress.fresh(database), PlaneAddress.layer))
  const live = Worker.layer({ workflows: [Order, Wrong] }).pipe(Layer.provideMerge(plane))

  it.scopedLive("are given at the start and by the workflow, found and counted, and purged with their run", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const ledger = yield* Ledger
      const start = (run: string, tenant: string, cents: number) =>
        client.start(Order, undefined, { run, tags: { tenant, cents } })
      yield* start("a", "acme", 100)
      yield* start("b", "acme", 250)
      yield* start("c", "other", 300)
      // The same start again changes no tags.
      assert.isFalse((yield* start("a", "other", 1)).created)
      for (const run of ["a", "b", "c"]) yield* client.awaitStatus(run, ({ status }) => status === "waiting")
      assert.deepStrictEqual(yield* client.tags("a"), { cents: "100", stage: "waiting", tenant: "acme", weight: 1 })
      assert.deepStrictEqual(names(yield* client.list({ tags: { tenant: "acme" } })), ["b", "a"])
      assert.deepStrictEqual(names(yield* client.list({ tags: { tenant: "acme", cents: "250" } })), ["b"])
      assert.deepStrictEqual(names(yield* client.list({ tags: { weight: { min: 1, max: 1 } } })), ["c", "b", "a"])
      assert.strictEqual(yield* client.count({ tags: { weight: { min: 1.5 } } }), 0)
      assert.strictEqual(yield* client.count({ tags: { stage: "begun" } }), 0)
      assert.strictEqual(yield* client.count({ workflow: "order", status: "waiting", tags: { stage: "waiting" } }), 3)

      // A fork tells another story: the run is found by its root's tags.
      const answer = { branch: "b/main", interrupt: "approval#1", value: "forked", deliveryId: "f" }
      yield* client.resume(Approval, { ...answer, intent: "fork", forkId: "f" })
      yield* client.awaitStatus("b/f", ({ status }) => status === "completed")
      assert.strictEqual(yield* client.count({ tags: { stage: "forked" } }), 0)

      yield* client.resume(Approval, { ...answer, branch: "a/main", value: "paid", intent: "retry" })
      assert.strictEqual(yield* client.result(Order, "a"), "paid")
      assert.deepStrictEqual(names(yield* client.list({ tags: { stage: "paid" } })), ["a"])
      const { createdAt } = yield* client.describe("a")
      const ended = (yield* client.history("a")).at(-1)?.at ?? 0
      assert.deepStrictEqual(names(yield* client.list({ endedAfter: new Date(ended) })), ["a"])
      assert.deepStrictEqual(names(yield* client.list({ endedBefore: new Date(ended) })), [])
      assert.deepStrictEqual(names(yield* client.list({ startedBefore: new Date(createdAt) })), [])
      assert.include(names(yield* client.list({ startedAfter: new Date(createdAt) })), "a")

      // What the table says is what the journal says: a replay of it, and a change by hand is found.
      yield* Testing.replayCheck(Order, (yield* client.describe("a")).branch)
      assert.deepStrictEqual((yield* ledger.verify).problems, [])
      yield* ledger.sql`UPDATE fermata_tags SET text = 'stolen' WHERE run_id = 'a' AND name = 'tenant'`
      assert.match((yield* ledger.verify).problems.map(({ message }) => message).join(), /tag tenant/)

      yield* client.purge("a")
      yield* refusedAs("RunPurged", client.tags("a"))
      assert.deepStrictEqual(yield* ledger.sql`SELECT name FROM fermata_tags WHERE run_id = 'a'`, [])
    }).pipe(Effect.provide(live))
  )

  it.scopedLive("of a wrong type, and filters that are none, are refused with their name", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      // JavaScript callers are not bound by the types.
      const start = (tags: object) => client.start(Order, undefined, { run: "x", tags })
      const refused = yield* refusedAs("InvalidValue", start({ weight: "heavy", color: "red" }))
      assert.match(refused.issues.join("\n"), /weight.*\n.*color: the workflow does not declare it/)
      yield* refusedAs("InvalidValue", start({ tenant: "x".repeat(257) }))
      yield* refusedAs("RunNotFound", client.describe("x"))
      yield* refusedAs("InvalidValue", client.list({ tags: { weight: { min: Number.NaN } } }))
      yield* refusedAs("InvalidValue", client.count({ startedAfter: new Date("no time") }))
      yield* client.start(Wrong, undefined, { run: "w" })
      yield* client.result(Wrong, "w")
      assert.deepStrictEqual(yield* client.tags("w"), { stage: "refused" })
    }).pipe(Effect.provide(live))
  )

  it.scopedLive("are found by an index, and pages stand still while runs start", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const ledger = yield* Ledger
      const { sql } = ledger
      for (const run of ["1", "2", "3", "4", "5"]) {
        yield* client.start(Order, undefined, { run, tags: { tenant: "t" }, delay: "1 hour" })
      }
      const filter = { tags: { tenant: "t" } }
      const first = yield* client.list({ ...filter, limit: 2 })
      yield* client.start(Order, undefined, { run: "6", tags: { tenant: "t" }, delay: "1 hour" })
      const [, last] = first
      assert.isDefined(last)
      const rest = last === undefined ? [] : yield* client.list({ ...filter, after: last })
      assert.deepStrictEqual([...names(first), ...names(rest)], ["5", "4", "3", "2", "1"])
      const query = `SELECT run_id FROM fermata_tags WHERE name = 'tenant' AND text IS NOT NULL AND text = 't'`
      const plan = yield* ledger.dialect === "pg"
        ? sql.withTransaction(
            Effect.zipRight(sql.unsafe("SET LOCAL enable_seqscan = off"), sql.unsafe(`EXPLAIN ${query}`))
          )
        : sql.unsafe(`EXPLAIN QUERY PLAN ${query}`)
      assert.include(JSON.stringify(plan), "fermata_tags_text")
    }).pipe(Effect.provide(live))
  )
})
