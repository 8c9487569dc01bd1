/**
 * A process of the crash sweep: starts each of its runs (the same start again, if a process before it did), answers
 * what they ask, settles what is in doubt by what the log outside says, and waits until all are over.
 */
import { Client, Worker } from "@fermata/runtime"
import { CrashPoint } from "@fermata/runtime/testing"
import { Effect, Layer, Schema } from "effect"
import * as CommitPoints from "../CommitPoints.js"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { hold, input, pass, tell } from "../processes/Inside.js"
import { Approval, Order, Pay, Seal, make, receiptOf } from "./Sweep.js"

/** What the process is given. A scenario may have a point at which it waits, while the others go on. */
const Given = Schema.Struct({
  plane: PlaneAddress.PlaneAddress,
  log: Schema.String,
  scenarios: Schema.Array(
    Schema.Struct({ version: Schema.String, order: Order, waitAt: Schema.optional(Schema.String) })
  )
})

const given = input(Given)
const log = EffectLog.open(given.log)

const waitAt = new Map(given.scenarios.map((scenario) => [scenario.order.run, scenario.waitAt]))
const reach = (run: string, point: string): Promise<void> => {
  pass(point)
  return waitAt.get(run) === point ? hold(`waiting:${run}`) : Promise.resolve()
}
const { handlers, workflow } = make(log, reach)

// Points are the same in every scenario: the branch is left out of their names. What becomes durable does so in a
// commit, and those are watched in the driver.
CrashPoint.install((name, detail) => {
  if (name === "appended" || name === "durable") return undefined
  const [branch = "", ...key] = detail.split("|")
  return Effect.promise(() => reach(branch.slice(0, branch.lastIndexOf("/")), `${name}:${key.join("|")}`))
})
CommitPoints.watch(given.plane)

const scenarios = given.scenarios.map(({ order, version }) => ({ order, workflow: workflow(version) }))

const over = (status: string) => status === "completed" || status === "failed" || status === "cancelled"

const course = ({ order, workflow }: (typeof scenarios)[number]) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const { branch } = yield* client.start(workflow, order, { run: order.run })
    const settled = new Set<string>()
    const doubts = ({ problems }: Client.Description) =>
      problems.flatMap((problem) => (problem._tag === "InDoubt" && !settled.has(problem.key) ? [problem] : []))
    const other = ({ problems }: Client.Description) => problems.find(({ _tag }) => _tag !== "InDoubt")
    let answered = false
    for (;;) {
      const now = yield* client.awaitStatus(
        branch,
        (now) =>
          over(now.status) ||
          (now.status === "stuck" && (doubts(now).length > 0 || other(now) !== undefined)) ||
          (!answered && now.waitingFor.some(({ _tag }) => _tag === "Answer"))
      )
      if (over(now.status)) return { run: order.run, status: now.status, stuck: settled.size }
      if (now.status === "stuck") {
        const problem = other(now)
        if (problem !== undefined) return yield* Effect.dieMessage(`${branch} is stuck: ${problem.message}`)
        for (const doubt of doubts(now)) {
          yield* settle(branch, doubt)
          settled.add(doubt.key)
        }
        continue
      }
      answered = true
      yield* client.resume(Approval, {
        branch,
        interrupt: "approval#1",
        value: { approver: "Ada" },
        deliveryId: "answer",
        intent: "retry"
      })
    }
  })

/** The operator looks at what happened outside, and says so. The process that fired is gone, so nothing can come late. */
const settle = (branch: string, { effect, key }: { readonly effect: string; readonly key: string }) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const settlement: Client.Settlement<string, never> = log.rows().some(({ at }) => at === key)
      ? { _tag: "Happened", value: yield* valueOf(branch, effect) }
      : { _tag: "DidNotHappen" }
    return yield* effect === Pay.name
      ? client.settle(Pay, { branch, key, settlement })
      : client.settle(Seal, { branch, key, settlement })
  })

/** What the receiver gave back is a function of the input that the intent recorded. */
const valueOf = (branch: string, effect: string) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const history = yield* client.history(branch)
    const intents = history.filter(({ kind }) => kind === "effect.intended").map(({ payload }) => decodeIntent(payload))
    const intent = intents.find((intent) => intent.effect === effect)
    if (intent === undefined) return yield* Effect.dieMessage(`${effect} is in doubt without an intent`)
    const { approver = "", grade = "", price = "", receipt = "" } = intent.value
    return effect === Pay.name ? receiptOf.pay(price, grade, approver) : receiptOf.seal(receipt)
  })

const field = Schema.optional(Schema.String)
const decodeIntent = Schema.decodeSync(
  Schema.parseJson(
    Schema.Struct({
      effect: Schema.String,
      value: Schema.Struct({ price: field, grade: field, approver: field, receipt: field })
    })
  )
)

const live = Worker.layer({ workflows: scenarios.map(({ workflow }) => workflow) }).pipe(
  Layer.provide(handlers),
  Layer.provideMerge(PlaneAddress.layer(given.plane))
)

const results = await Effect.runPromise(
  Effect.provide(Effect.forEach(scenarios, course, { concurrency: "unbounded" }), live)
)
tell(results)
