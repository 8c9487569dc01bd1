/** What a well-formed state of the plane is: what its rows, and its workers' memories, say of each other agrees. */
import { branchCell as B, type Cells, status, workerCell as W } from "./PlaneCells.js"
import type { World } from "./PlaneWorld.js"

/** What is wrong with the shape of a state; `undefined` if nothing is. */
export const illFormed = (world: World, cells: Cells, state: Uint8Array): string | undefined => {
  for (let b = 0; b < cells.branches; b++) {
    const at = cells.branch(b)
    const cell = (c: number): number => state[at + c] ?? 0
    const program = world.programs[cell(B.program) - 1]
    if ((cell(B.status) === status.absent) !== (program === undefined)) return `branch ${b} is half there`
    if (program === undefined) continue
    if (cell(B.done) > program.length) return `branch ${b} has more outcomes than operations`
    if ((cell(B.status) === status.running) !== (cell(B.owner) !== 0)) return `branch ${b} runs without an owner`
    const kind = program[cell(B.done)]?.kind
    if (cell(B.mark) === 1 && (kind === undefined || kind === "read" || kind === "transactional")) {
      return `branch ${b} has a mark of an operation that writes none`
    }
    for (let p = 0; p < program.length; p++) {
      if (((state[cells.value(b, p)] ?? 0) !== 0) !== p < cell(B.done)) return `branch ${b} has holes in its history`
    }
  }
  for (let w = 0; w < cells.workers; w++) {
    const at = cells.worker(w)
    const held = state[at + W.at] ?? 0
    const fresh = ((state[at + W.flags] ?? 0) & 1) === 1
    if (held === 0) continue
    if (fresh && state[cells.branch(held - 1) + B.owner] !== w + 1)
      return `worker ${w} owns what the row says is another's`
    if (fresh && (state[at + W.position] ?? 0) * 2 + 1 < (state[at + W.base] ?? 0))
      return `worker ${w} is behind itself`
  }
  return undefined
}
