/** The functional API: an entrypoint is a function that is a thread; a task in it is done once and recorded. */
import { CompiledGraph } from "./CompiledGraph.js"
import type { GraphPlane } from "./Fermata.js"
import { GraphValueError } from "./GraphError.js"
import { type Core, returned, retries, retryDelay, type RetryPolicy, saved } from "./internal/Core.js"
import { currentScope, inScope, nextPath, type NodeConfig, requiredScope, type Store } from "./internal/Scope.js"

/** Declares a task: called in a node or an entrypoint it runs once, and its result is recorded before the caller has it. */
export const task = <A extends ReadonlyArray<unknown>, R>(
  options: string | { readonly name: string; readonly retry?: RetryPolicy },
  body: (...args: A) => R | Promise<R>
): ((...args: A) => Promise<R>) => {
  const { name, retry } =
    typeof options === "string" ? { name: options, retry: undefined } : { retry: undefined, ...options }
  return async (...args) => {
    const scope = requiredScope(`The task "${name}"`)
    const path = nextPath(scope, "t")
    const result = await scope.attempt.once(path, name, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await inScope({ ...scope, path: `${path}/`, counts: new Map() }, () => body(...args))
        } catch (error) {
          const delay = retries(retry, error) ? retryDelay(retry, attempt) : undefined
          if (delay === undefined) throw error
          await new Promise((resolve) => setTimeout(resolve, delay))
        }
      }
    })
    // What is served is what the body returned, as it was stored.
    return result as R
  }
}

class Final {
  constructor(
    readonly value: unknown,
    readonly save: unknown
  ) {}
}

const makeEntrypoint = <I, O>(
  options:
    | string
    | { readonly name: string; readonly checkpointer?: GraphPlane; readonly store?: Store; readonly version?: string },
  body: (input: I, config: NodeConfig & { readonly previous?: unknown }) => O | Promise<O>
): CompiledGraph<O, I> => {
  const { checkpointer, name, store, version } =
    typeof options === "string"
      ? { name: options, checkpointer: undefined, store: undefined, version: undefined }
      : { checkpointer: undefined, store: undefined, version: undefined, ...options }
  const run = async (input: I, config: NodeConfig): Promise<unknown> => {
    const previous = currentScope()?.previous
    const output: unknown = await body(input, { ...config, ...(previous === undefined ? {} : { previous }) })
    if (output !== null && typeof output === "object" && Symbol.asyncIterator in output)
      throw new GraphValueError("An entrypoint cannot be a generator")
    const final = output instanceof Final ? output : new Final(output, output)
    return { [returned]: final.value, [saved]: final.save }
  }
  const channels = { [returned]: { kind: "last" }, [saved]: { kind: "last" } } as const
  const core: Core = {
    name,
    version: version ?? "1",
    topology: { channels, nodes: new Map([[name, { defer: false }]]), edges: [], joins: [] },
    nodes: new Map([[name, { body: run, input: undefined, retry: undefined, errorHandler: undefined }]]),
    branches: new Map(),
    inputChannels: channels,
    output: [returned],
    interruptBefore: [],
    interruptAfter: [],
    entrypoint: name,
    store
  }
  return new CompiledGraph<O, I>(core, checkpointer)
}

/** Declares an entrypoint. `entrypoint.final` returns one value and saves another for the next run's `previous`. */
export const entrypoint = Object.assign(makeEntrypoint, {
  final: <V, S>({ save, value }: { readonly value: V; readonly save: S }): V => new Final(value, save) as unknown as V
})

/** What the entrypoint saved in its last run of this thread. */
export const getPreviousState = <S>(): S | undefined => requiredScope("getPreviousState()").previous as S | undefined
