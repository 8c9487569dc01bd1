/**
 * The properties of the resume contract, with the statements that the suites, the model and the docs quote.
 *
 * Source: the six properties, fork intent and the liveness obligation follow "Resume Means Resume: A
 * Machine-Checked Conformance Contract for Checkpoint, Interrupt, and Resume Semantics in Workflow Persistence
 * Layers" (arXiv:2608.03836); exactly-once is stated per delivery policy, and liveness over every branch.
 */
import { Schema } from "effect"

export const PropertyId = Schema.Literal("PC", "EO", "FD", "CV", "CO", "RD", "FI", "LV")
export type PropertyId = typeof PropertyId.Type

export interface Property {
  readonly id: PropertyId
  readonly name: string
  readonly statement: string
  /** The production failure that the property excludes. */
  readonly excludes: string
}

/** All eight properties, in the order in which they are reported. */
export const properties: ReadonlyArray<Property> = [
  {
    id: "PC",
    name: "prefix continuation",
    statement:
      "After any interruption, a resumed branch runs every step without a durable outcome, and no other. Serving recorded outcomes is continuation; rebuilding from the initial state is not.",
    excludes: "finished work runs again after a crash or a resume"
  },
  {
    id: "EO",
    name: "effect exactly-once",
    statement:
      "once and transactional: at most one firing per EffectKey over all branches, crashes, resumes, retries and workers, unless a settlement or NeverWill admits another. keyed: any number of attempts, all with the same key and input. repeatable: none after its outcome is durable. A step that completes successfully has each effect that it awaited exactly once in this sense.",
    excludes: "a customer is charged twice"
  },
  {
    id: "FD",
    name: "fork determinism",
    statement:
      "Two forks of one checkpoint with different values each get their own value; the same checkpoint, value and later outcomes give the same result, whatever else was resumed before, between or after.",
    excludes: "a fork is served the other fork's answer"
  },
  {
    id: "CV",
    name: "checkpoint validity",
    statement:
      "Everything persisted satisfies its declared Schema; what does not is refused loudly before it is written, and the last valid checkpoint stays usable. What is read back and does not verify is refused, never guessed.",
    excludes: "invalid state is saved in silence and the run can never be loaded again"
  },
  {
    id: "CO",
    name: "consume-once",
    statement:
      "An interrupt on a branch is consumed at most once, however many deliveries come, in whatever order, from however many processes; the claim is durable before a gated node starts, and no losing delivery starts one.",
    excludes: "an approval delivered twice fires its payment twice"
  },
  {
    id: "RD",
    name: "recovery determinism",
    statement:
      "For a given definition, what recovery does depends on the durable history and the accepted inbox only; time and outcomes of the world enter only as journaled events.",
    excludes: "recovery depends on which of two racing writes landed"
  },
  {
    id: "FI",
    name: "fork intent",
    statement: '"Again" and "another branch" are different requests on the wire, and neither is a default.',
    excludes: "a retried webhook silently becomes a second timeline, or a fork silently becomes a duplicate"
  },
  {
    id: "LV",
    name: "liveness",
    statement:
      "With faults over, every branch progresses until it is terminal or waits for something that inspection names; no wake-up is ever lost.",
    excludes: "the answer is stored and the run sleeps on"
  }
]
