/** What callers and databases get wrong: a typed error that says what, where and what to do, and nothing lost. */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, layerSqlite } from "@fermata/ledger"
import { Client, Delivery, Interrupt, Node, Plane, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import Database from "better-sqlite3"
import { Deferred, Effect, Layer, Logger, Schema } from "effect"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const Ask = Interrupt.make("ask", { answer: Schema.Boolean })
const Other = Interrupt.make("other", { answer: Schema.Boolean })
const Asks = Workflow.make("asks", { version: "1", success: Schema.Boolean }, () => Ask())
const AsksNext = Workflow.make("asks", { version: "2", success: Schema.Boolean }, () => Ask())
const Counts = Workflow.make("counts", { version: "1", input: Schema.Number, success: Schema.Number }, (n) =>
  Effect.succeed(n + 1)
)
const Lost = SideEffect.make("lost", { delivery: Delivery.once(), success: Schema.Number })
const lose = Node.make("lose", { success: Schema.Number, effects: [Lost] }, () => Lost())
const Loses = Workflow.make("loses", { version: "1", success: Schema.Number }, () => lose())
const LostLive = Lost.toLayer(() => Effect.dieMessage("no answer"))

const isWaiting = ({ status }: Client.Description): boolean => status === "waiting"

const refused = <A, E extends { readonly _tag: string; readonly message: string }, R>(
  tag: E["_tag"],
  effect: Effect.Effect<A, E, R>
): Effect.Effect<E, A, R> =>
  Effect.tap(Effect.flip(effect), (error) => Effect.sync(() => assert.strictEqual(error._tag, tag, error.message)))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-bad-input-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const quiet = Logger.remove(Logger.defaultLogger)

const badInputSuite = <E>(place: string, plane: Layer.Layer<Plane.Plane, E>): void => {
  describe(`bad input on ${place}`, () => {
    it.scopedLive("a workflow or a version that no worker knows is left alone, and said to wait for one", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        yield* client.start(AsksNext, undefined, { run: "newer" })
        yield* client.start(Counts, 1, { run: "unknown" })
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Layer.build(Worker.layer({ workflows: [Asks] }))
            yield* client.start(Asks, undefined, { run: "known" })
            yield* client.awaitStatus("known", isWaiting)
            for (const [run, definition] of [
              ["newer", "asks@2"],
              ["unknown", "counts@1"]
            ] as const) {
              const { head, status, waitingFor } = yield* client.describe(run)
              assert.strictEqual(status, "ready")
              assert.deepStrictEqual([...waitingFor], [{ _tag: "Worker", definition }])
              assert.strictEqual(head, 1)
            }
          })
        )
        yield* Layer.build(Worker.layer({ workflows: [Asks, AsksNext, Counts] }))
        assert.strictEqual(yield* client.result(Counts, "unknown"), 2)
        yield* client.awaitStatus("newer", isWaiting)
        // The answer of a newer version's run is nobody else's.
        const wrong = yield* refused("WrongWorkflow", client.result(Counts, "newer"))
        assert.include(wrong.message, "asks")
      }).pipe(Effect.scoped, Effect.provide(plane))
    )

    it.scopedLive(
      "code that does not fit the history gets stuck once, also with an answer waiting; corrected code goes on",
      () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const ledger = yield* Ledger
          const Wrong = Workflow.make("asks", { version: "1", success: Schema.Boolean }, () => Other())
          const { branch } = yield* client.start(Asks, undefined, { run: "r" })
          const working = <A, E2, R>(workflow: typeof Asks, body: Effect.Effect<A, E2, R>) =>
            Effect.scoped(
              Effect.zipRight(Layer.build(Worker.layer({ workflows: [workflow, Counts], poll: "20 millis" })), body)
            )
          yield* working(Asks, client.awaitStatus(branch, isWaiting))
          yield* client.resume(Ask, { branch, interrupt: "ask#1", value: true, deliveryId: "d", intent: "retry" })
          yield* working(
            Wrong,
            Effect.gen(function* () {
              const stuck = yield* client.awaitStatus(branch, ({ status }) => status === "stuck")
              assert.strictEqual(stuck.problems[0]?._tag, "NonDeterminism")
              const { epoch } = yield* ledger.branch(branch)
              // It is not taken up again and again: others run meanwhile, and its epoch stays.
              for (const run of ["a", "b", "c"]) {
                yield* client.start(Counts, 1, { run })
                yield* client.result(Counts, run)
              }
              assert.strictEqual((yield* ledger.branch(branch)).epoch, epoch)
            })
          )
          yield* working(
            Asks,
            Effect.map(client.result(Asks, branch), (answer) => assert.isTrue(answer))
          )
        }).pipe(Effect.scoped, Effect.provide(plane))
    )

    it.scopedLive("an answer that names no open interrupt is refused by name and changes nothing (B37)", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        yield* Layer.build(Worker.layer({ workflows: [Asks, Loses] }).pipe(Layer.provide(LostLive)))
        const answer = (branch: string, interrupt = "ask#1", of: typeof Ask | typeof Other = Ask) =>
          client.resume(of as typeof Ask, { branch, interrupt, value: true, deliveryId: "late", intent: "retry" })
        for (const run of ["open", "done", "cancelled", "purged"]) {
          yield* client.start(Asks, undefined, { run })
          yield* client.awaitStatus(run, isWaiting)
        }
        yield* client.resume(Ask, {
          branch: "done/main",
          interrupt: "ask#1",
          value: false,
          deliveryId: "first",
          intent: "retry"
        })
        assert.isFalse(yield* client.result(Asks, "done"))
        for (const run of ["cancelled", "purged"]) {
          yield* client.cancel(run)
          yield* refused("RunCancelled", client.result(Asks, run))
        }
        yield* client.purge("purged")
        const before = yield* Effect.forEach(["open", "done", "cancelled"], (run) => client.history(run))

        yield* refused("UnknownInterrupt", answer("open/main", "ask#2"))
        yield* refused("UnknownInterrupt", answer("open/main", "nothing"))
        yield* refused("UnknownInterrupt", answer("open/main", "ask#1", Other))
        yield* refused("UnknownInterrupt", answer("open/elsewhere"))
        yield* refused("UnknownInterrupt", answer("nobody/main"))
        yield* refused("AlreadyConsumed", answer("done/main"))
        yield* refused("UnknownInterrupt", answer("done/main", "ask#2"))
        yield* refused("InterruptClosed", answer("cancelled/main"))
        yield* refused("RunPurged", answer("purged/main"))
        for (const branch of ["", "no-slash", "a/", "x\u0000/main", "é".repeat(10_000)]) {
          const error = yield* refused("InvalidId", answer(branch))
          assert.isBelow(error.message.length, 500)
        }
        for (const interrupt of ["", "a\u0000#1", "x".repeat(10_000)]) {
          yield* refused("InvalidId", answer("open/main", interrupt))
        }

        assert.deepStrictEqual(
          yield* Effect.forEach(["open", "done", "cancelled"], (run) => client.history(run)),
          before
        )
        assert.isTrue(isWaiting(yield* client.describe("open")))
        assert.strictEqual((yield* answer("open/main"))._tag, "Answered")
        assert.isTrue(yield* client.result(Asks, "open"))
      }).pipe(Effect.scoped, Effect.provide(plane))
    )

    it.scopedLive("an id that is taken, or is none, is refused; the first run goes on after a restart (B49)", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        const worker = Worker.layer({ workflows: [Asks, Counts] })
        yield* client.start(Asks, undefined, { run: "x" })
        yield* Effect.scoped(Effect.zipRight(Layer.build(worker), client.awaitStatus("x", isWaiting)))
        const conflict = yield* refused("RunConflict", client.start(Counts, 1, { run: "x" }))
        assert.include(conflict.message, "asks")
        assert.include(conflict.message, "Use another run id")
        yield* client.start(Counts, 1, { run: "y" })
        yield* refused("RunConflict", client.start(Counts, 2, { run: "y" }))
        for (const run of ["", " ", "\t", "x ", "a\u0000", "a\u007f", "x".repeat(10_240), "\udc00"]) {
          const error = yield* refused("InvalidId", client.start(Asks, undefined, { run }))
          assert.include(error.message, "run id")
          assert.isBelow(error.message.length, 500)
        }
        const { created } = yield* client.start(Counts, 7, { run: "🐎 žluťoučký" })
        assert.isTrue(created)
        yield* Layer.build(worker)
        yield* client.resume(Ask, {
          branch: "x/main",
          interrupt: "ask#1",
          value: true,
          deliveryId: "🐎",
          intent: "retry"
        })
        assert.isTrue(yield* client.result(Asks, "x"))
        assert.strictEqual(yield* client.result(Counts, "y"), 2)
        assert.strictEqual(yield* client.result(Counts, "🐎 žluťoučký"), 8)
        assert.strictEqual((yield* client.list()).length, 3)
      }).pipe(Effect.scoped, Effect.provide(plane))
    )

    it.scopedLive("settlements, forks and purges of what is not there are refused, and what is there stays", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        yield* Layer.build(Worker.layer({ workflows: [Asks, Loses] }).pipe(Layer.provide(LostLive)))
        const { branch } = yield* client.start(Loses, undefined, { run: "doubt" })
        const stuck = yield* client.awaitStatus(branch, ({ status }) => status === "stuck")
        const [problem] = stuck.problems
        if (problem?._tag !== "InDoubt") return assert.fail(JSON.stringify(stuck))
        const settle = (key: string, of: string = branch, value = 1) =>
          client.settle(Lost, { branch: of, key, settlement: { _tag: "Happened", value } })
        for (const key of ["", "nothing", `${problem.key}~2`, "a\u0000b", "x".repeat(10_000)]) {
          yield* refused("UnknownEffect", settle(key))
        }
        yield* refused("UnknownEffect", settle(problem.key, "nobody/main"))
        yield* refused("UnknownEffect", settle(problem.key, "not a branch"))

        const fork = (seq: number, forkId = "f", of = branch) => client.fork({ from: { branch: of, seq }, forkId })
        for (const seq of [0, -1, 1.5, NaN, Infinity, stuck.head + 1, Number.MAX_SAFE_INTEGER]) {
          yield* refused("UnknownCheckpoint", fork(seq))
        }
        const inFlight = yield* refused("EffectInFlight", fork(stuck.head))
        assert.include(inFlight.message, "Nearest forkable positions")
        for (const forkId of ["", "a/b", "main", "x".repeat(10_000), "\u0000"]) {
          yield* refused("InvalidId", fork(1, forkId))
        }
        yield* refused("RunNotFound", fork(1, "f", "nobody/main" as typeof branch))
        assert.strictEqual((yield* client.branches("doubt")).length, 1)

        const { message } = yield* refused("RunNotOver", client.purge("doubt"))
        assert.include(message, branch)
        yield* refused("RunNotFound", client.purge("nobody"))
        assert.strictEqual((yield* client.describe(branch)).head, stuck.head)

        assert.strictEqual(yield* settle(problem.key), "Accepted")
        assert.strictEqual(yield* client.result(Loses, branch), 1)
        assert.strictEqual(yield* settle(problem.key), "Duplicate")
        yield* refused("AlreadySettled", settle(problem.key, branch, 2))
        yield* client.purge("doubt")
        // Its id is not used again: nothing late can bring it back (B45).
        yield* refused("RunPurged", client.start(Loses, undefined, { run: "doubt" }))
        yield* refused("RunPurged", client.describe("doubt"))
        yield* refused("RunPurged", client.result(Loses, "doubt"))
        yield* refused("RunPurged", client.history("doubt"))
        yield* refused("RunPurged", client.cancel("doubt"))
        yield* refused("RunPurged", settle(problem.key))
        yield* refused("RunPurged", fork(1))
        yield* refused("RunPurged", client.purge("doubt"))
        assert.deepStrictEqual((yield* (yield* Ledger).verify).problems, [])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(plane, quiet)))
    )
  })
}

badInputSuite(
  "a SQLite file",
  Layer.unwrapScoped(
    Effect.map(folder, (path) => Plane.sqlite({ filename: join(path, "plane.db"), synchronous: "normal" }))
  )
)
badInputSuite("PostgreSQL", Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url }))))

describe("a database that cannot be used", () => {
  /** Why the plane cannot be opened. */
  const closed = <E>(plane: Layer.Layer<Plane.Plane, E>) => Effect.flip(Effect.scoped(Layer.build(plane)))

  it.scopedLive("of a newer version is left alone", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "plane.db")
      for (const plane of [Plane.sqlite({ filename }), Plane.postgres({ url: yield* freshPostgres })]) {
        yield* Effect.provide(
          Effect.flatMap(
            Ledger,
            ({ sql }) => sql`INSERT INTO fermata_migrations (migration_id, name) VALUES (99, ${"future"})`
          ),
          plane
        )
        const error = yield* closed(plane)
        assert.strictEqual(error._tag === "LedgerUnusable" && error.reason, "newer version")
        assert.match(error.message, /version 99.*newer version of this package.*nothing was changed/)
      }
    })
  )

  it.scopedLive("that is read-only says so, and is not changed", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const filename = join(path, "plane.db")
      yield* Effect.scoped(Layer.build(Plane.sqlite({ filename })))
      const before = readFileSync(filename)
      chmodSync(filename, 0o444)
      chmodSync(path, 0o555)
      // Root may write everywhere: then somebody else opens it.
      const asNobody = process.geteuid?.() === 0
      const error = yield* Effect.acquireUseRelease(
        Effect.sync(() => {
          if (asNobody) process.seteuid?.(65534)
        }),
        () => closed(Plane.sqlite({ filename })),
        () =>
          Effect.sync(() => {
            if (asNobody) process.seteuid?.(0)
            chmodSync(path, 0o755)
          })
      )
      assert.strictEqual(error._tag === "LedgerUnusable" && error.reason, "read-only", error.message)
      assert.include(error.message, filename)
      assert.include(error.message, "right to write")
      assert.isTrue(readFileSync(filename).equals(before))
    })
  )

  it.scopedLive("that stays locked is busy; what waits for it goes on once it is free", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "plane.db")
      const plane = Layer.provideMerge(Client.layer, layerSqlite({ filename, patience: 200 }))
      yield* Effect.gen(function* () {
        const client = yield* Client.Client
        const outsider = yield* Effect.acquireRelease(
          Effect.sync(() => new Database(filename)),
          (open) => Effect.sync(() => open.close())
        )
        outsider.exec("BEGIN IMMEDIATE")
        const error = yield* refused("LedgerUnavailable", client.start(Counts, 1, { run: "r" }))
        assert.include(error.message, "busy")
        assert.include(error.message, filename)
        assert.include(error.message, "try again")
        // Reading needs no lock.
        yield* refused("RunNotFound", client.describe("r"))
        outsider.exec("COMMIT")
        assert.isTrue((yield* client.start(Counts, 1, { run: "r" })).created)
      }).pipe(Effect.scoped, Effect.provide(plane))
    })
  )

  it.scopedLive("that is full refuses what does not fit; runs under way go on once there is room", () =>
    Effect.gen(function* () {
      const computed = { times: 0 }
      const fired: Array<string> = []
      const again = yield* Deferred.make<void>()
      const Charge = SideEffect.make("charge", { delivery: Delivery.keyed })
      const compute = Node.make("compute", { success: Schema.String }, () =>
        Effect.suspend(() => {
          computed.times += 1
          const text = "x".repeat(400_000)
          // Computed once more because the first outcome could not be made durable.
          return computed.times === 2 ? Effect.as(Deferred.succeed(again, undefined), text) : Effect.succeed(text)
        })
      )
      const charge = Node.make("charge", { effects: [Charge] }, () => Charge())
      const Fills = Workflow.make("fills", { version: "1", success: Schema.Number }, () =>
        Effect.gen(function* () {
          const text = yield* compute()
          yield* charge()
          return text.length
        })
      )
      const Large = Workflow.make("large", { version: "1", input: Schema.String }, () => Effect.void)
      const handlers = Charge.toLayer((_, { key }) => Effect.sync(() => void fired.push(key)))
      const filename = join(yield* folder, "plane.db")
      yield* Effect.gen(function* () {
        const client = yield* Client.Client
        const ledger = yield* Ledger
        const run = yield* client.start(Fills, undefined)
        const [row] = yield* ledger.sql.unsafe<{ readonly page_count: number }>("PRAGMA page_count")
        yield* ledger.sql.unsafe(`PRAGMA max_page_count = ${(row?.page_count ?? 0) + 8}`)
        const error = yield* refused("LedgerUnavailable", client.start(Large, "x".repeat(400_000), { run: "large" }))
        assert.include(error.message, "full")
        assert.include(error.message, filename)
        yield* refused("RunNotFound", client.describe("large"))
        yield* Layer.build(Worker.layer({ workflows: [Fills], poll: "100 millis" }).pipe(Layer.provide(handlers)))
        yield* Deferred.await(again)
        // Output commit: nothing leaves while what it depends on is not durable.
        assert.deepStrictEqual(fired, [])
        yield* ledger.sql.unsafe("PRAGMA max_page_count = 1000000")
        assert.strictEqual(yield* client.result(Fills, run), 400_000)
        assert.strictEqual(fired.length, 1)
        assert.deepStrictEqual((yield* ledger.verify).problems, [])
      }).pipe(Effect.scoped, Effect.provide(Layer.merge(Plane.sqlite({ filename }), quiet)))
    })
  )
})
