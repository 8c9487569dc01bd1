import type { Entry } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client } from "@fermata/runtime"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import * as PidNamespace from "@fermata/test/processes/PidNamespace"
import * as SilentLine from "@fermata/test/SilentLine"
import { Pay, payment, Ship } from "@fermata/test/zombie/Payment"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema, type Scope } from "effect"
import { join } from "node:path"

/** Milliseconds. */
const lease = 2000

type Database = (typeof PlaneAddress.databases)[number]

interface Ground {
  readonly plane: PlaneAddress.PlaneAddress
  readonly log: EffectLog.EffectLog
  /** Starts a worker that knows the versions; `address` is how it reaches the plane, if not directly. */
  readonly worker: (
    versions: ReadonlyArray<string>,
    options?: Child.Options,
    address?: PlaneAddress.PlaneAddress
  ) => Effect.Effect<Child.Child, Child.ChildEnded, Scope.Scope>
}

const onGround = <A, E>(
  database: Database,
  use: (ground: Ground) => Effect.Effect<A, E, Client.Client | Ledger | Scope.Scope>
) =>
  Effect.gen(function* () {
    const plane = yield* PlaneAddress.fresh(database)
    const logFile = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(logFile)),
      (log) => Effect.sync(log.close)
    )
    const worker: Ground["worker"] = (versions, options, address = plane) =>
      Child.spawn("zombie/worker", { ...options, input: { plane: address, log: logFile, lease, versions } })
    return yield* Effect.provide(use({ log, plane, worker }), PlaneAddress.layer(plane))
  })

const start = (version: string, run: string) =>
  Effect.flatMap(Client.Client, (client) => client.start(payment(version), run, { run }))

const result = (version: string, run: string) =>
  Effect.flatMap(Client.Client, (client) => client.result(payment(version), run))

const historyOf = (run: string) => Effect.flatMap(Client.Client, (client) => client.history(`${run}/main`))

const firings = (log: EffectLog.EffectLog, effect: string, run: string) =>
  log.rows().filter((row) => row.effect === effect && row.at.startsWith(`${run}/main|`))

const writers = (history: ReadonlyArray<Entry>) => history.map(({ epoch }) => epoch)

/** How an owner falls asleep while the rest of the world goes on. */
const sleeps = ["is stopped with SIGSTOP", "has its event loop blocked"] as const

describe.each(PlaneAddress.databases)("a worker on %s that sleeps past its lease", (database) => {
  const cases = sleeps.flatMap((sleep) => [
    { sleep, where: "before an intent", point: "before-intent:pay#1|1#1", shipped: 1, late: [] },
    { sleep, where: "between an intent and the check", point: "after-intent:pay#1|1#1", shipped: 1, late: [] },
    { sleep, where: "in the handler of a once effect", point: `entered:${Pay.name}#1`, shipped: 1, late: ["refused"] },
    // The receiver knows the key: the second request is no second parcel.
    {
      sleep,
      where: "in the handler of a keyed effect",
      point: `entered:${Ship.name}#1`,
      shipped: 2,
      late: ["recorded"]
    }
  ])

  for (const { late, point, shipped, sleep, where } of cases) {
    it.scopedLive(
      `writes nothing more after it ${sleep} ${where}, and nothing happens twice (B65, B76)`,
      () =>
        onGround(database, ({ log, worker }) =>
          Effect.gen(function* () {
            // Only the sleeper knows how to run the probe.
            const sleeper = yield* worker(["1", "probe"], { stopAt: [point] })
            yield* start("1", "r")
            const stop = yield* sleeper.stopped()
            const paidBefore = firings(log, Pay.name, "r").length
            if (sleep === "is stopped with SIGSTOP") {
              yield* sleeper.freeze
              // It stays where it is until SIGCONT.
              yield* sleeper.release(stop)
            }
            const asleep = yield* historyOf("r")

            const successor = yield* worker(["1"])
            expect(yield* result("1", "r")).toBe("shipped: paid r")
            const over = yield* historyOf("r")

            if (sleep === "is stopped with SIGSTOP") yield* sleeper.thaw
            else yield* sleeper.release(stop)
            // What the sleeper was about to do comes before what it does next.
            if (paidBefore === 1) expect(yield* sleeper.receive(Schema.String)).toBe("recorded")
            yield* start("probe", "p")
            // Whatever else it fired would be told between these.
            for (const answer of [...late, "recorded", "recorded"])
              expect(yield* sleeper.receive(Schema.String)).toBe(answer)
            expect(yield* result("probe", "p")).toBe("shipped: paid p")

            expect(yield* historyOf("r")).toEqual(over)
            // On a busy machine the successor may lose its own short lease, too, and come back under a later epoch.
            const epochs = writers(over.slice(asleep.length))
            expect(Math.max(...writers(asleep))).toBeLessThan(Math.min(...epochs))
            expect(epochs).toEqual(epochs.toSorted((a, b) => a - b))
            expect(firings(log, Pay.name, "r").length, "payments").toBe(1)
            const parcels = firings(log, Ship.name, "r")
            expect(parcels.length, "parcels").toBeGreaterThanOrEqual(shipped)
            expect(new Set(parcels.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
            expect(new Set(parcels.map(({ inputDigest }) => inputDigest)).size).toBe(1)
            yield* successor.kill
          })
        ),
      120_000
    )
  }
})

describe("a worker on PostgreSQL that cannot reach its database past its lease", () => {
  it.scopedLive(
    "writes nothing more, its payment does not happen twice, and it works again when the line is back (B74)",
    () =>
      onGround("PostgreSQL", ({ log, plane, worker }) =>
        Effect.gen(function* () {
          const line = yield* SilentLine.make(plane._tag === "Postgres" ? plane.url : "")
          const around: PlaneAddress.PlaneAddress = { _tag: "Postgres", url: line.url }
          const cutOff = yield* worker(["1", "probe"], { stopAt: [`held:${Pay.name}#1`] }, around)
          yield* start("1", "r")
          const stop = yield* cutOff.stopped()
          yield* line.silence

          yield* worker(["1"])
          expect(yield* result("1", "r")).toBe("shipped: paid r")
          const over = yield* historyOf("r")

          yield* cutOff.release(stop)
          expect(yield* cutOff.receive(Schema.String)).toBe("refused")
          yield* line.restore
          yield* start("probe", "p")
          expect(yield* result("probe", "p")).toBe("shipped: paid p")
          expect(yield* historyOf("r")).toEqual(over)
          expect(firings(log, Pay.name, "r").length).toBe(1)
        })
      ),
    120_000
  )
})

const namespaces = PidNamespace.available()

describe.each(PlaneAddress.databases)(
  `an owner on %s in another PID namespace${namespaces === true ? "" : ` (skipped: ${namespaces})`}`,
  (database) => {
    it.scopedLive.skipIf(namespaces !== true)(
      "is not taken for dead while its lease runs",
      () =>
        onGround(database, ({ log, worker }) =>
          Effect.gen(function* () {
            const owner = yield* worker(["1"], { ownPidNamespace: true, stopAt: [`held:${Ship.name}#1`] })
            yield* start("1", "r")
            const stop = yield* owner.stopped()
            const before = yield* historyOf("r")
            const ledger = yield* Ledger
            const { epoch } = yield* ledger.branch((yield* start("1", "r")).branch)

            // Another worker looks for work all the while, and finds some.
            yield* worker(["1", "other"])
            const until = (yield* ledger.now) + 2 * lease
            for (let n = 0; (yield* ledger.now) < until; n++) {
              yield* start("other", `other-${n}`)
              yield* result("other", `other-${n}`)
              // Its lease is what is waited for.
              yield* Effect.sleep(lease / 10)
            }
            expect(yield* historyOf("r")).toEqual(before)
            expect((yield* ledger.branch((yield* start("1", "r")).branch)).epoch).toBe(epoch)

            yield* owner.release(stop)
            expect(yield* result("1", "r")).toBe("shipped: paid r")
            expect(firings(log, Pay.name, "r").length).toBe(1)
            expect(firings(log, Ship.name, "r").length).toBe(1)
          })
        ),
      120_000
    )

    it.scopedLive.skipIf(namespaces !== true)(
      "is succeeded after its lease when it was killed",
      () =>
        onGround(database, ({ log, worker }) =>
          Effect.gen(function* () {
            const owner = yield* worker(["1"], { ownPidNamespace: true, stopAt: [`held:${Ship.name}#1`] })
            yield* start("1", "r")
            yield* owner.stopped()
            yield* owner.kill
            yield* worker(["1"])
            expect(yield* result("1", "r")).toBe("shipped: paid r")
            expect(firings(log, Pay.name, "r").length).toBe(1)
          })
        ),
      120_000
    )
  }
)
