/** May this effect fire? Decided from what the history says of the same position of the same step (EO, PC). */
import type { DeliveryPolicy } from "../Delivery.js"

/** One recorded try at a position of a step. */
export interface EffectTry {
  readonly key: string
  readonly try: number
  /** The step's attempt that wrote it. */
  readonly attempt: number
  readonly effect: string
  readonly delivery: DeliveryPolicy
  readonly input: string
  readonly state: "intended" | "succeeded" | "failed" | "voided" | "refused"
}

export interface FiringRequest {
  readonly effect: string
  readonly delivery: DeliveryPolicy
  /** Digest of the encoded input. */
  readonly input: string
  /** The step's current attempt (1-based). */
  readonly attempt: number
}

export type FiringVerdict =
  /** Nothing recorded, or every earlier try is closed: fire as this try. */
  | { readonly _tag: "Fire"; readonly try: number }
  /** An outcome is recorded: serve it, do not fire. */
  | { readonly _tag: "Serve"; readonly key: string }
  /** An intent without an outcome: recovery decides by its delivery policy. */
  | { readonly _tag: "InDoubt"; readonly key: string }
  /** It happened but its value was refused: an operator settles it. */
  | { readonly _tag: "Refused"; readonly key: string }
  /** The body asks for something other than what the history has. */
  | { readonly _tag: "InputChanged"; readonly key: string; readonly differs: "effect" | "delivery" | "input" }

/** `tries` is what is recorded at the position, in order of `try`. */
export const admitFiring = (tries: ReadonlyArray<EffectTry>, request: FiringRequest): FiringVerdict => {
  for (const recorded of tries) {
    // A try that never happened, or that failed in an earlier attempt, is closed: look at the next.
    if (recorded.state === "voided") continue
    if (recorded.state === "failed" && recorded.attempt < request.attempt) continue
    if (recorded.effect !== request.effect) return { _tag: "InputChanged", key: recorded.key, differs: "effect" }
    if (recorded.input !== request.input) return { _tag: "InputChanged", key: recorded.key, differs: "input" }
    switch (recorded.state) {
      case "succeeded":
      case "failed":
        return { _tag: "Serve", key: recorded.key }
      case "refused":
        return { _tag: "Refused", key: recorded.key }
      case "intended":
        // A changed policy may not loosen what the intent promised.
        if (recorded.delivery !== request.delivery) {
          return { _tag: "InputChanged", key: recorded.key, differs: "delivery" }
        }
        return { _tag: "InDoubt", key: recorded.key }
    }
  }
  return { _tag: "Fire", try: tries.length === 0 ? 0 : Math.max(...tries.map((t) => t.try)) + 1 }
}
