/**
 * May an interrupt with a deadline expire now? (CO, LV) An answer that was accepted before is served first; and the append
 * of the expiry takes the interrupt's row away, on which every answer has to find itself: one of the two wins.
 */
export type ExpiryVerdict =
  | { readonly _tag: "Expire" }
  /** Its time has not come. */
  | { readonly _tag: "NotYet" }
  /** Something was accepted and is not in the journal: that comes first, and this is asked again. */
  | { readonly _tag: "InboxFirst" }
  /** It was answered, closed or had expired. */
  | { readonly _tag: "Gone" }

export const admitExpiry = (facts: {
  readonly open: boolean
  /** Ledger milliseconds. */
  readonly deadline: number
  readonly now: number
  readonly inboxSeen: number
  readonly inboxHead: number
}): ExpiryVerdict => {
  if (!facts.open) return { _tag: "Gone" }
  if (facts.now < facts.deadline) return { _tag: "NotYet" }
  return facts.inboxHead > facts.inboxSeen ? { _tag: "InboxFirst" } : { _tag: "Expire" }
}
