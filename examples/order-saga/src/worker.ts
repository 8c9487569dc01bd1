/** Fulfils the orders; killed by itself after so many deeds, if it is told so. */
import { Client, Plane, Worker } from "@fermata/runtime"
import { Effect, Either, Layer } from "effect"
import { Fulfil, type Order } from "./Order.js"
import { handlers } from "./Outside.js"

const [folder = ".", die = "0"] = process.argv.slice(2)

const orders: ReadonlyArray<Order> = [
  { id: "o-1", item: "lamp", cents: 4900 },
  { id: "o-2", item: "sofa", cents: 89900, trouble: "no stock" },
  { id: "o-3", item: "chair", cents: 12900, trouble: "no carrier" },
  { id: "o-4", item: "piano", cents: 499900, trouble: "no carrier, no refund" }
]

const database = process.env["FERMATA_DATABASE"]
const plane =
  database?.startsWith("postgres") === true
    ? Plane.postgres({ url: database })
    : Plane.sqlite({ filename: database ?? `${folder}/orders.db` })

const program = Effect.gen(function* () {
  const client = yield* Client.Client
  for (const order of orders) yield* client.start(Fulfil, order, { run: order.id })
  for (const { id } of orders) {
    const end = yield* Effect.either(client.result(Fulfil, id))
    console.log(`${id}: ${Either.match(end, { onLeft: (error) => error.message, onRight: String })}`)
  }
})

await Effect.runPromise(
  Effect.provide(
    program,
    Worker.layer({ workflows: [Fulfil] }).pipe(
      Layer.provide(
        handlers(`${folder}/outside.log`, (deeds) => {
          if (deeds === Number(die)) process.kill(process.pid, "SIGKILL")
        })
      ),
      Layer.provideMerge(plane)
    )
  )
)
