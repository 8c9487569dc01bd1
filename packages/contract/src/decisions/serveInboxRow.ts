/**
 * What becomes of a row that was accepted into a branch's inbox, when its turn comes? (LV, PC) It was accepted by what
 * was durable then; the branch may have moved on since, and then it is journaled as unserved, with the reason.
 */
import type { EffectTry } from "./admitFiring.js"

export type InboxRowFacts =
  | {
      readonly kind: "cancel"
      /** The workflow's root has ended; the end is not recorded yet. */
      readonly over: boolean
    }
  | {
      readonly kind: "answer"
      readonly over: boolean
      /** The code waits for this very interrupt. */
      readonly open: boolean
    }
  | {
      readonly kind: "signal" | "update"
      readonly over: boolean
    }
  | {
      readonly kind: "settlement"
      /** What the history says of the effect; `undefined` if nothing is remembered, because its step ended. */
      readonly state: EffectTry["state"] | undefined
    }

export type InboxRowVerdict = { readonly _tag: "Serve" } | { readonly _tag: "Unserved"; readonly reason: string }

const serve: InboxRowVerdict = { _tag: "Serve" }
const unserved = (reason: string): InboxRowVerdict => ({ _tag: "Unserved", reason })

/** An effect whose outcome an operator may give: it is not known, or was refused by its Schema. */
export const isUnsettled = (state: EffectTry["state"] | undefined): boolean =>
  state === "intended" || state === "refused"

export const serveInboxRow = (facts: InboxRowFacts): InboxRowVerdict => {
  switch (facts.kind) {
    case "cancel":
    case "signal":
    case "update":
      return facts.over ? unserved("the run was over") : serve
    case "answer":
      return facts.open ? serve : unserved(facts.over ? "the run was over" : "its interrupt had closed")
    case "settlement":
      return isUnsettled(facts.state) ? serve : unserved("its outcome was known")
  }
}
