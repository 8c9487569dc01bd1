import { assert, describe, it } from "@effect/vitest"
import { Client, Plane, Workflow } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import { Context, Effect, Either, Layer, Redacted } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { handWorker } from "./HandWorker.js"

const Nothing = Workflow.make("nothing", { version: "1" }, () => Effect.void)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-plane-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Why the plane cannot be opened. */
const refused = <E>(plane: Layer.Layer<Plane.Plane, E>) => Effect.flip(Effect.scoped(Layer.build(plane)))

describe("a plane", () => {
  it.scopedLive("keeps runs in its file for whoever opens it next", () =>
    Effect.gen(function* () {
      const plane = Plane.sqlite({ filename: join(yield* folder, "plane.db") })
      yield* Effect.provide(
        Effect.flatMap(Client.Client, (client) => client.start(Nothing, undefined, { run: "r" })),
        plane
      )
      const found = yield* Effect.provide(
        Effect.flatMap(Client.Client, (client) => client.describe("r")),
        plane
      )
      assert.strictEqual(found.status, "ready")
    })
  )

  it.scopedLive("two on one file: what ends in one is heard by who waits in the other", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "plane.db")
      const plane = Plane.sqlite({ filename, synchronous: "normal" })
      const one = yield* Layer.build(plane)
      const two = Context.get(yield* Layer.build(Layer.fresh(plane)), Client.Client)
      const worker = yield* Effect.provide(handWorker, one)
      const run = yield* Context.get(one, Client.Client).start(Nothing, undefined)
      const began = performance.now()
      const asked = yield* Effect.fork(Effect.either(two.result(Nothing, run)))
      const running = yield* Effect.fork(two.awaitStatus(run, ({ status }) => status === "running"))
      const journal = yield* worker.take(Nothing.definition)
      yield* running
      yield* worker.end(journal, "run.cancelled", { reason: "heard" })
      const ended = yield* asked
      assert.isTrue(Either.isLeft(ended) && ended.left._tag === "RunCancelled" && ended.left.reason === "heard")
      // Heard, and not found by the poll that comes after 5 seconds.
      assert.isBelow(performance.now() - began, 4_000)
    })
  )

  it.scopedLive("that cannot be opened says what, where and what to do, and leaves the file as it is", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const text = join(path, "notes.txt")
      writeFileSync(text, "dear diary, ".repeat(500))
      const notOne = yield* refused(Plane.sqlite({ filename: text }))
      assert.strictEqual(notOne._tag, "LedgerUnusable")
      assert.include(notOne.message, text)
      assert.strictEqual(readFileSync(text, "utf8"), "dear diary, ".repeat(500))

      const nowhere = join(path, "missing", "plane.db")
      const noFolder = yield* refused(Plane.sqlite({ filename: nowhere }))
      assert.include(noFolder.message, nowhere)
      const aFolder = yield* refused(Plane.sqlite({ filename: path }))
      assert.include(aFolder.message, path)
    })
  )

  it.scopedLive("on PostgreSQL is there for every client, and takes a redacted URL", () =>
    Effect.gen(function* () {
      const url = Redacted.make(yield* freshPostgres)
      const status = Effect.provide(
        Effect.gen(function* () {
          const client = yield* Client.Client
          const run = yield* client.start(Nothing, undefined, { run: "r" })
          return (yield* client.describe(run)).status
        }),
        Plane.postgres({ url, maxConnections: 4 })
      )
      assert.strictEqual(yield* status, "ready")
      assert.strictEqual(yield* status, "ready")
    })
  )

  it.scopedLive("on PostgreSQL that is down, or refuses, is named without its credentials", () =>
    Effect.gen(function* () {
      const down = yield* refused(Plane.postgres({ url: "postgres://ada:secret@127.0.0.1:1/orders" }))
      assert.strictEqual(down._tag, "LedgerUnavailable")
      const wrong = new URL(yield* freshPostgres)
      wrong.pathname = "/no_such_database"
      const missing = yield* refused(Plane.postgres({ url: wrong.href }))
      for (const [error, place] of [
        [down, "127.0.0.1:1/orders"],
        [missing, "/no_such_database"]
      ] as const) {
        assert.include(error.message, place)
        assert.notInclude(error.message, "secret")
        assert.notInclude(JSON.stringify(error), "secret")
        if (wrong.password !== "") assert.notInclude(JSON.stringify(error), wrong.password)
      }
    })
  )
})
