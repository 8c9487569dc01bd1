/** A worker that fires schedules and serves a queue until it is killed at one of its commits. */
import { Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as CommitPoints from "../CommitPoints.js"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { input } from "../processes/Inside.js"
import { Letters, Post, SendLetter } from "./Letters.js"

const given = input(Schema.Struct({ plane: PlaneAddress.PlaneAddress, log: Schema.String }))
const log = EffectLog.open(given.log)
CommitPoints.watch(given.plane)

const PostLive = Post.toLayer((letter, { idempotencyKey }) =>
  Effect.sync(() => void log.write({ at: "post", effect: "post", idempotencyKey, inputDigest: letter }))
)

await Effect.runPromise(
  Layer.launch(
    Worker.layer({ workflows: [SendLetter], queues: [Letters] }).pipe(
      Layer.provide(PostLive),
      Layer.provide(PlaneAddress.layer(given.plane))
    )
  )
)
