/**
 * The faults: one switch per mechanism, each a failure that was seen in the field. A switch replaces what one decision, or the
 * code that carries it out, does; everything else stays as it ships.
 */
import type { PropertyId } from "../Property.js"

/** A switch. */
export interface Fault {
  readonly id: FaultId
  /** What the plane does wrong. */
  readonly what: string
  /** The properties that it breaks. */
  readonly breaks: ReadonlyArray<PropertyId>
  /** Why those and no others. */
  readonly why: string
}

/** Names of the switches. */
export type FaultId = (typeof faultIds)[number]

/** Names of the switches, in the order in which they are reported. */
export const faultIds = [
  "rerun-on-resume",
  "fork-ignored",
  "invalid-persisted",
  "double-consume",
  "order-dependent-recovery",
  "rebuild-from-initial",
  "lost-wake-up",
  "unfenced-zombie",
  "answer-reused",
  "bare-broadcast",
  "fired-before-intent",
  "outcome-before-durable",
  "parked-state-lost",
  "blind-refire",
  "reconciled-early",
  "falsy-answer-lost",
  "retry-taken-for-fork",
  "fork-taken-for-retry",
  "world-read-in-replay",
  "child-started-again"
] as const

/** Every switch, with what it breaks and why. */
export const faults: ReadonlyArray<Fault> = [
  {
    id: "rerun-on-resume",
    what: "a resumed branch runs from its start again, effects included",
    breaks: ["PC", "EO", "CO"],
    why: "recorded steps run again, so do their effects, and a recorded answer passes its gate a second time"
  },
  {
    id: "fork-ignored",
    what: "a fork is served the answer that its parent recorded",
    breaks: ["FD"],
    why: "the fork was asked for with a value and goes on with another"
  },
  {
    id: "invalid-persisted",
    what: "what fails its Schema is stored all the same",
    breaks: ["CV"],
    why: "the history holds an invalid outcome or answer; nothing is run twice for it"
  },
  {
    id: "double-consume",
    what: "the gate is checked, and then written, in two transactions",
    breaks: ["CO"],
    why: "two deliveries are told that they were accepted; the owner's own guard still passes the gate once"
  },
  {
    id: "order-dependent-recovery",
    what: "an outcome and the progress marker are separate writes, and recovery believes the marker",
    breaks: ["PC", "EO", "RD"],
    why: "which write landed decides: if the marker did not, a step with a durable outcome runs again, with its effect"
  },
  {
    id: "rebuild-from-initial",
    what: "a resumed branch runs its steps from the initial state, with effects served from their records",
    breaks: ["PC"],
    why: "steps with durable outcomes run again; no effect fires, so EO does not imply PC"
  },
  {
    id: "lost-wake-up",
    what: "a branch parks without looking at what came in meanwhile",
    breaks: ["LV"],
    why: "an accepted answer, or a finished child, waits beside a branch that sleeps on"
  },
  {
    id: "unfenced-zombie",
    what: "appends do not check who owns the branch",
    breaks: ["PC", "EO", "CO"],
    why: "a worker that lost its lease is still believed: it fires beside the new owner, passes the same gate on the same answer, and records what the new owner runs again"
  },
  {
    id: "answer-reused",
    what: "the answer to one interrupt is served to the next",
    breaks: ["CO"],
    why: "a gated step starts without a claim on its own interrupt"
  },
  {
    id: "bare-broadcast",
    what: "an answer without an address goes to every pending interrupt",
    breaks: ["CO"],
    why: "interrupts are consumed that no delivery addressed"
  },
  {
    id: "fired-before-intent",
    what: "an effect fires while its intent is still on the way to the disk",
    breaks: ["EO"],
    why: "after a crash nothing says that it may have happened, and it fires again"
  },
  {
    id: "outcome-before-durable",
    what: "effects fire on outcomes that are not durable yet",
    breaks: ["EO"],
    why: "after a crash the outcome is another, and the same key fires with another input"
  },
  {
    id: "parked-state-lost",
    what: "what a parked branch waits for lives in its worker's memory",
    breaks: ["LV"],
    why: "after a crash it waits for something that nobody can name or answer"
  },
  {
    id: "blind-refire",
    what: "a `once` effect in doubt is fired again",
    breaks: ["EO"],
    why: "the first firing had arrived"
  },
  {
    id: "reconciled-early",
    what: "the outside is asked about a firing that may still be under way",
    breaks: ["EO"],
    why: "it truly has not happened yet; then the paused worker fires, and so does its successor"
  },
  {
    id: "falsy-answer-lost",
    what: "an answer is looked for by its truthiness",
    breaks: ["LV"],
    why: "`false` was accepted, and the branch waits for an answer for ever"
  },
  {
    id: "retry-taken-for-fork",
    what: "a late retry with another value makes a branch",
    breaks: ["CO", "FI"],
    why: "nobody asked for a branch, and a delivery that lost starts a gated step on it"
  },
  {
    id: "fork-taken-for-retry",
    what: "a fork of an open interrupt answers it on its parent",
    breaks: ["FI"],
    why: "a branch was asked for and its parent went on instead; it was consumed once all the same"
  },
  {
    id: "world-read-in-replay",
    what: "a recorded outcome is read from the world again during replay",
    breaks: ["RD"],
    why: "what recovery has in hand is not what the history says; no step runs and nothing fires again for it"
  },
  {
    id: "child-started-again",
    what: "a parent whose start of a child is not recorded yet starts another",
    breaks: ["EO"],
    why: "one awaited child, two runs of it, and the effect of each"
  }
]
