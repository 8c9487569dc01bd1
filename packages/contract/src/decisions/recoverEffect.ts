/** What may recovery do with an effect in doubt: an intent whose outcome is not recorded? (EO, RD) */
import type { DeliveryPolicy } from "../Delivery.js"

/** What is known of the worker that wrote the intent. */
export type WorkerFate = "dead" | "unknown"

export interface InDoubtFacts {
  readonly delivery: DeliveryPolicy
  readonly firedBy: WorkerFate
  /** Ledger milliseconds after which the firing can no longer be under way (`fireBefore` plus the time limit). */
  readonly overAt: number
  readonly now: number
  /** What the outside answered, if it was asked. */
  readonly reconciled: "unavailable" | "notAsked" | "Happened" | "NeverWill" | "Unknown"
}

export type InDoubtVerdict =
  /** Fire again: same key, and the input that the intent recorded. */
  | { readonly _tag: "FireAgain" }
  /** Ask the outside what became of it. */
  | { readonly _tag: "AskOutside" }
  /** The firing may still be under way: ask no earlier than this (ledger milliseconds). */
  | { readonly _tag: "WaitUntil"; readonly at: number }
  /** Record the outcome that the outside reported. */
  | { readonly _tag: "Adopt" }
  /** Record that it never happened; the next try may fire. */
  | { readonly _tag: "Void" }
  /** Nobody can say: an operator settles it. */
  | { readonly _tag: "AwaitSettlement" }

export const recoverEffect = (facts: InDoubtFacts): InDoubtVerdict => {
  const firedByLiving = facts.firedBy !== "dead"
  switch (facts.delivery) {
    // Commits with its outcome; an intent of one cannot exist, and its absence means that it did not happen.
    case "transactional":
    case "repeatable":
    case "keyed":
      return { _tag: "FireAgain" }
    case "once":
      switch (facts.reconciled) {
        case "Happened":
          return { _tag: "Adopt" }
        case "NeverWill":
          return { _tag: "Void" }
        case "Unknown":
        case "unavailable":
          return { _tag: "AwaitSettlement" }
        case "notAsked":
          // Without a time at which the firing is over there is nothing to wait for: only a person can say.
          if (firedByLiving && !Number.isFinite(facts.overAt)) return { _tag: "AwaitSettlement" }
          // A zombie may still be between its check and the wire: asking now could miss its firing.
          return firedByLiving && facts.now < facts.overAt
            ? { _tag: "WaitUntil", at: facts.overAt }
            : { _tag: "AskOutside" }
      }
  }
}
