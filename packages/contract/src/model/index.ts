/**
 * The contract's models: the ledger as a value (for lockstep), the plane as a packed transition system (for exhaustive
 * exploration), the faults, the explorer and the matrix.
 */
export * from "./Decisions.js"
export * from "./LedgerActions.js"
export { makeLedgerModel, type LedgerModel, type LedgerModelOptions, type Stepped } from "./LedgerModel.js"
export * from "./LedgerState.js"
export * from "./Explorer.js"
export type { Emit, PackedModel } from "./PackedModel.js"
export * from "./PlaneFault.js"
export { makePlane, planeProperties } from "./PlaneModel.js"
export * from "./PlaneWorld.js"
export * from "./ParallelExplorer.js"
export * from "./Matrix.js"
