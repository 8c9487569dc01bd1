/** What the saver refuses, as typed errors with the facts as fields. Errors of the database are the ledger's. */
import { Schema } from "effect"

export { CheckpointConflict, CorruptCheckpoint, ThreadBusy, ThreadLost } from "@fermata/ledger"

/** A value has no exact stored form. Nothing of its checkpoint or task was written; the last valid checkpoint stays. */
export class ValueRefused extends Schema.TaggedError<ValueRefused>("fermata/ValueRefused")("ValueRefused", {
  /** Which channel, write or metadata. */
  where: Schema.String,
  /** `$` is the value itself, `$.items[3].price` a field of it. */
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `${this.where}: ${this.path} ${this.reason}. It was not stored; write plain data, messages, dates, maps or sets.`
  }
}

/** The config of a call does not say what the call needs. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>("fermata/ConfigInvalid")("ConfigInvalid", {
  call: Schema.String,
  field: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${this.call}: configurable.${this.field} ${this.problem}. Pass { configurable: { thread_id: "..." } } with strings.`
  }
}

/** The checkpoint's format is newer than this code, or is none. */
export class CheckpointFormat extends Schema.TaggedError<CheckpointFormat>("fermata/CheckpointFormat")(
  "CheckpointFormat",
  { thread: Schema.String, checkpoint: Schema.String, found: Schema.String }
) {
  override get message() {
    return `Thread ${this.thread}: checkpoint ${this.checkpoint} has format ${this.found}; this version stores and reads 1 to 4. Update @fermata/adapters, or write with the version of LangGraph.js that it was made for.`
  }
}
