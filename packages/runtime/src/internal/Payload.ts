/**
 * Drafts of journal entries. Encoded values are spliced in as text: they were made by a codec, and are not parsed and
 * written a second time.
 */
import { hash } from "node:crypto"
import { Defect, type EffectIdentity, type EntryDraft, type RecordedTry, type TaskFacts } from "@fermata/contract"

/** SHA-256 of a text, base64url. */
export const digest = (text: string): string => hash("sha256", text, "base64url")

const quote = JSON.stringify

/** A defect as text. Total: what cannot be encoded has a substitute. */
const defectText = (thrown: unknown): string => JSON.stringify(Defect.encode(thrown))

/** Fields of an object's text, without its closing brace. */
const open = (fields: object): string => JSON.stringify(fields).slice(0, -1)

const identityOf = (recorded: RecordedTry): EffectIdentity => ({
  step: recorded.step,
  position: recorded.position,
  try: recorded.try,
  attempt: recorded.attempt,
  effect: recorded.effect,
  delivery: recorded.delivery,
  input: recorded.input
})

/** Encoded JSON that was parsed, as text again. */
const textOf = (json: unknown): string => JSON.stringify(json)

export const draft = {
  stepSucceeded: (key: string, node: string, input: string, value: string): EntryDraft => ({
    kind: "step.succeeded",
    key,
    payload: `{"node":${quote(node)},"input":"${input}","value":${value}}`
  }),
  stepFailed: (key: string, node: string, input: string, error: string): EntryDraft => ({
    kind: "step.failed",
    key,
    payload: `{"node":${quote(node)},"input":"${input}","error":${error}}`
  }),
  stepDied: (key: string, node: string, input: string, defect: unknown): EntryDraft => ({
    kind: "step.died",
    key,
    payload: `{"node":${quote(node)},"input":"${input}","defect":${defectText(defect)}}`
  }),
  stepInterrupted: (key: string, node: string, input: string): EntryDraft => ({
    kind: "step.interrupted",
    key,
    payload: `{"node":${quote(node)},"input":"${input}"}`
  }),
  stepRetried: (key: string, node: string, attempt: number, error: string, due: number): EntryDraft => ({
    kind: "step.retried",
    key,
    payload: `{"node":${quote(node)},"attempt":${attempt},"error":${error},"due":${due}}`
  }),
  effectIntended: (
    key: string,
    identity: EffectIdentity,
    value: string,
    worker: string,
    limits: { readonly fireBefore: number; readonly timeLimit: number } | undefined
  ): EntryDraft => ({
    kind: "effect.intended",
    key,
    payload: `${open({ ...identity, worker, ...limits })},"value":${value}}`
  }),
  effectSucceeded: (
    key: string,
    identity: EffectIdentity,
    value: string,
    by: "handler" | "reconcile" | "transaction"
  ): EntryDraft => ({
    kind: "effect.succeeded",
    key,
    payload: `${open({ ...identity, by })},"value":${value}}`
  }),
  effectFailed: (
    key: string,
    identity: EffectIdentity,
    error: string,
    by: "handler" | "reconcile" | "transaction"
  ): EntryDraft => ({
    kind: "effect.failed",
    key,
    payload: `${open({ ...identity, by })},"error":${error}}`
  }),
  effectVoided: (key: string, identity: EffectIdentity, by: "reconcile" | "owner"): EntryDraft => ({
    kind: "effect.voided",
    key,
    payload: JSON.stringify({ ...identity, by })
  }),
  effectRefused: (key: string, identity: EffectIdentity, issue: string): EntryDraft => ({
    kind: "effect.refused",
    key,
    payload: JSON.stringify({ ...identity, issue })
  }),
  /** An operator's settlement, moved from the inbox. */
  settled: (
    recorded: RecordedTry,
    settlement: { readonly settlement: "Succeeded" | "Failed" | "DidNotHappen"; readonly value?: unknown },
    inbox: number
  ): EntryDraft => {
    const head = { ...identityOf(recorded), by: "operator", inbox }
    switch (settlement.settlement) {
      case "Succeeded":
        return {
          kind: "effect.succeeded",
          key: recorded.key,
          payload: `${open(head)},"value":${textOf(settlement.value)}}`
        }
      case "Failed":
        return {
          kind: "effect.failed",
          key: recorded.key,
          payload: `${open(head)},"error":${textOf(settlement.value)}}`
        }
      case "DidNotHappen":
        return { kind: "effect.voided", key: recorded.key, payload: JSON.stringify(head) }
    }
  },
  interruptOpened: (key: string, name: string, payload: string, task?: TaskFacts): EntryDraft => ({
    kind: "interrupt.opened",
    key,
    payload: `{"name":${quote(name)},"payload":${payload}${task === undefined ? "" : `,"task":${JSON.stringify(task)}`}}`
  }),
  interruptExpired: (key: string, deadline: number): EntryDraft => ({
    kind: "interrupt.expired",
    key,
    payload: JSON.stringify({ deadline })
  }),
  /** A signal or an update, moved from the inbox. */
  messageReceived: (
    kind: "signal" | "update",
    key: string,
    { message, name, value }: { readonly name: string; readonly message: string; readonly value: unknown },
    inbox: number
  ): EntryDraft => ({
    kind: `${kind}.received`,
    key,
    payload: `{"name":${quote(name)},"message":${quote(message)},"inbox":${inbox},"value":${textOf(value)}}`
  }),
  updateReplied: (key: string, name: string, outcome: "value" | "error", text: string): EntryDraft => ({
    kind: "update.replied",
    key,
    payload: `{"name":${quote(name)},"${outcome}":${text}}`
  }),
  updateDied: (key: string, name: string, defect: unknown): EntryDraft => ({
    kind: "update.replied",
    key,
    payload: `{"name":${quote(name)},"defect":${defectText(defect)}}`
  }),
  updateRejected: (key: string, name: string, reason: string): EntryDraft => ({
    kind: "update.rejected",
    key,
    payload: JSON.stringify({ name, reason })
  }),
  viewPublished: (key: string, value: string): EntryDraft => ({
    kind: "view.published",
    key,
    payload: `{"value":${value}}`
  }),
  tagsSet: (tags: Readonly<Record<string, string | number>>): EntryDraft => ({
    kind: "tags.set",
    key: "",
    payload: JSON.stringify({ tags })
  }),
  interruptClosed: (key: string): EntryDraft => ({
    kind: "interrupt.closed",
    key,
    payload: `{"reason":"withdrawn"}`
  }),
  interruptAnswered: (
    answer: {
      readonly interrupt: string
      readonly delivery: string
      readonly value: unknown
      readonly valueDigest: string
    },
    inbox: number
  ): EntryDraft => ({
    kind: "interrupt.answered",
    key: answer.interrupt,
    payload: `{"delivery":${quote(answer.delivery)},"valueDigest":${quote(answer.valueDigest)},"inbox":${inbox},"value":${textOf(answer.value)}}`
  }),
  timerStarted: (key: string, due: number): EntryDraft => ({ kind: "timer.started", key, payload: `{"due":${due}}` }),
  patchTaken: (id: string): EntryDraft => ({ kind: "patch.taken", key: id, payload: "{}" }),
  loopSnapshot: (
    key: string,
    iteration: number,
    at: number,
    own: ReadonlyArray<number>,
    state: string
  ): EntryDraft => ({
    kind: "loop.snapshot",
    key,
    payload: `{"iteration":${iteration},"at":${at}${own.length === 0 ? "" : `,"own":[${own.join(",")}]`},"state":${state}}`
  }),
  timerFired: (key: string): EntryDraft => ({ kind: "timer.fired", key, payload: "{}" }),
  cancelRequested: (reason: string | null, inbox: number): EntryDraft => ({
    kind: "cancel.requested",
    key: "cancel",
    payload: JSON.stringify({ reason, inbox })
  }),
  unserved: (key: string, inbox: number, reason: string): EntryDraft => ({
    kind: "inbox.unserved",
    key,
    payload: JSON.stringify({ inbox, reason })
  }),
  completed: (value: string): EntryDraft => ({ kind: "run.completed", key: "", payload: `{"value":${value}}` }),
  failed: (error: string): EntryDraft => ({ kind: "run.failed", key: "", payload: `{"error":${error}}` }),
  died: (defect: unknown): EntryDraft => ({ kind: "run.died", key: "", payload: `{"defect":${defectText(defect)}}` }),
  cancelled: (reason: string | null): EntryDraft => ({
    kind: "run.cancelled",
    key: "",
    payload: JSON.stringify({ reason })
  })
}

/** An identity for one try of a step's effect. */
export const identity = (
  step: string,
  position: string,
  attemptAt: number,
  attempt: number,
  effect: string,
  delivery: EffectIdentity["delivery"],
  input: string
): EffectIdentity => ({ step, position, try: attemptAt, attempt, effect, delivery, input })
