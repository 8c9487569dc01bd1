import { Client, Delivery, Node, Plane, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"

// What touches the outside world is declared, with how it may be delivered. Printing again does no harm.
const Print = SideEffect.make("print", { input: Schema.String, delivery: Delivery.repeatable })
const PrintLive = Print.toLayer((line) => Effect.sync(() => console.log(line)))

// A node may perform what it declares. Its outcome is recorded once, and served from then on.
const print = Node.make("print", { input: Schema.String, effects: [Print] }, (line) => Print(line))

// A workflow is a plain Effect. Its sleep is durable: it ends when it would have ended, whatever happens to the process.
const Greet = Workflow.make("greet", { version: "1", input: Schema.String, success: Schema.String }, (name) =>
  Effect.gen(function* () {
    yield* print(`Hello ${name}. Press Ctrl-C now, and start me again.`)
    yield* Effect.sleep("10 seconds")
    yield* print("Ten seconds after the first line, however often I was stopped.")
    return `Goodbye ${name}.`
  })
)

const Live = Worker.layer({ workflows: [Greet] }).pipe(
  Layer.provide(PrintLive),
  Layer.provideMerge(Plane.sqlite({ filename: "first.db" }))
)

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  const run = yield* client.start(Greet, "Ada", { run: "greet-ada" }) // the same run id is the same run
  console.log(yield* client.result(Greet, run))
})

await Effect.runPromise(Effect.provide(program, Live))
