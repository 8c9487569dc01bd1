/** What comes from outside to the reference plane, judged by the contract's decision functions. */
import { admitCancel } from "../../decisions/admitCancel.js"
import { admitFork } from "../../decisions/admitFork.js"
import { admitSettlement } from "../../decisions/admitSettlement.js"
import { type DeliveryFacts, judgeDelivery, type ValueCheck } from "../../decisions/judgeDelivery.js"
import { ForkId, forkBranch, RunId } from "../../Ids.js"
import type { AnswerType, Step } from "../CanonicalWorkflow.js"
import type { Receipt, Request } from "../Plane.js"
import { answeredBy, isOver } from "./Entries.js"
import type { Fault } from "./Fault.js"
import * as Store from "./Store.js"

const refused = (reason: string): Receipt => ({ outcome: "refused", reason, branch: null })

const check = (type: AnswerType, value: unknown, faults: ReadonlySet<Fault>): ValueCheck => {
  const valid = type === "any" || faults.has("invalidAnswerAccepted") || typeof value === type
  return valid ? { _tag: "Valid", digest: Store.digestOf(value) } : { _tag: "Invalid" }
}

/** The answers that a gate takes; `undefined` if the workflow has no such gate. */
const answerType = (steps: ReadonlyArray<Step>, gate: string): AnswerType | undefined => {
  for (const step of steps) {
    const found =
      step.do === "gate"
        ? step.name === gate.split("@")[0]
          ? step.answer
          : undefined
        : step.do === "parallel"
          ? step.lanes.map((lane) => answerType(lane, gate)).find((type) => type !== undefined)
          : step.do === "nested" || step.do === "loop"
            ? answerType(step.steps, gate)
            : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** What is known of a delivery's gate, at one moment. */
interface Facts {
  readonly branch: Store.Branch | undefined
  readonly facts: DeliveryFacts
  readonly value: ValueCheck
}

/** Looks; nothing is changed. */
export const look = (store: Store.Store, request: Request<"resume">, faults: ReadonlySet<Fault>): Facts => {
  const branch = store.branches.get(request.branch)
  const run = branch === undefined ? undefined : store.runs.get(branch.run)
  if (branch === undefined || run === undefined) {
    const interrupt = { _tag: "Unknown" } as const
    const facts: DeliveryFacts = { run: "unknown", over: false, interrupt, deliveryUse: undefined }
    return { branch: undefined, value: check("any", request.value, faults), facts }
  }
  const history = Store.historyOf(store, branch)
  const { answers, recovery } = Store.viewOf(branch, history)
  const rows = branch.inbox.filter((row) => row.kind === "answer")
  const answered = answers.get(request.interrupt)
  const row = rows.find(({ interrupt }) => interrupt === request.interrupt)
  const interrupt: DeliveryFacts["interrupt"] =
    answered !== undefined
      ? { _tag: "Consumed", delivery: answered.delivery, valueDigest: answered.digest }
      : row !== undefined
        ? { _tag: "Consumed", delivery: row.delivery, valueDigest: Store.digestOf(row.value) }
        : recovery.interrupts.has(request.interrupt)
          ? { _tag: "Open" }
          : { _tag: "Unknown" }
  const use = rows.find(({ delivery }) => delivery === request.deliveryId)
  return {
    branch,
    value: check(answerType(run.workflow.steps, request.interrupt) ?? "any", request.value, faults),
    facts: {
      run: "known",
      over: isOver(history),
      interrupt,
      deliveryUse: use === undefined ? undefined : { interrupt: use.interrupt, valueDigest: Store.digestOf(use.value) }
    }
  }
}

/** Judges what was looked at and does it. */
export const deliver = (
  store: Store.Store,
  request: Request<"resume">,
  { branch, facts, value }: Facts,
  faults: ReadonlySet<Fault>
): Receipt => {
  const verdict = judgeDelivery(facts, { interrupt: request.interrupt, delivery: request.deliveryId, value })
  if (verdict._tag === "Accepted" && branch !== undefined) {
    // Only with a fault can the gate have been consumed since it was looked at.
    const consumed = branch.inbox.some((row) => row.kind === "answer" && row.interrupt === request.interrupt)
    accept(store, branch, request, faults)
    if (consumed) serveAgain(store, branch, request)
    return { outcome: "accepted", reason: "Accepted", branch: null }
  }
  if (verdict._tag === "Duplicate" && branch !== undefined) {
    if (faults.has("duplicateServedAgain")) serveAgain(store, branch, request)
    return { outcome: "duplicate", reason: "Duplicate", branch: null }
  }
  if (verdict._tag === "AlreadyConsumed" && faults.has("retryForks")) {
    const made = fork(store, { ...request, forkId: `again-${request.deliveryId}` }, faults)
    if (made.outcome === "forked") return made
  }
  return refused(verdict._tag)
}

const accept = (
  store: Store.Store,
  branch: Store.Branch,
  { deliveryId, interrupt, value }: Request<"resume">,
  faults: ReadonlySet<Fault>
): void => {
  const { recovery } = Store.viewOf(branch, Store.historyOf(store, branch))
  const gates = faults.has("answerBroadcast") ? [...recovery.interrupts.keys()] : [interrupt]
  for (const gate of gates) {
    const pos = branch.inbox.length + 1
    branch.inbox = [...branch.inbox, { kind: "answer", pos, interrupt: gate, delivery: deliveryId, value }]
  }
  wake(branch, true)
  Store.announce(store)
}

/** LV: in the same change as what was accepted. */
const wake = (branch: Store.Branch, resumed: boolean): void => {
  if (branch.status !== "waiting" && branch.status !== "stuck") return
  branch.status = "ready"
  branch.problem = undefined
  branch.doubt = undefined
  branch.resumed = resumed
}

/** Faults only: what was behind the gate happens once more, with this answer. */
const serveAgain = (
  store: Store.Store,
  branch: Store.Branch,
  { deliveryId, interrupt, value }: Request<"resume">
): void => {
  const gate = branch.entries.findIndex(({ key, kind }) => kind === "interrupt.opened" && key === interrupt)
  const before = branch.entries.slice(0, gate + 1)
  branch.epoch += 1
  branch.entries = [
    ...before,
    ...Store.chain(branch.id, branch.epoch, before.at(-1), [answeredBy(interrupt, value, deliveryId)])
  ]
  branch.owner = undefined
  branch.status = "ready"
  Store.announce(store)
}

/** FI: a fork is a request of its own. */
export const fork = (store: Store.Store, request: Request<"resume">, faults: ReadonlySet<Fault>): Receipt => {
  const { branch: parent, value } = look(store, request, faults)
  const run = parent === undefined ? undefined : store.runs.get(parent.run)
  if (parent === undefined || run === undefined) return refused("UnknownInterrupt")
  if (request.forkId === null) return refused("ForkIdMissing")
  const history = Store.historyOf(store, parent)
  const opened = history.find(({ key, kind }) => kind === "interrupt.opened" && key === request.interrupt)
  if (opened === undefined) return refused("UnknownInterrupt")
  const { answers, recovery } = Store.viewOf(
    parent,
    history.filter(({ seq }) => seq <= opened.seq)
  )
  const id = forkBranch(RunId.make(parent.run), ForkId.make(request.forkId))
  const existing = store.branches.get(id)
  const first = existing?.entries[0]
  const served = faults.has("forkServesFirstAnswer")
    ? (Store.viewOf(parent, history).answers.get(request.interrupt)?.value ?? request.value)
    : request.value
  const event = answeredBy(request.interrupt, served, request.deliveryId)
  const verdict = admitFork(
    {
      run: "known",
      existing:
        existing?.parent === undefined || first === undefined
          ? undefined
          : { parent: existing.parent.branch, seq: existing.parent.seq, firstDigest: Store.digestOf(first.payload) },
      head: history.at(-1)?.seq,
      anchor: 0,
      inFlight: [...recovery.effects.values()]
        .filter(({ delivery, state }) => delivery === "once" && state === "intended")
        .map(({ key, step }) => ({ key, step })),
      nearest: { below: undefined, above: undefined },
      interruptOpen: !answers.has(request.interrupt)
    },
    {
      parent: parent.id,
      seq: opened.seq,
      firstDigest: Store.digestOf(event.payload),
      settlesStep: undefined,
      valueValid: value._tag === "Valid"
    }
  )
  switch (verdict._tag) {
    case "Existing":
      return { outcome: "forked", reason: "Existing", branch: id }
    case "Fork":
      Store.addBranch(
        store,
        RunId.make(parent.run),
        id,
        { branch: parent.id, seq: opened.seq },
        Store.chain(id, 0, opened, [event])
      )
      Store.announce(store)
      return { outcome: "forked", reason: "Fork", branch: id }
    default:
      return refused(verdict._tag)
  }
}

export const cancel = (store: Store.Store, branch: Store.Branch): boolean => {
  const requested = branch.inbox.some(({ kind }) => kind === "cancel")
  const verdict = admitCancel({ run: "known", over: isOver(Store.historyOf(store, branch)), requested })
  if (verdict._tag !== "Accepted") return verdict._tag === "Duplicate"
  branch.inbox = [...branch.inbox, { kind: "cancel", pos: branch.inbox.length + 1 }]
  wake(branch, false)
  Store.announce(store)
  return true
}

export const settle = (store: Store.Store, branch: Store.Branch, request: Request<"settle">): boolean => {
  const { recovery } = Store.viewOf(branch, Store.historyOf(store, branch))
  const digest = Store.digestOf([request.happened, request.value])
  const accepted = branch.inbox.find((row) => row.kind === "settlement" && row.key === request.key)
  const verdict = admitSettlement(
    {
      run: "known",
      over: recovery.ended !== undefined,
      owned: branch.owner !== undefined,
      effect: recovery.effects.get(request.key),
      accepted:
        accepted?.kind === "settlement" ? { digest: Store.digestOf([accepted.happened, accepted.value]) } : undefined
    },
    { digest, valid: true }
  )
  if (verdict._tag !== "Accepted") return verdict._tag === "Duplicate"
  const { happened, key, value } = request
  branch.inbox = [...branch.inbox, { kind: "settlement", pos: branch.inbox.length + 1, key, happened, value }]
  wake(branch, false)
  Store.announce(store)
  return true
}
