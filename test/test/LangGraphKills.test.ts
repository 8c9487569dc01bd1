/**
 * Stock LangGraph.js on the saver, killed at every kind of point and gone on with in another process. The effects' own log
 * is the judge.
 */
import * as EffectLog from "@fermata/test/EffectLog"
import { line, nodes, open, thread, type Way } from "@fermata/test/langgraph/Line"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import * as Race from "@fermata/test/processes/Race"
import { describe, expect, it } from "@effect/vitest"
import { Command } from "@langchain/langgraph"
import { Effect, Schema } from "effect"
import { join } from "node:path"

// LangGraph stores an outcome of `__start__` before those of the nodes, and two checkpoints before the first node.
const points = { effect: 0, outcome: 1, checkpoint: 2 } as const

interface Kill {
  readonly database: (typeof PlaneAddress.databases)[number]
  readonly way: Way
  readonly point: keyof typeof points
  /** 1 to 4. */
  readonly node: number
}

const place = (database: Kill["database"]) =>
  Effect.gen(function* () {
    const plane = yield* PlaneAddress.fresh(database)
    const file = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(file)),
      (log) => Effect.sync(log.close)
    )
    return { plane, file, log }
  })

/** A run that is killed at a point, and gone on with here. How often each node fired, and under how many keys. */
const killed = ({ database, node, point, way }: Kill) =>
  Effect.gen(function* () {
    const { file, log, plane } = yield* place(database)
    const at = `${point}#${node + points[point]}`
    const child = yield* Child.spawn("langgraph/runner", {
      input: { plane, log: file, way, asks: false, answer: null, races: false },
      stopAt: [at]
    })
    yield* child.stopped(point)
    yield* child.kill
    const saver = yield* Effect.acquireRelease(
      Effect.sync(() => open(plane)),
      (saver) => Effect.promise(() => saver.close())
    )
    const stored = yield* Effect.promise(() => saver.getTuple(thread))
    const { run } = line({ saver, way, asks: false, log, fired: () => {} })
    const end = yield* Effect.promise(() => run(stored === undefined ? "go" : null))
    const rows = log.rows()
    return {
      end,
      counts: nodes.map((name) => rows.filter((row) => row.at === name).length),
      keys: nodes.map((name) => new Set(rows.filter((row) => row.at === name).map((row) => row.idempotencyKey)).size)
    }
  }).pipe(Effect.scoped)

/** Once each, but twice where the node had fired and nothing of it was stored. */
const expected = ({ node, point }: Kill) => nodes.map((_, index) => (point === "effect" && index === node - 1 ? 2 : 1))

const matrix = (["effect", "outcome", "checkpoint"] as const).flatMap((point) => [
  ...[1, 3].flatMap((node) =>
    (["saver sync", "front"] as const).map((way): Kill => ({ database: "SQLite", way, point, node }))
  ),
  { database: "PostgreSQL", way: "front", point, node: 2 } as const
])

describe("a LangGraph.js line that is killed", () => {
  it.scopedLive.each(matrix)(
    "runs again only what was not stored: $way on $database, at the $point of node $node",
    (kill) =>
      Effect.gen(function* () {
        const { counts, end, keys } = yield* killed(kill)
        expect(end).toEqual(nodes)
        expect(counts).toEqual(expected(kill))
        // What is fired again has the same key: its receiver does it once.
        expect(keys).toEqual([1, 1, 1, 1])
      })
  )

  it.scopedLive.each(PlaneAddress.databases)("leaves a prefix when nothing is waited for, on %s", (database) =>
    Effect.gen(function* () {
      const { counts, end } = yield* killed({ database, way: "saver async", point: "outcome", node: 3 })
      expect(end).toEqual(nodes)
      // Nothing is stored before what it follows: where an outcome is, all that came before it is.
      expect(counts.slice(0, 3)).toEqual([1, 1, 1])
      // The graph went on without waiting; what it ran since is not stored and runs again.
      expect([1, 2]).toContain(counts[3])
    })
  )

  it.scopedLive.each(PlaneAddress.databases)("keeps an answer that was accepted before, on %s", (database) =>
    Effect.gen(function* () {
      const { file, log, plane } = yield* place(database)
      const spawn = (answer: string | null, stopAt: ReadonlyArray<string>) =>
        Child.spawn("langgraph/runner", {
          input: { plane, log: file, way: "front", asks: true, answer, races: false },
          stopAt
        })
      yield* (yield* spawn(null, [])).success
      const answering = yield* spawn("d1", ["effect"])
      yield* answering.stopped("effect")
      yield* answering.kill
      const saver = yield* Effect.acquireRelease(
        Effect.sync(() => open(plane)),
        (saver) => Effect.promise(() => saver.close())
      )
      const { front, run } = line({ saver, way: "front", asks: true, log, fired: () => {} })
      expect(yield* Effect.promise(() => front.pending(thread))).toEqual([])
      const bare = new Command<unknown, Record<never, never>, never>({ resume: "no" })
      const refused = yield* Effect.promise(() => front.invoke(bare, thread).catch((error: unknown) => error))
      expect(refused).toMatchObject({ _tag: "BareAnswer" })
      expect(yield* Effect.promise(() => run(null))).toEqual(["n1", "n2:yes", "n3", "n4"])
      const second = log.rows().filter(({ at }) => at === "n2")
      expect(second).toHaveLength(2)
      expect(new Set(second.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    })
  )

  it.scopedLive.each(PlaneAddress.databases)("takes one of four answers that come at once, on %s", (database) =>
    Effect.gen(function* () {
      const { file, log, plane } = yield* place(database)
      const spawn = (answer: string | null, race?: string) =>
        Child.spawn("langgraph/runner", {
          input: { plane, log: file, way: "front", asks: true, answer, races: race !== undefined },
          ...(race === undefined ? {} : { race })
        })
      yield* (yield* spawn(null)).success
      const race = yield* Race.make
      const racers = yield* Effect.forEach(["a", "b", "c", "d"], (answer) => spawn(answer, race.file), {
        concurrency: 2
      })
      yield* race.start(racers)
      const verdicts = yield* Effect.forEach(racers, (racer) => racer.receive(Schema.String), { concurrency: 4 })
      expect(verdicts.sort()).toEqual(["AlreadyConsumed", "AlreadyConsumed", "AlreadyConsumed", "accepted"])
      expect(log.rows().map(({ at }) => at)).toEqual(nodes)
    })
  )
})
