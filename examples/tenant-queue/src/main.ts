import { Client, Delivery, Node, Plane, SideEffect, Worker, Workflow, WorkQueue } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"

/** One slot in all, so that the order can be seen; and a tenant never has two. */
const Reports = WorkQueue.make("reports", { concurrency: 1, perKey: { concurrency: 1 } })

const Job = Schema.Struct({ tenant: Schema.String, n: Schema.Number })

const Render = SideEffect.make("render", { input: Job, delivery: Delivery.keyed })
const render = Node.make("render", { input: Job, effects: [Render] }, (job) => Render(job))

const MakeReport = Workflow.make("make-report", { version: "1", input: Job }, (job) => render(job))

const Live = Worker.layer({ workflows: [MakeReport], queues: [Reports] }).pipe(
  Layer.provide(Render.toLayer(({ n, tenant }) => Effect.sync(() => console.log(`report ${n} of ${tenant}`)))),
  Layer.provideMerge(Plane.sqlite({ filename: process.env.FERMATA_DATABASE ?? "tenants.db" }))
)

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  // Closed while orders come in: nobody is first only because he was there first.
  yield* client.queues.pause(Reports)
  const order = (tenant: string, n: number, priority = 0) =>
    client.start(MakeReport, { tenant, n }, { run: `${tenant}-${n}`, queue: Reports, key: tenant, priority })
  const noisy = yield* Effect.forEach([1, 2, 3, 4, 5], (n) => order("noisy", n))
  const quiet = yield* Effect.forEach([1, 2], (n) => order("quiet", n))
  const urgent = yield* order("urgent", 1, 10)
  yield* client.queues.resume(Reports)
  yield* Effect.forEach([...noisy, ...quiet, urgent], (run) => client.result(MakeReport, run))
})

await Effect.runPromise(Effect.provide(program, Live))
