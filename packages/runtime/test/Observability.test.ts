import { assert, describe, it } from "@effect/vitest"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { Effect, HashMap, Layer, Logger, Metric, Option, Schema, Tracer } from "effect"
import { Client, Delivery, Interrupt, Metrics, Node, SideEffect, Worker, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

class Busy extends Schema.TaggedError<Busy>()("Busy", {}) {}

let tries = 0
const Charge = SideEffect.make("charge", { delivery: Delivery.keyed, error: Busy })
const ChargeLive = Charge.toLayer(() => (++tries % 2 === 1 ? Effect.fail(new Busy()) : Effect.log("charged")))
const charge = Node.make("charge", { error: Busy, effects: [Charge], retry: { times: 1 } }, () => Charge())
const Go = Interrupt.make("go")
const Order = Workflow.make("order", { version: "1", error: Busy }, () =>
  Effect.gen(function* () {
    yield* charge()
    yield* Effect.log("asking")
    yield* Go()
    yield* charge()
  })
)

const answer = (client: Client.Client) =>
  client.resume(Go, { branch: "r/main", interrupt: "go#1", value: undefined, deliveryId: "d", intent: "retry" })

describe("a run", () => {
  it.scopedLive("is one trace, whichever workers carry it out, with a span for each attempt of a step", () =>
    Effect.gen(function* () {
      const plane = PlaneAddress.layer(yield* PlaneAddress.fresh("SQLite"))
      const spans: Array<Tracer.Span> = []
      const tracing = Layer.setTracer(
        Tracer.make({
          context: (run) => run(),
          span: (name, parent, context, links, startTime, kind) => {
            const attributes = new Map<string, unknown>()
            const span: Tracer.Span = {
              _tag: "Span",
              name,
              spanId: `span ${spans.length}`,
              traceId: Option.match(parent, { onNone: () => "", onSome: ({ traceId }) => traceId }),
              parent,
              context,
              status: { _tag: "Started", startTime },
              attributes,
              links,
              sampled: true,
              kind,
              end: () => undefined,
              attribute: (key, value) => void attributes.set(key, value),
              event: () => undefined,
              addLinks: () => undefined
            }
            if (name.startsWith("step ")) spans.push(span)
            return span
          }
        })
      )
      // A worker of its own for each part, as processes are.
      const part = <A, E>(body: (client: Client.Client) => Effect.Effect<A, E>) =>
        Effect.flatMap(Client.Client, body).pipe(
          Effect.provide(
            Worker.layer({ workflows: [Order] }).pipe(
              Layer.provide(ChargeLive),
              Layer.provideMerge(plane),
              Layer.provide(tracing)
            )
          ),
          Effect.scoped
        )
      yield* part((client) =>
        Effect.zipRight(
          client.start(Order, undefined, { run: "r" }),
          client.awaitStatus("r", ({ status }) => status === "waiting")
        )
      )
      assert.strictEqual(spans.length, 2)
      yield* part((client) => Effect.zipRight(answer(client), client.result(Order, "r")))
      // The second worker replayed the first step, which made no span.
      assert.deepStrictEqual(
        spans.map(({ attributes, name }) => [name, attributes.get("fermata.step"), attributes.get("fermata.attempt")]),
        [
          ["step charge", "charge#1", 1],
          ["step charge", "charge#1", 2],
          ["step charge", "charge#2", 1],
          ["step charge", "charge#2", 2]
        ]
      )
      assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 1)
      assert.match(spans[0]?.traceId ?? "", /^[0-9a-f]{32}$/)
      assert.deepInclude(Object.fromEntries(spans[0]?.attributes ?? []), {
        "fermata.run": "r",
        "fermata.branch": "r/main",
        "fermata.delivery": "keyed"
      })
    })
  )

  it.effect("names itself in what its workflow and its steps log", () => {
    const lines: Array<readonly [unknown, unknown]> = []
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations, message }) => {
        const [text] = message as ReadonlyArray<unknown>
        lines.push([text, Option.getOrUndefined(HashMap.get(annotations, "fermata.branch"))])
      })
    )
    return Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.start(Order, undefined, { run: "r" })
      yield* client.awaitStatus("r", ({ status }) => status === "waiting")
      assert.deepStrictEqual(lines, [
        ["charged", "r/main"],
        ["asking", "r/main"]
      ])
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Order] }).pipe(
          Layer.provide(ChargeLive),
          Layer.provideMerge(Testing.layer),
          Layer.provide(logger)
        )
      )
    )
  })

  it.effect("is counted: claims, steps by outcome, retries, rests and commits; and the plane is observed", () => {
    const count = (metric: Metric.Metric.Counter<number>) => Effect.map(Metric.value(metric), ({ count }) => count)
    const facts = Effect.all({
      claims: count(Metrics.claims),
      succeeded: count(Metric.tagged(Metrics.steps, "outcome", "succeeded")),
      retries: count(Metrics.retries),
      parked: count(Metric.tagged(Metrics.rests, "rest", "parked")),
      bodies: Effect.map(Metric.value(Metrics.stepMillis), ({ count }) => count),
      commits: Effect.map(Metric.value(Metrics.commitEntries), ({ count }) => count)
    })
    return Effect.gen(function* () {
      const client = yield* Client.Client
      const before = yield* facts
      yield* client.start(Order, undefined, { run: "r" })
      yield* client.awaitStatus("r", ({ status }) => status === "waiting")
      const after = yield* facts
      assert.deepStrictEqual(
        {
          claims: after.claims - before.claims,
          succeeded: after.succeeded - before.succeeded,
          retries: after.retries - before.retries,
          parked: after.parked - before.parked,
          bodies: after.bodies - before.bodies
        },
        { claims: 1, succeeded: 1, retries: 1, parked: 1, bodies: 2 }
      )
      assert.isAbove(after.commits, before.commits)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Layer.build(Metrics.observe())
          // The first look begins at once.
          yield* Effect.repeat(Effect.yieldNow(), {
            until: () => Metric.tagged(Metrics.branches, "status", "waiting").unsafeValue([]).value === 1,
            times: 10_000
          })
        })
      )
      const waiting = yield* Metric.value(Metric.tagged(Metrics.branches, "status", "waiting"))
      assert.strictEqual(waiting.value, 1)
    }).pipe(
      Effect.provide(
        Testing.worker({ workflows: [Order] }).pipe(Layer.provide(ChargeLive), Layer.provideMerge(Testing.layer))
      )
    )
  })
})
