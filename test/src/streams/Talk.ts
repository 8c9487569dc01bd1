/** A workflow that talks while it runs: a title of its own, then the words of a node. */
import { Node, OutputStream, Workflow } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import { hold } from "../processes/Inside.js"

export const Words = OutputStream.make("words", { chunk: Schema.String })

const talk = Node.make("talk", { input: Schema.Array(Schema.String), success: Schema.Number }, (words) =>
  Effect.gen(function* () {
    for (const word of words) {
      yield* Words(word)
      yield* Effect.promise(() => hold(`said ${word}`))
    }
    return words.length
  })
)

export const Talk = Workflow.make(
  "talk",
  { version: "1", input: Schema.Array(Schema.String), success: Schema.Number },
  (words) =>
    Effect.gen(function* () {
      yield* Words("title")
      return yield* talk(words)
    })
)
