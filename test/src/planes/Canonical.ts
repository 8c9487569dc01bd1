/** The canonical workflows of the contract's harness as one workflow of this plane, which interprets them. */
import { SqlClient } from "@effect/sql/SqlClient"
import {
  type AnswerType,
  CanonicalWorkflow,
  type GateStep,
  type NodeStep,
  type Outside,
  type Step,
  stepName
} from "@fermata/contract/harness"
import { Delivery, Interrupt, Node, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Layer, Schema } from "effect"

/** The table of the plane's own database that `transactional` effects write to. */
export const bookTable =
  "CREATE TABLE conformance_book (run TEXT NOT NULL, step TEXT NOT NULL, effect TEXT NOT NULL, input TEXT NOT NULL, value TEXT NOT NULL)"

const Call = Schema.Struct({
  run: Schema.String,
  step: Schema.String,
  effect: Schema.String,
  silent: Schema.Boolean,
  input: Schema.Array(Schema.Unknown)
})
type Call = typeof Call.Type

// What is given for an answer is unknown until the Schema has seen it.
const answers: Record<AnswerType, Schema.Schema<unknown, unknown>> = {
  any: Schema.Unknown,
  boolean: Schema.Boolean as Schema.Schema<unknown, unknown>,
  string: Schema.String as Schema.Schema<unknown, unknown>,
  number: Schema.Number as Schema.Schema<unknown, unknown>
}

const interrupts = new Map<string, Interrupt.Interrupt<string, void, unknown>>()

/** The interrupt of a gate: its name, and the type of its answer. */
export const interruptOf = (gate: string, type: AnswerType): Interrupt.Interrupt<string, void, unknown> => {
  const key = `${gate} ${type}`
  const known = interrupts.get(key) ?? Interrupt.make(gate, { answer: answers[type] })
  interrupts.set(key, known)
  return known
}

/** The workflow and its handlers, with effects that write to `outside`. `brief`: effects are over within a second or two. */
export const make = (outside: Outside.Outside, options: { readonly brief: boolean }) => {
  const shape = { input: Call, success: Schema.String }
  const limits = options.brief
    ? ({ timeLimit: "1 second", fireWithin: "1 second" } as const)
    : ({ fireWithin: "60 seconds" } as const)
  const effects = {
    once: SideEffect.make("conformance/once", { ...shape, delivery: Delivery.once(limits) }),
    keyed: SideEffect.make("conformance/keyed", { ...shape, delivery: Delivery.keyed }),
    repeatable: SideEffect.make("conformance/repeatable", { ...shape, delivery: Delivery.repeatable }),
    transactional: SideEffect.make("conformance/transactional", { ...shape, delivery: Delivery.transactional })
  }
  const firing = (delivery: keyof typeof effects, { effect, input, run, step }: Call, { key }: SideEffect.Firing) => ({
    run,
    step,
    effect,
    delivery,
    key,
    input
  })
  const handlers = Layer.mergeAll(
    effects.once.toLayer((call, one) => outside.fire(firing("once", call, one)), {
      reconcile: ({ key }, { run, silent }) =>
        silent
          ? Effect.succeed(SideEffect.Unknown)
          : Effect.map(outside.ask(run, key), (value) =>
              value === undefined ? SideEffect.NeverWill : SideEffect.Happened(value)
            )
    }),
    effects.keyed.toLayer((call, one) => outside.fire(firing("keyed", call, one))),
    effects.repeatable.toLayer((call, one) => outside.fire(firing("repeatable", call, one))),
    effects.transactional.toLayer((call, one) =>
      outside.around(firing("transactional", call, one), (value) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const { effect, input, run, step } = call
          yield* Effect.orDie(
            sql`INSERT INTO conformance_book (run, step, effect, input, value) VALUES (${run}, ${step}, ${effect}, ${JSON.stringify(input)}, ${value})`
          )
          return value
        })
      )
    )
  )

  const Work = Schema.Struct({
    run: Schema.String,
    silent: Schema.Boolean,
    context: Schema.Array(Schema.Unknown),
    effects: Schema.Array(
      Schema.Struct({ name: Schema.String, delivery: Schema.Literal("once", "keyed", "repeatable", "transactional") })
    )
  })
  const declared = [effects.once, effects.keyed, effects.repeatable, effects.transactional] as const
  const nodeOf = memoized((step: string) =>
    Node.make(step, { input: Work, success: Schema.NullOr(Schema.String), effects: declared }, (work) =>
      Effect.gen(function* () {
        yield* outside.body(work.run, step)
        const values: Array<string> = []
        for (const { delivery, name } of work.effects) {
          const input = [...work.context, ...values]
          values.push(yield* effects[delivery]({ run: work.run, step, effect: name, silent: work.silent, input }))
        }
        return values.at(-1) ?? null
      })
    )
  )
  const writerOf = memoized((step: string) =>
    Node.make(
      step,
      { input: Schema.Struct({ run: Schema.String, breaks: Schema.Boolean }), success: Schema.Int },
      ({ breaks, run }) =>
        // What its type forbids, on purpose: the plane must look.
        Effect.as(outside.body(run, step), (breaks ? "not an integer" : 0) as number)
    )
  )

  const workflow = Workflow.make(
    "conformance",
    { version: "1", input: CanonicalWorkflow, success: Schema.Array(Schema.Unknown) },
    ({ receiver, steps }) =>
      Effect.gen(function* () {
        const { run } = yield* Workflow.current
        const silent = receiver === "silent"
        const node = ({ effects, name }: NodeStep, context: ReadonlyArray<unknown>, at: string) =>
          nodeOf(stepName(name, at))({ run, silent, context, effects })
        const gate = ({ answer, name }: GateStep, at: string) => interruptOf(stepName(name, at), answer)()
        const all = (list: ReadonlyArray<Step>, context: ReadonlyArray<unknown>, at: string): Performed =>
          Effect.gen(function* () {
            const results: Array<unknown> = []
            for (const step of list) results.push(yield* one(step, [...context, ...results], at))
            return results
          })
        const one = (step: Step, context: ReadonlyArray<unknown>, at: string): Performed => {
          switch (step.do) {
            case "node":
              return node(step, context, at)
            case "gate":
              return gate(step, at)
            case "parallel":
              return Effect.all(
                step.lanes.map((lane) => all(lane, context, at)),
                { concurrency: "unbounded" }
              )
            case "nested":
              return all(step.steps, context, at)
            case "fan-out":
              return Effect.all(
                Array.from({ length: step.width }, (_, i) => node(step.node, [...context, i], `${at}@${i}`)),
                { concurrency: "unbounded" }
              )
            case "loop":
              return Effect.forEach(Array.from({ length: step.times }), (_, i) =>
                all(step.steps, [...context, i], `${at}@${i}`)
              )
            case "invalid":
              return writerOf(stepName(step.name, at))({ run, breaks: context.at(-1) === true })
          }
        }
        type Performed = Effect.Effect<
          unknown,
          never,
          Effect.Effect.Context<ReturnType<typeof node>> | Workflow.WorkflowScope
        >
        // A list of steps gives a list of results; one type stands for the results of all kinds of steps.
        return yield* all(steps, [], "") as Effect.Effect<
          ReadonlyArray<unknown>,
          never,
          Effect.Effect.Context<Performed>
        >
      })
  )
  return { workflow, handlers, effects }
}

/** Definitions are made once for each name, not at each call. */
const memoized = <A>(of: (name: string) => A): ((name: string) => A) => {
  const known = new Map<string, A>()
  return (name) => {
    const found = known.get(name) ?? of(name)
    known.set(name, found)
    return found
  }
}
