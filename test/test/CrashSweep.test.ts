import { Ledger } from "@fermata/ledger"
import { Client } from "@fermata/runtime"
import * as Killing from "@fermata/test/crash/Killing"
import { type Ending, violations } from "@fermata/test/crash/Oracle"
import * as Sweep from "@fermata/test/crash/Sweep"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { join } from "node:path"

/** Processes at once: each waits for the disk as much as it computes. */
const concurrency = 4

type Database = (typeof PlaneAddress.databases)[number]

const onSite = <A, E>(
  database: Database,
  use: (site: Killing.Site) => Effect.Effect<A, E, Client.Client | Ledger | Scope.Scope>
) =>
  Effect.gen(function* () {
    const plane = yield* PlaneAddress.fresh(database)
    const logFile = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(logFile)),
      (log) => Effect.sync(log.close)
    )
    return yield* Effect.gen(function* () {
      const { sql } = yield* Ledger
      yield* sql.unsafe(Sweep.bookTable)
      return yield* use({ plane, logFile, log })
    }).pipe(Effect.provide(PlaneAddress.layer(plane)))
  })

/** What can be seen of a finished scenario. */
const ending = (site: Killing.Site, scenario: Killing.Scenario) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const { sql } = yield* Ledger
    const { workflow } = Sweep.make(site.log)
    const outcome = yield* client.result(workflow(scenario.version), scenario.order.run)
    const rows = yield* sql`SELECT receipt FROM sweep_book WHERE run = ${scenario.order.run}`
    return { ...(yield* Killing.sight(site, scenario)), booked: rows.length, outcome } satisfies Ending
  })

/** Finishes what was killed in one new process, and gives all that is wrong, by the point of the kill. */
const judged = (site: Killing.Site, kills: ReadonlyArray<Killing.Kill>) =>
  Effect.gen(function* () {
    const results = yield* Killing.finish(
      site,
      kills.map(({ scenario }) => scenario)
    )
    const judgements = yield* Effect.forEach(kills, ({ killed, point, scenario }) =>
      Effect.map(ending(site, scenario), (ended) => ({
        point,
        wrong: violations(scenario.order.run, killed, ended),
        stuck: results.find(({ run }) => run === scenario.order.run)?.stuck
      }))
    )
    return judgements
  })

const wrong = (judgements: ReadonlyArray<{ readonly point: string; readonly wrong: ReadonlyArray<string> }>) =>
  judgements.filter(({ wrong }) => wrong.length > 0).map(({ point, wrong }) => ({ point, wrong }))

/** The windows of an effect's firing, where the history does not say what happened outside. */
const inDoubt = (step: string, effect: string, position: number) =>
  ["after-intent", "before-handler", "after-handler"]
    .map((window) => `${window}:${step}|${position}`)
    .concat(`entered:${effect}`, `fired:${effect}`)

/**
 * Kills a scenario at each of the points. At a window of a firing a scenario can wait for the others, so that one
 * SIGKILL falls on many runs, each in a window of its own; at a commit, and in a transaction, the process stands still.
 */
const killEverywhere = (
  site: Killing.Site,
  points: ReadonlyArray<string>,
  scenarioOf: (index: number) => Killing.Scenario
) =>
  Effect.gen(function* () {
    const all = points.map((point, index) => ({ point, scenario: scenarioOf(index) }))
    const alone = ({ point }: { readonly point: string }) =>
      point.includes("-commit#") || point.includes(Sweep.Book.name)
    const together = yield* Killing.killTogether(
      site,
      all.filter((one) => !alone(one)).map(({ point, scenario }) => ({ scenario, point: point.replace(/#1$/, "") }))
    )
    const one = yield* Effect.forEach(
      all.filter(alone),
      ({ point, scenario }) => Killing.killAt(site, scenario, point),
      { concurrency }
    )
    return [...together, ...one]
  })

describe.each(PlaneAddress.databases)("a run on %s", (database) => {
  it.scopedLive(
    "goes on exactly where it was after SIGKILL at every commit and in every window of every effect",
    () =>
      onSite(database, (site) =>
        Effect.gen(function* () {
          const points = yield* Killing.record(site, Killing.scenario("recorded"))
          for (const window of ["before-intent", "after-intent", "before-handler", "after-handler", "after-outcome"]) {
            for (const firing of ["reserve#1|1", "pay#1|1", "notify#1|1", "notify#1|2"])
              expect(points).toContain(`${window}:${firing}#1`)
          }
          const kills = yield* killEverywhere(site, points, (index) => Killing.scenario(`at-${index}`))
          // Which outcomes share a commit depends on the disk: a run may have a few commits less than the recorded one.
          const missed = kills.filter(({ reached }) => !reached).map(({ point }) => point)
          expect(missed.filter((point) => !point.includes("-commit#"))).toEqual([])
          expect(missed.length).toBeLessThan(points.length / 10)
          const judgements = yield* judged(site, kills)
          expect(wrong(judgements)).toEqual([])
          expect(judgements.filter(({ stuck }) => stuck !== 0)).toEqual([])
        })
      ),
    600_000
  )

  it.scopedLive(
    "is stuck and can be settled where nobody can say whether its once effect happened",
    () =>
      onSite(database, (site) =>
        Effect.gen(function* () {
          const points = [...inDoubt("pay#1", Sweep.Pay.name, 1), ...inDoubt("notify#1", Sweep.Seal.name, 2)]
          const kills = yield* Killing.killTogether(
            site,
            points.map((point, index) => ({ point, scenario: Killing.scenario(`silent-${index}`, true) }))
          )
          const judgements = yield* judged(site, kills)
          expect(wrong(judgements)).toEqual([])
          expect(judgements.filter(({ stuck }) => stuck !== 1)).toEqual([])
        })
      ),
    300_000
  )

  it.scopedLive(
    "survives a second SIGKILL anywhere in the recovery from the first",
    () =>
      onSite(database, (site) =>
        Effect.gen(function* () {
          // Enough scenarios for the points of a recovery, which are about those of half a run.
          const scenarios = Array.from({ length: 80 }, (_, n) => Killing.scenario(`twice-${n}`))
          const recorded = Killing.scenario("recovered")
          yield* Killing.killTogether(
            site,
            [recorded, ...scenarios].map((scenario) => ({ scenario, point: `fired:${Sweep.Pay.name}` }))
          )
          const points = yield* Killing.record(site, recorded)
          expect(points.length).toBeLessThanOrEqual(scenarios.length)
          const kills = yield* killEverywhere(site, points, (index) => scenarios[index] ?? recorded)
          const judgements = yield* judged(site, kills)
          expect(wrong(judgements)).toEqual([])
        })
      ),
    600_000
  )
})
