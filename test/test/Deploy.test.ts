/** A rolling deployment of a new version, by processes: runs end under the version that they were started with. */
import { Client, Health } from "@fermata/runtime"
import { orders, Go } from "@fermata/test/deploy/Order"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

describe.each(PlaneAddress.databases)("a rolling deployment on %s", (database) => {
  it.scopedLive(
    "leaves old runs to old workers, names what none serves, and loses nothing",
    () =>
      Effect.gen(function* () {
        const plane = yield* PlaneAddress.fresh(database)
        const deploy = (...versions: ReadonlyArray<"1" | "2">) =>
          Effect.tap(Child.spawn("deploy/worker", { input: { plane, versions } }), (child) =>
            child.receive(Schema.Literal("up"))
          )
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          const asked = (run: string) => client.awaitStatus(run, ({ status }) => status === "waiting")
          const answer = (run: string) =>
            client.resume(Go, {
              branch: `${run}/main`,
              interrupt: "go#1",
              value: "done",
              deliveryId: run,
              intent: "retry"
            })
          const first = yield* deploy("1")
          yield* client.start(orders["1"], undefined, { run: "old" })
          yield* asked("old")
          // Both run side by side for a while; then the old one is gone.
          yield* deploy("2")
          yield* client.start(orders["2"], undefined, { run: "new" })
          yield* asked("new")
          yield* first.terminate
          expect((yield* first.exit).code).toBe(0)
          yield* answer("old")
          yield* answer("new")
          expect(yield* client.result(orders["2"], "new")).toBe("done by 2")
          // The new worker lives on the database, and leaves alone what it does not know.
          expect(yield* client.describe("old")).toMatchObject({
            status: "ready",
            waitingFor: [{ _tag: "Worker", definition: "order@1" }]
          })
          expect(Health.findings(yield* Health.facts)).toMatchObject([{ kind: "unserved", subject: "order@1" }])
          yield* deploy("1", "2")
          expect(yield* client.result(orders["1"], "old")).toBe("done by 1")
          expect(Health.findings(yield* Health.facts)).toEqual([])
        }).pipe(Effect.provide(PlaneAddress.layer(plane)))
      }),
    120_000
  )
})
