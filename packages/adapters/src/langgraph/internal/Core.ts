/** A compiled graph as the engine runs it, and how one of its nodes runs on the host. */
import { applyWrites, type Channels, type Values, type Write } from "../Channel.js"
import { Command, END, isCommand, isSend, Send, START } from "../Control.js"
import { GraphValueError, InvalidUpdateError, isGraphInterrupt, NodeError } from "../GraphError.js"
import type { Result, Task, Topology } from "./Plan.js"
import { inScope, type NodeConfig, type Scope, type Store } from "./Scope.js"

/** How a node is tried again; as LangGraph's, in milliseconds. */
export interface RetryPolicy {
  /** The first try counts; 3 by default. */
  readonly maxAttempts?: number
  readonly initialInterval?: number
  readonly backoffFactor?: number
  readonly maxInterval?: number
  readonly retryOn?: (error: never) => boolean
}

/** A node's function, or a LangChain runnable, or another compiled graph. */
export type NodeBody =
  ((input: never, config: NodeConfig) => unknown) | { readonly invoke: (input: never, config: never) => unknown }

export interface Branching {
  readonly choose: (state: never, config: NodeConfig) => unknown
  readonly map: Readonly<Record<string, string>> | undefined
}

export interface CoreNode {
  readonly body: NodeBody
  /** Keys of the state that are its input; all of them if absent. */
  readonly input: ReadonlyArray<string> | undefined
  readonly retry: RetryPolicy | undefined
  readonly errorHandler: ((state: never, error: NodeError) => unknown) | undefined
}

export interface Core {
  readonly name: string
  readonly version: string
  readonly topology: Topology
  readonly nodes: ReadonlyMap<string, CoreNode>
  readonly branches: ReadonlyMap<string, ReadonlyArray<Branching>>
  readonly inputChannels: Channels
  readonly output: ReadonlyArray<string>
  readonly interruptBefore: ReadonlyArray<string> | "*"
  readonly interruptAfter: ReadonlyArray<string> | "*"
  /** The one node of an entrypoint, whose input is the input. */
  readonly entrypoint: string | undefined
  /** What nodes find as `config.store`. */
  readonly store: Store | undefined
}

/** A node's result; with `parent`, it is meant for the graph that this one is a node of. */
export interface NodeResult extends Result {
  readonly parent?: boolean
  /** What the node returned, for the `updates` stream. */
  readonly update: unknown
}

/** Where an entrypoint keeps what it returned, and what it saved for its next run. */
export const returned = "__return__"
export const saved = "__previous__"

/** Runs a node's function and the edges that choose after it. */
export const runNode = async (core: Core, task: Task, values: Values, scope: Scope): Promise<NodeResult> => {
  if (task.name === START) return chosen(core, START, values, startResult(core, task.args?.value), scope)
  const node = core.nodes.get(task.name)
  if (node === undefined) throw new InvalidUpdateError(`Invalid node name "${task.name}" in Send packet`)
  const input = task.args === undefined ? pick(values, node.input) : task.args.value
  try {
    const output = await call(node.body, input, scope)
    return await chosen(core, task.name, values, normalised(core, output), scope)
  } catch (error) {
    const { errorHandler } = node
    if (errorHandler === undefined || isGraphInterrupt(error)) throw error
    const failure = new NodeError(task.name, error instanceof Error ? error : new Error(String(error)))
    // An error handler takes what the node took.
    const output = await inScope(scope, () => errorHandler(input as never, failure))
    return await chosen(core, task.name, values, normalised(core, output), scope)
  }
}

const call = async (body: NodeBody, input: unknown, scope: Scope): Promise<unknown> => {
  // A node's input is what its graph's state is declared to be.
  if (typeof body === "function") return await inScope(scope, () => body(input as never, scope.config))
  return await inScope(scope, () => body.invoke(input as never, scope.config as never))
}

const pick = (values: Values, keys: ReadonlyArray<string> | undefined): Values =>
  keys === undefined ? { ...values } : Object.fromEntries(Object.entries(values).filter(([key]) => keys.includes(key)))

const startResult = (core: Core, input: unknown): NodeResult => {
  if (core.entrypoint !== undefined)
    return { writes: [], goto: [], sends: [new Send(core.entrypoint, input)], update: input }
  return normalised({ ...core, topology: { ...core.topology, channels: core.inputChannels } }, input)
}

const nothing: NodeResult = { writes: [], goto: [], sends: [], update: null }

/** What a node returned, as writes. */
export const normalised = (core: Core, output: unknown): NodeResult => {
  if (Array.isArray(output) && output.some((one) => isCommand(one) || isSend(one))) {
    const parts = output.map((one) =>
      isSend(one) ? normalised(core, new Command({ goto: one })) : normalised(core, one)
    )
    return {
      writes: parts.flatMap(({ writes }) => writes),
      goto: parts.flatMap(({ goto }) => goto),
      sends: parts.flatMap(({ sends }) => sends),
      update: parts.map(({ update }) => update),
      ...(parts.some(({ parent }) => parent === true) ? { parent: true } : {})
    }
  }
  if (isSend(output)) return normalised(core, new Command({ goto: output }))
  if (isCommand(output)) {
    const parent = output.graph === Command.PARENT
    const writes =
      output.update === undefined
        ? []
        : parent
          ? Array.isArray(output.update)
            ? (output.update as ReadonlyArray<Write>)
            : Object.entries(output.update)
          : writesOf(core, output.update)
    return {
      writes,
      goto: output.goto.filter((to): to is string => typeof to === "string"),
      sends: output.goto.flatMap((to) => (isSend(to) ? [new Send(to.node, to.args)] : [])),
      update: output.update ?? null,
      ...(parent ? { parent: true } : {})
    }
  }
  const writes = writesOf(core, output)
  return writes.length === 0 && (typeof output !== "object" || output === null)
    ? nothing
    : { ...nothing, writes, update: output }
}

/** An update as writes, each checked against its key's schema. */
const writesOf = (core: Core, update: unknown): ReadonlyArray<Write> => {
  if (update === undefined || update === null || update === false || update === 0) return []
  const entries: ReadonlyArray<Write> = Array.isArray(update)
    ? (update as ReadonlyArray<unknown>).map((pair) => {
        if (!Array.isArray(pair) || pair.length !== 2 || typeof pair[0] !== "string") throw notAnUpdate(pair)
        return [pair[0], pair[1]] as const
      })
    : typeof update === "object"
      ? Object.entries(update)
      : (() => {
          throw notAnUpdate(update)
        })()
  return entries.flatMap(([name, value]): ReadonlyArray<Write> => {
    const channel = core.topology.channels[name]
    if (channel === undefined) return []
    const checked = channel.checkUpdate?.(value) ?? { value }
    if ("issue" in checked)
      throw new InvalidUpdateError(`The update of "${name}" breaks its schema: ${checked.issue}. Nothing was written`)
    return [[name, checked.value]]
  })
}

const notAnUpdate = (value: unknown): InvalidUpdateError =>
  new InvalidUpdateError(
    `Expected a node to return an object with updates of the state, a Command or Sends, but it returned ${Array.isArray(value) ? "an array" : `a ${typeof value}`}`,
    { code: "INVALID_GRAPH_NODE_RETURN_VALUE" }
  )

/** Adds where the edges that choose lead, which see the state with the node's own writes. */
export const chosen = async (
  core: Core,
  name: string,
  values: Values,
  result: NodeResult,
  scope: Scope
): Promise<NodeResult> => {
  const branches = core.branches.get(name) ?? []
  if (branches.length === 0 || result.parent === true) return result
  const seen = applyWrites(core.topology.channels, values, result.writes)
  const goto: Array<string> = []
  const sends: Array<Send> = []
  for (const { choose, map } of branches) {
    // An edge's function takes the state, whatever that is declared to be.
    const choice = await inScope(scope, () => choose(seen as never, scope.config))
    for (const one of Array.isArray(choice) ? (choice as ReadonlyArray<unknown>) : [choice]) {
      if (isSend(one)) {
        if (!core.nodes.has(one.node)) throw new InvalidUpdateError(`Invalid node name "${one.node}" in Send packet`)
        sends.push(new Send(one.node, one.args))
        continue
      }
      const to = map === undefined ? one : map[String(one)]
      if (typeof to !== "string") throw new GraphValueError("Branch condition returned unknown or null destination")
      if (to !== END) goto.push(to)
    }
  }
  return { ...result, goto: [...result.goto, ...goto], sends: [...result.sends, ...sends] }
}

/** The output of a graph in this state. */
export const outputOf = (core: Core, values: Values): unknown => {
  if (core.entrypoint !== undefined) return values[returned]
  const found = Object.entries(values).filter(([key]) => core.output.includes(key))
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

const neverRetried = /^(Abort|Cancel)/

/** True if that error is one to try again after. */
export const retries = (policy: RetryPolicy | undefined, error: unknown): boolean => {
  if (policy === undefined || isGraphInterrupt(error)) return false
  // The policy's predicate takes whatever the node throws.
  if (policy.retryOn !== undefined) return policy.retryOn(error as never)
  return !(error instanceof Error && (neverRetried.test(error.name) || error instanceof GraphValueError))
}

/** Milliseconds before the attempt after `attempt`, or `undefined` if there is none. */
export const retryDelay = (policy: RetryPolicy | undefined, attempt: number): number | undefined =>
  policy === undefined || attempt >= (policy.maxAttempts ?? 3)
    ? undefined
    : Math.min(
        policy.maxInterval ?? 128_000,
        (policy.initialInterval ?? 500) * (policy.backoffFactor ?? 2) ** (attempt - 1)
      )

/** Nodes that a static breakpoint names among the tasks. */
export const breaksAt = (
  names: ReadonlyArray<string> | "*",
  tasks: ReadonlyArray<{ readonly name: string }>
): boolean => tasks.some(({ name }) => name !== START && (names === "*" || names.includes(name)))
