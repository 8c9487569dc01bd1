/** Who consumes an interrupt? The table of deliveries, decided over a branch's whole history and accepted inbox. */

/** What the history (inherited part included) and the inbox say of the addressed interrupt. */
export type InterruptState =
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Open" }
  | {
      readonly _tag: "Consumed"
      readonly delivery: string
      readonly valueDigest: string
    }
  | { readonly _tag: "Closed"; readonly reason: string }

/** An earlier use of the request's `deliveryId` on this branch's history or inbox. */
export interface DeliveryUse {
  readonly interrupt: string
  readonly valueDigest: string
}

/**
 * Whether the value satisfies the answer's Schema. `digest` is of its canonical text. An invalid value has one if it has
 * such a text: what was consumed before a deployment narrowed the Schema is still the same delivery.
 */
export type ValueCheck =
  { readonly _tag: "Valid"; readonly digest: string } | { readonly _tag: "Invalid"; readonly digest?: string }

export interface DeliveryFacts {
  readonly run: "known" | "unknown" | "purged"
  /** The terminal status of the branch, if it is over. */
  readonly over: boolean
  readonly interrupt: InterruptState
  readonly deliveryUse: DeliveryUse | undefined
}

export interface DeliveryRequest {
  readonly interrupt: string
  readonly delivery: string
  readonly value: ValueCheck
}

export type DeliveryVerdict =
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "UnknownInterrupt" }
  | { readonly _tag: "RunPurged" }
  | { readonly _tag: "DeliveryIdReused" }
  | { readonly _tag: "AlreadyConsumed" }
  | { readonly _tag: "InterruptClosed"; readonly reason: string }
  | { readonly _tag: "ResumeValueInvalid" }

/**
 * Judges a delivery with intent `"retry"`. Rows in the table's order; the first that applies decides.
 * A delivery with intent `"fork"` is judged by `admitFork`.
 */
export const judgeDelivery = (facts: DeliveryFacts, request: DeliveryRequest): DeliveryVerdict => {
  // 1: the address must name something
  if (facts.run === "purged") return { _tag: "RunPurged" }
  if (facts.run === "unknown" || facts.interrupt._tag === "Unknown") return { _tag: "UnknownInterrupt" }
  const { interrupt } = facts
  // The consuming delivery is a use of its id, whether or not the caller looked for uses apart from it.
  const consumedBySame = interrupt._tag === "Consumed" && interrupt.delivery === request.delivery
  const use: DeliveryUse | undefined = consumedBySame
    ? { interrupt: request.interrupt, valueDigest: interrupt.valueDigest }
    : facts.deliveryUse
  if (use !== undefined) {
    // 2: the same delivery again is inert, also when the run is over since
    if (use.interrupt === request.interrupt && use.valueDigest === request.value.digest) return { _tag: "Duplicate" }
    // 3: one delivery id, one meaning
    return { _tag: "DeliveryIdReused" }
  }
  // 4: CO, even if the value is equal
  if (facts.interrupt._tag === "Consumed") return { _tag: "AlreadyConsumed" }
  // 5
  if (facts.interrupt._tag === "Closed") return { _tag: "InterruptClosed", reason: facts.interrupt.reason }
  if (facts.over) return { _tag: "InterruptClosed", reason: "the run is over" }
  // 6: CV, nothing consumed
  if (request.value._tag === "Invalid") return { _tag: "ResumeValueInvalid" }
  // 7
  return { _tag: "Accepted" }
}
