/** Signals and updates under SIGKILL: each counts once, and its sender gets the same answer from whoever comes next. */
import { Client } from "@fermata/runtime"
import { Add, Noted } from "@fermata/test/messages/Desk"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const Said = Schema.Array(Schema.String)

/** Commits that each process in turn survives; the next one is where it is killed. */
const survived = [0, 1, 2, 4, 6, 8]

describe.each(PlaneAddress.databases)("messages on %s", (database) => {
  it.scopedLive(
    "count once, though sender and worker die before and after commits and begin again",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          const spawn = (options?: Child.Options) =>
            Child.spawn("messages/correspondent", { ...options, input: { plane } })
          let kills = 0
          for (const [index, commits] of survived.entries()) {
            const point = index % 2 === 0 ? "after-commit" : "before-commit"
            yield* Effect.scoped(
              Effect.gen(function* () {
                const child = yield* spawn({ stopAt: [point] })
                // A process that has nothing left to commit ends by itself.
                const reached = Effect.gen(function* () {
                  for (let n = 0; n < commits; n++) yield* child.release(yield* child.stopped(point))
                  yield* child.stopped(point)
                  return true
                })
                if (yield* Effect.raceFirst(reached, Effect.as(child.success, false))) kills++
                yield* child.kill
              })
            )
          }
          expect(kills).toBeGreaterThan(3)
          const last = yield* spawn()
          expect(yield* last.receive(Said)).toEqual(["[one]", "[two]", "[three]", "12", "5", "12"])
          yield* last.success
          const history = yield* client.history("r")
          const received = history.filter(({ kind }) => kind.endsWith(".received")).map(({ key }) => key)
          expect(received.toSorted()).toEqual(["signal:1", "signal:2", "signal:3", "update:a", "update:b"])
          expect(history.filter(({ kind }) => kind === "update.replied").map(({ key }) => key)).toEqual([
            "update:a",
            "update:b"
          ])
          expect(yield* client.query("r", Noted)).toEqual(["[one]", "[two]", "[three]"])
          // Nobody runs it any more, and the answer is the same.
          expect(yield* client.update("r", Add, 5, { updateId: "a" })).toBe(5)
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})
