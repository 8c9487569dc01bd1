import { Client } from "@fermata/runtime"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { Talk, Words } from "@fermata/test/streams/Talk"
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"

describe.each(PlaneAddress.databases)("what a run says on %s", (database) => {
  it.scopedLive(
    "is heard in another process while it is said, and again, marked, after SIGKILL",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        const spawn = (options?: Child.Options) => Child.spawn("streams/talker", { ...options, input: { plane } })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          yield* client.start(Talk, ["a", "b", "c"], { run: "r" })
          const killed = yield* spawn({ stopAt: ["said b"] })
          // Its body stands between two words: what it said is heard already.
          const first = yield* Stream.runCollect(Stream.take(client.listen(Words, "r"), 3))
          expect(
            Chunk.toReadonlyArray(first).map(({ execution, offset, value }) => [offset, value, execution])
          ).toEqual([
            [1, "title", 1],
            [2, "a", 1],
            [3, "b", 1]
          ])
          yield* killed.stopped("said b")
          yield* killed.kill
          yield* spawn()
          // Goes on after the last one that was heard, and ends with the run.
          const rest = yield* Stream.runCollect(client.listen(Words, "r", { after: 3 }))
          expect(Chunk.toReadonlyArray(rest).map(({ execution, offset, value }) => [offset, value, execution])).toEqual(
            [
              [4, "a", 2],
              [5, "b", 2],
              [6, "c", 2]
            ]
          )
          expect(yield* client.result(Talk, "r")).toBe(3)
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})
