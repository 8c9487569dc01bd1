/** A SQLite file that is busy, damaged, foreign or newer; lost replies; and the ledger's time. */
import { describe, expect, it } from "@effect/vitest"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { SqlClient as SqlClientTag } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { layer, layerSqlite, Ledger, LedgerUnavailable, LedgerUnusable } from "@fermata/ledger"
import Sqlite from "better-sqlite3"
import { Clock, Context, Effect, Either, Fiber, Layer, TestClock } from "effect"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { missed, type Part } from "../../src/internal/Commit.js"
import { failureKind } from "../../src/internal/SqlFailure.js"
import {
  anyRun,
  completed,
  happened,
  intended,
  makeOwner,
  opened,
  refused,
  startRun,
  stepDone
} from "../outside/Owner.js"
import { openLedger } from "../outside/Place.js"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-weather-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Another program on the same file. */
const outsider = (filename: string) =>
  Effect.acquireRelease(
    Effect.sync(() => new Sqlite(filename)),
    (db) => Effect.sync(() => db.close())
  )

const turns = (count: number) =>
  Effect.replicateEffect(
    Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
    count
  )

describe("a busy file", () => {
  it.scopedLive("an outsider holds the write lock: appends and starts wait without blocking, then go through", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      const ledger = yield* openLedger(layerSqlite({ filename }))
      const owner = yield* makeOwner(ledger)
      const { journal } = yield* owner.started()
      const other = yield* outsider(filename)
      other.prepare("BEGIN IMMEDIATE").run()
      let durable = 0
      for (let n = 0; n < 5; n++) {
        journal.append(stepDone(`s#${n}`))
        journal.onDurable(journal.head, (lost) => {
          expect(lost).toBeUndefined()
          durable++
        })
      }
      const run = anyRun()
      const starting = yield* Effect.fork(startRun(ledger, run))
      const ending = yield* Effect.fork(journal.appendIf([completed], { inboxSeen: 0 }))
      yield* turns(50)
      expect(durable).toBe(0)
      // Reading goes on meanwhile.
      expect((yield* ledger.history(journal.branch)).entries).toHaveLength(1)
      other.prepare("COMMIT").run()
      expect(yield* Fiber.join(starting)).toMatchObject({ created: true })
      yield* Fiber.join(ending)
      expect(durable).toBe(5)
      expect((yield* ledger.history(journal.branch)).entries).toHaveLength(7)
    })
  )

  it.scopedLive("a lock that stays is said after the patience given, and nothing is lost", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      const ledger = yield* openLedger(layerSqlite({ filename, patience: 50 }))
      const other = yield* outsider(filename)
      other.prepare("BEGIN IMMEDIATE").run()
      const run = anyRun()
      const error = yield* Effect.flip(startRun(ledger, run))
      expect(error).toBeInstanceOf(LedgerUnavailable)
      expect(error).toMatchObject({ reason: "busy", operation: "start a run", database: filename })
      other.prepare("ROLLBACK").run()
      expect(yield* startRun(ledger, run)).toMatchObject({ created: true })
    })
  )
})

describe("opening a file", () => {
  const opening = (filename: string) => Effect.flip(Layer.build(layerSqlite({ filename, patience: 50 })))

  it.scopedLive("a file that is no database is left alone and named", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "notes.txt")
      writeFileSync(filename, "Dear diary, this is not a database. ".repeat(100))
      expect(yield* opening(filename)).toMatchObject({
        _tag: "LedgerUnusable",
        reason: "not a database",
        database: filename
      })
    })
  )

  it.scopedLive("a folder, or a path whose folder is missing, cannot be opened", () =>
    Effect.gen(function* () {
      const path = yield* folder
      mkdirSync(join(path, "folder.db"))
      for (const filename of [join(path, "folder.db"), join(path, "missing", "ledger.db")]) {
        expect(yield* opening(filename)).toMatchObject({ _tag: "LedgerUnusable", reason: "cannot be opened" })
      }
    })
  )

  it.scopedLive("a database of a newer version is not touched", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      yield* Effect.scoped(openLedger(layerSqlite({ filename })))
      const other = yield* outsider(filename)
      other.prepare("INSERT INTO fermata_migrations (migration_id, name) VALUES (9999, 'later')").run()
      const error = yield* opening(filename)
      expect(error).toBeInstanceOf(LedgerUnusable)
      expect(error).toMatchObject({ reason: "newer version" })
      expect(error.message).toContain("9999")
    })
  )

  it.scopedLive("tables of the same names that are someone else's are not used", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      const other = yield* outsider(filename)
      other.prepare("CREATE TABLE fermata_journal (mine TEXT)").run()
      expect(yield* opening(filename)).toMatchObject({ _tag: "LedgerUnusable", reason: "migration failed" })
      // All of the migration was rolled back.
      expect(other.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'fermata_r%'").all()).toEqual([])
    })
  )

  it.scopedLive("a file that is locked for as long as the patience lasts is said to be busy", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      const other = yield* outsider(filename)
      other.prepare("BEGIN EXCLUSIVE").run()
      expect(yield* opening(filename)).toMatchObject({ _tag: "LedgerUnavailable", reason: "busy" })
    })
  )

  it("a full disk, a read-only file and lost connections are told apart", () => {
    const failure = (code: string, message = "") => failureKind(Object.assign(new Error(message), { code }))
    expect(failure("SQLITE_FULL")).toBe("full")
    expect(failure("SQLITE_READONLY_DBMOVED")).toBe("read-only")
    expect(failure("SQLITE_BUSY_SNAPSHOT")).toBe("busy")
    expect(failure("53100")).toBe("full")
    expect(failure("40P01")).toBe("conflict")
    expect(failure("57P01")).toBe("disconnected")
    expect(failure("ECONNREFUSED")).toBe("disconnected")
    expect(failure("", "Connection terminated unexpectedly")).toBe("disconnected")
    expect(failure("23505")).toBe("failed")
    expect(failureKind("anything")).toBe("failed")
  })

  it.scopedLive("durability is set on every open, whatever the file was left with", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      for (const [synchronous, level] of [
        ["normal", 1],
        ["full", 2],
        [undefined, 2]
      ] as const) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const ledger = yield* openLedger(
              layerSqlite({ filename, ...(synchronous === undefined ? {} : { synchronous }) })
            )
            expect(yield* ledger.sql`PRAGMA synchronous`).toEqual([{ synchronous: level }])
            expect(yield* ledger.sql`PRAGMA journal_mode`).toEqual([{ journal_mode: "wal" }])
          })
        )
      }
    })
  )
})

describe("over another SqlClient", () => {
  it.scopedLive("the ledger works over the client that is provided", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      const context = yield* Layer.build(layer().pipe(Layer.provide(SqliteClient.layer({ filename }))))
      const ledger = Context.get(context, Ledger)
      expect(ledger).toMatchObject({ dialect: "sqlite", database: filename })
      const owner = yield* makeOwner(ledger)
      const { journal, write } = yield* owner.started()
      yield* write(stepDone("a"), stepDone("b"))
      yield* ledger.sql`UPDATE fermata_branches SET epoch = 99`
      expect(yield* Effect.flip(journal.appendIf([completed], { inboxSeen: 0 }))).toMatchObject({ _tag: "Fenced" })
      expect((yield* ledger.history(journal.branch)).entries).toHaveLength(3)
    })
  )
})

describe("a lost reply", () => {
  const digest = (n: number) => ({ seq: n, digest: `d${n}` })
  const part: Part = {
    branch: "r/main",
    run: "r",
    queued: false,
    epoch: 3,
    base: digest(5),
    mid: digest(6),
    head: digest(7),
    inboxSeen: 2,
    entries: [],
    conditional: [],
    letGo: null
  }
  const row = (change: object) =>
    ({ head: 5, headDigest: "d5", epoch: 3, owner: "w", inboxHead: 2, ...change }) as Parameters<typeof missed>[1]

  it("a part that is stored already is recognised, and nothing else is", () => {
    expect(missed(part, row({ head: 7, headDigest: "d7" }))._tag).toBe("Stored")
    expect(missed(part, row({ head: 6, headDigest: "d6", inboxHead: 3 }))).toEqual({
      _tag: "InboxAdvanced",
      inboxHead: 3
    })
    expect(missed(part, row({ head: 7, headDigest: "other" }))._tag).toBe("Fenced")
    expect(missed(part, row({ head: 7, headDigest: "d7", epoch: 4 }))._tag).toBe("Fenced")
    expect(missed(part, undefined)._tag).toBe("Fenced")
    // Not stored, and nothing speaks against it: only trying again tells.
    expect(missed(part, row({}))._tag).toBe("Again")
    expect(missed(part, row({ owner: null }))._tag).toBe("Fenced")
  })

  it("a release is stored once the branch has no owner", () => {
    const release: Part = {
      ...part,
      mid: digest(5),
      head: digest(5),
      letGo: { status: "waiting", readyAt: null, problem: null, standing: null }
    }
    expect(missed(release, row({ owner: null }))._tag).toBe("Stored")
    expect(missed(release, row({}))._tag).toBe("Again")
  })

  it.scopedLive("a commit that happened and whose reply was lost is not repeated", () =>
    Effect.gen(function* () {
      const filename = join(yield* folder, "ledger.db")
      // The client's connection answers COMMIT with a lost connection after it has happened.
      let losing = false
      let lost = 0
      const client = Layer.map(SqliteClient.layer({ filename }), (context) => {
        const sql = Context.get(context, SqliteClient.SqliteClient)
        const reserve = Effect.map(sql.reserve, (connection) => ({
          ...connection,
          execute: (...args: Parameters<typeof connection.execute>) =>
            Effect.tap(connection.execute(...args), () => {
              if (!losing || args[0] !== "COMMIT") return Effect.void
              losing = false
              lost++
              return new SqlError({ cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) })
            })
        }))
        // The wrapped client is called and read as the original.
        const wrapped = Object.assign(
          (...args: ReadonlyArray<never>) => (sql as never as (...a: ReadonlyArray<never>) => never)(...args),
          sql,
          {
            reserve
          }
        )
        return Context.add(context, SqlClientTag, wrapped as never)
      })
      const context = yield* Layer.build(layer().pipe(Layer.provide(client)))
      const ledger = Context.get(context, Ledger)
      const owner = yield* makeOwner(ledger)
      const { journal, write } = yield* owner.started()
      losing = true
      yield* write(stepDone("a"))
      losing = true
      expect(yield* Effect.either(journal.appendIf([stepDone("b")], { inboxSeen: 0 }))).toMatchObject({ _tag: "Right" })
      losing = true
      let runs = 0
      yield* journal.transact(
        Effect.sync(() => runs++),
        () => stepDone("c")
      )
      losing = true
      yield* journal.release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: 0 })
      losing = true
      const run = anyRun()
      expect(Either.isRight(yield* Effect.either(startRun(ledger, run)))).toBe(true)
      losing = true
      yield* owner.started(run)
      expect([lost, runs]).toEqual([6, 1])
      const { entries, branch } = yield* ledger.history(journal.branch)
      expect(entries.map(({ key }) => key)).toEqual(["", "a", "b", "c"])
      expect(branch).toMatchObject({ status: "waiting", owner: null })
    })
  )
})

describe("what may not wait for company", () => {
  it.scopedLive("outcomes of what happened outside, and questions, are stored although nobody waits for them", () =>
    Effect.gen(function* () {
      const ledger = yield* openLedger(layerSqlite({ filename: ":memory:" }))
      const { journal } = yield* (yield* makeOwner(ledger)).started()
      const urgent = [happened("pay", "s#0"), happened("pay", "s#0", "keyed"), refused("pay", "s#0"), opened("ask#0")]
      for (const draft of urgent) {
        journal.append(intended("pay", "s#0"))
        journal.append(draft)
        yield* turns(2)
        expect(journal.durable).toBe(journal.head)
      }
    })
  )
})

describe("time", () => {
  it.scopedLive("a clock that stands between two milliseconds gives whole ones", () =>
    Effect.gen(function* () {
      const host = Clock.make()
      const clock: Clock.Clock = {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        unsafeCurrentTimeMillis: () => 1000.5,
        unsafeCurrentTimeNanos: () => 1_000_500_000n,
        currentTimeMillis: Effect.succeed(1000.5),
        currentTimeNanos: Effect.succeed(1_000_500_000n),
        sleep: (time) => host.sleep(time)
      }
      const ledger = yield* Effect.withClock(openLedger(layerSqlite({ filename: ":memory:" })), clock)
      const { journal, write } = yield* (yield* makeOwner(ledger)).started()
      yield* write(stepDone("a"))
      const { entries } = yield* ledger.history(journal.branch)
      expect(entries.map(({ at }) => at)).toEqual([1000, 1000])
    })
  )

  it.scoped("on SQLite the ledger's time is the Clock's: three days pass at once for a waiting branch", () =>
    Effect.gen(function* () {
      const ledger = yield* openLedger(layerSqlite({ filename: ":memory:" }))
      const owner = yield* makeOwner(ledger)
      const { journal } = yield* owner.started()
      const due = ledger.unsafeNow() + 3 * 86_400_000
      yield* journal.release({ _tag: "Waiting", wakeAt: due }, { inboxSeen: 0 })
      const { worker } = yield* ledger.register({ lease: 1e9, place: undefined, look: () => "cannot tell" })
      const claim = ledger.claim({ worker, definitions: ["refund@1"], limit: 1 })
      yield* TestClock.adjust("71 hours")
      expect(yield* claim).toEqual([])
      yield* TestClock.adjust("1 hours")
      expect(yield* claim).toHaveLength(1)
      expect(yield* ledger.now).toBe(due)
    })
  )

  it.scopedLive(
    "a clock that jumps past the lease does not cost a worker its lease while nobody took its branches",
    () =>
      Effect.gen(function* () {
        const filename = join(yield* folder, "ledger.db")
        const host = Clock.make()
        let offset = 0
        const clock: Clock.Clock = {
          [Clock.ClockTypeId]: Clock.ClockTypeId,
          unsafeCurrentTimeMillis: () => host.unsafeCurrentTimeMillis() + offset,
          unsafeCurrentTimeNanos: () => host.unsafeCurrentTimeNanos() + BigInt(offset) * 1_000_000n,
          currentTimeMillis: Effect.sync(() => host.unsafeCurrentTimeMillis() + offset),
          currentTimeNanos: Effect.sync(() => host.unsafeCurrentTimeNanos() + BigInt(offset) * 1_000_000n),
          sleep: (duration) => host.sleep(duration)
        }
        const ledger = yield* Effect.withClock(openLedger(layerSqlite({ filename })), clock)
        const { worker, lost } = yield* ledger.register({ lease: 300, place: undefined, look: () => "cannot tell" })
        const loss = yield* Effect.fork(lost)
        offset = 1e9
        const until = Effect.map(
          ledger.sql<{
            readonly lease_until: number
          }>`SELECT lease_until FROM fermata_workers WHERE worker_id = ${worker}`,
          ([row]) => row?.lease_until ?? 0
        )
        // Ends by itself with the next renewal; without one the test times out.
        while ((yield* until) < ledger.unsafeNow()) yield* turns(1)
        expect((yield* Fiber.poll(loss))._tag).toBe("None")
      })
  )
})
