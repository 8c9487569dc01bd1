/** What a racer is asked to do, and what it says of it. */
import { Schema } from "effect"

/** Answers to be given at once at the race's nth start, from 0: a racer may sit heats out. */
export const Heat = Schema.Struct({
  start: Schema.Number,
  branch: Schema.String,
  answers: Schema.Array(Schema.Struct({ value: Schema.String, deliveryId: Schema.String }))
})
export type Heat = typeof Heat.Type

/** What became of one answer: the receipt's verdict or the refusal's tag; `by` is who consumed the interrupt, `at` when. */
export const Verdict = Schema.Struct({
  deliveryId: Schema.String,
  value: Schema.String,
  verdict: Schema.String,
  by: Schema.NullOr(Schema.String),
  at: Schema.NullOr(Schema.Number)
})
export type Verdict = typeof Verdict.Type
