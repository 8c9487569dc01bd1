/**
 * Three processes with the same imports: one that does nothing, one that is killed while its 1,001st step is under way, and
 * the one that then finishes the run.
 */
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { Held, running } from "../Workflows.js"
import { location, parameter, say } from "./Parameters.js"

const run = parameter("run")

const record = Effect.provide(
  Effect.gen(function* () {
    const client = yield* Client.Client
    yield* client.start(Held, 1000, { run })
    return yield* Effect.never
  }),
  // A keyed effect fires only when everything before it is durable: whoever is told may kill.
  running(location(), {
    onHold: Effect.zipRight(
      Effect.sync(() => say("held")),
      Effect.never
    )
  })
)

const finish = Effect.provide(
  Effect.gen(function* () {
    const client = yield* Client.Client
    yield* client.result(Held, run)
    say("done")
  }),
  running(location())
)

switch (parameter("mode")) {
  case "record":
    await Effect.runPromise(record)
    break
  case "finish":
    await Effect.runPromise(finish)
    break
  default:
    say("done")
}
