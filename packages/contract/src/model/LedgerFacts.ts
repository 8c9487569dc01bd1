/** What the ledger's tables say, gathered as the facts that decisions ask for. Facts only: nothing here decides. */
import type { DeliveryFacts } from "../decisions/judgeDelivery.js"
import type { EffectTry } from "../decisions/admitFiring.js"
import type { SettlementFacts } from "../decisions/admitSettlement.js"
import { Recovery } from "../decisions/Recovery.js"
import { type Entry, type EntryKind, type EntryPayloads, isEvent, isTerminal, payloadOf } from "../Entry.js"
import {
  type Ancestor,
  answerKey,
  type ForkAt,
  historyOf,
  isOver,
  type LedgerState,
  lineageOf,
  type ModelBranch,
  type ModelInboxRow,
  settlementKey
} from "./LedgerState.js"

/** Digest of a JSON text; the lockstep passes the ledger's own, so that payloads compare. */
export type DigestOf = (json: string) => string

/** The payload, if the entry is of this kind. */
export const payloadIf = <K extends EntryKind>(kind: K, entry: Entry): EntryPayloads[K] | undefined =>
  entry.kind === kind ? payloadOf({ kind, payload: entry.payload }) : undefined

interface Answer {
  readonly interrupt: string
  readonly delivery: string
  readonly valueDigest: string
}

/** The parsed payload of an inbox row of kind `answer`. */
export const answerOf = (row: ModelInboxRow): Answer & { readonly value: unknown } =>
  // Only the model's own `Deliver` writes rows of this kind.
  JSON.parse(row.payload) as Answer & { readonly value: unknown }

/** What the gate asks: the branch's whole history and accepted inbox, about one interrupt and one delivery id. */
export const deliveryFacts = (
  state: LedgerState,
  branch: ModelBranch,
  request: { readonly interrupt: string; readonly name: string; readonly delivery: string }
): Omit<DeliveryFacts, "run"> => {
  const lineage = lineageOf(state, branch)
  const history = historyOf(state, branch)
  const records = lineage.flatMap((ancestor) => deliveriesOf(ancestor, branch, history, request))
  const over = isOver(branch.status)
  const earlier = records.find(({ delivery }) => delivery === request.delivery)
  return {
    over,
    interrupt: interruptState(history, request, records),
    deliveryUse: earlier && { interrupt: earlier.interrupt, valueDigest: earlier.valueDigest }
  }
}

const interruptState = (
  history: ReadonlyArray<Entry>,
  request: { readonly interrupt: string; readonly name: string },
  records: ReadonlyArray<Answer>
): DeliveryFacts["interrupt"] => {
  const opened = openedIn(history, request.interrupt)
  if (opened === undefined || opened.name !== request.name) return { _tag: "Unknown" }
  const consumedBy = records.find(({ interrupt }) => interrupt === request.interrupt)
  if (consumedBy !== undefined) {
    return { _tag: "Consumed", delivery: consumedBy.delivery, valueDigest: consumedBy.valueDigest }
  }
  for (const entry of history) {
    const closed = entry.key === request.interrupt ? payloadIf("interrupt.closed", entry) : undefined
    if (closed !== undefined) return { _tag: "Closed", reason: closed.reason }
  }
  return { _tag: "Open" }
}

const openedIn = (
  history: ReadonlyArray<Entry>,
  interrupt: string
): { readonly seq: number; readonly name: string } | undefined => {
  const entry = history.find(({ kind, key }) => kind === "interrupt.opened" && key === interrupt)
  const payload = entry && payloadIf("interrupt.opened", entry)
  return entry && payload && { seq: entry.seq, name: payload.name }
}

/** Accepted deliveries on one branch of the lineage that are part of this history. */
const deliveriesOf = (
  ancestor: Ancestor,
  branch: ModelBranch,
  history: ReadonlyArray<Entry>,
  request: { readonly interrupt: string; readonly delivery: string }
): ReadonlyArray<Answer> => {
  const found: Array<Answer> = []
  const { branch: holder } = ancestor
  for (const row of holder.inbox) {
    if (row.kind !== "answer") continue
    if (row.key !== answerKey(request.interrupt) && row.delivery !== request.delivery) continue
    const moved = history.some(
      (entry) =>
        entry.branch === holder.branch &&
        (payloadIf("interrupt.answered", entry)?.inbox === row.pos ||
          payloadIf("inbox.unserved", entry)?.inbox === row.pos)
    )
    // What an ancestor accepted and had not journaled at the fork point is not part of this history.
    if (!moved && holder.branch !== branch.branch) continue
    found.push(answerOf(row))
  }
  const first = holder.parent === null ? undefined : history.find((entry) => entry.branch === holder.branch)
  const served = first && payloadIf("interrupt.answered", first)
  if (first !== undefined && served !== undefined && served.inbox === undefined) {
    if (first.key === request.interrupt || served.delivery === request.delivery) {
      found.push({ interrupt: first.key, delivery: served.delivery, valueDigest: served.valueDigest })
    }
  }
  return found
}

/** Whether the branch accepted a cancellation, or inherited one that was journaled. */
export const cancelRequested = (state: LedgerState, branch: ModelBranch): boolean =>
  branch.inbox.some(({ kind }) => kind === "cancel") ||
  historyOf(state, branch).some((entry) => entry.kind === "cancel.requested" && entry.branch !== branch.branch)

const effectStates: Partial<Record<EntryKind, EffectTry["state"]>> = {
  "effect.intended": "intended",
  "effect.succeeded": "succeeded",
  "effect.failed": "failed",
  "effect.voided": "voided",
  "effect.refused": "refused"
}

/** What is known of an effect that somebody settles. */
export const settlementFacts = (
  state: LedgerState,
  branch: ModelBranch,
  effect: string
): Omit<SettlementFacts, "run"> => {
  const history = historyOf(state, branch)
  let last: { readonly state: EffectTry["state"]; readonly step: string; readonly seq: number } | undefined
  for (const entry of history) {
    const means = entry.key === effect ? effectStates[entry.kind] : undefined
    if (means === undefined) continue
    // Every `effect.*` payload begins with the effect's identity.
    const { step } = JSON.parse(entry.payload) as { readonly step: string }
    last = { state: means, step, seq: entry.seq }
  }
  const row = branch.inbox.find(({ key }) => key === settlementKey(effect))
  return {
    over: isOver(branch.status) || (last !== undefined && stepEnded(history, last.step, last.seq)),
    owned: branch.owner !== null,
    effect: last && { state: last.state },
    accepted: row && { digest: saidOf(row.payload) }
  }
}

/** A settlement's identity: the row's payload without the effect's key, which the row's own key names. */
const saidOf = (payload: string): string => {
  const { effect: _, ...said } = JSON.parse(payload) as { readonly effect: string }
  return JSON.stringify(said)
}

const stepEnded = (history: ReadonlyArray<Entry>, step: string, after: number): boolean =>
  history.some(({ kind, key, seq }) => seq > after && key === step && isEvent(kind) && kind.startsWith("step."))

/** The event that a fork writes first on its branch. */
export interface FirstEvent {
  readonly kind: "interrupt.answered" | "step.succeeded" | "step.failed"
  readonly key: string
  readonly payload: string
  /** What makes two forks the same: the delivery id is no part of it. */
  readonly identity: string
}

/** The addressed position of a fork, and what stands there. */
export interface ForkPosition {
  readonly seq: number
  readonly inFlight: ReadonlyArray<{ readonly key: string; readonly step: string }>
  readonly nearest: { readonly below: number | undefined; readonly above: number | undefined }
  readonly open: ReadonlyArray<string>
  readonly first: FirstEvent | undefined
}

const nowhere = (seq: number, first?: FirstEvent): ForkPosition => ({
  seq,
  inFlight: [],
  nearest: { below: undefined, above: undefined },
  open: [],
  first
})

const onceInFlight = (recovery: Recovery): ReadonlyArray<{ readonly key: string; readonly step: string }> =>
  [...recovery.effects.values()].filter(({ delivery, state }) => delivery === "once" && state === "intended")

/** Folds the parent's history up to the addressed position, and beyond it to name a position that can be forked. */
export const forkPosition = (state: LedgerState, parent: ModelBranch, at: ForkAt, digestOf: DigestOf): ForkPosition => {
  const history = historyOf(state, parent)
  let seq = at._tag === "Checkpoint" ? at.seq : undefined
  if (seq !== undefined && (seq < 1 || seq > parent.head)) return nowhere(seq)
  let first: FirstEvent | undefined
  if (at._tag === "Interrupt") {
    const opened = openedIn(history, at.interrupt)
    if (opened === undefined || opened.name !== at.name) return nowhere(parent.head)
    seq = opened.seq
    first = answerEvent(at, digestOf)
  }
  const recovery = new Recovery(parent.branch)
  let found: Omit<ForkPosition, "first" | "nearest"> | undefined
  let below: number | undefined
  let above: number | undefined
  // The activation that opened the interrupt goes on: what it withdraws itself is not open to be answered (FI).
  let asking = false
  const look = () => ({ seq: recovery.head, inFlight: onceInFlight(recovery), open: [...recovery.interrupts.keys()] })
  for (const entry of history) {
    if (at._tag === "Outcome" && found === undefined && entry.key === at.step) {
      const outcome = outcomeIn(entry)
      if (outcome !== undefined) {
        first = editedOutcome(at, outcome)
        found = look()
      }
    }
    recovery.apply(entry)
    if (found !== undefined && asking) {
      if ((entry.kind === "interrupt.closed" && entry.key === first?.key) || isTerminal(entry.kind)) {
        const withdrawn = first?.key
        found = { ...found, open: found.open.filter((id) => id !== withdrawn) }
        asking = false
      } else if (isEvent(entry.kind)) asking = false
    }
    if (entry.seq === seq) {
      found = look()
      asking = at._tag === "Interrupt"
    }
    if (recovery.ended !== undefined || onceInFlight(recovery).length > 0) continue
    if (found === undefined) below = entry.seq
    else if (entry.seq > found.seq) above ??= entry.seq
  }
  if (found === undefined) return nowhere(seq ?? parent.head + 1, first)
  return { ...found, first, nearest: { below, above } }
}

const answerEvent = (at: Extract<ForkAt, { readonly _tag: "Interrupt" }>, digestOf: DigestOf): FirstEvent => ({
  kind: "interrupt.answered",
  key: at.interrupt,
  payload: `{"value":${at.value.json},"delivery":${JSON.stringify(at.delivery)},"valueDigest":${JSON.stringify(digestOf(at.value.json))}}`,
  identity: `answer ${at.interrupt} ${at.value.json}`
})

const outcomeIn = (entry: Entry): { readonly node: string; readonly input: string } | undefined =>
  payloadIf("step.succeeded", entry) ??
  payloadIf("step.failed", entry) ??
  payloadIf("step.died", entry) ??
  payloadIf("step.interrupted", entry)

const editedOutcome = (
  at: Extract<ForkAt, { readonly _tag: "Outcome" }>,
  { node, input }: { readonly node: string; readonly input: string }
): FirstEvent => {
  const succeeded = at.outcome === "Succeeded"
  const payload =
    `{"node":${JSON.stringify(node)},"input":${JSON.stringify(input)},` +
    `"${succeeded ? "value" : "error"}":${at.json},"edited":true}`
  return {
    kind: succeeded ? "step.succeeded" : "step.failed",
    key: at.step,
    payload,
    identity: `outcome ${at.step} ${payload}`
  }
}
