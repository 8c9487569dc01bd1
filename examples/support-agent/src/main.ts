import { Client, Plane, Worker } from "@fermata/runtime"
import { Effect, Layer } from "effect"
import { Approval, Assistant, Lookup, Pay, Support } from "./Agent.js"
import * as ScriptedModel from "./ScriptedModel.js"

const [order = "order-1", decision] = process.argv.slice(2)
if (decision !== undefined && decision !== "yes" && decision !== "no") {
  console.error("usage: npm start -w @fermata/example-support-agent -- [order-1|order-2] [yes|no]")
  process.exit(2)
}

const prices: Record<string, number> = { "order-1": 12_000, "order-2": 900 }

const Live = Worker.layer({ workflows: [Support] }).pipe(
  Layer.provide(Assistant.layer),
  Layer.provide(ScriptedModel.layer(() => console.log("the model is asked"))),
  Layer.provide(Lookup.toLayer((id) => Effect.succeed({ id, cents: prices[id] ?? 100, item: "a teapot" }))),
  Layer.provide(
    Pay.toLayer(({ cents, id }) => Effect.sync(() => console.log(`the bank pays ${cents / 100} for ${id}`)))
  ),
  Layer.provideMerge(Plane.sqlite({ filename: process.env.FERMATA_DATABASE ?? "support.db" }))
)

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  const run = yield* client.start(Support, `I want my money back for ${order}`, { run: order })
  const { status } = yield* client.awaitStatus(run, ({ status }) => status !== "ready" && status !== "running")
  if (status === "waiting") {
    if (decision === undefined) return console.log("waiting for a person: start me again with yes or no")
    yield* client.resume(Approval, {
      branch: run.branch,
      interrupt: "approval#1",
      value: decision === "yes",
      deliveryId: `desk-${order}`,
      intent: "retry"
    })
  }
  console.log(yield* client.result(Support, run))
})

await Effect.runPromise(Effect.provide(program, Live))
