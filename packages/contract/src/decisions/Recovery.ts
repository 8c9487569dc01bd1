/**
 * What does recovery do with a history? (PC, RD)
 *
 * A fold over entries, the same while replaying and while running live: after each entry it knows which steps have
 * an outcome, what is recorded of every effect, which interrupts are open, which timers are set and how the branch
 * ended. Nothing but entries goes in, so nothing but the durable history can decide.
 */
import type { BranchId } from "../Ids.js"
import { isUninterruptible, writesIntent } from "../Delivery.js"
import { type Entry, type EffectIdentity, payloadOf } from "../Entry.js"
import type { EffectTry } from "./admitFiring.js"

/** A recorded try together with what serving, firing again or reconciling it needs. */
export interface RecordedTry extends EffectTry {
  readonly step: string
  readonly position: string
  /** The encoded input (intents only). */
  readonly value?: unknown
  /** The encoded outcome: success value or error. */
  readonly outcome?: unknown
  readonly worker?: string
  readonly fireBefore?: number
  readonly timeLimit?: number
  /** Position of the entry that wrote the intent; `undefined` if the policy writes none. */
  readonly intentSeq: number | undefined
  /** Position of the entry that closed it. */
  readonly outcomeSeq: number | undefined
}

export interface StepRecord {
  /** Position → tries, in order of `try`. */
  readonly effects: Map<string, Array<RecordedTry>>
  /** Failed attempts so far. */
  attempts: number
  /** Ledger time before which the next attempt does not start. */
  retryAt: number | undefined
}

export interface InterruptRecord {
  readonly name: string
  readonly openedSeq: number
  /** Ledger milliseconds; `undefined` if it may be answered at any time. */
  readonly deadline: number | undefined
  state: "open" | "answered" | "closed"
}

/** A signal or an update that the workflow has not taken yet. */
export interface ReceivedMessage {
  /** Position of the entry that brought it. */
  readonly seq: number
  readonly message: string
  readonly value: unknown
}

/** Where signals or updates of one name queue up. */
export const messageChannel = (kind: "signal" | "update", name: string): string => `${kind}:${name}`

/** What a history says so far. */
export class Recovery {
  head = 0
  at = 0
  /** Highest inbox position whose row was moved into this branch's own journal. */
  inboxSeen = 0
  readonly steps = new Map<string, StepRecord>()
  /** EffectKey → the try it names. */
  readonly effects = new Map<string, RecordedTry>()
  readonly interrupts = new Map<string, InterruptRecord>()
  /** TimerId → due time (ledger milliseconds), for timers that have not fired. */
  readonly timers = new Map<string, number>()
  /** Channel → what came and was not taken, in order of coming. */
  readonly messages = new Map<string, Array<ReceivedMessage>>()
  cancelRequested = false
  ended: Entry | undefined = undefined

  /** `branch` is the branch being recovered: inherited entries do not count its inbox. */
  constructor(readonly branch: BranchId) {}

  static of(branch: BranchId, history: Iterable<Entry>): Recovery {
    const recovery = new Recovery(branch)
    for (const entry of history) recovery.apply(entry)
    return recovery
  }

  /** Folds one entry in. Total: kinds that say nothing here are passed over. */
  apply(entry: Entry): void {
    this.head = entry.seq
    this.at = entry.at
    switch (entry.kind) {
      case "step.succeeded":
      case "step.failed":
      case "step.died":
      case "step.interrupted": {
        // A step that ended needs nothing of its record but that it ended: memory does not grow with the history.
        const step = this.steps.get(entry.key)
        if (step !== undefined) {
          for (const tries of step.effects.values()) for (const recorded of tries) this.effects.delete(recorded.key)
          this.steps.delete(entry.key)
        }
        return
      }
      case "step.retried": {
        const payload = payloadOf({ kind: entry.kind, payload: entry.payload })
        const step = this.step(entry.key)
        step.attempts = payload.attempt
        step.retryAt = payload.due
        return
      }
      case "effect.intended": {
        const payload = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.record(entry, payload, {
          state: "intended",
          value: payload.value,
          worker: payload.worker,
          ...(payload.fireBefore === undefined ? {} : { fireBefore: payload.fireBefore }),
          ...(payload.timeLimit === undefined ? {} : { timeLimit: payload.timeLimit })
        })
        return
      }
      case "effect.succeeded": {
        const payload = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.seeInbox(entry, payload.inbox)
        this.record(entry, payload, { state: "succeeded", outcome: payload.value })
        return
      }
      case "effect.failed": {
        const payload = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.seeInbox(entry, payload.inbox)
        this.record(entry, payload, { state: "failed", outcome: payload.error })
        return
      }
      case "effect.voided": {
        const payload = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.seeInbox(entry, payload.inbox)
        this.record(entry, payload, { state: "voided" })
        return
      }
      case "effect.refused":
        this.record(entry, payloadOf({ kind: entry.kind, payload: entry.payload }), { state: "refused" })
        return
      case "interrupt.opened":
        {
          const { name, task } = payloadOf({ kind: entry.kind, payload: entry.payload })
          this.interrupts.set(entry.key, { name, openedSeq: entry.seq, deadline: task?.deadline, state: "open" })
        }
        return
      case "interrupt.answered": {
        this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)
        this.interrupts.delete(entry.key)
        return
      }
      case "interrupt.closed":
      case "interrupt.expired":
        this.interrupts.delete(entry.key)
        return
      case "timer.started":
        this.timers.set(entry.key, payloadOf({ kind: entry.kind, payload: entry.payload }).due)
        return
      case "loop.snapshot":
        this.dropWithin(`${entry.key}/`)
        return
      case "timer.fired":
        this.timers.delete(entry.key)
        return
      case "cancel.requested":
        this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)
        this.cancelRequested = true
        return
      case "signal.received":
      case "update.received": {
        const { inbox, message, name, value } = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.seeInbox(entry, inbox)
        const channel = messageChannel(entry.kind === "signal.received" ? "signal" : "update", name)
        const received = { seq: entry.seq, message, value }
        const queued = this.messages.get(channel)
        if (queued === undefined) this.messages.set(channel, [received])
        else queued.push(received)
        return
      }
      case "inbox.unserved":
        this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)
        return
      case "run.completed":
      case "run.failed":
      case "run.died":
      case "run.cancelled":
        this.ended = entry
        return
      case "run.started":
      case "update.replied":
      case "update.rejected":
      case "view.published":
      case "tags.set":
        return
    }
  }

  /** Takes the oldest message of a channel that was not taken yet: what is taken is gone, so memory does not grow. */
  takeMessage(channel: string): ReceivedMessage | undefined {
    const queued = this.messages.get(channel)
    const message = queued?.shift()
    if (queued?.length === 0) this.messages.delete(channel)
    return message
  }

  /** Passes over an entry that a loop's snapshot replaces: of all that it says only its place in the inbox counts. */
  pass(entry: Entry): void {
    if (!entry.payload.includes('"inbox":')) return
    const { inbox } = JSON.parse(entry.payload) as { readonly inbox?: unknown }
    if (typeof inbox === "number") this.seeInbox(entry, inbox)
  }

  /** A snapshot replaces what its loop's iterations left behind: memory does not grow with them. */
  private dropWithin(scope: string): void {
    for (const key of this.steps.keys()) if (key.startsWith(scope)) this.forgetStep(key)
    for (const key of this.interrupts.keys()) if (key.startsWith(scope)) this.interrupts.delete(key)
    for (const key of this.timers.keys()) if (key.startsWith(scope)) this.timers.delete(key)
  }

  /** The record of a step, created when first asked for. */
  step(key: string): StepRecord {
    let step = this.steps.get(key)
    if (step === undefined) {
      step = { effects: new Map(), attempts: 0, retryAt: undefined }
      this.steps.set(key, step)
    }
    return step
  }

  /** Drops the record of a step that nobody waits for any more: memory does not grow with races that were lost. */
  forgetStep(key: string): void {
    const step = this.steps.get(key)
    if (step === undefined) return
    for (const tries of step.effects.values()) for (const recorded of tries) this.effects.delete(recorded.key)
    this.steps.delete(key)
  }

  /** Effects with an intent and no outcome whose interruption must wait for the outcome. */
  firing(step: string): ReadonlyArray<RecordedTry> {
    const record = this.steps.get(step)
    if (record === undefined) return []
    return [...record.effects.values()].flat().filter((t) => t.state === "intended" && isUninterruptible(t.delivery))
  }

  private seeInbox(entry: Entry, inbox: number | undefined): void {
    if (inbox !== undefined && entry.branch === this.branch) this.inboxSeen = Math.max(this.inboxSeen, inbox)
  }

  private record(
    entry: Entry,
    identity: EffectIdentity,
    change: Pick<RecordedTry, "state"> & Partial<RecordedTry>
  ): void {
    // An outcome whose intent is not remembered came after its step ended (an abandoned firing): nothing waits for it,
    // and remembering it would let memory grow with the history.
    if (change.state !== "intended" && writesIntent(identity.delivery) && !this.effects.has(entry.key)) return
    const step = this.step(identity.step)
    let tries = step.effects.get(identity.position)
    if (tries === undefined) step.effects.set(identity.position, (tries = []))
    const index = tries.findIndex((recorded) => recorded.key === entry.key)
    const known = index < 0 ? undefined : tries[index]
    const next: RecordedTry = {
      ...known,
      key: entry.key,
      step: identity.step,
      position: identity.position,
      try: identity.try,
      attempt: identity.attempt,
      effect: identity.effect,
      delivery: identity.delivery,
      input: identity.input,
      intentSeq: change.state === "intended" ? entry.seq : known?.intentSeq,
      outcomeSeq: change.state === "intended" ? undefined : entry.seq,
      ...change
    }
    if (index < 0) tries.push(next)
    else tries[index] = next
    this.effects.set(entry.key, next)
  }
}
