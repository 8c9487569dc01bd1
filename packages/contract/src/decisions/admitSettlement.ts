/** May this settlement (an operator's word on an effect) be recorded? One outcome per key, whoever says it first. */
import type { EffectTry } from "./admitFiring.js"

export interface SettlementFacts {
  readonly run: "known" | "unknown" | "purged"
  readonly over: boolean
  /** A worker owns the branch: it may be firing the effect, and will bring its outcome or report it in doubt. */
  readonly owned: boolean
  /** The recorded try under the addressed key. */
  readonly effect: Pick<EffectTry, "state"> | undefined
  /** The settlement of the key that was accepted, recorded since or not. */
  readonly accepted: { readonly digest: string } | undefined
}

export type SettlementVerdict =
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "RunPurged" }
  | { readonly _tag: "UnknownEffect" }
  | { readonly _tag: "AlreadySettled" }
  | { readonly _tag: "UnderWay" }
  | { readonly _tag: "SettlementInvalid" }

export const admitSettlement = (
  facts: SettlementFacts,
  request: { readonly digest: string; readonly valid: boolean }
): SettlementVerdict => {
  if (facts.run === "purged") return { _tag: "RunPurged" }
  if (facts.run === "unknown") return { _tag: "UnknownEffect" }
  // Before the effect is looked at: once its step has ended the history keeps no record of it, and the same settlement
  // again (its reply was lost) is still a duplicate.
  if (facts.accepted !== undefined) {
    return facts.accepted.digest === request.digest ? { _tag: "Duplicate" } : { _tag: "AlreadySettled" }
  }
  if (facts.effect === undefined) return { _tag: "UnknownEffect" }
  if (facts.over || (facts.effect.state !== "intended" && facts.effect.state !== "refused")) {
    return { _tag: "AlreadySettled" }
  }
  // EO: a word on a firing that is under way could contradict the outcome that it has a moment later.
  if (facts.owned) return { _tag: "UnderWay" }
  return request.valid ? { _tag: "Accepted" } : { _tag: "SettlementInvalid" }
}
