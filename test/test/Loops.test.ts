import { Client } from "@fermata/runtime"
import { Ledger } from "@fermata/ledger"
import * as EffectLog from "@fermata/test/EffectLog"
import { Agent, Ask } from "@fermata/test/loops/Agent"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"

const turns = 7

describe.each(PlaneAddress.databases)("a loop on %s", (database) => {
  it.scopedLive(
    "goes on from its last snapshot after SIGKILL before, at and after one, and while it waits; each turn happens once",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        const file = join(yield* PlaneAddress.freshFolder, "outside.db")
        const log = yield* Effect.acquireRelease(
          Effect.sync(() => EffectLog.open(file)),
          ({ close }) => Effect.sync(close)
        )
        const worker = (...stopAt: ReadonlyArray<string>) =>
          Child.spawn("loops/worker", { stopAt, input: { plane, log: file } })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          yield* client.start(Agent, turns, { run: "r" })
          for (const point of [
            "appended loop.snapshot turn#1#2",
            "durable loop.snapshot turn#1#2",
            "entered#1",
            "charged#1",
            "body#1"
          ]) {
            const killed = yield* worker(point)
            const asked = client.awaitStatus("r", ({ status }) => status === "waiting")
            const stopped = yield* Effect.raceFirst(Effect.as(killed.stopped(), true), Effect.as(asked, false))
            yield* killed.kill
            // Killed while it waits for a person: the answer comes while no worker is there.
            if (!stopped) yield* answer(client)
          }
          yield* worker()
          yield* Effect.raceFirst(
            Effect.forever(
              Effect.zipRight(
                client.awaitStatus("r", ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer")),
                answer(client)
              )
            ),
            client.result(Agent, "r")
          )
          expect(yield* client.result(Agent, "r")).toBe((turns * (turns + 1)) / 2 + 2 * 100)
          const keys = new Map<string, Set<string>>()
          for (const { idempotencyKey, inputDigest } of log.rows()) {
            keys.set(inputDigest, (keys.get(inputDigest) ?? new Set()).add(idempotencyKey))
          }
          // Every turn, under one key each.
          expect([...keys].map(([turn, of]) => [turn, of.size])).toEqual(
            Array.from({ length: turns }, (_, n) => [String(n + 1), 1])
          )
          const { problems } = yield* Effect.flatMap(Ledger, ({ verify }) => verify)
          expect(problems).toEqual([])
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    180_000
  )
})

const answer = (client: Client.Client) =>
  Effect.gen(function* () {
    const [pending] = yield* client.pendingInterrupts()
    if (pending === undefined) return
    yield* Effect.either(
      client.resume(Ask, {
        branch: pending.branch,
        interrupt: pending.interrupt,
        value: 100,
        deliveryId: `answer ${pending.interrupt}`,
        intent: "retry"
      })
    )
  })
