/** What scheduled runs do one after another: a letter is written down outside, once for each of them. */
import { Delivery, Node, SideEffect, Workflow, WorkQueue } from "@fermata/runtime"
import { Effect, Schema } from "effect"

export const Letters = WorkQueue.make("letters", { concurrency: 1, hold: "run" })

export const Post = SideEffect.make("post", { input: Schema.String, delivery: Delivery.keyed })

const post = Node.make("post", { input: Schema.String, effects: [Post] }, (letter) => Post(letter))

export const SendLetter = Workflow.make("send-letter", { version: "1", input: Schema.String }, (letter) =>
  Effect.gen(function* () {
    const { run } = yield* Workflow.current
    yield* post(`${letter} ${run}`)
  })
)
