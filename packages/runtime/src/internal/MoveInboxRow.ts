/** An accepted row of the inbox as the journal entry that it becomes. */
import { type EntryDraft, type InterruptId, type RecordedTry, serveInboxRow } from "@fermata/contract"
import type { InboxRow } from "@fermata/ledger"
import { draft } from "./Payload.js"

/** What the branch knows of what a row speaks of. */
export interface InboxView {
  /** The workflow's root has ended. */
  readonly over: boolean
  /** True if the code waits for this interrupt. */
  readonly waitsFor: (interrupt: InterruptId) => boolean
  /** What the history says of an effect. */
  readonly effect: (key: string) => RecordedTry | undefined
}

export type InboxMove =
  /** An event: appended and delivered. */
  | { readonly _tag: "Event"; readonly entry: EntryDraft }
  /** The outcome of an effect, which its step goes on with. */
  | { readonly _tag: "Settlement"; readonly entry: EntryDraft; readonly step: string }
  /** It came too late; its receipt says why. */
  | { readonly _tag: "Unserved"; readonly entry: EntryDraft }

export const moveInboxRow = (row: InboxRow, view: InboxView): InboxMove => {
  const unserved = (reason: string): InboxMove => ({
    _tag: "Unserved",
    entry: draft.unserved(row.key, row.pos, reason)
  })
  // The payloads are what the ledger's gate wrote when it accepted the row.
  switch (row.kind) {
    case "cancel": {
      const { reason } = JSON.parse(row.payload) as { readonly reason: string | null }
      const verdict = serveInboxRow({ kind: row.kind, over: view.over })
      return verdict._tag === "Unserved"
        ? unserved(verdict.reason)
        : { _tag: "Event", entry: draft.cancelRequested(reason, row.pos) }
    }
    case "answer": {
      const answer = JSON.parse(row.payload) as {
        readonly interrupt: InterruptId
        readonly delivery: string
        readonly value: unknown
        readonly valueDigest: string
      }
      const verdict = serveInboxRow({ kind: row.kind, over: view.over, open: view.waitsFor(answer.interrupt) })
      return verdict._tag === "Unserved"
        ? unserved(verdict.reason)
        : { _tag: "Event", entry: draft.interruptAnswered(answer, row.pos) }
    }
    case "signal":
    case "update": {
      const message = JSON.parse(row.payload) as {
        readonly name: string
        readonly message: string
        readonly value: unknown
      }
      const verdict = serveInboxRow({ kind: row.kind, over: view.over })
      return verdict._tag === "Unserved"
        ? unserved(verdict.reason)
        : { _tag: "Event", entry: draft.messageReceived(row.kind, row.key, message, row.pos) }
    }
    case "settlement": {
      const settlement = JSON.parse(row.payload) as {
        readonly effect: string
        readonly settlement: "Succeeded" | "Failed" | "DidNotHappen"
        readonly value?: unknown
      }
      const recorded = view.effect(settlement.effect)
      const verdict = serveInboxRow({ kind: row.kind, state: recorded?.state })
      // A served settlement has a record: nothing remembered is unserved.
      if (verdict._tag === "Unserved" || recorded === undefined) {
        return unserved(verdict._tag === "Unserved" ? verdict.reason : "its outcome was known")
      }
      return {
        _tag: "Settlement",
        entry: draft.settled(recorded, settlement, row.pos),
        step: recorded.step
      }
    }
  }
}
