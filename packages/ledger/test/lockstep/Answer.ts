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

/** What each typed refusal says besides its tag; the rest of them name what was asked for. */
const facts: Readonly<Record<string, ReadonlyArray<string>>> = {
  RunConflict: ["differs"],
  AlreadyConsumed: ["by"],
  InterruptClosed: ["reason"],
  InboxAdvanced: ["inboxHead"],
  UnknownInterrupt: ["open"],
  RunNotOver: ["branches"],
  UnknownCheckpoint: ["head"],
  EffectInFlight: ["effects", "below", "above"]
}

/** A typed refusal's tag and facts. */
export const refusalOf = (refusal: { readonly _tag: string }): Answer => {
  const { _tag } = refusal
  const said = new Map<string, unknown>()
  // Not by copying the whole: an error's stack costs much when it is read.
  for (const fact of facts[_tag] ?? []) said.set(fact, sorted(Reflect.get(refusal, fact)))
  return { _tag, ...Object.fromEntries(said) }
}

const sorted = (fact: unknown): unknown => (Array.isArray(fact) ? fact.toSorted() : fact)

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
