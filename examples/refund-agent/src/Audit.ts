/** Judges the shop's effect log: every payment there, none twice, none that nobody asked for. */
import type * as EffectLog from "./EffectLog.js"
import type { Expectation } from "./Expectation.js"
import * as Money from "./Money.js"

/** Compares the log with what it must show. Each finding is a sentence; no findings is the good news. */
export const findings = (expected: Expectation, log: ReadonlyArray<EffectLog.Entry>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const payments = byRequest(log, "payment")
  for (const [request, amount] of expected.payments) {
    const made = payments.get(request) ?? []
    const [first] = made
    if (first === undefined) found.push(`${request}: the payment of ${Money.format(amount)} is missing`)
    if (made.length > 1) found.push(`${request}: paid ${made.length} times`)
    if (first?.amount !== undefined && Money.format(first.amount) !== Money.format(amount)) {
      found.push(`${request}: paid ${Money.format(first.amount)} instead of ${Money.format(amount)}`)
    }
  }
  for (const request of payments.keys()) {
    if (!expected.payments.has(request)) found.push(`${request}: paid, though it must not be`)
  }
  // The shop would answer alike, but a payment is declared `once`: the same key must not even be asked twice.
  for (const { key, request } of log.filter(({ what }) => what === "payment asked for again")) {
    found.push(`${request}: payment ${key} was asked for again`)
  }
  const letters = byRequest(log, "letter")
  for (const request of new Set([...expected.letters.keys(), ...letters.keys()])) {
    const wanted = expected.letters.get(request) ?? 0
    const sent = letters.get(request)?.length ?? 0
    if (sent !== wanted) found.push(`${request}: ${sent} letters instead of ${wanted}`)
  }
  return found
}

const byRequest = (
  log: ReadonlyArray<EffectLog.Entry>,
  what: EffectLog.What
): ReadonlyMap<string, ReadonlyArray<EffectLog.Entry>> => {
  const groups = new Map<string, ReadonlyArray<EffectLog.Entry>>()
  for (const entry of log) {
    if (entry.what === what) groups.set(entry.request, [...(groups.get(entry.request) ?? []), entry])
  }
  return groups
}
