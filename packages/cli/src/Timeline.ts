/** A branch's history as a timeline: what happened, when, and how long it took where the journal knows. */
import { type Entry, type EntryKind, isTerminal } from "@fermata/contract"
import { duration, oneLine, table } from "./Output.js"

/** One entry of a timeline. */
export interface Moment {
  readonly seq: number
  readonly at: number
  /** Milliseconds since the run was started. */
  readonly after: number
  readonly kind: EntryKind
  readonly key: string
  /** Milliseconds since what began it (intent, timer, question) was journaled; `null` where nothing says when it began. */
  readonly took: number | null
  /** An effect's policy and attempt, a value, an error: as text. */
  readonly detail: string
}

const begins: ReadonlySet<string> = new Set(["effect.intended", "timer.started", "interrupt.opened", "step.retried"])

/** The part of a payload that a person looks for. */
const detailOf = ({ kind, payload }: Entry): string => {
  // The digest chain vouches for the text.
  const fields = JSON.parse(payload) as Record<string, unknown>
  const shown = ["value", "error", "defect", "reason", "delivery", "attempt", "due", "by", "name"]
    .filter((name) => fields[name] !== undefined && fields[name] !== null && kind !== "run.started")
    .map((name) => {
      const field = fields[name]
      return `${name} ${name === "due" ? new Date(Number(field)).toISOString() : JSON.stringify(field)}`
    })
  return kind === "run.started" ? `${String(fields["workflow"])}@${String(fields["version"])}` : shown.join(", ")
}

/** The timeline of a verified history. */
export const of = (entries: ReadonlyArray<Entry>): ReadonlyArray<Moment> => {
  const started = entries[0]?.at ?? 0
  const begun = new Map<string, number>()
  return entries.map((entry): Moment => {
    const { at, key, kind, seq } = entry
    const since = kind.startsWith("run.") ? (isTerminal(kind) ? started : undefined) : begun.get(key)
    if (begins.has(kind) && !begun.has(key)) begun.set(key, at)
    // The first thing that a step's effects wrote is the earliest that is known of the step.
    if (kind === "effect.intended") {
      const { step } = JSON.parse(entry.payload) as { readonly step: string }
      if (!begun.has(step)) begun.set(step, at)
    }
    return {
      seq,
      at,
      after: at - started,
      kind,
      key,
      took: since === undefined ? null : at - since,
      detail: detailOf(entry)
    }
  })
}

/** As lines for a terminal. */
export const lines = (moments: ReadonlyArray<Moment>): ReadonlyArray<string> =>
  table(
    ["SEQ", "AFTER", "WHAT", "TOOK", "DETAIL"],
    moments.map(({ after, detail, key, kind, seq, took }) => [
      String(seq),
      `+${duration(after)}`,
      oneLine(key === "" ? kind : `${kind} ${key}`, 70),
      took === null ? "" : duration(took),
      oneLine(detail, 80)
    ])
  )
