/**
 * Digests: what makes damage visible (CV).
 *
 * Every stored row carries a SHA-256 over all of its columns; a journal entry's covers its predecessor's digest too,
 * so that a changed, missing, reordered or foreign entry breaks the chain from there on. Fields are joined by a line
 * feed, which no identifier may contain; keys are prefixed by their length and the payload comes last, so that no two
 * different rows have the same text.
 */
import { hash } from "node:crypto"
import type { Chunk, InboxRow, RunRow } from "../Ledger.js"

const sha256 = (text: string): string => hash("sha256", text, "base64url")

/** What an entry's digest covers besides its predecessor's digest. */
export interface EntryFields {
  readonly branch: string
  readonly seq: number
  readonly kind: string
  readonly key: string
  readonly payload: string
  readonly epoch: number
  readonly at: number
}

/** Digest of a journal entry, chained over `previous`. */
export const entryDigest = (previous: string, entry: EntryFields): string =>
  sha256(
    `${previous}\n${entry.branch}\n${entry.seq}\n${entry.kind}\n${entry.epoch}\n${entry.at}\n${entry.key.length}\n${entry.key}\n${entry.payload}`
  )

/** Digest of a run's row. The root branch's first entry chains over it. */
export const runDigest = (run: Omit<RunRow, "digest">): string =>
  sha256(`${run.run}\n${run.workflow}\n${run.version}\n${run.inputDigest}\n${run.createdAt}\n${run.input}`)

/** Digest of an inbox row; `delivery` is the delivery id of an answer, else `null`. */
export const inboxDigest = (row: InboxRow & { readonly delivery: string | null }): string =>
  sha256(
    `${row.branch}\n${row.pos}\n${row.kind}\n${row.at}\n${row.delivery ?? ""}\n${row.key.length}\n${row.key}\n${row.payload}`
  )

/** Digest of a chunk: of all its columns. */
export const chunkDigest = (chunk: Chunk & { readonly branch: string }): string =>
  sha256(
    `${chunk.branch}\n${chunk.stream}\n${chunk.pos}\n${chunk.execution}\n${chunk.n}\n${chunk.at}\n${chunk.step.length}\n${chunk.step}\n${chunk.payload}`
  )

/** Digest of a row of columns of any content: each is prefixed by its length. */
export const rowDigest = (...columns: ReadonlyArray<string | number | null>): string =>
  sha256(columns.map((column) => (column === null ? "-" : `${String(column).length}:${column}`)).join("\n"))

/** Digest of a stored value: its name. */
export const valueDigest = (text: string): string => sha256(text)

/** JSON text with object keys in code unit order and no white space: equal values have equal texts. */
export const canonicalJson = (json: string): string => canonical(JSON.parse(json))

/** Digest of a JSON text that does not depend on white space or on the order of keys. */
export const jsonDigest = (json: string): string => sha256(canonicalJson(json))

/** Digest of a fork's first event: what makes "the same fork again" recognisable. */
export const forkDigest = (first: { readonly kind: string; readonly key: string; readonly payload: string }): string =>
  sha256(`${first.kind}\n${first.key.length}\n${first.key}\n${canonicalJson(first.payload)}`)

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(",")}}`
  }
  return JSON.stringify(value)
}
