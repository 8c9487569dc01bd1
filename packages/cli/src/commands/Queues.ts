/** `fermata queues`: how deep each queue is, how old, and who serves it; pauses and resumes one. */
import { Args, Command } from "@effect/cli"
import { Client, Health } from "@fermata/runtime"
import { Effect } from "effect"
import { common, onPlane } from "../Flags.js"
import { duration, print, table } from "../Output.js"

const list = Command.make("list", common, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      const { now, workers } = yield* Health.facts
      const alive = workers.filter(({ leaseUntil, state }) => state === "alive" && leaseUntil >= now)
      const found = (yield* client.queues.list).map((queue) => ({
        ...queue,
        age: queue.oldestReady === null ? null : Math.max(0, now - queue.oldestReady),
        // What a worker claims of a queue reads `workflow@version|queue`.
        workers: alive
          .filter(({ definitions }) => definitions?.some((one) => one.endsWith(`|${queue.name}`)) === true)
          .map(({ worker }) => worker)
      }))
      yield* print(options.json, found, () =>
        found.length === 0
          ? ["No queues."]
          : table(
              ["QUEUE", "READY", "OLDEST", "RUNNING", "WAITING", "WORKERS"],
              found.map((one) => [
                one.paused ? `${one.name} (paused)` : one.name,
                String(one.ready),
                one.age === null ? "" : duration(one.age),
                String(one.running),
                String(one.waiting),
                one.workers.length === 0 ? "none" : String(one.workers.length)
              ])
            )
      )
    })
  )
).pipe(Command.withDescription("List queues"))

const pausing = (name: "pause" | "resume", said: string) =>
  Command.make(name, { ...common, queue: Args.text({ name: "queue" }) }, (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        yield* client.queues[name](options.queue)
        yield* print(options.json, { queue: options.queue, paused: name === "pause" }, () => [
          `${said} ${options.queue}`
        ])
      })
    )
  )

export const queues = Command.make("queues").pipe(
  Command.withDescription("List, pause and resume queues"),
  Command.withSubcommands([
    list,
    pausing("pause", "Paused").pipe(Command.withDescription("Begin nothing of a queue until it is resumed")),
    pausing("resume", "Resumed").pipe(Command.withDescription("Let a paused queue go on"))
  ])
)
