/** What both sides answer to an action, with all that a receipt or a typed refusal says. */
import type { Action, Decisions, LedgerState, Verdict } from "@fermata/contract/model"
import { answerKey, historyOf, isOver } from "@fermata/contract/model"

/** An answer: the tag of a receipt or of a typed refusal, and what it says besides. */
export type Answer = { readonly _tag: string } & Readonly<Record<string, unknown>>

/** What decisions said last, where the model's verdict says less than the ledger's error. */
export interface Said {
  differs: string | undefined
  /** Who consumed the interrupt, or why it closed. */
  by: string | undefined
  reason: string | undefined
  fork: ReturnType<Decisions["admitFork"]> | undefined
}

/** Nothing was said yet. */
export const nothingSaid = (): Said => ({ differs: undefined, by: undefined, reason: undefined, fork: undefined })

/** Decisions that note in `said` what they say. */
export const noting = (decisions: Decisions, said: Said): Decisions => ({
  ...decisions,
  admitStart: (stored, request) => {
    const verdict = decisions.admitStart(stored, request)
    if (verdict._tag === "Conflict") said.differs = verdict.differs
    return verdict
  },
  judgeDelivery: (facts, request) => {
    const verdict = decisions.judgeDelivery(facts, request)
    if (facts.interrupt._tag === "Consumed") said.by = facts.interrupt.delivery
    if (verdict._tag === "InterruptClosed") said.reason = verdict.reason
    return verdict
  },
  admitFork: (facts, request) => (said.fork = decisions.admitFork(facts, request))
})

/** A typed refusal's tag and facts. */
export const refusalOf = (refusal: { readonly _tag: string }): Answer => {
  const facts: Record<string, unknown> = { ...refusal }
  switch (refusal._tag) {
    case "RunConflict":
      return { _tag: refusal._tag, differs: facts["differs"] }
    case "AlreadyConsumed":
      return { _tag: refusal._tag, by: facts["by"] }
    case "InterruptClosed":
      return { _tag: refusal._tag, reason: facts["reason"] }
    case "InboxAdvanced":
      return { _tag: refusal._tag, inboxHead: facts["inboxHead"] }
    case "UnknownInterrupt":
      return { _tag: refusal._tag, open: sorted(facts["open"]) }
    case "RunNotOver":
      return { _tag: refusal._tag, branches: sorted(facts["branches"]) }
    case "UnknownCheckpoint":
      return { _tag: refusal._tag, head: facts["head"] }
    case "EffectInFlight":
      return {
        _tag: refusal._tag,
        effects: sorted(facts["effects"]),
        below: facts["below"],
        above: facts["above"]
      }
    default:
      return { _tag: refusal._tag }
  }
}

const sorted = (list: unknown): ReadonlyArray<unknown> => (Array.isArray(list) ? list.toSorted() : [])

/** The same of the model's verdict on `action`; `before` is its state before it. */
export const expected = (before: LedgerState, action: Action, verdict: Verdict, said: Said): Answer => {
  const addressed = action._tag === "Fork" ? action.parent : "branch" in action ? action.branch : ""
  const branch = before.branches[addressed]
  switch (verdict._tag) {
    case "Freed":
      return { _tag: "Freed" }
    case "Started":
      return { ...verdict, root: true }
    case "Appended":
      return { _tag: "Appended", seq: "entry" in verdict ? verdict.entry.seq : undefined }
    case "InboxAdvanced":
      return { _tag: "InboxAdvanced", inboxHead: branch?.inbox.length }
    case "Accepted":
    case "Duplicate": {
      if (action._tag !== "Deliver") return verdict
      const unserved =
        branch &&
        historyOf(before, branch).find(
          ({ key, kind }) => kind === "inbox.unserved" && key === answerKey(action.interrupt)
        )
      // Written by the model itself, when it moved the row.
      const reason = unserved && (JSON.parse(unserved.payload) as { readonly reason: string }).reason
      return { _tag: verdict._tag, unserved: reason ?? null, same: true }
    }
    case "RunConflict":
      return { _tag: verdict._tag, differs: said.differs }
    case "AlreadyConsumed":
      return { _tag: verdict._tag, by: said.by }
    case "InterruptClosed":
      return { _tag: verdict._tag, reason: action._tag === "Fork" ? "it is not open at its checkpoint" : said.reason }
    case "UnknownInterrupt":
      return { _tag: verdict._tag, open: branch?.open.toSorted() ?? [] }
    case "RunNotOver": {
      const open = Object.values(before.branches).filter(
        ({ run, status }) => runOfPurge(action) === run && !isOver(status)
      )
      return { _tag: verdict._tag, branches: open.map(({ branch }) => branch).toSorted() }
    }
    case "UnknownCheckpoint":
      return { _tag: verdict._tag, head: said.fork?._tag === "UnknownCheckpoint" ? said.fork.head : undefined }
    case "EffectInFlight": {
      if (said.fork?._tag !== "EffectInFlight") return verdict
      const { above, below, keys } = said.fork
      return { _tag: verdict._tag, effects: keys.toSorted(), below: below ?? null, above: above ?? null }
    }
    default:
      return { ...verdict }
  }
}

const runOfPurge = (action: Action): string | undefined => (action._tag === "Purge" ? action.run : undefined)
