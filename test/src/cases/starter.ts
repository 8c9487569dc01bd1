/** A client that starts runs without end and tells each id when the start has returned. */
import { Client } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import * as PlaneAddress from "../PlaneAddress.js"
import { input, tell } from "../processes/Inside.js"
import { Chain } from "./Chain.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress }))

await Effect.runPromise(
  Effect.provide(
    Effect.gen(function* () {
      const client = yield* Client.Client
      for (let n = 0; ; n++)
        tell((yield* client.start(Chain, { run: `started-${n}`, steps: 1 }, { run: `started-${n}` })).run)
    }),
    PlaneAddress.layer(given.plane)
  )
)
