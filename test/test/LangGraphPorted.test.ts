/** A ported graph that is killed wherever it leaves a trace. The effects' own log is the judge. */
import { ThreadStuck } from "@fermata/adapters/langgraph"
import * as EffectLog from "@fermata/test/EffectLog"
import { config, ended, open, ported } from "@fermata/test/langgraph/Ported"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { join } from "node:path"

/** In the order in which a run comes by them. */
const points = [
  "durable interrupt.opened $input#1",
  "fired look",
  "durable effect.succeeded",
  "durable effect.intended",
  "fired charge",
  "durable step.succeeded node/n2#1",
  "durable interrupt.opened interrupt#1",
  "durable interrupt.answered interrupt#1",
  "fired notify b",
  "fired mail",
  "durable step.succeeded node/n3#1",
  "fired inner",
  "durable step.succeeded node/n4#4"
]

const place = (database: (typeof PlaneAddress.databases)[number]) =>
  Effect.gen(function* () {
    const plane = yield* PlaneAddress.fresh(database)
    const file = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(file)),
      ({ close }) => Effect.sync(close)
    )
    const travel = (reconciles: boolean, ...stopAt: ReadonlyArray<string>) =>
      Child.spawn("langgraph/traveller", { stopAt, input: { plane, log: file, reconciles } })
    return { plane, log, travel }
  })

describe.each(PlaneAddress.databases)("a ported graph on %s", (database) => {
  it.scopedLive(
    "comes to its end, however often it is killed, and every effect has happened once",
    () =>
      Effect.gen(function* () {
        const { log, travel } = yield* place(database)
        const passed: Array<string> = []
        for (const point of points) {
          const killed = yield* travel(true, point)
          const stopped = yield* Effect.raceFirst(
            Effect.as(killed.stopped(), true),
            Effect.as(killed.receive(Schema.Unknown), false)
          )
          yield* killed.kill
          if (stopped) passed.push(point)
        }
        expect(passed).toEqual(points)
        const last = yield* travel(true)
        expect(yield* last.receive(Schema.Unknown)).toEqual(ended)
        const counts = new Map<string, { count: number; keys: Set<string> }>()
        for (const { at, idempotencyKey } of log.rows()) {
          const known = counts.get(at) ?? { count: 0, keys: new Set() }
          counts.set(at, { count: known.count + 1, keys: known.keys.add(idempotencyKey) })
        }
        expect([...counts.keys()].sort()).toEqual(["charge", "inner", "look", "mail", "notify a", "notify b"])
        // EO: what was fired again had the same key, and what must not be never was.
        for (const [at, { keys }] of counts) expect([at, keys.size]).toEqual([at, 1])
        expect(counts.get("charge")?.count).toBe(1)
      }),
    120_000
  )

  it.scopedLive("is stuck over an effect that nobody knows of, until it is settled", () =>
    Effect.gen(function* () {
      const { log, plane: address, travel } = yield* place(database)
      const killed = yield* travel(false, "fired charge")
      yield* killed.stopped()
      yield* killed.kill
      const plane = yield* Effect.acquireRelease(
        Effect.sync(() => open(address)),
        (plane) => Effect.promise(() => plane.close())
      )
      const graph = ported(plane, log, () => {}, false)
      const stuck = yield* Effect.promise(() => graph.invoke(null, config).catch((error: unknown) => error))
      if (!(stuck instanceof ThreadStuck)) throw new Error(`not stuck: ${String(stuck)}`)
      const problem = stuck.problems.find(({ _tag }) => _tag === "InDoubt")
      if (problem?._tag !== "InDoubt") throw new Error("no effect is in doubt")
      yield* Effect.promise(() => graph.settle(config, problem.key, { happened: "charge done" }))
      const parked = yield* Effect.promise(() => graph.invoke(null, config))
      expect(parked.__interrupt__?.[0]?.value).toBe("go on?")
      expect(log.rows().filter(({ at }) => at === "charge")).toHaveLength(1)
    })
  )
})
