/** Transitions and broken properties in sentences. */
import { branchCell as B, type Cells, workerCell as W } from "./PlaneCells.js"
import { readLabel } from "./PlaneStep.js"
import type { World } from "./PlaneWorld.js"

const values = ["nothing", "false", "true", "an invalid value"]

const branchName = (cells: Cells, state: Uint8Array, b: number): string => {
  const at = cells.branch(b)
  if ((state[at + B.childOf] ?? 0) !== 0) return `the child (branch ${b})`
  return b === 0 ? "the root branch" : `branch ${b}`
}

/** What a transition did, in a sentence. */
export const describeDeed = (
  world: World,
  cells: Cells,
  label: number,
  before: Uint8Array,
  after: Uint8Array
): string => {
  const { deed, a, b, c } = readLabel(label)
  const on = branchName(cells, after, b)
  const worker = `Worker ${a + 1}`
  const program = world.programs[(after[cells.branch(b) + B.program] ?? 1) - 1] ?? []
  const op = (p: number) => `operation ${p + 1} (${program[p]?.kind ?? "the end"})`
  const atHand = op(before[cells.worker(a) + W.position] ?? 0)
  switch (deed) {
    case "claim":
      return `${worker} claims ${on} and recovers it from ${after[cells.branch(b) + B.done] ?? 0} durable outcomes.`
    case "claimStale":
      return `${worker} claims ${on}; this time its recovery makes something else of the same history, at ${op(c)}.`
    case "free":
      return `The owner of ${on} is seen to be dead: the branch is free.`
    case "lapse":
      return `The lease of worker ${a + 1}, which is paused, lapses: ${on} is free.`
    case "resume":
      return `${worker} goes on after its pause, with what it had in memory of ${on}.`
    case "learn":
      return `${worker} is told that it is fenced on ${on}, and forgets it.`
    case "run":
      return `${worker} runs ${atHand} of ${on}: the outcome is ${values[c] ?? c}, in memory only.`
    case "intend":
      return `${worker} appends the intent of ${op(c)} of ${on}; it is not durable yet.`
    case "fire":
      return `${worker} fires ${op(c)} of ${on} at the outside.`
    case "outcome":
      return `${worker} has the outcome of ${op(c)} of ${on} and goes on; it is not durable yet.`
    case "commit":
      return `${worker} commits ${op(c)} of ${on} with its outcome in one transaction.`
    case "open":
      return `${worker} opens the interrupt of ${op(c)} of ${on}; it is not durable yet.`
    case "serve":
      return `${worker} serves the accepted answer to ${op(c)} of ${on}: what it gates starts.`
    case "reuse":
      return `${worker} serves ${op(c)} of ${on} the answer to an earlier interrupt.`
    case "persist":
      return `The outcome of ${op(c)} of ${on} becomes durable.`
    case "persistMark":
      return `The mark of ${op(c)} of ${on} becomes durable.`
    case "park":
      return `${worker} parks ${on} at ${op(c)} and lets go of it.`
    case "stuck":
      return `${worker} lets go of ${on}, which is stuck until somebody helps.`
    case "time":
      return `The time in which the firing of ${op(c)} of ${on} could still happen passes.`
    case "happened":
      return `The outside says that ${op(c)} of ${on} happened: its outcome is taken over.`
    case "neverWill":
      return `The outside says that ${op(c)} of ${on} never will happen: the next try may fire.`
    case "unknown":
      return `The outside cannot say what became of ${op(c)} of ${on}.`
    case "moveSettlement":
      return `${worker} takes in what the operator said of ${op(c)} of ${on}.`
    case "moveCancel":
      return `${worker} takes in the cancellation of ${on}.`
    case "endCancelled":
      return `${worker} ends ${on} as cancelled.`
    case "complete":
      return `${worker} completes ${on}.`
    case "startChild":
      return `${worker} starts the child of ${op(c)} of ${on}.`
    case "adoptChild":
      return `${worker} takes over the child's outcome at ${op(c)} of ${on}.`
    case "rerun":
      return `${worker} runs ${op(c)} of ${on} again, although its outcome is durable.`
    case "crash":
      return b === 15
        ? `${worker} crashes; it held nothing, branches are parked.`
        : `${worker} crashes while it holds ${on}.`
    case "pause":
      return `${worker} is paused while it holds ${on}.`
    case "deliver":
      return `Deliverer ${a + 1} answers ${op(c)} of ${on} with ${values[world.deliverers[a]?.value ?? 0] ?? ""} (retry).`
    case "check":
      return `Deliverer ${a + 1} finds ${op(c)} of ${on} unanswered, and has not written its answer yet.`
    case "fork":
      return `Deliverer ${a + 1} asks for a fork of ${on} at ${op(c)} with ${values[world.deliverers[a]?.value ?? 0] ?? ""}.`
    case "plainFork":
      return `Somebody forks ${on} at its latest checkpoint, after ${c} outcomes.`
    case "cancel":
      return `Somebody cancels ${on}.`
    case "settle":
      return `An operator says that ${op(c)} of ${on} ${a === 1 ? "happened" : "did not happen and never will"}.`
    case "refuseInvalid":
      return `${worker} runs ${op(c)} of ${on}: its outcome fails its Schema and is refused.`
    case "inputChanged":
      return `${worker} finds that ${op(c)} of ${on} was intended with another input, and fires nothing.`
    case undefined:
      return "Something happens that has no name."
  }
}

const reasons: ReadonlyArray<string> = [
  "a resumed branch ran an operation whose outcome was durable.",
  "the outside's own log shows more than the delivery policy allows.",
  "a fork was asked for with one value and was served another.",
  "the durable history holds a value that fails its Schema.",
  "an interrupt was consumed other than by one claim that addressed it.",
  "the same durable history was recovered in two ways.",
  "what happened is not what the request asked for: a retry made a branch, or a fork consumed its parent's interrupt.",
  "nothing of the system's own can happen any more, and a branch is not over and waits for nothing that can be named."
]

/** What is wrong with a state that breaks a property; `undefined` for a property that this file does not know. */
export const explainBreak = (world: World, cells: Cells, property: number, state: Uint8Array): string | undefined => {
  const reason = reasons[property]
  if (property !== 1 || reason === undefined) return reason
  const twice: Array<string> = []
  for (let b = 0; b < cells.branches; b++) {
    const program = world.programs[(state[cells.branch(b) + B.program] ?? 0) - 1] ?? []
    program.forEach(({ kind }, p) => {
      const fired = state[cells.claim(b, p)] ?? 0
      const seen = state[cells.claimed(b, p)] ?? 0
      const what = `operation ${p + 1} (${kind}) of ${branchName(cells, state, b)}`
      if ((kind === "once" || kind === "transactional") && fired > 1) twice.push(`${what} fired ${fired} times`)
      if (kind === "keyed" && (seen & 4) !== 0) twice.push(`${what} fired with two inputs under one key`)
    })
  }
  return twice.length === 0 ? reason : `${reason.slice(0, -1)}: ${twice.join("; ")}.`
}
