import { Client, Ledger, RunSchedule } from "@fermata/runtime"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { Letters, SendLetter } from "@fermata/test/queues/Letters"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"

const hours = 12
const hour = 3_600_000

describe.each(PlaneAddress.databases)("schedules and queues on %s", (database) => {
  it.scopedLive(
    "over SIGKILL before and after commits of the worker that fires and claims: every fire runs once, no slot is lost",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        const log = join(yield* PlaneAddress.freshFolder, "effects.db")
        const spawn = (options?: Child.Options) => Child.spawn("queues/office", { ...options, input: { plane, log } })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          const ledger = yield* Ledger
          const spec = RunSchedule.every(hour)
          const overlap = "allow"
          yield* client.schedules.create("s", { workflow: SendLetter, input: "dear", spec, overlap, queue: Letters })
          // As if no worker had been there for half a day.
          const first = (Math.floor((yield* ledger.now) / hour) - hours + 1) * hour
          yield* ledger.sql`UPDATE fermata_schedules SET next_at = ${first}, due_at = ${first}, look_at = ${first}`
          for (const [n, point] of ["before", "after", "before", "after", "before", "after"].entries()) {
            const stop = `${point}-commit#${n + 4}`
            const child = yield* spawn({ stopAt: [stop] })
            yield* child.stopped()
            yield* child.kill
          }
          yield* spawn()
          yield* spawn()
          const runs = Array.from({ length: hours }, (_, n) => `s/${new Date(first + n * hour).toISOString()}`)
          yield* client
            .awaitStatus(runs.at(-1) ?? "", () => true)
            .pipe(Effect.retry({ while: ({ _tag }) => _tag === "RunNotFound" }))
          yield* Effect.forEach(runs, (run) => client.result(SendLetter, run))
          const all = yield* client.list()
          expect(all.map(({ run }) => run as string).sort()).toEqual(runs)
          const posted = new Set(
            EffectLog.open(log)
              .rows()
              .map(({ inputDigest }) => inputDigest)
          )
          expect([...posted].sort()).toEqual(runs.map((run) => `dear ${run}`))
          expect(yield* client.schedules.describe("s")).toMatchObject({ fired: hours, missed: 0, overlapped: 0 })
          expect(yield* client.queues.list).toMatchObject([{ name: "letters", ready: 0, running: 0, waiting: 0 }])
          expect((yield* ledger.verify).problems).toEqual([])
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})
