/** `fermata worker`: runs a module's workflows until it is told to stop. */
import { Command, Options } from "@effect/cli"
import { Ledger, Worker } from "@fermata/runtime"
import { Effect, Layer } from "effect"
import { UsageError } from "../CliError.js"
import { common, module, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import * as WorkflowModule from "../WorkflowModule.js"

/** What a worker is started with. */
export const workerOptions = {
  ...common,
  module,
  concurrency: Options.integer("concurrency").pipe(
    Options.withDescription("Branches that it runs at once"),
    Options.withDefault(1000)
  )
}

export const worker = Command.make("worker", workerOptions, (options) =>
  Effect.gen(function* () {
    if (options.concurrency < 1) {
      yield* new UsageError({ what: "--concurrency", detail: "is less than 1: such a worker would run nothing" })
    }
    const { layer, workflows } = yield* WorkflowModule.load(options.module)
    const running = Effect.gen(function* () {
      const { database } = yield* Ledger
      const name = yield* (yield* Worker.Worker).name
      const definitions = workflows.map(({ definition }) => definition)
      yield* print(options.json, { worker: name, pid: process.pid, database, definitions }, () => [
        `Worker ${name} serves ${definitions.join(", ")} on ${database}`
      ])
      return yield* Effect.never
    })
    const work = Worker.layer({ workflows, concurrency: options.concurrency }).pipe(Layer.provide(layer))
    yield* onPlane(options, Effect.provide(running, work), { create: true })
  })
).pipe(Command.withDescription("Run a worker for a module of workflows; stops gracefully on SIGTERM and SIGINT"))
