/** A process that answers one approval, the moment that it is told to. Started twice, it makes a race. */
import { Plane } from "@fermata/runtime"
import { Effect, Schema } from "effect"
import * as ChildProcess from "./ChildProcess.js"
import * as Desk from "./Desk.js"
import * as Edge from "./Edge.js"

const Options = Schema.Struct({ plane: Schema.String, answer: Desk.Answer })

Edge.run(
  Effect.flatMap(ChildProcess.options(Options), ({ answer, plane }) =>
    Effect.gen(function* () {
      yield* ChildProcess.tell({ _tag: "Ready" })
      yield* ChildProcess.go
      yield* ChildProcess.tell({ _tag: "Verdict", ...(yield* Desk.give(answer)) })
      return 0
    }).pipe(Effect.provide(Plane.sqlite({ filename: plane })))
  )
)
