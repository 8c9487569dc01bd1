/**
 * The planner: what a graph is once compiled, what runs in the next superstep, and what a superstep's results make of
 * the thread. Pure and total but for the user's reducers, so that replay plans alike (RD).
 */
import { createHash } from "node:crypto"
import { applyWrites, type Channels, initialValues, type Values, type Write } from "../Channel.js"
import { END, type Send, START } from "../Control.js"
import { withIds } from "./MessageIds.js"

/** A graph as the planner sees it. */
export interface Topology {
  readonly channels: Channels
  readonly nodes: ReadonlyMap<string, { readonly defer: boolean }>
  readonly edges: ReadonlyArray<readonly [from: string, to: string]>
  readonly joins: ReadonlyArray<{ readonly from: ReadonlyArray<string>; readonly to: string }>
}

/** What a node left behind: its writes, where it goes on, and with which inputs. */
export interface Result {
  readonly writes: ReadonlyArray<Write>
  readonly goto: ReadonlyArray<string>
  readonly sends: ReadonlyArray<Send>
}

/** One node of a superstep. `args` of a `Send` replace the state as its input. */
export interface Task {
  readonly id: string
  readonly name: string
  readonly path: readonly ["__pregel_pull", string] | readonly ["__pregel_push", number]
  readonly args?: { readonly value: unknown }
}

/** What a thread is between supersteps. */
export interface State {
  readonly values: Values
  /** Nodes that a deferred start waits for the rest to end. */
  readonly deferred: ReadonlyArray<string>
  /** Which of a join's sources have run, by the join's index. */
  readonly joined: Readonly<Record<number, ReadonlyArray<string>>>
  readonly tasks: ReadonlyArray<Task>
  readonly step: number
}

export const initialState = (topology: Topology): State => ({
  values: initialValues(topology.channels),
  deferred: [],
  joined: {},
  tasks: [],
  step: -2
})

/** Names a task: the same on every replay, another in every superstep. */
const taskId = (scope: string, step: number, path: Task["path"]): string => {
  const hex = createHash("sha256")
    .update(JSON.stringify([scope, step, path]))
    .digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The thread that takes an input: `START` runs next, whatever was under way is given up. */
export const withInput = (state: State, scope: string, input: unknown): State => {
  const step = state.step + 1
  const path = ["__pregel_pull", START] as const
  return {
    ...state,
    step,
    deferred: [],
    joined: {},
    tasks: [{ id: taskId(scope, step, path), name: START, path, args: { value: input } }]
  }
}

/** The thread after its tasks ended with `results`, in task order. Throws what the channels refuse. */
export const advance = (
  topology: Topology,
  state: State,
  scope: string,
  ran: ReadonlyArray<{ readonly name: string; readonly result: Result }>,
  kept: ReadonlyArray<Task> = []
): State => {
  const step = state.step + 1
  const values = withIds(`${scope}|${step}`, () =>
    applyWrites(
      topology.channels,
      withoutEphemeral(topology.channels, state.values),
      ran.flatMap(({ result }) => result.writes)
    )
  )
  const triggered = new Set<string>(state.deferred)
  const names = new Set(ran.map(({ name }) => name))
  for (const [from, to] of topology.edges) if (names.has(from)) triggered.add(to)
  for (const { result } of ran) for (const to of result.goto) triggered.add(to)
  const joined: Record<number, ReadonlyArray<string>> = { ...state.joined }
  topology.joins.forEach(({ from, to }, i) => {
    const seen = new Set([...(joined[i] ?? []), ...from.filter((name) => names.has(name))])
    if (from.every((name) => seen.has(name))) {
      triggered.add(to)
      delete joined[i]
    } else if (seen.size > 0) joined[i] = [...seen]
  })
  for (const { name } of kept) triggered.delete(name)
  const known = [...triggered].filter((name) => name !== END && topology.nodes.has(name)).sort(byCodeUnits)
  const sends = ran.flatMap(({ result }) => result.sends)
  const now = known.filter((name) => topology.nodes.get(name)?.defer !== true)
  const idle = now.length === 0 && sends.length === 0 && kept.length === 0
  const pull = (idle ? known : now).map((name): Task => {
    const path = ["__pregel_pull", name] as const
    return { id: taskId(scope, step, path), name, path }
  })
  const push = sends.map(({ args, node }, i): Task => {
    const path = ["__pregel_push", i] as const
    return { id: taskId(scope, step, path), name: node, path, args: { value: args } }
  })
  return {
    values,
    joined,
    step,
    deferred: idle ? [] : known.filter((name) => !now.includes(name)),
    tasks: [...kept, ...pull, ...push]
  }
}

const withoutEphemeral = (channels: Channels, values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => channels[name]?.kind !== "ephemeral"))

/** The same order in every locale. */
const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** 32 hexadecimal digits for a question: its task, and which of the task's questions it is. */
export const interruptId = (task: string, path: string): string =>
  createHash("sha256").update(`${task}|${path}`).digest("hex").slice(0, 32)
