/** What becomes of the rows of the ledger model's inbox when their owner moves them into the journal. */
import type { RecordedTry, Recovery } from "../decisions/Recovery.js"
import type { EntryDraft } from "../Entry.js"
import type { Decisions } from "./Decisions.js"
import { answerOf } from "./LedgerFacts.js"
import type { ModelInboxRow } from "./LedgerState.js"

/** The entry that a row of the inbox becomes. */
export const movedEntry = (row: ModelInboxRow, recovery: Recovery, { serveInboxRow }: Decisions): EntryDraft => {
  const over = recovery.ended !== undefined
  const unserved = (reason: string): EntryDraft => ({
    kind: "inbox.unserved",
    key: row.key,
    payload: JSON.stringify({ inbox: row.pos, reason })
  })
  switch (row.kind) {
    case "cancel": {
      const verdict = serveInboxRow({ kind: row.kind, over })
      if (verdict._tag === "Unserved") return unserved(verdict.reason)
      // Only the model's own `Cancel` writes rows of this kind.
      const { reason } = JSON.parse(row.payload) as { readonly reason: string | null }
      return { kind: "cancel.requested", key: "cancel", payload: JSON.stringify({ reason, inbox: row.pos }) }
    }
    case "answer": {
      const { interrupt, value, delivery, valueDigest } = answerOf(row)
      const verdict = serveInboxRow({ kind: row.kind, over, open: recovery.interrupts.has(interrupt) })
      if (verdict._tag === "Unserved") return unserved(verdict.reason)
      const payload = JSON.stringify({ value, delivery, valueDigest, inbox: row.pos })
      return { kind: "interrupt.answered", key: interrupt, payload }
    }
    case "settlement": {
      // Only the model's own `Settle` writes rows of this kind.
      const said = JSON.parse(row.payload) as {
        readonly effect: string
        readonly settlement: string
        readonly value?: unknown
      }
      const recorded = recovery.effects.get(said.effect)
      const verdict = serveInboxRow({ kind: row.kind, state: recorded?.state })
      if (verdict._tag === "Unserved" || recorded === undefined) {
        return unserved(verdict._tag === "Unserved" ? verdict.reason : "its outcome was known")
      }
      return settledEntry(recorded, said, row.pos)
    }
  }
}

const settledEntry = (
  recorded: RecordedTry,
  said: { readonly settlement: string; readonly value?: unknown },
  inbox: number
): EntryDraft => {
  const { key, step, position, attempt, effect, delivery, input } = recorded
  const head = { step, position, try: recorded.try, attempt, effect, delivery, input, by: "operator", inbox }
  switch (said.settlement) {
    case "Succeeded":
      return { kind: "effect.succeeded", key, payload: JSON.stringify({ ...head, value: said.value }) }
    case "Failed":
      return { kind: "effect.failed", key, payload: JSON.stringify({ ...head, error: said.value }) }
    default:
      return { kind: "effect.voided", key, payload: JSON.stringify(head) }
  }
}
