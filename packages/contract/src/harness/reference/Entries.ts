/** Entries of the reference plane's journals: those that several parts write, and what they say. */
import { isTerminal, payloadOf, type Entry, type EntryDraft } from "../../Entry.js"
import * as Store from "./Store.js"

/** The entry that serves an answer. */
export const answeredBy = (gate: string, value: unknown, delivery: string, inbox?: number): EntryDraft => ({
  kind: "interrupt.answered",
  key: gate,
  payload: JSON.stringify({
    value,
    delivery,
    valueDigest: Store.digestOf(value),
    ...(inbox === undefined ? {} : { inbox })
  })
})

/** The steps whose outcome is in the history. */
export const recordedSteps = (
  history: ReadonlyArray<Entry>
): ReadonlyArray<{ readonly step: string; readonly value: unknown }> =>
  history.flatMap(({ key, kind, payload }) =>
    kind === "step.succeeded" ? [{ step: key, value: payloadOf({ kind, payload }).value }] : []
  )

/** True if the history has an end. */
export const isOver = (history: ReadonlyArray<Entry>): boolean => history.some(({ kind }) => isTerminal(kind))
