/** Builds a graph of nodes over a shared state, and compiles it: what cannot run is refused then. */
import { createHash } from "node:crypto"
import { type AnnotationRoot, channelsOf, type StateDefinition, type StateType, type UpdateType } from "./Annotation.js"
import type { Channels } from "./Channel.js"
import { CompiledGraph } from "./CompiledGraph.js"
import { END, START } from "./Control.js"
import type { GraphPlane } from "./Fermata.js"
import { GraphValueError, type NodeError, UnreachableNodeError } from "./GraphError.js"
import type { Branching, Core, CoreNode, NodeBody, RetryPolicy } from "./internal/Core.js"
import type { NodeConfig, Store } from "./internal/Scope.js"

/** What a declared state holds. */
export type StateOf<D> =
  D extends AnnotationRoot<infer Spec>
    ? StateType<Spec>
    : D extends { readonly Type: infer T; readonly fields: unknown }
      ? T
      : D extends { readonly _output: infer T }
        ? T
        : D extends StateDefinition
          ? StateType<D>
          : never
/** What updates a declared state. */
export type UpdateOf<D> =
  D extends AnnotationRoot<infer Spec>
    ? UpdateType<Spec>
    : D extends StateDefinition
      ? UpdateType<D>
      : Partial<StateOf<D>>

/** How a node runs. */
export interface NodeOptions<S> {
  /** Nodes that its `Command`s go to. */
  readonly ends?: ReadonlyArray<string>
  /** Runs it when nothing else is left to run. */
  readonly defer?: boolean
  readonly retryPolicy?: RetryPolicy
  readonly errorHandler?: (state: S, error: NodeError) => unknown
  /** The state that it takes: a declaration with some of the graph's keys. */
  readonly input?: unknown
}

type NodeOf<S> =
  ((state: S, config: NodeConfig) => unknown) | { readonly invoke: (input: never, config: never) => unknown }

/** A graph under construction. `D`: its declared state. `N`: names of its nodes. */
export class StateGraph<D, N extends string = typeof START> {
  private readonly channels: Record<string, Channels[string]>
  private readonly inputChannels: Channels
  private readonly output: ReadonlyArray<string>
  private readonly nodes = new Map<
    string,
    CoreNode & { readonly defer: boolean; readonly ends: ReadonlyArray<string> | undefined }
  >()
  private readonly edges: Array<readonly [string, string]> = []
  private readonly joins: Array<{ readonly from: ReadonlyArray<string>; readonly to: string }> = []
  private readonly branches = new Map<string, Array<Branching>>()

  constructor(
    state: D | { readonly stateSchema?: D; readonly state?: D; readonly input?: unknown; readonly output?: unknown },
    options: { readonly input?: unknown; readonly output?: unknown } = {}
  ) {
    const wrapped = state as {
      readonly stateSchema?: D
      readonly state?: D
      readonly input?: unknown
      readonly output?: unknown
    }
    const plain =
      typeof state === "object" &&
      state !== null &&
      !("lc_graph_name" in state) &&
      Object.getPrototypeOf(state) === Object.prototype
    const declared = plain ? (wrapped.stateSchema ?? wrapped.state ?? state) : state
    const { input, output } = declared === state ? options : wrapped
    const inputs = input === undefined ? undefined : channelsOf(input)
    const outputs = output === undefined ? undefined : channelsOf(output)
    this.channels = { ...outputs, ...inputs, ...channelsOf(declared) }
    this.inputChannels = inputs === undefined ? this.channels : inputs
    this.output = Object.keys(outputs ?? channelsOf(declared))
  }

  /** `I`: what the node takes; the state, or what a `Send` hands to it. */
  addNode<const K extends string, I = StateOf<D>>(
    name: K,
    body: NodeOf<I>,
    options: NodeOptions<StateOf<D>> = {}
  ): StateGraph<D, N | K> {
    if (name === START || name === END) throw new GraphValueError(`Node \`${name}\` is reserved.`)
    if (this.nodes.has(name)) throw new GraphValueError(`Node \`${name}\` already present.`)
    if (Object.hasOwn(this.channels, name))
      throw new GraphValueError(
        `${name} is already being used as a state attribute (a.k.a. a channel), cannot also be used as a node name.`
      )
    if (/[|:]/.test(name)) throw new GraphValueError(`"${name}" has a "|" or a ":", which node names may not have`)
    this.nodes.set(name, {
      body: body as NodeBody,
      input: options.input === undefined ? undefined : Object.keys(channelsOf(options.input)),
      retry: options.retryPolicy,
      // It takes what the node takes.
      errorHandler: options.errorHandler as CoreNode["errorHandler"],
      defer: options.defer === true,
      ends: options.ends
    })
    return this
  }

  /** From one node, or from several: then `to` runs when all of them have. */
  addEdge(from: N | ReadonlyArray<N>, to: N | typeof END): this {
    if (typeof from !== "string") {
      for (const one of from) if (one === END) throw new GraphValueError("END cannot be a start node.")
      this.joins.push({ from: [...from], to })
      return this
    }
    if ((from as string) === END) throw new GraphValueError("END cannot be a start node.")
    if ((to as string) === START) throw new GraphValueError("START cannot be an end node")
    this.edges.push([from, to])
    return this
  }

  /** Goes where `choose` says: nodes, `Send`s, or keys of `map`. */
  addConditionalEdges(
    from: N,
    choose: (state: StateOf<D>, config: NodeConfig) => unknown,
    map?: Readonly<Record<string, N | typeof END>> | ReadonlyArray<N | typeof END>
  ): this {
    const named = Array.isArray(map)
      ? Object.fromEntries((map as ReadonlyArray<string>).map((name) => [name, name]))
      : (map as Readonly<Record<string, string>> | undefined)
    const known = this.branches.get(from) ?? []
    known.push({ choose: choose as Branching["choose"], map: named })
    this.branches.set(from, known)
    return this
  }

  /** Nodes one after the other. */
  addSequence<const K extends string>(
    nodes: Readonly<Record<K, NodeOf<StateOf<D>>>> | ReadonlyArray<readonly [K, NodeOf<StateOf<D>>]>
  ): StateGraph<D, N | K> {
    const pairs = (Array.isArray(nodes) ? nodes : Object.entries(nodes)) as ReadonlyArray<
      readonly [K, NodeOf<StateOf<D>>]
    >
    let previous: string | undefined
    for (const [name, body] of pairs) {
      this.addNode(name, body)
      if (previous !== undefined) this.edges.push([previous, name])
      previous = name
    }
    return this
  }

  /** Checks the graph and makes it runnable. With a plane its threads are durable. */
  compile(
    options: {
      readonly checkpointer?: GraphPlane | boolean
      /** Documents that threads share: `new FermataStore(plane.ledger)`, or any store of LangGraph's. */
      readonly store?: Store
      /** Names its threads' workflow; `LangGraph` by default. */
      readonly name?: string
      /** Changed when old threads would not go on under the new graph; by default a digest of nodes and edges. */
      readonly version?: string
      readonly interruptBefore?: ReadonlyArray<N> | "*"
      readonly interruptAfter?: ReadonlyArray<N> | "*"
    } = {}
  ): CompiledGraph<StateOf<D>, UpdateOf<D>> {
    this.check([...(options.interruptBefore ?? []), ...(options.interruptAfter ?? [])])
    const shape = JSON.stringify([
      [...this.nodes.keys()],
      this.edges,
      this.joins,
      [...this.branches.keys()],
      Object.keys(this.channels)
    ])
    const core: Core = {
      name: options.name ?? "LangGraph",
      version: options.version ?? createHash("sha256").update(shape).digest("hex").slice(0, 12),
      topology: { channels: this.channels, nodes: this.nodes, edges: [...this.edges], joins: [...this.joins] },
      nodes: new Map(this.nodes),
      branches: new Map(this.branches),
      inputChannels: this.inputChannels,
      output: this.output,
      interruptBefore: options.interruptBefore ?? [],
      interruptAfter: options.interruptAfter ?? [],
      entrypoint: undefined,
      store: options.store
    }
    return new CompiledGraph(core, typeof options.checkpointer === "object" ? options.checkpointer : undefined)
  }

  private check(breakpoints: ReadonlyArray<string>): void {
    const known = new Set<string>([...this.nodes.keys(), START, END])
    const sources = [
      ...this.edges.map(([from]) => from),
      ...this.joins.flatMap(({ from }) => from),
      ...this.branches.keys()
    ]
    for (const from of sources)
      if (!known.has(from)) throw new GraphValueError(`Found edge starting at unknown node \`${from}\``)
    const ends = [...this.nodes.values()].flatMap((node) => node.ends ?? [])
    const mapped = [...this.branches.values()]
      .flat()
      .flatMap(({ map }) => (map === undefined ? [] : Object.values(map)))
    const targets = new Set([...this.edges.map(([, to]) => to), ...this.joins.map(({ to }) => to), ...ends, ...mapped])
    for (const to of targets)
      if (!known.has(to)) throw new GraphValueError(`Found edge ending at unknown node \`${to}\``)
    if (!sources.includes(START))
      throw new GraphValueError(`Graph must have an entrypoint: add an edge from START to a node`)
    const open = [...this.branches.values()].flat().some(({ map }) => map === undefined)
    for (const name of this.nodes.keys())
      if (!open && !targets.has(name))
        throw new UnreachableNodeError(
          `Node \`${name}\` is not reachable. If it is reached by a Command, list it in the "ends" of the node that returns it`,
          { code: "UNREACHABLE_NODE" }
        )
    for (const name of breakpoints)
      if (name !== "*" && !known.has(name)) throw new GraphValueError(`Interrupt node \`${name}\` is not present`)
  }
}
