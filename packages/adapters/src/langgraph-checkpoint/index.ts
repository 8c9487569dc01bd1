/** A checkpointer for stock LangGraph.js on the ledger's database, and a front that makes a compiled graph conform. */
export * from "./FermataSaver.js"
export * from "./SaverError.js"
