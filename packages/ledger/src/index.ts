export * from "./Ledger.js"
export * from "./LedgerError.js"
export { jsonDigest } from "./internal/Digest.js"
