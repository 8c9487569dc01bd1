/** What transitions share: the state before, the one being made, and the writes that keep the oracle's log. */
import type { FaultId } from "./PlaneFault.js"
import { branchCell as B, type Cells, cellsOf, dead, opKinds, phase, status, workerCell as W } from "./PlaneCells.js"
import type { Emit } from "./PackedModel.js"
import { wordsOf } from "./PackedModel.js"
import type { Verdicts } from "./PlaneVerdicts.js"
import type { World } from "./PlaneWorld.js"

/** Properties as bits, in the order of `propertyBits`. */
export const bits = { PC: 1, EO: 2, FD: 4, CV: 8, CO: 16, RD: 32, FI: 64, LV: 128 } as const

/** What a transition was, packed in its label with the worker, deliverer or branch that it was about. */
export const deeds = [
  "claim",
  "claimStale",
  "free",
  "lapse",
  "resume",
  "learn",
  "run",
  "intend",
  "fire",
  "outcome",
  "commit",
  "open",
  "serve",
  "reuse",
  "persist",
  "persistMark",
  "park",
  "stuck",
  "time",
  "happened",
  "neverWill",
  "unknown",
  "moveSettlement",
  "moveCancel",
  "endCancelled",
  "complete",
  "startChild",
  "adoptChild",
  "rerun",
  "crash",
  "pause",
  "deliver",
  "check",
  "fork",
  "plainFork",
  "cancel",
  "settle",
  "refuseInvalid",
  "inputChanged"
] as const
export type Deed = (typeof deeds)[number]

const deedNumber = new Map<Deed, number>(deeds.map((deed, n) => [deed, n]))

/** A label: the deed, and up to three small numbers. */
export const labelOf = (deed: Deed, a = 0, b = 0, c = 0): number =>
  (deedNumber.get(deed) ?? 0) | (a << 6) | (b << 10) | (c << 14)

/** Reads a label. */
export const readLabel = (
  label: number
): { readonly deed: Deed | undefined; readonly a: number; readonly b: number; readonly c: number } => ({
  deed: deeds[label & 63],
  a: (label >> 6) & 15,
  b: (label >> 10) & 15,
  c: (label >> 14) & 15
})

/** One world under at most one fault, with the state that is being expanded. */
export class PlaneStep {
  readonly cells: Cells
  /** The state before. */
  s: Uint8Array
  /** The state being made. */
  readonly n: Uint8Array
  private emit: Emit = () => undefined
  private readonly kinds: Uint8Array

  constructor(
    readonly world: World,
    readonly fault: FaultId | undefined,
    readonly ask: Verdicts
  ) {
    this.cells = cellsOf(world)
    this.n = new Uint8Array(wordsOf(this.cells.count) * 8)
    this.s = this.n
    this.kinds = new Uint8Array(world.programs.length * 8)
    world.programs.forEach((program, at) => program.forEach((op, p) => (this.kinds[at * 8 + p] = opKinds[op.kind])))
  }

  over(cells: Uint8Array, emit: Emit): void {
    this.s = cells
    this.emit = emit
  }

  /** A cell of the state before. */
  get(at: number): number {
    return this.s[at] ?? 0
  }

  /** A branch's cell of the state before. */
  of(b: number, cell: number): number {
    return this.s[this.cells.branch(b) + cell] ?? 0
  }

  set(b: number, cell: number, value: number): void {
    this.n[this.cells.branch(b) + cell] = value
  }

  /** A worker's cell of the state before. */
  held(w: number, cell: number): number {
    return this.s[this.cells.worker(w) + cell] ?? 0
  }

  hold(w: number, cell: number, value: number): void {
    this.n[this.cells.worker(w) + cell] = value
  }

  /** Kind of the operation at a position of a branch's program; 0 after its end. */
  kind(b: number, p: number): number {
    return this.kinds[(this.of(b, B.program) - 1) * 8 + p] ?? 0
  }

  begin(): void {
    this.n.set(this.s)
  }

  /** Hands over what was made. */
  system(label: number): void {
    this.emit(this.n, label, false)
  }

  environment(label: number): void {
    this.emit(this.n, label, true)
  }

  /** Notes in the history that a property was broken. */
  breaks(properties: number): void {
    const { log } = this.cells
    this.n[log] = (this.n[log] ?? 0) | (properties & 15)
    this.n[log + 1] = (this.n[log + 1] ?? 0) | (properties >> 4)
  }

  /** The worker forgets all that it holds. */
  letGo(w: number): void {
    const from = this.cells.worker(w)
    this.n.fill(0, from, from + 7 + this.cells.ops)
  }

  isFresh(w: number): boolean {
    return (this.held(w, W.flags) & 1) === 1
  }

  isPaused(w: number): boolean {
    return (this.held(w, W.flags) & 2) === 2
  }

  /** Something was accepted from outside, or a child ended, that the worker has not moved. */
  unseen(b: number, w: number): boolean {
    const p = this.held(w, W.position)
    const cancel = this.of(b, B.cancel)
    if (this.of(b, B.settled) !== 0 || cancel === 1 || cancel === 2) return true
    const kind = this.kind(b, p)
    if (kind === opKinds.gate) return this.answerWaits(b, p)
    return kind === opKinds.child && this.childEnded(b)
  }

  /** An answer was accepted for the gate, as this plane finds it. */
  answerWaits(b: number, p: number): boolean {
    if (this.get(this.cells.claim(b, p)) === 0) return false
    return this.fault !== "falsy-answer-lost" || this.get(this.cells.claimed(b, p)) !== 1
  }

  childEnded(b: number): boolean {
    const child = this.of(b, B.child)
    return child !== 0 && this.of(child - 1, B.status) === status.completed
  }

  /** A waiting branch wants a worker again. */
  wake(b: number): void {
    const at = this.cells.branch(b) + B.status
    const now = this.n[at]
    if (now === status.waiting || now === status.stuck) {
      this.n[at] = status.ready
      this.set(b, B.problem, 0)
    }
  }

  /** The operation at `done` has a durable outcome. */
  outcomeDurable(b: number, p: number, value: number): void {
    this.n[this.cells.value(b, p)] = value
    this.set(b, B.done, p + 1)
    this.clearStanding(b)
    this.set(b, B.voided, 0)
  }

  clearStanding(b: number): void {
    this.set(b, B.mark, 0)
    this.set(b, B.input, 0)
    this.set(b, B.intentBy, 0)
    this.set(b, B.late, 0)
    this.set(b, B.origin, 0)
  }

  /** The effect reaches the outside: its log counts by the key, and notices another input. */
  fires(b: number, p: number, input: number): void {
    const origin = p === this.of(b, B.done) ? this.of(b, B.origin) : 0
    const holder = origin === 0 ? b : origin - 1
    const counted = this.cells.claim(holder, p)
    const firings = this.n[counted] ?? 0
    this.n[counted] = Math.min(3, firings + 1)
    const seen = this.cells.claimed(holder, p)
    const first = this.n[seen] ?? 0
    this.n[seen] = firings === 0 ? input : (first & 3) === input ? first : first | 4
    const childOf = this.of(b, B.childOf)
    if (childOf === 0) return
    for (let other = 0; other < this.cells.branches; other++) {
      if (other === b || this.of(other, B.childOf) !== childOf) continue
      // One awaited child, and an effect of each of its runs.
      if (this.get(this.cells.claim(other, p)) > 0) this.breaks(bits.EO)
    }
  }

  /** A process is gone: its intents were written by a worker that is known to be dead. */
  buryWriter(w: number): void {
    for (let b = 0; b < this.cells.branches; b++) if (this.of(b, B.intentBy) === w + 1) this.set(b, B.intentBy, dead)
  }

  /** The phase in which a worker begins with what recovery found standing. */
  phaseOf(standing: number): number {
    return standing === 2 ? phase.inDoubt : standing === 1 ? phase.marked : phase.idle
  }
}
