/**
 * What follows when a workflow calls a node under a key of its own choice. One key is one step of its scope (the branch, or
 * an iteration of a loop): it runs once, and all who call it have its outcome (PC, RD).
 */
import { idProblem } from "../Ids.js"

/** The step key that a caller's key makes, or what is wrong with that key. */
export type KeyedStepName =
  { readonly _tag: "Named"; readonly step: string } | { readonly _tag: "Refused"; readonly problem: string }

/**
 * Names the step. Keys that are counted end with `#n` and those of a loop's iterations contain one: a caller's key has no `#`,
 * and a node that is called by key has no `@` in its name, so no two steps have one key. `|`, `~` and `%` have a meaning in
 * keys of effects.
 */
export const keyedStep = (scope: string, node: string, key: string): KeyedStepName => {
  const problem =
    idProblem(key) ??
    (/[#|~%]/.test(key) ? "contains #, |, ~ or %" : undefined) ??
    (node.includes("@") ? `is of node ${node}: a node that is called by key has no @ in its name` : undefined)
  return problem === undefined ? { _tag: "Named", step: `${scope}${node}@${key}` } : { _tag: "Refused", problem }
}

/** A step that was called by this key before. `withdrawn`: all who waited for it were interrupted. */
export interface CalledByKey {
  /** Digest of the encoded input. */
  readonly input: string
  readonly state: "running" | "ended" | "withdrawn"
}

export type KeyedCallVerdict =
  /** Nobody called it: the step begins. */
  | "Start"
  /** It runs: wait for it with the others. */
  | "Join"
  /** It has its outcome, which is this caller's, too. */
  | "Serve"
  /** It is another piece of work than the one that has this key. */
  | "OtherInput"
  /** What it may have done was given up: a second run under its key would not be told apart from the first. */
  | "Withdrawn"

/** What is done with a call of the input whose digest this is. */
export const admitKeyedCall = (before: CalledByKey | undefined, input: string): KeyedCallVerdict => {
  if (before === undefined) return "Start"
  if (before.input !== input) return "OtherInput"
  if (before.state === "withdrawn") return "Withdrawn"
  return before.state === "ended" ? "Serve" : "Join"
}
