/** Mutants of the fold of a history: what recovery knows. */
import { mutantsOf } from "./Mutant.js"

/** Mutants of `Recovery`. */
export const recoveryMutants = mutantsOf("Recovery", [
  [`this.at = entry.at`, `this.at = Math.max(this.at, entry.at)`, "the time is not that of the last entry"],
  [`case "step.died":`, ``, "PC: a step that died runs on in memory"],
  [`case "step.interrupted": {`, `case "step.succeeded": {`, "a step that was interrupted is never forgotten"],
  [`step.attempts = payload.attempt`, `step.attempts += 1`, "a failed attempt that was pruned is not counted"],
  [`step.retryAt = payload.due`, `step.retryAt ??= payload.due`, "the second pause is as long as the first"],
  [
    `...(payload.fireBefore === undefined ? {} : { fireBefore: payload.fireBefore }),`,
    ``,
    "EO: nobody knows until when a zombie may fire"
  ],
  [
    `...(payload.timeLimit === undefined ? {} : { timeLimit: payload.timeLimit })`,
    ``,
    "EO: nobody knows how long a firing may last"
  ],
  [
    `{ state: "succeeded", outcome: payload.value }`,
    `{ state: "succeeded", outcome: payload.value || undefined }`,
    "PC: a falsy outcome is lost"
  ],
  [
    `{ state: "failed", outcome: payload.error }`,
    `{ state: "succeeded", outcome: payload.error }`,
    "a failure is a success"
  ],
  [
    `this.record(entry, payload, { state: "voided" })`,
    `this.record(entry, payload, { state: "failed" })`,
    "void is failure"
  ],
  [`{ state: "refused" })`, `{ state: "succeeded" })`, "CV: a refused outcome is served"],
  [
    `this.seeInbox(entry, payload.inbox)
        this.record(entry, payload, { state: "voided" })`,
    `this.record(entry, payload, { state: "voided" })`,
    "LV: a settlement is moved into the journal again and again"
  ],
  [
    `this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)
        this.interrupts.delete(entry.key)`,
    `this.interrupts.delete(entry.key)`,
    "CO: an answer is moved into the journal twice"
  ],
  [
    `.inbox)
        this.interrupts.delete(entry.key)
        return`,
    `.inbox)
        return`,
    "CO: a question stays open after its answer"
  ],
  [
    `case "interrupt.closed":
      case "interrupt.expired":
        this.interrupts.delete(entry.key)`,
    `case "interrupt.closed":
      case "interrupt.expired":`,
    "a withdrawn question stays open"
  ],
  [`openedSeq: entry.seq,`, `openedSeq: entry.seq - 1,`, "a question's checkpoint is before it was asked"],
  [`this.timers.delete(entry.key)`, `void entry.key`, "RD: a timer fires on every recovery"],
  [
    `case "cancel.requested":
        this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)`,
    `case "cancel.requested":`,
    "a cancel is moved into the journal twice"
  ],
  [`this.cancelRequested = true`, `this.cancelRequested = entry.branch === this.branch`, "a fork forgets the cancel"],
  [
    `case "inbox.unserved":
        this.seeInbox(entry, payloadOf({ kind: entry.kind, payload: entry.payload }).inbox)`,
    `case "inbox.unserved":`,
    "LV: what came too late is moved again and again, and what follows it never"
  ],
  [`case "run.died":`, ``, "LV: a run that died goes on"],
  [`case "run.cancelled":`, ``, "LV: a cancelled run goes on"],
  [`this.ended = entry`, `this.ended ??= entry`, "the end is not the last one"],
  [
    `inbox !== undefined && entry.branch === this.branch`,
    `inbox !== undefined`,
    "LV: a fork overlooks what came into its own inbox"
  ],
  [`Math.max(this.inboxSeen, inbox)`, `inbox`, "RD: what was seen depends on the order of the last two moves"],
  [`writesIntent(identity.delivery) && `, ``, "PC: the outcome of an effect without an intent is lost"],
  [
    `if (change.state !== "intended" && writesIntent(identity.delivery) && !this.effects.has(entry.key)) return`,
    ``,
    "memory grows with outcomes that come after their step ended"
  ],
  [`recorded.key === entry.key`, `recorded.attempt === identity.attempt`, "two tries of one attempt are one"],
  [`...known,`, ``, "an outcome forgets the input that its intent recorded"],
  [
    `intentSeq: change.state === "intended" ? entry.seq : known?.intentSeq`,
    `intentSeq: entry.seq`,
    "when it was meant"
  ],
  [
    `outcomeSeq: change.state === "intended" ? undefined : entry.seq`,
    `outcomeSeq: entry.seq`,
    "an intent is an outcome"
  ],
  [
    `this.effects.set(entry.key, next)`,
    `if (index < 0) this.effects.set(entry.key, next)`,
    "EO: outcomes are not known by key"
  ],
  [
    `const step = this.steps.get(key)
    if (step === undefined) return
    for (const tries of step.effects.values()) for (const recorded of tries) this.effects.delete(recorded.key)
    this.steps.delete(key)`,
    `this.steps.delete(key)`,
    "memory grows with races that were lost"
  ],
  [`t.state === "intended" && isUninterruptible`, `isUninterruptible`, "LV: an interruption waits for what is over"],
  [` && isUninterruptible(t.delivery)`, ``, "an interruption waits for what may be abandoned"],
  [
    `&& isUninterruptible(t.delivery)`,
    `&& !isUninterruptible(t.delivery)`,
    "EO: a once effect is abandoned while it fires"
  ]
])
