/**
 * The faults that the reference plane can be given: one switch per mechanism by which a plane breaks the contract, each
 * observable from outside.
 */
import { Schema } from "effect"

export const faults = {
  /** After an answer, the steps before the gate run again. */
  rerunOnResume: "recorded steps run again when a parked run is resumed",
  /** A restarted process forgets the history of what it finds and begins anew. */
  rebuildFromInitial: "recovery begins from the initial state",
  /** A fork is taken for one more delivery to its gate. */
  forkIgnored: "a fork is judged as a retry",
  /** A fork is made, but is served what the gate was answered with before. */
  forkServesFirstAnswer: "a fork is served the answer that was recorded first",
  /** A fork runs its inherited steps again. */
  forkRerunsPrefix: "a fork runs the steps before its checkpoint again",
  /** What breaks its Schema is stored all the same. */
  invalidPersisted: "state is stored without a look at its Schema",
  /** Answers are stored without a look at their Schema. */
  invalidAnswerAccepted: "answers are taken without a look at their Schema",
  /** Damage to what is stored is not noticed. */
  unverifiedRead: "what is read back is not verified",
  /** The gate is looked at first and claimed later. */
  doubleConsume: "check-then-act: racing deliveries each consume the gate",
  /** The same delivery again is served again. */
  duplicateServedAgain: "a delivery that comes twice is served twice",
  /** The answer to one gate passes the next, too. */
  answerReused: "an answer is used again for the next gate",
  /** One answer passes every open gate. */
  answerBroadcast: "an answer is given to all open gates",
  /** `false`, `0`, `""` and `null` are taken for no answer. */
  falsyIgnored: "an answer's presence is tested by truthiness",
  /** Lanes' results are put together in the order in which they were stored. */
  orderDependentRecovery: "recovery goes by the order of unordered writes",
  /** Parking does not look for what came in meanwhile. */
  lostWakeUp: "an answer that comes while the run is busy wakes nobody",
  /** A run that waits is in memory only. */
  parkedStateLost: "the state of a parked run is lost in a crash",
  /** A run that is stuck does not say so. */
  unnamedWait: "inspection does not say what a run waits for",
  /** An owner that was replaced may still write, and goes on. */
  unfencedZombie: "an owner that was replaced goes on",
  /** An effect fires before its intent is durable. */
  effectBeforeIntent: "an effect fires before its intent is durable",
  /** An effect fires before the outcomes that it depends on are durable. */
  outcomeBeforeDurable: "an outcome reaches the outside before it is durable",
  /** A `once` effect in doubt is fired again, without asking. */
  blindRetry: "an effect in doubt is fired again",
  /** A delivery that says nothing of its intent is taken for a retry. */
  intentDefaulted: "a delivery without intent is taken for a retry",
  /** A second answer to a gate makes a branch that nobody asked for. */
  retryForks: "a second delivery becomes a branch"
} as const

export type Fault = keyof typeof faults

/** All faults, in the order in which they are reported. */
export const allFaults = Object.keys(faults) as ReadonlyArray<Fault>

// The keys of a constant record, which has at least one.
export const Fault = Schema.Literal(...(allFaults as [Fault, ...Array<Fault>]))
