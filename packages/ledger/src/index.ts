/** The ledger: an append-only journal of durable runs on SQLite and PostgreSQL. */
export * from "./CheckpointStore.js"
export * from "./Ledger.js"
export * from "./LedgerError.js"
export * from "./LedgerLayer.js"
export * from "./PostgresLedger.js"
export * from "./SqliteLedger.js"
export { jsonDigest, valueDigest } from "./internal/Digest.js"
export { historyProblem } from "./internal/HistoryProblem.js"
