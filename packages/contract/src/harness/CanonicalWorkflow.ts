/**
 * Workflows as data: what every plane under test is asked to run. A driver interprets them with its plane's own means.
 *
 * How they are interpreted: a list of steps runs in order; each step has a *context*, the list of the results before it
 * (those of the enclosing lists first). A node performs its effects one after the other; the input of an effect is the
 * node's context followed by the values of the node's own earlier effects, and the node's result is its last effect's
 * value (`null` without effects). A gate's result is its answer. The other steps' results are lists of results.
 */
import { Schema } from "effect"
import { DeliveryPolicy } from "../Delivery.js"

/** A name of a step, effect or workflow; safe as part of a file's name. */
export const Name = Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9-]{0,39}$/, { identifier: "Name" }))

/** One declared effect of a node. */
export const EffectSpec = Schema.Struct({ name: Name, delivery: DeliveryPolicy })
export type EffectSpec = typeof EffectSpec.Type

/** What answers a gate takes; the plane must refuse others. */
export const AnswerType = Schema.Literal("any", "boolean", "string", "number")
export type AnswerType = typeof AnswerType.Type

/** A unit of work whose outcome the plane records. */
export interface NodeStep {
  readonly do: "node"
  readonly name: string
  readonly effects: ReadonlyArray<EffectSpec>
}

/** A request for an answer from outside. */
export interface GateStep {
  readonly do: "gate"
  readonly name: string
  readonly answer: AnswerType
}

/** Lanes that run at the same time; the result is the list of the lanes' results. */
export interface ParallelStep {
  readonly do: "parallel"
  readonly lanes: ReadonlyArray<ReadonlyArray<Step>>
}

/**
 * Steps inside a unit of the plane's own: a sub-workflow, or (`unit: "node"`) the smallest unit in which the plane lets
 * code ask. The result is the list of their results.
 */
export interface NestedStep {
  readonly do: "nested"
  readonly name: string
  readonly unit: "workflow" | "node"
  readonly steps: ReadonlyArray<Step>
}

/** Copies of one node at the same time, named `name@0`, `name@1` …, each with its number appended to its context. */
export interface FanOutStep {
  readonly do: "fan-out"
  readonly width: number
  readonly node: NodeStep
}

/**
 * Iterations one after the other, with their number, from 0, appended to the context. Nodes and gates within are named
 * `name@0`, `name@1` …. The result is the list of the iterations' results.
 */
export interface LoopStep {
  readonly do: "loop"
  readonly name: string
  readonly times: number
  readonly steps: ReadonlyArray<Step>
}

/**
 * A node without effects that declares an integer as its output. If the last result before it is `true`, its body
 * produces the text "not an integer" all the same; else it produces 0.
 */
export interface InvalidStep {
  readonly do: "invalid"
  readonly name: string
}

export type Step = NodeStep | GateStep | ParallelStep | NestedStep | FanOutStep | LoopStep | InvalidStep

const NodeStep = Schema.Struct({ do: Schema.Literal("node"), name: Name, effects: Schema.Array(EffectSpec) })
const steps = Schema.Array(Schema.suspend((): Schema.Schema<Step> => Step))

export const Step: Schema.Schema<Step> = Schema.Union(
  NodeStep,
  Schema.Struct({ do: Schema.Literal("gate"), name: Name, answer: AnswerType }),
  Schema.Struct({ do: Schema.Literal("parallel"), lanes: Schema.Array(steps) }),
  Schema.Struct({ do: Schema.Literal("nested"), name: Name, unit: Schema.Literal("workflow", "node"), steps }),
  Schema.Struct({ do: Schema.Literal("fan-out"), width: Schema.Int, node: NodeStep }),
  Schema.Struct({ do: Schema.Literal("loop"), name: Name, times: Schema.Int, steps }),
  Schema.Struct({ do: Schema.Literal("invalid"), name: Name })
)

/** A canonical workflow. Names of steps are unique in it. */
export const CanonicalWorkflow = Schema.Struct({
  name: Name,
  /** What the outside says when it is asked whether a `once` effect in doubt happened: what it knows, or nothing. */
  receiver: Schema.Literal("answers", "silent"),
  steps
})
export type CanonicalWorkflow = typeof CanonicalWorkflow.Type

/** What a plane must be able to run for a workflow. */
export const Feature = Schema.Literal("gate", "parallel", "nested", "gates-in-node", "fan-out", "loop", "invalid")
export type Feature = typeof Feature.Type

// ── Constructors ────────────────────────────────────────────────────────────────────────────────────────────

/** A node with one effect, named as the node with `-fx` appended. */
export const node = (name: string, delivery: DeliveryPolicy): NodeStep => ({
  do: "node",
  name,
  effects: [{ name: `${name}-fx`, delivery }]
})

export const gate = (name: string, answer: AnswerType = "any"): GateStep => ({ do: "gate", name, answer })

const workflow = (
  name: string,
  steps: ReadonlyArray<Step>,
  receiver: CanonicalWorkflow["receiver"] = "answers"
): CanonicalWorkflow => ({ name, receiver, steps })

/** The canonical workflows; `delivery` is that of their effects. */
export const canonical = {
  /** An effect in each node. */
  linear: (delivery: DeliveryPolicy) =>
    workflow("linear", [node("one", delivery), node("two", delivery), node("three", delivery)]),
  /** What is read first decides what is done next: a lost outcome shows in the second effect's input. */
  readThenAct: (delivery: DeliveryPolicy) =>
    workflow("read-then-act", [node("read", "repeatable"), node("act", delivery), node("last", delivery)]),
  /** Two effects in one node. */
  twoEffects: (delivery: DeliveryPolicy) =>
    workflow("two-effects", [
      {
        do: "node",
        name: "both",
        effects: [
          { name: "first-fx", delivery },
          { name: "second-fx", delivery }
        ]
      },
      node("last", delivery)
    ]),
  /** One effect whose receiver says nothing when it is asked what happened. */
  silent: (delivery: DeliveryPolicy) => workflow("silent", [node("pay", delivery), node("last", delivery)], "silent"),
  gate: (delivery: DeliveryPolicy, answer: AnswerType = "any") =>
    workflow("gate", [gate("ask", answer), node("gated", delivery)]),
  prefixGateSuffix: (delivery: DeliveryPolicy) =>
    workflow("prefix-gate-suffix", [node("prefix", delivery), gate("ask"), node("suffix", delivery)]),
  parallel: (delivery: DeliveryPolicy) =>
    workflow("parallel", [
      { do: "parallel", lanes: [[node("left", delivery)], [node("right", delivery)]] },
      node("join", delivery)
    ]),
  parallelGates: (delivery: DeliveryPolicy) =>
    workflow("parallel-gates", [
      {
        do: "parallel",
        lanes: [
          [gate("left"), node("left-gated", delivery)],
          [gate("right"), node("right-gated", delivery)]
        ]
      },
      node("join", delivery)
    ]),
  /** A gate beside a node: the gate can be answered while the run is busy. */
  gateBesideNode: (delivery: DeliveryPolicy) =>
    workflow("gate-beside-node", [
      { do: "parallel", lanes: [[gate("ask")], [node("busy", delivery)]] },
      node("join", delivery)
    ]),
  twoGates: (delivery: DeliveryPolicy) =>
    workflow("two-gates", [gate("first"), node("between", delivery), gate("second"), node("last", delivery)]),
  twoGatesInOneNode: (delivery: DeliveryPolicy) =>
    workflow("two-gates-in-one-node", [
      { do: "nested", name: "desk", unit: "node", steps: [gate("first"), gate("second"), node("signed", delivery)] },
      node("last", delivery)
    ]),
  nested: (delivery: DeliveryPolicy) =>
    workflow("nested", [
      node("prefix", delivery),
      {
        do: "nested",
        name: "inner",
        unit: "workflow",
        steps: [node("inner-prefix", delivery), gate("ask"), node("inner-suffix", delivery)]
      },
      node("suffix", delivery)
    ]),
  fanOut: (delivery: DeliveryPolicy) =>
    workflow("fan-out", [{ do: "fan-out", width: 4, node: node("part", delivery) }, node("join", delivery)]),
  loop: (delivery: DeliveryPolicy) =>
    workflow("loop", [
      { do: "loop", name: "turns", times: 3, steps: [node("turn", delivery)] },
      gate("ask"),
      node("last", delivery)
    ]),
  loopOfGates: (delivery: DeliveryPolicy) =>
    workflow("loop-of-gates", [
      { do: "loop", name: "turns", times: 3, steps: [gate("ask"), node("turn", delivery)] },
      node("last", delivery)
    ]),
  /** The answer `true` makes a node write what its Schema forbids. */
  invalidWriter: (delivery: DeliveryPolicy) =>
    workflow("invalid-writer", [
      node("prefix", delivery),
      gate("break"),
      { do: "invalid", name: "writer" },
      node("suffix", delivery)
    ])
} as const

// ── Readings ────────────────────────────────────────────────────────────────────────────────────────────────

/** What a plane must be able to run for these steps. */
export const featuresOf = (steps: ReadonlyArray<Step>): ReadonlySet<Feature> => {
  const features = new Set<Feature>()
  const add = (more: ReadonlyArray<Step>) => featuresOf(more).forEach((feature) => features.add(feature))
  for (const step of steps) {
    switch (step.do) {
      case "node":
        break
      case "parallel":
        features.add("parallel")
        step.lanes.forEach(add)
        break
      case "nested":
        features.add(step.unit === "node" ? "gates-in-node" : "nested")
        add(step.steps)
        break
      case "loop":
        features.add("loop")
        add(step.steps)
        break
      default:
        features.add(step.do)
    }
  }
  return features
}

/** The deliveries that these steps declare. */
export const deliveriesOf = (steps: ReadonlyArray<Step>): ReadonlySet<DeliveryPolicy> => {
  const found = new Set<DeliveryPolicy>()
  const add = (more: ReadonlyArray<Step>) => deliveriesOf(more).forEach((delivery) => found.add(delivery))
  for (const step of steps) {
    if (step.do === "node") step.effects.forEach(({ delivery }) => found.add(delivery))
    else if (step.do === "fan-out") add([step.node])
    else if (step.do === "parallel") step.lanes.forEach(add)
    else if (step.do === "nested" || step.do === "loop") add(step.steps)
  }
  return found
}

/** What a step is named in the log, at barriers and in histories: with `@i` inside a loop or fan-out. */
export const stepName = (name: string, iteration: string): string => `${name}${iteration}`

/** What an interpretation of a workflow asks of its host, in the order of the program. */
export interface Visitor {
  /** The value of an effect of a node, given its input. */
  readonly effect: (step: string, effect: EffectSpec, input: ReadonlyArray<unknown>) => unknown
  readonly answer: (gate: string) => unknown
}

/**
 * The result of a workflow under given values of effects and answers: the oracle's own interpreter, plain and without
 * time. What the visitor gives as `undefined` did not happen, and shows as `undefined` in the result.
 */
export const interpret = ({ steps }: CanonicalWorkflow, visitor: Visitor): ReadonlyArray<unknown> =>
  interpretSteps(steps, [], "", visitor)

const interpretSteps = (
  steps: ReadonlyArray<Step>,
  context: ReadonlyArray<unknown>,
  iteration: string,
  visitor: Visitor
): ReadonlyArray<unknown> => {
  const results: Array<unknown> = []
  for (const step of steps) results.push(interpretStep(step, [...context, ...results], iteration, visitor))
  return results
}

const interpretStep = (step: Step, context: ReadonlyArray<unknown>, iteration: string, visitor: Visitor): unknown => {
  switch (step.do) {
    case "node": {
      const values: Array<unknown> = []
      const name = stepName(step.name, iteration)
      for (const effect of step.effects) values.push(visitor.effect(name, effect, [...context, ...values]))
      return values.length === 0 ? null : values.at(-1)
    }
    case "gate":
      return visitor.answer(stepName(step.name, iteration))
    case "parallel":
      return step.lanes.map((lane) => interpretSteps(lane, context, iteration, visitor))
    case "nested":
      return interpretSteps(step.steps, context, iteration, visitor)
    case "fan-out":
      return Array.from({ length: step.width }, (_, i) =>
        interpretStep(step.node, [...context, i], `${iteration}@${i}`, visitor)
      )
    case "loop":
      return Array.from({ length: step.times }, (_, i) =>
        interpretSteps(step.steps, [...context, i], `${iteration}@${i}`, visitor)
      )
    case "invalid":
      return context.at(-1) === true ? "not an integer" : 0
  }
}
