/** What the front refuses, as typed errors. Nothing ran when one of these comes, unless it says otherwise. */
import { Schema } from "effect"

/** The thread or the checkpoint is not there. */
export class UnknownThread extends Schema.TaggedError<UnknownThread>("fermata/UnknownThread")("UnknownThread", {
  thread: Schema.String,
  checkpoint: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.checkpoint === null
      ? `There is no thread ${this.thread}: nothing of it was ever stored. Start it with an input.`
      : `Thread ${this.thread} has no checkpoint ${this.checkpoint}. Its history names those that it has.`
  }
}

/** An answer without an addressee, while not exactly one question is open. */
export class BareAnswer extends Schema.TaggedError<BareAnswer>("fermata/BareAnswer")("BareAnswer", {
  thread: Schema.String,
  pending: Schema.Array(Schema.String)
}) {
  override get message() {
    return this.pending.length === 0
      ? `Thread ${this.thread} asks nothing; there is nothing to answer.`
      : `Thread ${this.thread} asks ${this.pending.length} questions. Say which one you answer: new Command({ resume: { "${this.pending[0]}": value } }). Open: ${this.pending.join(", ")}.`
  }
}

/** The answer was not accepted, and nothing of its delivery was. `reason` is the verdict of the contract. */
export class AnswerRefused extends Schema.TaggedError<AnswerRefused>("fermata/AnswerRefused")("AnswerRefused", {
  thread: Schema.String,
  interrupt: Schema.String,
  reason: Schema.Literal(
    "UnknownInterrupt",
    "RunPurged",
    "DeliveryIdReused",
    "AlreadyConsumed",
    "InterruptClosed",
    "ResumeValueInvalid",
    "SeveralCheckpoints",
    "CombinedCommand"
  ),
  /** The delivery that consumed the interrupt, and when (ledger milliseconds). */
  by: Schema.NullOr(Schema.String),
  at: Schema.NullOr(Schema.Number),
  detail: Schema.String
}) {
  override get message() {
    return `Thread ${this.thread}, interrupt ${this.interrupt}: the answer was refused (${this.reason}). ${this.detail}`
  }
}

/** The checkpoint has gone on; to go another way from there is a fork, and a fork is asked for. */
export class ForkRequired extends Schema.TaggedError<ForkRequired>("fermata/ForkRequired")("ForkRequired", {
  thread: Schema.String,
  checkpoint: Schema.String
}) {
  override get message() {
    return `Thread ${this.thread} has gone on from checkpoint ${this.checkpoint}. To begin another branch there, add fork: true to configurable; to go on, leave checkpoint_id out.`
  }
}

/** The fork cannot be made. */
export class ForkRefused extends Schema.TaggedError<ForkRefused>("fermata/ForkRefused")("ForkRefused", {
  thread: Schema.String,
  reason: Schema.Literal("ForkIdReused", "UnknownInterrupt", "Ambiguous", "GraphNotFound"),
  detail: Schema.String
}) {
  override get message() {
    return `Thread ${this.thread}: the fork was refused (${this.reason}). ${this.detail}`
  }
}

/** The graph and the front do not share a checkpointer. */
export class FrontMisconfigured extends Schema.TaggedError<FrontMisconfigured>("fermata/FrontMisconfigured")(
  "FrontMisconfigured",
  { detail: Schema.String }
) {
  override get message() {
    return this.detail
  }
}

/** An effect cannot fire. */
export class EffectRefused extends Schema.TaggedError<EffectRefused>("fermata/EffectRefused")("EffectRefused", {
  effect: Schema.String,
  reason: Schema.Literal("OutsideFront", "KeyNeeded", "InputChanged", "TooLate", "NotInDoubt"),
  detail: Schema.String
}) {
  override get message() {
    return `Effect ${this.effect}: ${this.detail}`
  }
}

/** It is not known whether the effect happened, and its delivery does not permit to try again. Settle it. */
export class EffectInDoubt extends Schema.TaggedError<EffectInDoubt>("fermata/EffectInDoubt")("EffectInDoubt", {
  thread: Schema.String,
  effect: Schema.String,
  /** Names it for `settle`. */
  task: Schema.String,
  position: Schema.String,
  key: Schema.String
}) {
  override get message() {
    return `Effect ${this.effect} of thread ${this.thread} may have happened, and nobody knows (key ${this.key}). It is not fired again. Find out, and call settle with task ${this.task} and position ${this.position}.`
  }
}
