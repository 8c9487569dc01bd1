/** A workflow of keyed steps in a row, and one whose only step fails and is tried again. */
import { Delivery, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import { hold, pass } from "../processes/Inside.js"

export const Touch = SideEffect.make("chain/touch", {
  delivery: Delivery.keyed,
  input: Schema.Struct({ run: Schema.String, step: Schema.Number }),
  success: Schema.Number
})

export class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", { times: Schema.Number }) {}

const Attempt = Schema.Struct({ run: Schema.String, failures: Schema.Number })

/** Refused as often as its input says. Its intents make what was refused before durable, whenever its process dies. */
export const Try = SideEffect.make("chain/try", {
  delivery: Delivery.keyed,
  input: Attempt,
  success: Schema.Number,
  error: Refused
})

const touch = Node.make("touch", { input: Touch.input, success: Schema.Number, effects: [Touch] }, (at) => Touch(at))

const attempt = Node.make(
  "attempt",
  { input: Attempt, success: Schema.Number, error: Refused, effects: [Try], retry: { times: 2 } },
  (attempt) => Try(attempt)
)

/** Success: how many steps it made. */
export const Chain = Workflow.make(
  "chain",
  { version: "1", input: Schema.Struct({ run: Schema.String, steps: Schema.Number }), success: Schema.Number },
  ({ run, steps }) =>
    Effect.gen(function* () {
      let made = 0
      for (let step = 1; step <= steps; step++) made += yield* touch({ run, step })
      return made
    })
)

/** Success: how often it had been refused. */
export const Attempts = Workflow.make(
  "attempts",
  { version: "1", input: Attempt, success: Schema.Number, error: Refused },
  (input) => attempt(input)
)

/** Each firing stops at `touching` or `trying` before it happens: the first alone, the second with its process. */
export const handlers = (log: EffectLog) => {
  const write = (effect: string, { idempotencyKey, key }: SideEffect.Firing, inputDigest: string) =>
    log.write({ at: key, effect, idempotencyKey, inputDigest })
  return Layer.mergeAll(
    Touch.toLayer(({ run, step }, firing) =>
      Effect.map(
        Effect.promise(() => hold("touching")),
        () => {
          write(Touch.name, firing, `${run} ${step}`)
          return 1
        }
      )
    ),
    Try.toLayer(({ failures, run }, firing) =>
      Effect.suspend(() => {
        const times = log.rows().filter((row) => row.effect === "refused" && row.at.startsWith(`${run}/`)).length
        if (times < failures) {
          write("refused", firing, "")
          return new Refused({ times: times + 1 })
        }
        pass("trying")
        write(Try.name, firing, "")
        return Effect.succeed(times)
      })
    )
  )
}
