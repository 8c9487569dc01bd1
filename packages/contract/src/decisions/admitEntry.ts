/** May this entry persist? (CV) What passed its Schema is checked once more as what the journal stores. */
import type { EntryKind } from "../Entry.js"

export interface EntryFacts {
  readonly kind: EntryKind
  readonly key: string
  /** Length of the JSON text in UTF-16 code units. */
  readonly payloadLength: number
  readonly payloadWellFormed: boolean
}

export type EntryVerdict =
  | { readonly _tag: "Persist" }
  | {
      readonly _tag: "Refuse"
      readonly reason: "branch over" | "payload too large" | "malformed text" | "not the first entry"
    }

export const admitEntry = (
  branch: { readonly head: number; readonly over: boolean },
  entry: EntryFacts,
  limits: { readonly maxPayload: number }
): EntryVerdict => {
  if (branch.over) return { _tag: "Refuse", reason: "branch over" }
  if ((entry.kind === "run.started") !== (branch.head === 0)) return { _tag: "Refuse", reason: "not the first entry" }
  // A terminal entry and an opened question must always fit, or a large value would wedge its branch: they are
  // checked where they are made, as everything is; here the limit is the last guard.
  if (entry.payloadLength > limits.maxPayload) return { _tag: "Refuse", reason: "payload too large" }
  // NUL is text that one of the databases cannot store.
  if (!entry.payloadWellFormed || !entry.key.isWellFormed() || entry.key.includes("\0"))
    return { _tag: "Refuse", reason: "malformed text" }
  return { _tag: "Persist" }
}
