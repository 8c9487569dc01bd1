/**
 * The plane as a transition system: branches with their durable histories, workers with their memories (an executed suffix that
 * is not durable yet), and the outside with the log that the effects themselves write.
 *
 * The transitions call the contract's decisions (`PlaneVerdicts`), so that what is explored is what ships; a fault replaces
 * what one of them does. The properties are predicates over the state and the history that it carries.
 */
import { properties } from "../Property.js"
import { type Decisions, shippedDecisions } from "./Decisions.js"
import type { PackedModel } from "./PackedModel.js"
import { wordsOf } from "./PackedModel.js"
import { branchCell as B, status, workerCell as W } from "./PlaneCells.js"
import type { FaultId } from "./PlaneFault.js"
import { illFormed } from "./PlaneShape.js"
import { environmentTransitions } from "./PlaneOutside.js"
import { systemTransitions } from "./PlaneOwner.js"
import { bits, PlaneStep } from "./PlaneStep.js"
import { describeDeed, explainBreak } from "./PlaneStory.js"
import { makeVerdicts } from "./PlaneVerdicts.js"
import type { World } from "./PlaneWorld.js"

/** Names of the properties, in the order of their bits. */
export const planeProperties: ReadonlyArray<string> = [...properties.map(({ id }) => id), "well-formed"]

const shapeBit = 1 << properties.length

/** The plane in a world, with at most one fault. */
export const makePlane = (
  world: World,
  options: { readonly fault?: FaultId; readonly decisions?: Decisions } = {}
): PackedModel => {
  const { fault, decisions = shippedDecisions } = options
  const x = new PlaneStep(world, fault, makeVerdicts(decisions, world))
  const { cells } = x
  const initial = new Uint8Array(wordsOf(cells.count) * 8)
  initial[cells.crashes] = world.crashes
  initial[cells.pauses] = world.pauses
  initial[cells.plainForks] = world.plainForks
  initial[cells.cancels] = world.cancels
  initial[cells.branch(0) + B.program] = 1
  initial[cells.branch(0) + B.status] = status.ready

  const broken = (state: Uint8Array): number => {
    let found = (state[cells.log] ?? 0) | ((state[cells.log + 1] ?? 0) << 4)
    let forks = 0
    for (let b = 0; b < cells.branches; b++) {
      const at = cells.branch(b)
      const program = world.programs[(state[at + B.program] ?? 0) - 1]
      if (program === undefined) continue
      for (let p = 0; p < program.length; p++) {
        const kind = program[p]?.kind
        const counted = state[cells.claim(b, p)] ?? 0
        const seen = state[cells.claimed(b, p)] ?? 0
        if ((state[cells.value(b, p)] ?? 0) === 3) found |= bits.CV
        if (kind === "gate") {
          if (seen === 3) found |= bits.CV
          // FI: a request for a branch consumes nothing on the branch that it names.
          if (world.deliverers[counted - 1]?.intent === "fork") found |= bits.FI
        } else if ((kind === "once" || kind === "transactional") && counted > 1) found |= bits.EO
        else if (kind === "keyed" && (seen & 4) !== 0) found |= bits.EO
      }
      // CO, FI: a branch comes of a request for one. A delivery that did not ask for it, and lost, would start the gated step on it.
      const request = state[at + B.forkedBy] ?? 0
      const forkedBy = world.deliverers[request - 1]
      // FI: one request, sent however often, is one branch.
      if (request !== 0 && (forks & (1 << request)) !== 0) found |= bits.FI
      forks |= 1 << request
      if (forkedBy !== undefined && forkedBy.intent !== "fork") found |= bits.CO | bits.FI
      const forkedAt = state[at + B.forkedAt] ?? 0
      if (forkedAt !== 0 && state[cells.value(b, forkedAt - 1)] !== state[at + B.wanted]) found |= bits.FD
    }
    return illFormed(world, cells, state) === undefined ? found : found | shapeBit
  }

  /** Every branch is over, or waits for what inspection names. */
  const mayRest = (state: Uint8Array): boolean => {
    for (let w = 0; w < cells.workers; w++) if ((state[cells.worker(w) + W.at] ?? 0) !== 0) return false
    for (let b = 0; b < cells.branches; b++) {
      const at = cells.branch(b)
      switch (state[at + B.status]) {
        case status.ready:
        case status.running:
          return false
        case status.waiting: {
          const p = state[at + B.done] ?? 0
          const kind = world.programs[(state[at + B.program] ?? 0) - 1]?.[p]?.kind
          if ((state[at + B.damage] ?? 0) & 1 || (state[at + B.mark] ?? 0) === 0) return false
          if ((state[at + B.settled] ?? 0) !== 0 || state[at + B.cancel] === 1 || state[at + B.cancel] === 2)
            return false
          if (kind === "gate") {
            if ((state[cells.claim(b, p)] ?? 0) !== 0) return false
          } else if (kind === "child") {
            const child = (state[at + B.child] ?? 0) - 1
            if (child < 0 || (state[cells.branch(child) + B.status] ?? 0) >= status.completed) return false
          } else return false
          break
        }
        case status.stuck:
          if ((state[at + B.problem] ?? 0) === 0 || (state[at + B.settled] ?? 0) !== 0) return false
          if (state[at + B.cancel] === 1 || state[at + B.cancel] === 2) return false
          break
      }
    }
    return true
  }

  return {
    name: fault === undefined ? world.name : `${world.name} with ${fault}`,
    cells: cells.count,
    initial: [initial],
    next: (state, emit) => {
      x.over(state, emit)
      systemTransitions(x)
      environmentTransitions(x)
    },
    nextOfSystem: (state, emit) => {
      x.over(state, emit)
      systemTransitions(x)
    },
    properties: planeProperties,
    broken,
    liveness: { bit: bits.LV, mayRest },
    describe: (label, before, after) => describeDeed(world, cells, label, before, after),
    explain: (property, state) => explainBreak(world, cells, property, state) ?? illFormed(world, cells, state) ?? ""
  }
}
