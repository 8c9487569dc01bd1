/**
 * Why a branch is stuck. Stuck is not failed: its history is as it was, and it goes on from there once a corrected
 * deployment or an operator helps.
 */
import { Schema } from "effect"

const branchSeq = { seq: Schema.Number }

/** The workflow awaited something that is not journaled: a bare promise, a timer of another clock, nothing at all. */
export const UndeclaredAsync = Schema.TaggedStruct("UndeclaredAsync", { ...branchSeq, message: Schema.String })

/** The code asks for something else than what the history has. */
export const NonDeterminism = Schema.TaggedStruct("NonDeterminism", {
  ...branchSeq,
  history: Schema.String,
  code: Schema.String,
  message: Schema.String
})

/** An iteration of a loop ended, and a fiber, step, interrupt or timer that it began had not. */
export const IterationOutlived = Schema.TaggedStruct("IterationOutlived", {
  ...branchSeq,
  loop: Schema.String,
  iteration: Schema.Number,
  by: Schema.Array(Schema.String),
  message: Schema.String
})

/** One activation did more than the limit of work without waiting for anything. */
export const Runaway = Schema.TaggedStruct("Runaway", { ...branchSeq, message: Schema.String })

/** The outcome of a `once` effect (or of one that kept failing in doubt) is not known. `client.settle` decides it. */
export const InDoubt = Schema.TaggedStruct("InDoubt", {
  step: Schema.String,
  effect: Schema.String,
  key: Schema.String,
  message: Schema.String
})

/** The body of a step, run again, performs something other than what its history recorded. */
export const EffectInputChanged = Schema.TaggedStruct("EffectInputChanged", {
  step: Schema.String,
  effect: Schema.String,
  key: Schema.String,
  differs: Schema.String,
  message: Schema.String
})

/** An effect happened but its outcome was refused by its Schema. `client.settle` gives it one that is accepted. */
export const EffectValueRefused = Schema.TaggedStruct("EffectValueRefused", {
  step: Schema.String,
  effect: Schema.String,
  key: Schema.String,
  issue: Schema.String,
  message: Schema.String
})

/** A node's body performed an effect that it does not declare, or two at once without keys of their own. */
export const BadEffect = Schema.TaggedStruct("BadEffect", {
  step: Schema.String,
  effect: Schema.String,
  message: Schema.String
})

/** A recorded value does not satisfy the Schema that the code has now. */
export const ValueUnreadable = Schema.TaggedStruct("ValueUnreadable", {
  ...branchSeq,
  what: Schema.String,
  message: Schema.String
})

/** Stored values do not open: this plane lacks a codec, or a key, that they were written with. */
export const Sealed = Schema.TaggedStruct("Sealed", { message: Schema.String })

/** The code waits for a signal or an update that its workflow does not declare, so that nobody can send it. */
export const UndeclaredMessage = Schema.TaggedStruct("UndeclaredMessage", {
  ...branchSeq,
  kind: Schema.Literal("signal", "update"),
  name: Schema.String,
  message: Schema.String
})

/** Stored rows do not verify. */
export const CorruptJournal = Schema.TaggedStruct("CorruptJournal", { table: Schema.String, message: Schema.String })

/** A problem that a newer version of this library recorded. */
export const OtherProblem = Schema.TaggedStruct("OtherProblem", { message: Schema.String, stored: Schema.Unknown })

/** Why a branch is stuck; `message` says it to people, and what to do. */
/** The runtime itself failed on this branch; others go on. */
export const EngineFailed = Schema.TaggedStruct("EngineFailed", { ...branchSeq, message: Schema.String })

export const Problem = Schema.Union(
  EngineFailed,
  UndeclaredAsync,
  NonDeterminism,
  IterationOutlived,
  Runaway,
  InDoubt,
  EffectInputChanged,
  EffectValueRefused,
  BadEffect,
  ValueUnreadable,
  UndeclaredMessage,
  CorruptJournal,
  Sealed,
  OtherProblem
)
export type Problem = typeof Problem.Type
