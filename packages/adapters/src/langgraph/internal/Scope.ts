/** Where user code runs: which attempt, which place in it, and with which config. Found through AsyncLocalStorage. */
import { AsyncLocalStorage } from "node:async_hooks"
import { GraphValueError } from "../GraphError.js"
import type { Attempt } from "./Attempt.js"
import { initialise, withRunnableConfig } from "./LangChain.js"

/** Documents that threads share: the part of LangGraph's `BaseStore` that nodes use. */
export interface Store {
  get(namespace: Array<string>, key: string): Promise<StoreItem | null>
  put(
    namespace: Array<string>,
    key: string,
    value: Record<string, unknown>,
    index?: false | Array<string>
  ): Promise<void>
  delete(namespace: Array<string>, key: string): Promise<void>
  search(
    prefix: Array<string>,
    options?: { filter?: Record<string, unknown>; limit?: number; offset?: number; query?: string }
  ): Promise<Array<StoreItem & { score?: number }>>
  listNamespaces(options?: {
    prefix?: Array<string>
    suffix?: Array<string>
    maxDepth?: number
    limit?: number
    offset?: number
  }): Promise<Array<Array<string>>>
}

export interface StoreItem {
  readonly namespace: Array<string>
  readonly key: string
  readonly value: Record<string, unknown>
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** The second argument of a node. */
export interface NodeConfig {
  readonly configurable: Readonly<Record<string, unknown>>
  readonly context?: unknown
  readonly metadata: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
  readonly writer: (chunk: unknown) => void
  readonly interrupt: (value: unknown) => unknown
  readonly store?: Store
  readonly tags: ReadonlyArray<string>
  readonly recursionLimit: number
  readonly runName?: string
  readonly callbacks?: unknown
}

export interface Scope {
  readonly attempt: Attempt
  /** The place of this code in its attempt. */
  readonly path: string
  readonly config: NodeConfig
  /** Calls so far, by kind. */
  readonly counts: Map<string, number>
  readonly previous?: unknown
}

const storage = new AsyncLocalStorage<Scope>()
initialise(new AsyncLocalStorage())

/** The scope of the code that calls; `undefined` outside of nodes. */
export const currentScope = (): Scope | undefined => storage.getStore()

/** As {@link currentScope}; outside of nodes it throws. */
export const requiredScope = (what: string): Scope => {
  const scope = storage.getStore()
  if (scope === undefined) throw new GraphValueError(`${what} was called outside of a node, an entrypoint and a task`)
  return scope
}

/** The path of the next call of that kind. */
export const nextPath = (scope: Scope, kind: string): string => {
  const count = scope.counts.get(kind) ?? 0
  scope.counts.set(kind, count + 1)
  return `${scope.path}${kind}${count}`
}

/** Runs user code in a scope. */
export const inScope = <A>(scope: Scope, body: () => A): A =>
  storage.run(scope, () => withRunnableConfig(scope.config, body))

/** Asks for a value, and returns it once somebody answered. Leaves the node until then. */
export const interrupt = <I = unknown, R = unknown>(value: I): R => {
  const scope = requiredScope("interrupt()")
  // What is answered is what the caller declares it to be: nothing checks it here, as in LangGraph.
  return scope.attempt.answer(nextPath(scope, "i"), value) as R
}

/** The config of the node that calls. */
export const getConfig = (): NodeConfig => requiredScope("getConfig()").config

/** What writes to the `custom` stream. */
export const getWriter = (): ((chunk: unknown) => void) => requiredScope("getWriter()").config.writer

/** The store that the graph was compiled with; `undefined` without one. */
export const getStore = (): Store | undefined => requiredScope("getStore()").config.store
