/** A worker and a caller in one process: sends what there is to send, under the same ids each time, until it is killed. */
import { Client, Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as CommitPoints from "../CommitPoints.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, tell } from "../processes/Inside.js"
import { Add, Desk, Note } from "./Desk.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress }))
CommitPoints.watch(given.plane)

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  const sent = { run: "r", messageId: "1" }
  yield* client.signalWithStart(Desk, undefined, Note, "one", sent)
  const first = yield* client.update("r", Add, 5, { updateId: "a" })
  yield* client.signal("r", Note, "two", { messageId: "2" })
  const second = yield* client.update("r", Add, 7, { updateId: "b" })
  yield* client.signal("r", Note, "three", { messageId: "3" })
  return [...(yield* client.result(Desk, "r")), `${first}`, `${second}`]
})

tell(
  await Effect.runPromise(
    Effect.provide(
      program,
      Worker.layer({ workflows: [Desk] }).pipe(Layer.provideMerge(PlaneAddress.layer(given.plane)))
    )
  )
)
