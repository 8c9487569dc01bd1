/** 100 branches of 20 keyed steps at once: what the shared commits are worth. All stand at a gate before the time starts. */
import { Client } from "@fermata/runtime"
import { Deferred, Effect, FiberId } from "effect"
import type { Line } from "../Line.js"
import { interleaved, medianOf, millisecondsOf } from "../Rounds.js"
import { Gated, running } from "../Workflows.js"

const branches = 100
const steps = 20

export const manyBranches: Line = {
  name: "many",
  measure: (target, { rounds }) =>
    Effect.gen(function* () {
      const location = yield* target.database
      let gate = Deferred.unsafeMake<void>(FiberId.none)
      let full = Deferred.unsafeMake<void>(FiberId.none)
      let standing = 0
      const atGate = Effect.suspend(() => {
        standing++
        const open = Deferred.await(gate)
        return standing === branches ? Effect.zipRight(Deferred.succeed(full, undefined), open) : open
      })
      const run = Effect.gen(function* () {
        const client = yield* Client.Client
        gate = yield* Deferred.make<void>()
        full = yield* Deferred.make<void>()
        standing = 0
        const started = yield* Effect.forEach(Array.from({ length: branches }), () => client.start(Gated, steps), {
          concurrency: 10
        })
        yield* Deferred.await(full)
        const elapsed = yield* millisecondsOf(
          Effect.zipRight(
            Deferred.succeed(gate, undefined),
            Effect.forEach(started, (handle) => client.result(Gated, handle), {
              concurrency: "unbounded",
              discard: true
            })
          )
        )
        return (branches * steps * 1000) / elapsed
      })
      const measured = yield* Effect.provide(
        interleaved(target.raw, rounds, () => run, 3),
        running(location, { atGate })
      )
      const raw = medianOf(measured, (round) => round.raw)
      return [
        {
          what: "100 branches at once, 20 keyed steps each",
          measured: { value: medianOf(measured, (round) => round.value), unit: "steps/s" },
          limit: { what: "raw", value: raw, unit: "commits/s" },
          ratio: medianOf(measured, (round) => round.value / round.raw),
          goal: { atLeast: target.name === "sqlite" ? 4 : 3 },
          raw
        }
      ]
    })
}
