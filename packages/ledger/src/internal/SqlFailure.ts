/** What a driver's error means: the one place that knows SQLite's, PostgreSQL's and the sockets' codes. */
import type { SqlError } from "@effect/sql/SqlError"
import { type LedgerError, LedgerUnavailable, LedgerUnusable } from "../LedgerError.js"

/**
 * - `busy`: another process holds the lock; nothing was done.
 * - `conflict`: rolled back in favour of another transaction.
 * - `disconnected`: the connection was lost; a commit under way may or may not have happened.
 * - the others: trying again at once changes nothing.
 */
export type FailureKind =
  | "busy"
  | "conflict"
  | "disconnected"
  | "full"
  | "read-only"
  | "not a database"
  | "cannot be opened"
  | "closed"
  | "failed"

const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

const messageOf = (cause: unknown): string =>
  cause instanceof AggregateError && cause.message === ""
    ? cause.errors.map(messageOf).join("; ")
    : cause instanceof Error
      ? cause.message
      : String(cause)

/** Classifies a driver's error. Total: what is not known is `failed`. */
export const failureKind = (cause: unknown): FailureKind => {
  const code = codeOf(cause)
  if (code.startsWith("SQLITE_")) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return "busy"
    if (code === "SQLITE_FULL") return "full"
    if (/^SQLITE_(READONLY|PERM|AUTH)/.test(code)) return "read-only"
    if (/^SQLITE_(NOTADB|CORRUPT|FORMAT)/.test(code)) return "not a database"
    return code.startsWith("SQLITE_CANTOPEN") ? "cannot be opened" : "failed"
  }
  // serialization_failure, deadlock_detected
  if (code === "40001" || code === "40P01") return "conflict"
  // lock_not_available
  if (code === "55P03") return "busy"
  if (code === "53100") return "full"
  if (code === "25006") return "read-only"
  // invalid_authorization, invalid_catalog_name
  if (code.startsWith("28") || code === "3D000") return "cannot be opened"
  // connection_exception, too_many_connections, admin/crash_shutdown, cannot_connect_now, idle_in_transaction_session_timeout
  if (code.startsWith("08") || /^(53300|57P0[0-5]|25P03)$/.test(code)) return "disconnected"
  if (/^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)$/.test(code)) {
    return "disconnected"
  }
  const message = messageOf(cause)
  if (/cannot open database/i.test(message)) return "cannot be opened"
  if (/database connection is not open|pool after calling end/i.test(message)) return "closed"
  // What the pg driver says when the socket went away under a query or the pool could not connect in time.
  if (/connection (terminated|error|ended)|not queryable|timeout exceeded when trying to connect/i.test(message)) {
    return "disconnected"
  }
  return "failed"
}

/** Says a driver's error as the ledger's. `database` must not contain credentials. */
export const ledgerError = (cause: unknown, operation: string, database: string): LedgerError => {
  const kind = failureKind(cause)
  const detail = messageOf(cause)
  switch (kind) {
    case "read-only":
      return new LedgerUnusable({
        reason: "read-only",
        database,
        detail: `${operation}: ${detail}`,
        advice: "Give this process the right to write to it (for SQLite to the file and its folder)"
      })
    case "not a database":
      return new LedgerUnusable({
        reason: "not a database",
        database,
        detail: `${operation}: ${detail}`,
        advice: "Check the path, or restore the file from a backup; nothing was changed"
      })
    case "cannot be opened":
      return new LedgerUnusable({
        reason: "cannot be opened",
        database,
        detail: `${operation}: ${detail}`,
        advice: "Check the path or address, the credentials and the permissions"
      })
    case "closed":
      return new LedgerUnusable({
        reason: "closed",
        database,
        detail: `${operation}: ${detail}`,
        advice: "The ledger's scope has ended; use it inside its layer"
      })
    case "conflict":
      return new LedgerUnavailable({ reason: "busy", database, operation, detail })
    case "busy":
    case "disconnected":
    case "full":
    case "failed":
      return new LedgerUnavailable({ reason: kind, database, operation, detail })
  }
}

/** The driver's error inside an `SqlError`. */
export const causeOf = (error: SqlError): unknown => error.cause
