/** The problems that make a branch stuck, with what they say to people: what happened, where, and what to do. */
import type { BranchId } from "@fermata/contract"
import type { Problem } from "../Problem.js"
import type { Divergence } from "./Timeline.js"

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

// ── Of the workflow ───────────────────────────────────────────────────────────────────────────────────────────

/** The code and the history disagree. */
export const nonDeterminism = (branch: BranchId, found: Divergence): Problem => ({
  _tag: "NonDeterminism",
  ...found,
  message: `At position ${found.seq} the history of ${branch} has ${found.history}, the code has ${found.code}. The workflow's code changed, or depends on something that is not journaled. Deploy code that matches under this version, or a new version beside it.`
})

/** An entry of the history holds a value that the code's Schema refuses. */
export const entryUnreadable = (
  branch: BranchId,
  seq: number,
  what: string,
  issues: ReadonlyArray<string>
): Problem => ({
  _tag: "ValueUnreadable",
  seq,
  what,
  message: `At position ${seq} of ${branch}, ${what} does not satisfy the Schema that the code has now: ${issues.join("; ")}. Deploy a Schema that reads it.`
})

/** The code waits for a message that nobody can send. */
export const undeclaredMessage = (branch: BranchId, seq: number, kind: "signal" | "update", name: string): Problem => ({
  _tag: "UndeclaredMessage",
  seq,
  kind,
  name,
  message: `After position ${seq} of ${branch}, the code waits for the ${kind} ${name}, which its workflow does not declare, so that nobody can send it. List it among the workflow's ${kind}s.`
})

/** One activation did not end. */
export const runaway = (branch: BranchId, seq: number): Problem => ({
  _tag: "Runaway",
  seq,
  message: `After position ${seq} the workflow of ${branch} ran on without waiting for anything. Look for a loop that never awaits a node, a timer or an interrupt.`
})

/** The workflow waits, and nothing that it waits for is outstanding. */
export const waitsForNothing = (branch: BranchId, seq: number): Problem => ({
  _tag: "UndeclaredAsync",
  seq,
  message: `After position ${seq} the workflow of ${branch} waits for something that nothing recorded can bring: a bare promise or callback, or Effect.never. Put what it waits for in a Node, an Interrupt or a timer.`
})

/** What an iteration of a loop began did not end with it. */
export const iterationOutlived = (
  branch: BranchId,
  seq: number,
  loop: string,
  iteration: number,
  by: ReadonlyArray<string>
): Problem => ({
  _tag: "IterationOutlived",
  seq,
  loop,
  iteration,
  by,
  message: `After position ${seq} of ${branch}, iteration ${iteration} of loop ${loop} ended while ${by.join(", ")} of it had not. A replay starts at the next iteration's snapshot and would never see it: join or interrupt it in the loop's body, or begin it outside of the loop.`
})

/** A fiber of the workflow was resumed, and not by the branch. */
export const wokenFromElsewhere = (branch: BranchId, seq: number): Problem => ({
  _tag: "UndeclaredAsync",
  seq,
  message: `A fiber of ${branch} was woken after position ${seq} by something that is not in the journal: a promise, a callback, a timer of another clock, or a queue offered from outside. Put it in a Node.`
})

/** A fiber of the workflow is not on the branch's scheduler. */
export const foreignScheduler = (branch: BranchId, seq: number): Problem => ({
  _tag: "UndeclaredAsync",
  seq,
  message: `A fiber of ${branch} runs on another scheduler: Effect.withScheduler, Layer.setScheduler, or Effect.provide of a ManagedRuntime inside the workflow. Provide services to the worker instead.`
})

/** The runtime threw. */
export const engineFailed = (branch: BranchId, seq: number, error: unknown): Problem => ({
  _tag: "EngineFailed",
  seq,
  message: `After position ${seq} of ${branch} the runtime failed: ${messageOf(error)}`
})

// ── Of an effect ──────────────────────────────────────────────────────────────────────────────────────────────

const badEffect = (step: string, effect: string, message: string): Problem => ({
  _tag: "BadEffect",
  step,
  effect,
  message
})

/** The node does not declare what its body performs. */
export const undeclaredEffect = (step: string, node: string, effect: string): Problem =>
  badEffect(step, effect, `Node ${node} performs "${effect}" without declaring it: add it to its "effects".`)

/** The node does not declare what its body is recorded to have performed. */
export const undeclaredIntent = (step: string, effect: string): Problem =>
  badEffect(step, effect, `${step} recorded an intent of "${effect}", which its node does not declare any more.`)

/** Two firings under way cannot be told apart on a replay. */
export const concurrentFirings = (step: string, effect: string): Problem =>
  badEffect(
    step,
    effect,
    `${step} performs "${effect}" while another firing without a key is under way: give concurrent firings keys of their own.`
  )

/** Two firings of one attempt name the same position. */
export const firingKeyReused = (step: string, effect: string, key: string): Problem =>
  badEffect(
    step,
    effect,
    `${step} performs "${effect}" with the key "${key}", which was used: give each firing a key of its own.`
  )

/** A firing's key cannot be part of an effect's key. */
export const badFiringKey = (step: string, effect: string, problem: string): Problem =>
  badEffect(step, effect, `${step} performs "${effect}" with a key that ${problem}.`)

/** The worker cannot fire the effect. */
export const missingHandler = (step: string, effect: string): Problem =>
  badEffect(
    step,
    effect,
    `The worker has no handler of "${effect}" that reads its input: provide its layer to the worker.`
  )

/** A body that runs again asks for something else than it did. */
export const effectInputChanged = (step: string, effect: string, key: string, differs: string): Problem => ({
  _tag: "EffectInputChanged",
  step,
  effect,
  key,
  differs,
  message: `${step} ran again and asks for "${effect}" with another ${differs} than its history recorded under ${key}. The body depends on something that is not journaled, or its code changed.`
})

/** An effect happened, and its outcome was refused just now. */
export const effectValueRefused = (step: string, effect: string, key: string, issue: string): Problem => ({
  _tag: "EffectValueRefused",
  step,
  effect,
  key,
  issue,
  message: `"${effect}" happened, but its outcome was refused: ${issue}. Settle ${key} with an outcome that its Schema accepts.`
})

/** An effect happened, and its outcome was refused before. */
export const effectValueRefusedEarlier = (step: string, effect: string, key: string): Problem => ({
  _tag: "EffectValueRefused",
  step,
  effect,
  key,
  issue: "recorded earlier",
  message: `"${effect}" happened, but its outcome was refused by its Schema. Settle ${key} with an outcome that is accepted.`
})

/** The recorded outcome of an effect is one that the code's Schema refuses. */
export const effectUnreadable = (key: string, seq: number, issues: ReadonlyArray<string>): Problem => ({
  _tag: "ValueUnreadable",
  seq,
  what: `the outcome of ${key}`,
  message: `The recorded outcome of ${key} does not satisfy the Schema that the code has now: ${issues.join("; ")}. Deploy a Schema that reads it.`
})

/** Nobody can say whether an effect happened. */
export const effectInDoubt = (step: string, effect: string, key: string, why: string): Problem => ({
  _tag: "InDoubt",
  step,
  effect,
  key,
  message: `The outcome of "${effect}" under ${key} is not known: ${why}. Find out, then settle it (client.settle).`
})
