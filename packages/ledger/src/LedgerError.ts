/** What can go wrong between a caller and the ledger, as typed errors with the facts as fields. */
import { Schema } from "effect"

/** The database cannot be used as a ledger, and trying again will not change that. */
export class LedgerUnusable extends Schema.TaggedError<LedgerUnusable>("fermata/LedgerUnusable")("LedgerUnusable", {
  reason: Schema.Literal(
    "not a database",
    "cannot be opened",
    "read-only",
    "newer version",
    "older version",
    "migration failed",
    "sealed",
    "closed"
  ),
  /** Where: a file name, or a host and database without credentials. */
  database: Schema.String,
  detail: Schema.String,
  /** What to do about it. */
  advice: Schema.String
}) {
  override get message() {
    return `The database ${this.database} cannot be used (${this.reason}): ${this.detail}. ${this.advice}`
  }
}

/** The database did not answer, is locked or full, or the connection was lost. Nothing was lost; it may be tried again. */
export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>("fermata/LedgerUnavailable")(
  "LedgerUnavailable",
  {
    reason: Schema.Literal("busy", "full", "disconnected", "failed"),
    database: Schema.String,
    operation: Schema.String,
    detail: Schema.String
  }
) {
  override get message() {
    return `${this.operation}: the database ${this.database} is not available (${this.reason}): ${this.detail}. Nothing was lost; try again.`
  }
}

/** Stored rows do not verify: a digest, the chain or a derived column is wrong. Nothing is guessed. */
export class CorruptJournal extends Schema.TaggedError<CorruptJournal>("fermata/CorruptJournal")("CorruptJournal", {
  table: Schema.Literal("runs", "branches", "journal", "inbox", "chunks"),
  /** The run or branch concerned. */
  id: Schema.String,
  seq: Schema.NullOr(Schema.Number),
  detail: Schema.String
}) {
  override get message() {
    return `Stored data of ${this.id} does not verify (${this.table}${this.seq === null ? "" : `, seq ${this.seq}`}): ${this.detail}. Restore it from a backup, or fork the run from a checkpoint before the damage.`
  }
}

/** The run id is in use for another workflow or another input. */
export class RunConflict extends Schema.TaggedError<RunConflict>("fermata/RunConflict")("RunConflict", {
  run: Schema.String,
  differs: Schema.Literal("workflow", "input"),
  stored: Schema.String
}) {
  override get message() {
    return `Run ${this.run} exists with another ${this.differs} (${this.stored}). Use another run id, or start it with what it was started with.`
  }
}

/** A run of this id is in the database: an import replaces nothing. */
export class RunExists extends Schema.TaggedError<RunExists>("fermata/RunExists")("RunExists", {
  run: Schema.String
}) {
  override get message() {
    return `Run ${this.run} is in this database already. Nothing was imported.`
  }
}

/** The lines are no exported run that this code can take in. Nothing was imported. */
export class ImportInvalid extends Schema.TaggedError<ImportInvalid>("fermata/ImportInvalid")("ImportInvalid", {
  reason: Schema.Literal("not an export", "newer version", "damaged", "incomplete"),
  /** The first line that is wrong, 1-based; of what is incomplete, the last one. */
  line: Schema.Number,
  detail: Schema.String
}) {
  override get message() {
    const advice =
      this.reason === "newer version"
        ? "Import it with a newer version of this package"
        : "Export the run again, and copy the lines as they are"
    return `The run cannot be imported (${this.reason}, line ${this.line}): ${this.detail}. Nothing was imported. ${advice}.`
  }
}

/** There is a schedule of this id that is set up otherwise. Nothing was changed. */
export class ScheduleConflict extends Schema.TaggedError<ScheduleConflict>("fermata/ScheduleConflict")(
  "ScheduleConflict",
  { schedule: Schema.String, differs: Schema.Array(Schema.String) }
) {
  override get message() {
    return `Schedule ${this.schedule} exists and differs in: ${this.differs.join(", ")}. Use another id, or replace it (replace: true).`
  }
}

/** There is no schedule of this id. */
export class ScheduleNotFound extends Schema.TaggedError<ScheduleNotFound>("fermata/ScheduleNotFound")(
  "ScheduleNotFound",
  { schedule: Schema.String }
) {
  override get message() {
    return `There is no schedule ${this.schedule} in this database.`
  }
}

/** No such run, branch or checkpoint. */
export class RunNotFound extends Schema.TaggedError<RunNotFound>("fermata/RunNotFound")("RunNotFound", {
  id: Schema.String
}) {
  override get message() {
    return `There is no run or branch ${this.id} in this database.`
  }
}

/** The run was purged; its id is not used again, so that nothing late can revive it. */
export class RunPurged extends Schema.TaggedError<RunPurged>("fermata/RunPurged")("RunPurged", {
  run: Schema.String
}) {
  override get message() {
    return `Run ${this.run} was purged. Use another run id.`
  }
}

/** The run cannot be purged yet. */
export class RunNotOver extends Schema.TaggedError<RunNotOver>("fermata/RunNotOver")("RunNotOver", {
  run: Schema.String,
  branches: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Run ${this.run} has branches that are not over: ${this.branches.join(", ")}. Cancel them or wait.`
  }
}

/** The writer does not own the branch any more: another worker took it, or it was purged. Nothing was written. */
export class Fenced extends Schema.TaggedError<Fenced>("fermata/Fenced")("Fenced", {
  branch: Schema.String,
  epoch: Schema.Number
}) {
  override get message() {
    return `Branch ${this.branch}: epoch ${this.epoch} is fenced; another worker owns the branch. Nothing was written.`
  }
}

/** An append was conditional on an inbox position, and something was accepted since. Nothing was written. */
export class InboxAdvanced extends Schema.TaggedError<InboxAdvanced>("fermata/InboxAdvanced")("InboxAdvanced", {
  branch: Schema.String,
  inboxHead: Schema.Number
}) {}

/**
 * What the journal refuses to store (CV). Thrown by the owner's append buffer: the caller should have refused it
 * earlier, where it can say which value it is.
 */
export class EntryRefused extends Error {
  override readonly name = "EntryRefused"
  constructor(
    readonly branch: string,
    readonly kind: string,
    readonly key: string,
    readonly reason: string
  ) {
    super(`Branch ${branch}: an entry ${kind} ${key} cannot be stored (${reason}). Nothing was written.`)
  }
}

// ── Refusals of deliveries, settlements, cancellations and forks ────────────────────────────────────────────

/** The branch has no such interrupt, or one of another name. */
export class UnknownInterrupt extends Schema.TaggedError<UnknownInterrupt>("fermata/UnknownInterrupt")(
  "UnknownInterrupt",
  { branch: Schema.String, interrupt: Schema.String, open: Schema.Array(Schema.String) }
) {
  override get message() {
    return `Branch ${this.branch} has no interrupt ${this.interrupt}. Open: ${this.open.length === 0 ? "none" : this.open.join(", ")}.`
  }
}

/** One delivery id, one meaning: it was used with another value or interrupt. */
export class DeliveryIdReused extends Schema.TaggedError<DeliveryIdReused>("fermata/DeliveryIdReused")(
  "DeliveryIdReused",
  { branch: Schema.String, interrupt: Schema.String, delivery: Schema.String }
) {
  override get message() {
    return `Delivery ${this.delivery} was used on branch ${this.branch} with another value or interrupt. Use a delivery id once.`
  }
}

/** Another delivery consumed the interrupt (CO). Nothing was changed. */
export class AlreadyConsumed extends Schema.TaggedError<AlreadyConsumed>("fermata/AlreadyConsumed")("AlreadyConsumed", {
  branch: Schema.String,
  interrupt: Schema.String,
  /** The delivery that consumed it, and when (ledger milliseconds). */
  by: Schema.String,
  at: Schema.Number
}) {
  override get message() {
    return `Interrupt ${this.interrupt} of branch ${this.branch} was consumed by delivery ${this.by} at ${new Date(this.at).toISOString()}. To try another answer, fork.`
  }
}

/** The interrupt was closed unanswered: withdrawn, cancelled, or its run is over. */
export class InterruptClosed extends Schema.TaggedError<InterruptClosed>("fermata/InterruptClosed")("InterruptClosed", {
  branch: Schema.String,
  interrupt: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `Interrupt ${this.interrupt} of branch ${this.branch} takes no answer any more: ${this.reason}.`
  }
}

/** The answer does not satisfy the interrupt's Schema. Nothing was consumed. The value itself is not repeated here. */
export class ResumeValueInvalid extends Schema.TaggedError<ResumeValueInvalid>("fermata/ResumeValueInvalid")(
  "ResumeValueInvalid",
  { branch: Schema.String, interrupt: Schema.String, issues: Schema.Array(Schema.String) }
) {
  override get message() {
    return `The answer to ${this.interrupt} of branch ${this.branch} is invalid: ${this.issues.join("; ")}. Nothing was consumed.`
  }
}

/** What was addressed is no durable position that a branch can go on from. */
export class UnknownCheckpoint extends Schema.TaggedError<UnknownCheckpoint>("fermata/UnknownCheckpoint")(
  "UnknownCheckpoint",
  {
    branch: Schema.String,
    seq: Schema.Number,
    head: Schema.NullOr(Schema.Number),
    /** The step whose outcome was to be edited, if that is what addressed the position. */
    step: Schema.optional(Schema.String)
  }
) {
  override get message() {
    return this.step === undefined
      ? `Branch ${this.branch} has no durable position ${this.seq} to go on from${this.head === null ? "" : ` (1 to ${this.head})`}.`
      : `Branch ${this.branch} has no recorded outcome of the step ${this.step}. Its history names the steps that have one.`
  }
}

/** The fork id is in use for another fork. */
export class ForkIdReused extends Schema.TaggedError<ForkIdReused>("fermata/ForkIdReused")("ForkIdReused", {
  run: Schema.String,
  fork: Schema.String
}) {
  override get message() {
    return `Run ${this.run} has a fork ${this.fork} from another checkpoint or with another value. Use another fork id.`
  }
}

/** A `once` effect is under way at the position; a fork there could not know its outcome. */
export class EffectInFlight extends Schema.TaggedError<EffectInFlight>("fermata/EffectInFlight")("EffectInFlight", {
  branch: Schema.String,
  seq: Schema.Number,
  effects: Schema.Array(Schema.String),
  below: Schema.NullOr(Schema.Number),
  above: Schema.NullOr(Schema.Number)
}) {
  override get message() {
    return `At position ${this.seq} of branch ${this.branch} the outcome of ${this.effects.join(", ")} is not known. Nearest forkable positions: ${this.below ?? "none"} before, ${this.above ?? "none yet"} after.`
  }
}

/** The branch has no such effect. */
export class UnknownEffect extends Schema.TaggedError<UnknownEffect>("fermata/UnknownEffect")("UnknownEffect", {
  branch: Schema.String,
  effect: Schema.String
}) {
  override get message() {
    return `Branch ${this.branch} has no effect ${this.effect}.`
  }
}

/** A worker runs the branch and may be firing the effect: it brings the outcome, or the branch is stuck with it in doubt. */
export class EffectUnderWay extends Schema.TaggedError<EffectUnderWay>("fermata/EffectUnderWay")("EffectUnderWay", {
  branch: Schema.String,
  effect: Schema.String
}) {
  override get message() {
    return `A worker runs branch ${this.branch} and may be firing ${this.effect}. Settle it once the branch is stuck with it.`
  }
}

/** The effect's outcome is known, or another word on it was accepted. */
export class AlreadySettled extends Schema.TaggedError<AlreadySettled>("fermata/AlreadySettled")("AlreadySettled", {
  branch: Schema.String,
  effect: Schema.String
}) {
  override get message() {
    return `The outcome of ${this.effect} of branch ${this.branch} is known; it cannot be settled again.`
  }
}

/** The settlement cannot be recorded as it is. Nothing was settled. */
export class SettlementInvalid extends Schema.TaggedError<SettlementInvalid>("fermata/SettlementInvalid")(
  "SettlementInvalid",
  { branch: Schema.String, effect: Schema.String, issues: Schema.Array(Schema.String) }
) {
  override get message() {
    return `The settlement of ${this.effect} of branch ${this.branch} is invalid: ${this.issues.join("; ")}. Nothing was settled.`
  }
}

/** The run's workflow declares no signal or update of that name. */
export class UnknownMessage extends Schema.TaggedError<UnknownMessage>("fermata/UnknownMessage")("UnknownMessage", {
  branch: Schema.String,
  kind: Schema.Literal("signal", "update"),
  name: Schema.String,
  /** What it declares of this kind. */
  declared: Schema.Array(Schema.String)
}) {
  override get message() {
    return `The workflow of branch ${this.branch} takes no ${this.kind} ${this.name}. It declares ${this.declared.length === 0 ? "none" : this.declared.join(", ")}. List it among the workflow's ${this.kind}s, and start a run of that version.`
  }
}

/** One message id, one meaning: it was used for another name or value. */
export class MessageIdReused extends Schema.TaggedError<MessageIdReused>("fermata/MessageIdReused")("MessageIdReused", {
  branch: Schema.String,
  kind: Schema.Literal("signal", "update"),
  id: Schema.String
}) {
  override get message() {
    return `The ${this.kind} id ${this.id} was used on branch ${this.branch} for another name or value. Use an id once.`
  }
}

/** The run is over: nothing that is sent to it would be seen. */
export class RunOver extends Schema.TaggedError<RunOver>("fermata/RunOver")("RunOver", {
  branch: Schema.String,
  status: Schema.String
}) {
  override get message() {
    return `Branch ${this.branch} is over (${this.status}). Nothing was sent.`
  }
}

/** What can go wrong with any operation of the ledger. */
export type LedgerError = LedgerUnusable | LedgerUnavailable
