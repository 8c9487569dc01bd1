/** Two versions of a workflow that parks in the middle. */
import { Interrupt, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"

export const Go = Interrupt.make("go", { answer: Schema.String })

const version = (number: "1" | "2") =>
  Workflow.make("order", { version: number, success: Schema.String }, () =>
    Effect.map(Go(), (answer) => `${answer} by ${number}`)
  )

export const orders = { "1": version("1"), "2": version("2") }
