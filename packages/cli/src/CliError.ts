/** How a command can fail, and the exit code of each failure. */
import { Schema } from "effect"

/** Exit codes, as docs/command-line.md lists them. */
export const exitCodes = {
  success: 0,
  /** The command ran, and what it looked for is not well: `doctor`, `verify`, `replay`, a run that failed. */
  unwell: 1,
  /** The request was refused: an answer that comes second, a purge of a run that goes on, an invalid value. */
  refused: 2,
  /** No such run, branch, interrupt, effect or checkpoint. */
  notFound: 3,
  /** The database cannot be reached or used. */
  database: 4,
  /** The command was wrong: options, a file, a module. */
  usage: 64,
  /** A defect of this program. */
  defect: 70,
  /** Stopped by a signal. */
  interrupted: 130
} as const

/** The command cannot be carried out as it was given. Nothing was done. */
export class UsageError extends Schema.TaggedError<UsageError>("fermata/UsageError")("UsageError", {
  /** What of the command: an option, a file. */
  what: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.what.charAt(0).toUpperCase()}${this.what.slice(1)} ${this.detail}.`
  }
}

/** A module of workflows is none. Nothing was started. */
export class ModuleInvalid extends Schema.TaggedError<ModuleInvalid>("fermata/ModuleInvalid")("ModuleInvalid", {
  file: Schema.String,
  issues: Schema.Array(Schema.String)
}) {
  override get message() {
    return `${this.file} is no module of workflows: ${this.issues.join("; ")}. It exports "workflows", an array of what Workflow.make returns, and optionally "layer", the handlers and services that they require.`
  }
}

/** The command did its work, and found something that is not well; its output says what. */
export class Unwell extends Schema.TaggedError<Unwell>("fermata/Unwell")("Unwell", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

const byTag: Readonly<Record<string, number>> = {
  UsageError: exitCodes.usage,
  ModuleInvalid: exitCodes.usage,
  HistoryFileInvalid: exitCodes.usage,
  InvalidId: exitCodes.usage,
  ImportInvalid: exitCodes.usage,
  Unwell: exitCodes.unwell,
  ReplayDiverged: exitCodes.unwell,
  RunCancelled: exitCodes.unwell,
  RunDied: exitCodes.unwell,
  RunStuck: exitCodes.unwell,
  CorruptJournal: exitCodes.unwell,
  RunNotFound: exitCodes.notFound,
  RunPurged: exitCodes.notFound,
  UnknownInterrupt: exitCodes.notFound,
  UnknownEffect: exitCodes.notFound,
  ScheduleNotFound: exitCodes.notFound,
  UnknownCheckpoint: exitCodes.notFound,
  LedgerUnavailable: exitCodes.database,
  LedgerUnusable: exitCodes.database
}

/** The exit code of a typed failure: what is not named is a refusal. */
export const exitCodeOf = (error: { readonly _tag: string }): number => byTag[error._tag] ?? exitCodes.refused

/** Credentials inside a URL, wherever a message of another library has one. */
export const withoutCredentials = (text: string): string => text.replace(/(:\/\/)[^\s/@]*(?:@[^\s/@]*)*@/g, "$1…@")
