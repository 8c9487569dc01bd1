/** The worker process: runs refunds until it is stopped, or killed. */
import { Plane, Worker } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"
import * as Assessor from "./Assessor.js"
import * as ChildProcess from "./ChildProcess.js"
import * as Edge from "./Edge.js"
import * as Handlers from "./Handlers.js"
import * as Network from "./Network.js"
import { Refund } from "./Refund.js"
import * as Shop from "./Shop.js"

const Options = Schema.Struct({
  plane: Schema.String,
  shop: Schema.String,
  cut: Schema.optional(Schema.Struct({ afterPayments: Schema.Int, loses: Schema.Literal("calls", "replies") }))
})

const live = ({ cut, plane, shop }: typeof Options.Type) =>
  // Few at once, so that the demonstration has something left to crash.
  Worker.layer({ workflows: [Refund], concurrency: 8 }).pipe(
    Layer.provide(Handlers.layer),
    Layer.provide([Shop.layer(shop), Assessor.standIn]),
    Layer.provide(
      cut === undefined ? Network.calm : Network.cut({ ...cut, onLoss: ChildProcess.tell({ _tag: "Lost" }) })
    ),
    Layer.provide(Plane.sqlite({ filename: plane }))
  )

Edge.run(Effect.flatMap(ChildProcess.options(Options), (options) => Layer.launch(live(options))))
