/** The graph API of LangGraph.js on Fermata: a ported graph changes its import and its checkpointer. */
export * from "./Annotation.js"
export {
  CompiledGraph,
  type GraphConfig,
  type Output,
  type StateSnapshot,
  type StreamConfig,
  type StreamMode
} from "./CompiledGraph.js"
export * from "./Control.js"
export * from "./Effect.js"
export * as Fermata from "./Fermata.js"
export { entrypoint, getPreviousState, task } from "./Functional.js"
export * from "./GraphError.js"
export type { RetryPolicy } from "./internal/Core.js"
export {
  getConfig,
  getStore,
  getWriter,
  interrupt,
  type NodeConfig,
  type Store,
  type StoreItem
} from "./internal/Scope.js"
export * from "./Messages.js"
export * from "./StateGraph.js"
