/** A pipeline: 1,000 readings are fetched side by side, 50 at a time, cleaned, and summed up. */
import { Delivery, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"

const Reading = Schema.Struct({ station: Schema.Number, celsius: Schema.NullOr(Schema.Number) })

export class StationDown extends Schema.TaggedError<StationDown>()("StationDown", { station: Schema.Number }) {}

export const Summary = Schema.Struct({
  stations: Schema.Number,
  /** Stations that had nothing to say, or said nonsense. */
  left: Schema.Array(Schema.Number),
  meanCelsius: Schema.Number
})

// Reading again does no harm, and a reading that was recorded is not fetched again.
export const Fetch = SideEffect.make("fetch", {
  delivery: Delivery.repeatable,
  input: Schema.Number,
  success: Reading,
  error: StationDown
})

// The report goes out once per key, however often it is sent.
export const Publish = SideEffect.make("publish", { delivery: Delivery.keyed, input: Summary })

const fetch = Node.make(
  "fetch",
  { input: Schema.Number, success: Reading, error: StationDown, effects: [Fetch], retry: { times: 2 } },
  (station) => Fetch(station)
)
const publish = Node.make("publish", { input: Summary, effects: [Publish] }, (summary) => Publish(summary))

export const Pipeline = Workflow.make(
  "pipeline",
  { version: "1", input: Schema.Struct({ stations: Schema.Number }), success: Summary },
  ({ stations }) =>
    Effect.gen(function* () {
      const readings = yield* Effect.forEach(
        Array.from({ length: stations }, (_, station) => station),
        // A station that stays down is left out, and named.
        (station) =>
          fetch(station).pipe(Effect.catchTag("StationDown", () => Effect.succeed({ station, celsius: null }))),
        { concurrency: 50 }
      )
      const sound = readings.flatMap(({ celsius }) =>
        celsius !== null && celsius > -90 && celsius < 60 ? [celsius] : []
      )
      const summary = {
        stations,
        left: readings
          .filter(({ celsius }) => celsius === null || celsius <= -90 || celsius >= 60)
          .map(({ station }) => station),
        meanCelsius: Math.round((100 * sound.reduce((sum, celsius) => sum + celsius, 0)) / sound.length) / 100
      }
      yield* publish(summary)
      return summary
    })
)
