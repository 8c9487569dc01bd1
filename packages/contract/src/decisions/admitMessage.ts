/**
 * May this signal or update be accepted? A message id has one meaning for ever: sent again it is inert, also when the run
 * is over since, and used for something else it is refused.
 */
export interface MessageRequestFacts {
  /** Name of the signal's or update's definition. */
  readonly name: string
  /** Digest of the value's canonical text. */
  readonly digest: string
}

export interface MessageStateFacts {
  readonly run: "known" | "unknown" | "purged"
  readonly over: boolean
  /** The workflow declares a signal (or an update) of this name. */
  readonly declared: boolean
  /** What this message id was used for on this history, in the same kind. */
  readonly earlier: MessageRequestFacts | undefined
}

export type MessageVerdict =
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "MessageIdReused" }
  /** The workflow takes nothing of this name. */
  | { readonly _tag: "UnknownMessage" }
  | { readonly _tag: "RunOver" }
  | { readonly _tag: "RunPurged" }
  | { readonly _tag: "UnknownRun" }

/** Rows in order; the first that applies decides. */
export const admitMessage = (facts: MessageStateFacts, request: MessageRequestFacts): MessageVerdict => {
  if (facts.run === "purged") return { _tag: "RunPurged" }
  if (facts.run === "unknown") return { _tag: "UnknownRun" }
  if (facts.earlier !== undefined) {
    return facts.earlier.name === request.name && facts.earlier.digest === request.digest
      ? { _tag: "Duplicate" }
      : { _tag: "MessageIdReused" }
  }
  if (!facts.declared) return { _tag: "UnknownMessage" }
  return facts.over ? { _tag: "RunOver" } : { _tag: "Accepted" }
}
