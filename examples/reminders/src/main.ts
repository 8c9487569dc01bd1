import { Client, Delivery, Node, Plane, RunSchedule, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { Effect, Layer, Queue, Schema } from "effect"

/** How many reminders to wait for before going home. */
const [count = "3"] = process.argv.slice(2)
if (!/^[1-9][0-9]?$/.test(count)) {
  console.error("usage: npm start -w @fermata/example-reminders -- [1 to 99]")
  process.exit(2)
}

const Notify = SideEffect.make("notify", { input: Schema.String, delivery: Delivery.keyed })
const notify = Node.make("notify", { input: Schema.String, effects: [Notify] }, (text) => Notify(text))

/** What the schedule starts: the run's id says for which time. */
const Remind = Workflow.make("remind", { version: "1", input: Schema.String }, (text) =>
  Effect.gen(function* () {
    const { run } = yield* Workflow.current
    yield* notify(`${text} (${run})`)
  })
)

const program = Effect.gen(function* () {
  const said = yield* Queue.unbounded<string>()
  const NotifyLive = Notify.toLayer((text) => Queue.offer(said, text))
  const work = Effect.gen(function* () {
    const client = yield* Client.Client
    // The very same schedule again is no other one. In earnest: RunSchedule.cron("0 9 * * *", { zone: "Europe/Berlin" }).
    yield* client.schedules.create("plants", {
      workflow: Remind,
      input: "water the plants",
      spec: RunSchedule.every("1 second"),
      overlap: "allow",
      // Nobody wants to hear in the evening of every hour that they were away.
      catchUp: "1 second"
    })
    for (let n = 0; n < Number(count); n++) console.log(yield* Queue.take(said))
  })
  yield* Effect.provide(work, Worker.layer({ workflows: [Remind] }).pipe(Layer.provide(NotifyLive)))
})

await Effect.runPromise(
  Effect.provide(program, Plane.sqlite({ filename: process.env.FERMATA_DATABASE ?? "reminders.db" }))
)
