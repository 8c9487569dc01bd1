/** What a probe found, and what it means under what the plane's documentation says. */
import { Schema } from "effect"
import { PropertyId } from "../Property.js"
import { type Hello, isAboutProperty, Statement } from "./Plane.js"
import { LogLine } from "./Outside.js"

/**
 * - `conforms`: the property held.
 * - `violates its own documentation`: it did not, and the documentation claims it.
 * - `documented divergence`: it did not, and the documentation says so.
 * - `undocumented divergence`: it did not, and the documentation is silent.
 * - `cannot be expressed`: the plane has no means for what the probe needs, such as a fork or an intent.
 * - `not applicable`: the driver or this machine cannot make the situation.
 * - `no answer in time`: nothing was decided; a time limit never decides.
 * - `driver fault`: the driver crashed, talked nonsense or lied, so nothing was decided.
 */
export const Verdict = Schema.Literal(
  "conforms",
  "violates its own documentation",
  "documented divergence",
  "undocumented divergence",
  "cannot be expressed",
  "not applicable",
  "no answer in time",
  "driver fault"
)
export type Verdict = typeof Verdict.Type

/** All verdicts, in the order in which they are counted. */
export const allVerdicts = Verdict.literals

/** One probe's result. */
export const Finding = Schema.Struct({
  probe: Schema.String,
  property: PropertyId,
  title: Schema.String,
  verdict: Verdict,
  /** What broke, or why there is no more to say; empty if it conforms. */
  reasons: Schema.Array(Schema.String),
  /** What was done and seen, in order. */
  notes: Schema.Array(Schema.String),
  /** The effect log. */
  log: Schema.Array(LogLine),
  /** What the documentation says of it, if anything. */
  documentation: Schema.NullOr(Statement),
  /** The command that runs this probe alone. */
  rerun: Schema.String,
  milliseconds: Schema.Number
})
export type Finding = typeof Finding.Type

/** The statement that decides: one about the probe before one about its property. */
export const statementOn = (hello: Hello, probe: string, property: PropertyId): Statement | undefined =>
  hello.documentation.find(({ about }) => about === probe) ??
  hello.documentation.find((statement) => isAboutProperty(statement) && statement.about === property)

/** What a divergence is, given what the documentation says. */
export const divergence = (statement: Statement | undefined): Verdict =>
  statement === undefined
    ? "undocumented divergence"
    : statement.stance === "claims"
      ? "violates its own documentation"
      : "documented divergence"

/** True if the finding says that a promise of the contract is broken, and the documentation does not say so itself. */
export const isViolation = (verdict: Verdict): boolean =>
  verdict === "violates its own documentation" || verdict === "undocumented divergence"

/** True if nothing was decided although something should have been. */
export const isUndecided = (verdict: Verdict): boolean => verdict === "no answer in time" || verdict === "driver fault"

/** The result of a run of the harness. */
export const Report = Schema.Struct({
  plane: Schema.String,
  version: Schema.String,
  /** What `--plane` was. */
  driver: Schema.String,
  findings: Schema.Array(Finding),
  harness: Schema.String
})
export type Report = typeof Report.Type

/** 0: nothing violates. 1: something does. 2: nothing does, but something was not decided. */
export const exitCode = ({ findings }: Report): 0 | 1 | 2 =>
  findings.some(({ verdict }) => isViolation(verdict))
    ? 1
    : findings.some(({ verdict }) => isUndecided(verdict))
      ? 2
      : 0
