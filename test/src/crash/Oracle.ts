/**
 * What must be true of a run that was killed once and finished by another process, judged from outside: from the log
 * that the effects wrote, the plane's history as its public interface gives it, and the result.
 */
import { type Entry, effectKey, payloadOf, rootBranch, RunId, StepKey } from "@fermata/contract"
import type { Recorded } from "../EffectLog.js"
import { deliveries, effectsOf, type Outcome, receiptOf } from "./Sweep.js"

/** What could be seen at one moment. */
export interface Sight {
  readonly history: ReadonlyArray<Entry>
  /** The rows of this run: its firings, and the runs of its nodes' bodies. */
  readonly log: ReadonlyArray<Recorded>
}

/** What could be seen at the end. */
export interface Ending extends Sight {
  /** Rows of this run in the table of the transactional effect. */
  readonly booked: number
  readonly outcome: Outcome
}

/** All that is wrong, as sentences; none, if the contract held. */
export const violations = (run: string, killed: Sight, ended: Ending): ReadonlyArray<string> => [
  ...continuation(killed, ended),
  ...nothingRecordedAgain(run, killed, ended),
  ...exactlyOnce(ended),
  ...sameValues(ended)
]

/** PC: what was durable when the process died is still there, unchanged, and was built upon. */
const continuation = (killed: Sight, ended: Ending): ReadonlyArray<string> =>
  killed.history.flatMap((entry, index) =>
    ended.history[index]?.digest === entry.digest ? [] : [`the durable entry ${entry.seq} (${entry.kind}) was replaced`]
  )

/** PC, EO: a step with a durable outcome never runs again, nor does an effect. */
const nothingRecordedAgain = (run: string, killed: Sight, ended: Ending): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const count = (sight: Sight, is: (row: Recorded) => boolean) => sight.log.filter(is).length
  const same = (what: string, is: (row: Recorded) => boolean) => {
    const [before, after] = [count(killed, is), count(ended, is)]
    if (before !== after) wrong.push(`${what} was recorded, and ran again (${before} times, then ${after})`)
  }
  for (const entry of killed.history) {
    if (entry.kind === "step.succeeded") {
      const node = payloadOf({ kind: entry.kind, payload: entry.payload }).node
      same(`step ${entry.key}`, (row) => row.effect === "body" && row.idempotencyKey === node)
      effectsOf[node]?.forEach((effect, index) => {
        const key = effectKey(rootBranch(RunId.make(run)), StepKey.make(entry.key), String(index + 1), 0)
        same(`effect ${key}`, (row) => row.at === key && row.effect === effect)
      })
    }
    if (entry.kind === "effect.succeeded" || entry.kind === "effect.failed")
      same(`effect ${entry.key}`, (row) => row.at === entry.key)
  }
  return wrong
}

/** EO, by the policy that each effect declares. */
const exactlyOnce = (ended: Ending): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  for (const [effect, policy] of deliveries) {
    const firings = ended.log.filter((row) => row.effect === effect)
    const distinct = (of: (row: Recorded) => string) => new Set(firings.map(of)).size
    if (policy === "transactional") {
      if (ended.booked !== 1) wrong.push(`${effect} is in the database ${ended.booked} times`)
      continue
    }
    if (firings.length === 0) wrong.push(`${effect} never fired`)
    if (policy === "once" && firings.length > 1) wrong.push(`${effect} fired ${firings.length} times`)
    if (policy === "keyed" && distinct((row) => row.idempotencyKey) > 1) wrong.push(`${effect} fired under two keys`)
    // The repeatable reads before it change with each look: this is where an effect fired ahead of its prefix shows.
    if (policy === "keyed" && distinct((row) => row.inputDigest) > 1) wrong.push(`${effect} fired with two inputs`)
  }
  for (const node of Object.keys(effectsOf)) {
    if (!ended.log.some((row) => row.effect === "body" && row.idempotencyKey === node)) wrong.push(`${node} never ran`)
  }
  return wrong
}

/** The outcome is made of the recorded values, and they are made of each other. */
const sameValues = ({ history, outcome }: Ending): ReadonlyArray<string> => {
  const recorded = new Map<string, unknown>()
  for (const entry of history) {
    if (entry.kind !== "step.succeeded") continue
    if (recorded.has(entry.key)) return [`step ${entry.key} has two outcomes`]
    recorded.set(entry.key, payloadOf({ kind: entry.kind, payload: entry.payload }).value)
  }
  const expected: Outcome = {
    price: String(recorded.get("quote#1")),
    reservation: receiptOf.reserve(outcome.price),
    grade: String(recorded.get("assess#1")),
    receipt: receiptOf.pay(outcome.price, outcome.grade, "Ada"),
    entry: receiptOf.book(outcome.receipt),
    seal: receiptOf.seal(outcome.receipt)
  }
  return Object.entries(expected).flatMap(([name, value]) =>
    Object.entries(outcome).some(([key, found]) => key === name && found === value) ? [] : [`${name} is not ${value}`]
  )
}
