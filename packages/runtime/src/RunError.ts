/** How a run can end otherwise than by its own success or typed error, and what a caller can get wrong. */
import { Schema } from "effect"

/** The run was cancelled; its finalizers have run. */
export class RunCancelled extends Schema.TaggedError<RunCancelled>("fermata/RunCancelled")("RunCancelled", {
  branch: Schema.String,
  reason: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `Branch ${this.branch} was cancelled${this.reason === null ? "" : `: ${this.reason}`}.`
  }
}

/** The workflow ended with a defect: an error that its Schemas do not declare. */
export class RunDied extends Schema.TaggedError<RunDied>("fermata/RunDied")("RunDied", {
  branch: Schema.String,
  /** The defect as it was journaled: name, message, code and cause survive. */
  defect: Schema.Unknown
}) {
  override get message() {
    const defect = this.defect
    return `Branch ${this.branch} died: ${defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)}`
  }
}

/** A value does not satisfy the Schema of what it was given to, or cannot be stored exactly. Nothing was written. */
export class InvalidValue extends Schema.TaggedError<InvalidValue>("fermata/InvalidValue")("InvalidValue", {
  /** What the value was for: `input of workflow refund`, say. */
  what: Schema.String,
  /** Lines of `path: what was expected`; values are not repeated. */
  issues: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Invalid ${this.what}: ${this.issues.join("; ")}. Nothing was written.`
  }
}

/**
 * A defect of the workflow: it called a node by a key that another step of the same scope has. `input`: that one was called
 * with another input. `withdrawn`: all who waited for that one were interrupted, so it has no outcome and cannot run again.
 */
export class StepKeyReused extends Schema.TaggedError<StepKeyReused>("fermata/StepKeyReused")("StepKeyReused", {
  branch: Schema.String,
  step: Schema.String,
  because: Schema.Literal("input", "withdrawn")
}) {
  override get message() {
    return this.because === "input"
      ? `Step ${this.step} of branch ${this.branch} was called with another input: give other work another key.`
      : `Step ${this.step} of branch ${this.branch} was interrupted before it had an outcome: call it by another key.`
  }
}

/** An id is not one: empty, too long, or with characters that ids may not have. */
export class InvalidId extends Schema.TaggedError<InvalidId>("fermata/InvalidId")("InvalidId", {
  what: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `Invalid ${this.what}: ${this.problem}.`
  }
}

/** The run is of another workflow than the one it was asked about. */
export class WrongWorkflow extends Schema.TaggedError<WrongWorkflow>("fermata/WrongWorkflow")("WrongWorkflow", {
  run: Schema.String,
  asked: Schema.String,
  stored: Schema.String
}) {
  override get message() {
    return `Run ${this.run} is of workflow ${this.stored}, not of ${this.asked}.`
  }
}

/** The workflow refused an update: nothing was done. */
export class UpdateRejected extends Schema.TaggedError<UpdateRejected>("fermata/UpdateRejected")("UpdateRejected", {
  branch: Schema.String,
  update: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `Branch ${this.branch} refused the update ${this.update}: ${this.reason}.`
  }
}

/** The update's handler ended with a defect. What it did before that is done. */
export class UpdateDied extends Schema.TaggedError<UpdateDied>("fermata/UpdateDied")("UpdateDied", {
  branch: Schema.String,
  update: Schema.String,
  /** The defect as it was journaled. */
  defect: Schema.Unknown
}) {
  override get message() {
    const { defect } = this
    return `The handler of update ${this.update} on branch ${this.branch} died: ${defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)}`
  }
}

/** The run ended before it answered the update. */
export class UpdateUnanswered extends Schema.TaggedError<UpdateUnanswered>("fermata/UpdateUnanswered")(
  "UpdateUnanswered",
  { branch: Schema.String, update: Schema.String, reason: Schema.String }
) {
  override get message() {
    return `The update ${this.update} was not answered: ${this.reason} (branch ${this.branch}).`
  }
}

/** The run has not published what the query reads. */
export class NotPublished extends Schema.TaggedError<NotPublished>("fermata/NotPublished")("NotPublished", {
  branch: Schema.String,
  query: Schema.String
}) {
  override get message() {
    return `Branch ${this.branch} has not published the query ${this.query} yet.`
  }
}

/** The branch cannot go on without help; `client.describe` says the same at any time. */
export class RunStuck extends Schema.TaggedError<RunStuck>("fermata/RunStuck")("RunStuck", {
  branch: Schema.String,
  problems: Schema.Array(Schema.Unknown)
}) {
  override get message() {
    return `Branch ${this.branch} is stuck: ${this.problems
      .map((problem) => (problem as { readonly message?: string }).message ?? JSON.stringify(problem))
      .join("; ")}`
  }
}
