/** Parents and children whose workers are killed wherever one hears of the other. */
import { Client } from "@fermata/runtime"
import { Ledger } from "@fermata/ledger"
import { Convoy, Harbour } from "@fermata/test/children/Convoy"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"

/** Where a worker is killed that comes by. */
const points = [
  "parent effect.intended",
  "parent effect.succeeded",
  "parent interrupt.opened child/boat#1",
  "sailed first",
  "child step.succeeded sail#1",
  "child run.completed",
  "parent interrupt.answered child/boat#1",
  "parent interrupt.opened child/boat#2",
  "sailed second",
  "parent step.succeeded fermata/start-child#2",
  "parent interrupt.answered child/boat#2"
]

describe.each(PlaneAddress.databases)("children on %s", (database) => {
  it.scopedLive(
    "are started once and heard once, however often the workers are killed",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        const file = join(yield* PlaneAddress.freshFolder, "outside.db")
        const log = yield* Effect.acquireRelease(
          Effect.sync(() => EffectLog.open(file)),
          ({ close }) => Effect.sync(close)
        )
        const worker = (...stopAt: ReadonlyArray<string>) =>
          Child.spawn("children/worker", { stopAt, input: { plane, log: file } })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          yield* client.start(Convoy, undefined, { run: "c" })
          const rests = client.awaitStatus(
            "c",
            ({ status, waitingFor }) =>
              status === "waiting" &&
              waitingFor.length === 1 &&
              waitingFor.some((one) => one._tag === "Answer" && one.interrupt === "child/boat#3")
          )
          const left = new Set(points)
          for (let resting = false; !resting;) {
            const killed = yield* worker(...left)
            const stop = yield* Effect.raceFirst(killed.stopped(), Effect.as(rests, undefined))
            yield* killed.kill
            resting = stop === undefined
            if (stop !== undefined) left.delete(stop.point)
          }
          // A child runs beside its parent: one that was killed may have done the other's part before.
          expect(left.size, [...left].join()).toBeLessThan(4)
          yield* worker()
          yield* rests
          const [boat] = yield* client.pendingInterrupts({ run: "c" })
          yield* client.awaitStatus(boat?.task?.assignee?.slice(4) ?? "", ({ status }) => status === "waiting")
          const [asked] = yield* client.pendingInterrupts({ name: "harbour" })
          if (asked === undefined) throw new Error("nothing is asked")
          const { branch, interrupt } = asked
          yield* client.resume(Harbour, { branch, interrupt, value: "port", deliveryId: "d", intent: "retry" })
          expect(yield* client.result(Convoy, "c")).toEqual(["first to sea", "second to sea", "third to port"])
          // Each boat is one run, and sailed under one key.
          expect(yield* client.list({ workflow: "boat" })).toHaveLength(3)
          const keys = new Map<string, Set<string>>()
          for (const { at, idempotencyKey } of log.rows()) keys.set(at, (keys.get(at) ?? new Set()).add(idempotencyKey))
          expect([...keys].map(([at, of]) => [at, of.size]).sort()).toEqual([
            ["first", 1],
            ["second", 1],
            ["third", 1]
          ])
          const { problems } = yield* Effect.flatMap(Ledger, ({ verify }) => verify)
          expect(problems).toEqual([])
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})
