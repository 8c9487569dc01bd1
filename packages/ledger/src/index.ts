export * from "./Ledger.js"
export * from "./LedgerError.js"
