/** May this cancellation be accepted? */
export type CancelVerdict =
  | { readonly _tag: "Accepted" }
  /** It was already asked for: inert. */
  | { readonly _tag: "Duplicate" }
  /** The branch is over: too late. */
  | { readonly _tag: "TooLate" }
  | { readonly _tag: "RunPurged" }
  | { readonly _tag: "UnknownRun" }

export const admitCancel = (facts: {
  readonly run: "known" | "unknown" | "purged"
  readonly over: boolean
  readonly requested: boolean
}): CancelVerdict => {
  if (facts.run === "purged") return { _tag: "RunPurged" }
  if (facts.run === "unknown") return { _tag: "UnknownRun" }
  if (facts.requested) return { _tag: "Duplicate" }
  return facts.over ? { _tag: "TooLate" } : { _tag: "Accepted" }
}
