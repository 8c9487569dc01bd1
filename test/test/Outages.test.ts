import { payloadOf } from "@fermata/contract"
import { Client } from "@fermata/runtime"
import { Attempts, Chain, Touch, Try } from "@fermata/test/cases/Chain"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { startPostgres } from "@fermata/test/PostgresServer"
import * as Child from "@fermata/test/processes/Child"
import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Redacted, Schema, type Scope } from "effect"
import { join } from "node:path"

interface Ground {
  readonly plane: PlaneAddress.PlaneAddress
  readonly logFile: string
  readonly log: EffectLog.EffectLog
}

const ground = (plane: PlaneAddress.PlaneAddress): Effect.Effect<Ground, never, Scope.Scope> =>
  Effect.gen(function* () {
    const logFile = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(logFile)),
      (log) => Effect.sync(log.close)
    )
    return { plane, logFile, log }
  })

const worker = ({ logFile, plane }: Ground, options?: Child.Options) =>
  Child.spawn("cases/worker", { ...options, input: { plane, log: logFile } })

const startChains = (runs: ReadonlyArray<string>, steps: number) =>
  Effect.flatMap(Client.Client, (client) =>
    Effect.forEach(runs, (run) => client.start(Chain, { run, steps }, { run }), { concurrency: 8, discard: true })
  )

const results = (runs: ReadonlyArray<string>) =>
  Effect.flatMap(Client.Client, (client) =>
    Effect.forEach(runs, (run) => client.result(Chain, run), { concurrency: "unbounded" })
  )

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)

/** EO of keyed steps: each happened, under one key, with one input, and its step has one outcome. */
const expectEachStepOnce = ({ log }: Ground, runs: ReadonlyArray<string>, steps: number) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const inputs = new Map<string, Set<string>>()
    for (const row of log.rows()) {
      if (row.effect !== Touch.name) continue
      inputs.set(row.idempotencyKey, (inputs.get(row.idempotencyKey) ?? new Set()).add(row.inputDigest))
    }
    const happened = [...inputs.values()].flatMap((of) => [...of])
    expect(happened.toSorted()).toEqual(
      runs.flatMap((run) => Array.from({ length: steps }, (_, n) => `${run} ${n + 1}`)).toSorted()
    )
    yield* Effect.forEach(
      runs,
      (run) =>
        Effect.gen(function* () {
          const outcomes = (yield* client.history(run)).filter(({ kind }) => kind === "step.succeeded")
          expect(new Set(outcomes.map(({ key }) => key)).size).toBe(outcomes.length)
          expect(outcomes.length).toBe(steps)
        }),
      { discard: true }
    )
  })

describe.each(PlaneAddress.databases)("a run on %s", (database) => {
  it.scopedLive(
    "is durable when start returns, whatever happens next (B31)",
    () =>
      Effect.gen(function* () {
        const here = yield* ground(yield* PlaneAddress.fresh(database))
        const starter = yield* Child.spawn("cases/starter", { input: { plane: here.plane } })
        const started = yield* Effect.replicateEffect(starter.receive(Schema.String), 20)
        yield* starter.kill
        yield* worker(here)
        yield* Effect.gen(function* () {
          expect(yield* results(started)).toEqual(started.map(() => 1))
          const client = yield* Client.Client
          const listed = (yield* client.list({ limit: 1000 })).map(({ run }) => run)
          expect(listed).toEqual(expect.arrayContaining(started))
          // A start whose return was not seen may be there, too: it runs like the others.
          yield* results(listed)
          yield* expectEachStepOnce(here, listed, 1)
        }).pipe(Effect.provide(PlaneAddress.layer(here.plane)))
      }),
    180_000
  )

  it.scopedLive(
    "does not count lost workers as attempts (B65)",
    () =>
      Effect.gen(function* () {
        const here = yield* ground(yield* PlaneAddress.fresh(database))
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          // Two of three attempts are refused; the third is lost with its worker, five times.
          yield* client.start(Attempts, { run: "r", failures: 2 }, { run: "r" })
          for (let restart = 1; restart <= 5; restart++) {
            const lost = yield* worker(here, { stopAt: ["trying"] })
            yield* lost.stopped("trying")
            yield* lost.kill
          }
          yield* worker(here)
          expect(yield* client.result(Attempts, "r")).toBe(2)
          const retries = (yield* client.history("r")).flatMap(({ kind, payload }) =>
            kind === "step.retried" ? [payloadOf({ kind, payload }).attempt] : []
          )
          expect(retries).toEqual([1, 2])
          expect(here.log.rows().map(({ effect }) => effect)).toEqual(["refused", "refused", Try.name])
          // Exhaustion is visible: the third refusal is the run's.
          yield* client.start(Attempts, { run: "x", failures: 3 }, { run: "x" })
          expect(yield* Effect.flip(client.result(Attempts, "x"))).toMatchObject({ _tag: "Refused", times: 3 })
        }).pipe(Effect.provide(PlaneAddress.layer(here.plane)))
      }),
    180_000
  )
})

/** Makes the database unusable for a while; what it does to those who wait is what is tested. */
interface Outage {
  readonly plane: PlaneAddress.PlaneAddress
  readonly cut: (duration: "2 seconds" | "6 seconds") => Effect.Effect<void>
}

const lockedSqlite: Effect.Effect<Outage, never, Scope.Scope> = Effect.gen(function* () {
  const plane = yield* PlaneAddress.fresh("SQLite")
  return {
    plane,
    cut: (duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const outsider = new Database(plane._tag === "Sqlite" ? plane.filename : "", { timeout: 60_000 })
          outsider.exec("BEGIN IMMEDIATE")
          return outsider
        }),
        () => Effect.sleep(duration),
        (outsider) => Effect.sync(() => outsider.close())
      )
  }
})

const stoppedPostgres: Effect.Effect<Outage, never, Scope.Scope> = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startPostgres()),
    (server) => Effect.promise(server.stop)
  )
  return {
    plane: { _tag: "Postgres", url: server.url },
    cut: (duration) =>
      Effect.promise(server.crash).pipe(
        Effect.zipRight(Effect.sleep(duration)),
        Effect.zipRight(Effect.promise(server.start))
      )
  }
})

for (const { database, outage } of [
  { database: "a SQLite file that is locked", outage: lockedSqlite },
  { database: "a PostgreSQL server that is stopped and started", outage: stoppedPostgres }
]) {
  describe(`${database}`, () => {
    it.scopedLive(
      "delays the recovery of 50 runs for 2 seconds and loses none (B51)",
      () =>
        Effect.gen(function* () {
          const { cut, plane } = yield* outage
          const here = yield* ground(plane)
          const runs = names("pending", 50)
          yield* Effect.gen(function* () {
            yield* startChains(runs, 3)
            const lost = yield* worker(here, { stopAt: ["touching"] })
            yield* Effect.replicateEffect(lost.stopped("touching"), runs.length)
            yield* lost.kill
            const successor = yield* worker(here, { stopAt: ["touching#1", "touching#25"] })
            const first = yield* successor.stopped("touching")
            yield* cut("2 seconds")
            yield* successor.release(first)
            yield* successor.release(yield* successor.stopped("touching"))
            expect(yield* results(runs)).toEqual(runs.map(() => 3))
            yield* expectEachStepOnce(here, runs, 3)
          }).pipe(Effect.provide(PlaneAddress.layer(plane)))
        }),
      180_000
    )
  })
}

describe("a SQLite file", () => {
  it.scopedLive(
    "is shared by 4 processes with 200 runs each while an outsider holds the write lock for 6 seconds (B47)",
    () =>
      Effect.gen(function* () {
        const { cut, plane } = yield* lockedSqlite
        const here = yield* ground(plane)
        const stations = yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (name) => Child.spawn("cases/station", { input: { plane, log: here.logFile, name, runs: 200, steps: 2 } }),
          { concurrency: 4 }
        )
        yield* Effect.forEach(stations, (station) => station.receive(Schema.Literal("half of them started")))
        yield* cut("6 seconds")
        const counts = yield* Effect.forEach(stations, (station) => station.receive(Schema.Array(Schema.Number)))
        expect(counts.flat()).toEqual(Array.from({ length: 800 }, () => 2))
        yield* expectEachStepOnce(
          here,
          ["a", "b", "c", "d"].flatMap((name) => names(name, 200)),
          2
        ).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})

describe("a PostgreSQL server", () => {
  it.scopedLive(
    "that ends all sessions again and again, at a pool of 2 connections with 50 runs, loses and doubles nothing (B74)",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh("PostgreSQL")
        if (plane._tag !== "Postgres") return
        const here = yield* ground({ ...plane, maxConnections: 2 })
        const runs = names("busy", 50)
        const cuts = [20, 60, 100, 140, 180]
        const endSessions = Effect.provide(
          Effect.flatMap(
            PgClient.PgClient,
            (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()`
          ),
          PgClient.layer({ url: Redacted.make(plane.url), maxConnections: 1 })
        )
        yield* Effect.gen(function* () {
          yield* startChains(runs, 5)
          const busy = yield* worker(here, { stopAt: cuts.map((n) => `touching#${n}`) })
          for (const _ of cuts) {
            const stop = yield* busy.stopped("touching")
            yield* endSessions
            yield* busy.release(stop)
          }
          expect(yield* results(runs)).toEqual(runs.map(() => 5))
          yield* expectEachStepOnce(here, runs, 5)
        }).pipe(Effect.provide(PlaneAddress.layer(here.plane)))
      }),
    180_000
  )
})
