/** May this fork be made? FI: a fork is its own request, never inferred from a second delivery. */

/** A fork that exists under the requested id. */
export interface StoredFork {
  readonly parent: string
  readonly seq: number
  /** Digest of the fork's first event (its value or edited outcome); empty for a plain fork. */
  readonly firstDigest: string
}

export interface ForkFacts {
  readonly run: "known" | "unknown" | "purged"
  readonly existing: StoredFork | undefined
  /** The addressed branch's last durable position; `undefined` if the branch is unknown. */
  readonly head: number | undefined
  /** Positions below this were pruned. */
  readonly anchor: number
  /** `once` effects with an intent at or before the position and no outcome at or before it. */
  readonly inFlight: ReadonlyArray<{ readonly key: string; readonly step: string }>
  /** The nearest positions below and above at which no `once` effect is in flight. */
  readonly nearest: { readonly below: number | undefined; readonly above: number | undefined }
  /** For a fork at an interrupt: whether it is open at the addressed checkpoint. */
  readonly interruptOpen: boolean | undefined
}

export interface ForkRequest {
  readonly parent: string
  readonly seq: number
  readonly firstDigest: string
  /** The step that the fork's first event settles, if it is an edited outcome. */
  readonly settlesStep: string | undefined
  /** For a fork with a value: whether it satisfies its Schema. */
  readonly valueValid: boolean
}

export type ForkVerdict =
  | { readonly _tag: "Fork" }
  | { readonly _tag: "Existing" }
  | { readonly _tag: "RunPurged" }
  | { readonly _tag: "UnknownCheckpoint"; readonly head: number | undefined }
  | { readonly _tag: "CheckpointPruned"; readonly anchor: number }
  | { readonly _tag: "ForkIdReused" }
  | { readonly _tag: "InterruptNotOpen" }
  | { readonly _tag: "ResumeValueInvalid" }
  | {
      readonly _tag: "EffectInFlight"
      readonly keys: ReadonlyArray<string>
      readonly below: number | undefined
      readonly above: number | undefined
    }

export const admitFork = (facts: ForkFacts, request: ForkRequest): ForkVerdict => {
  if (facts.run === "purged") return { _tag: "RunPurged" }
  if (facts.run === "unknown" || facts.head === undefined) return { _tag: "UnknownCheckpoint", head: undefined }
  if (facts.existing !== undefined) {
    const same =
      facts.existing.parent === request.parent &&
      facts.existing.seq === request.seq &&
      facts.existing.firstDigest === request.firstDigest
    return same ? { _tag: "Existing" } : { _tag: "ForkIdReused" }
  }
  // Only what is durable can be addressed; position 0 is before the start was recorded.
  if (request.seq < 1 || request.seq > facts.head) return { _tag: "UnknownCheckpoint", head: facts.head }
  if (request.seq < facts.anchor) return { _tag: "CheckpointPruned", anchor: facts.anchor }
  if (facts.interruptOpen === false) return { _tag: "InterruptNotOpen" }
  if (!request.valueValid) return { _tag: "ResumeValueInvalid" }
  // EO: on the child the effect would be in doubt while its parent may still be firing it.
  const unsettled = facts.inFlight.filter((effect) => effect.step !== request.settlesStep)
  if (unsettled.length > 0) {
    return { _tag: "EffectInFlight", keys: unsettled.map((effect) => effect.key), ...facts.nearest }
  }
  return { _tag: "Fork" }
}
