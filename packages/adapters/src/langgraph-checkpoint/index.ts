/** A checkpointer for stock LangGraph.js on the ledger's database, and a front that makes a compiled graph conform. */
export * from "./Conformant.js"
export * from "./Effect.js"
export * from "./FermataSaver.js"
export * from "./FermataStore.js"
export * from "./FrontError.js"
export * from "./SaverError.js"
