/** One scenario of the sweep as the test drives it: a process that is killed at a point, and what could be seen then. */
import { type Entry, RunId } from "@fermata/contract"
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import type { PlaneAddress } from "../PlaneAddress.js"
import * as Child from "../processes/Child.js"
import type { Sight } from "./Oracle.js"
import type { Order } from "./Sweep.js"

/** Where the scenarios of one sweep live. */
export interface Site {
  readonly plane: PlaneAddress
  readonly logFile: string
  readonly log: EffectLog
}

export interface Scenario {
  readonly version: string
  readonly order: Order
}

/** A process that was killed when one of its scenarios was at the point, and what could be seen then. */
export interface Kill {
  readonly scenario: Scenario
  readonly point: string
  /** False if the scenario ended without coming there. */
  readonly reached: boolean
  readonly killed: Sight
}

/** What a course says of each of its runs at its end; `stuck` counts how often it was. */
export const Results = Schema.Array(Schema.Struct({ run: Schema.String, status: Schema.String, stuck: Schema.Number }))

/** A scenario that no other meets. */
export const scenario = (name: string, silent = false): Scenario => ({
  version: name,
  order: { run: `run-${name}`, account: "a-1", silent }
})

const course = (site: Site, scenarios: ReadonlyArray<Scenario>, options: Child.Options = {}) =>
  Child.spawn("crash/course", { ...options, input: { plane: site.plane, log: site.logFile, scenarios } })

/** Runs one scenario undisturbed and names every point that it passes. */
export const record = (site: Site, one: Scenario) =>
  Effect.scoped(
    Effect.gen(function* () {
      const child = yield* course(site, [one], { trace: true })
      yield* child.receive(Results)
      yield* child.success
      return yield* child.passed
    })
  )

/** Kills the scenario's process at the point. Says what could be seen then, and whether the point was reached. */
export const killAt = (site: Site, one: Scenario, point: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const child = yield* course(site, [one], { stopAt: [point] })
      const reached = yield* Effect.raceFirst(Effect.as(child.stopped(), true), Effect.as(child.success, false))
      yield* child.kill
      return { scenario: one, point, reached, killed: yield* sight(site, one) } satisfies Kill
    })
  )

/** Kills one process in which each scenario waits at a point of its own. */
export const killTogether = (
  site: Site,
  scenarios: ReadonlyArray<{ readonly scenario: Scenario; readonly point: string }>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const waiting = scenarios.map(({ scenario: { order } }) => `waiting:${order.run}`)
      const child = yield* course(
        site,
        scenarios.map(({ point, scenario }) => ({ ...scenario, waitAt: point })),
        { stopAt: waiting }
      )
      yield* Effect.forEach(waiting, (point) => child.stopped(point), { discard: true })
      yield* child.kill
      return yield* Effect.forEach(scenarios, ({ point, scenario }) =>
        Effect.map(sight(site, scenario), (killed): Kill => ({ scenario, point, reached: true, killed }))
      )
    })
  )

/** A new process that finishes all the scenarios. */
export const finish = (site: Site, scenarios: ReadonlyArray<Scenario>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const child = yield* course(site, scenarios)
      const results = yield* child.receive(Results)
      yield* child.success
      return results
    })
  )

/** What can be seen of a scenario now. */
export const sight = (site: Site, { order }: Scenario): Effect.Effect<Sight, Client.ReadError, Client.Client> =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const history = yield* Effect.catchTag(client.history(RunId.make(order.run)), "RunNotFound", () =>
      // It died before the start was durable.
      Effect.succeed<ReadonlyArray<Entry>>([])
    )
    const log = site.log.rows().filter(({ at }) => at === order.run || at.startsWith(`${order.run}/main|`))
    return { history, log }
  })
