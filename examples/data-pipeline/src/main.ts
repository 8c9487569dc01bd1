import { Client, Plane, Worker } from "@fermata/runtime"
import { Effect, Layer } from "effect"
import { appendFileSync } from "node:fs"
import { Fetch, Pipeline, Publish, StationDown } from "./Pipeline.js"

/** Killed by itself after so many fetches, to show what a crash does; never, by default. */
const dieAfter = Number(process.env.DIE_AFTER ?? Number.POSITIVE_INFINITY)
const log = process.env.FETCH_LOG
let fetched = 0

const Live = Worker.layer({ workflows: [Pipeline] }).pipe(
  Layer.provide(
    Fetch.toLayer((station) =>
      Effect.suspend(() => {
        // A fetch takes its time; what was fetched before is stored meanwhile.
        if (log !== undefined) appendFileSync(log, `${station}\n`)
        if (++fetched > dieAfter) process.kill(process.pid, "SIGKILL")
        if (station % 100 === 7) return Effect.fail(new StationDown({ station }))
        return Effect.delay(
          Effect.succeed({ station, celsius: station === 500 ? 999 : (station * 7) % 40 }),
          "2 millis"
        )
      })
    )
  ),
  Layer.provide(
    Publish.toLayer(({ left, meanCelsius, stations }, { again }) =>
      Effect.sync(() =>
        console.log(`${again ? "again: " : ""}${stations} stations, ${left.length} left out, mean ${meanCelsius} °C`)
      )
    )
  ),
  Layer.provideMerge(Plane.sqlite({ filename: process.env.FERMATA_DATABASE ?? "pipeline.db" }))
)

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  const run = yield* client.start(Pipeline, { stations: 1000 }, { run: "today" })
  const { left } = yield* client.result(Pipeline, run)
  const steps = (yield* client.history(run)).filter(({ kind }) => kind.startsWith("step.")).length
  console.log(`left out: ${left.join(", ")}; this process fetched ${fetched} times; ${steps} entries of steps`)
})

await Effect.runPromise(Effect.provide(program, Live))
