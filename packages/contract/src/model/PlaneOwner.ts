/**
 * What workers do: take branches up, run operations, make them durable, recover effects in doubt, park and end. All of it
 * is the system's own: none waits for the outside's will.
 */
import { branchCell as B, dead, opKinds as K, phase, status, workerCell as W } from "./PlaneCells.js"
import { commit, effect, fire, inDoubt, stores, voids } from "./PlaneEffects.js"
import { bits, labelOf, type PlaneStep } from "./PlaneStep.js"
import { appendVerdict, parkVerdict } from "./PlaneVerdicts.js"

/** Everything that the system may do next. */
export const systemTransitions = (x: PlaneStep): void => {
  for (let b = 0; b < x.cells.branches; b++) {
    if (x.of(b, B.owner) === dead && x.ask.mayTake(true, false)) {
      x.begin()
      freed(x, b)
      x.system(labelOf("free", 0, b))
    }
  }
  for (let w = 0; w < x.cells.workers; w++) {
    const at = x.held(w, W.at)
    if (x.isPaused(w)) {
      paused(x, w, at - 1)
    } else if (at === 0) {
      for (let b = 0; b < x.cells.branches; b++) if (x.of(b, B.status) === status.ready) claims(x, w, b)
    } else if (x.isFresh(w)) {
      works(x, w, at - 1)
    } else {
      zombie(x, w, at - 1)
    }
  }
}

const freed = (x: PlaneStep, b: number): void => {
  x.set(b, B.owner, 0)
  x.set(b, B.status, status.ready)
}

/** A paused worker goes on, or its lease lapses and others may take its branch. */
const paused = (x: PlaneStep, w: number, b: number): void => {
  x.begin()
  x.hold(w, W.flags, x.held(w, W.flags) & ~2)
  x.system(labelOf("resume", w, b))
  if (x.isFresh(w) && x.ask.mayTake(false, true)) {
    x.begin()
    freed(x, b)
    x.hold(w, W.flags, x.held(w, W.flags) & ~1)
    x.system(labelOf("lapse", w, b))
  }
}

/** Takes a branch up: what it does next is what its recovery finds in the durable history. */
const claims = (x: PlaneStep, w: number, b: number): void => {
  const done = x.of(b, B.done)
  const recovered = x.ask.recovered(x.of(b, B.program) - 1, done, x.of(b, B.mark) === 1, x.of(b, B.voided))
  const again = x.fault === "rerun-on-resume" || x.fault === "rebuild-from-initial"
  claimAt(x, w, b, again ? 0 : recovered.done, recovered.standing, recovered.done)
  x.system(labelOf("claim", w, b))
  // RD: what follows recovers the same history a second time, and otherwise.
  if (x.fault === "order-dependent-recovery" && x.of(b, B.damage) >= 2 && done > 0) {
    claimAt(x, w, b, done - 1, recovered.standing, recovered.done)
    x.breaks(bits.RD)
    x.system(labelOf("claimStale", w, b, done - 1))
  }
  if (x.fault === "world-read-in-replay") {
    for (let p = 0; p < done; p++) {
      const op = x.world.programs[x.of(b, B.program) - 1]?.[p]
      if (op?.kind !== "read" || op.outcomes !== 2) continue
      claimAt(x, w, b, recovered.done, recovered.standing, recovered.done)
      x.n[x.cells.hand(w, p)] = 3 - x.get(x.cells.value(b, p))
      x.breaks(bits.RD)
      x.system(labelOf("claimStale", w, b, p))
    }
  }
}

const claimAt = (x: PlaneStep, w: number, b: number, position: number, standing: number, done: number): void => {
  x.begin()
  x.set(b, B.status, status.running)
  x.set(b, B.owner, w + 1)
  x.set(b, B.problem, 0)
  x.hold(w, W.at, b + 1)
  x.hold(w, W.flags, 1)
  x.hold(w, W.position, position)
  x.hold(w, W.phase, position === done ? x.phaseOf(standing) : phase.idle)
  x.hold(w, W.input, standing === 2 && position === done ? x.of(b, B.input) : 0)
  x.hold(w, W.base, 2 * x.of(b, B.done) + x.of(b, B.mark))
  x.hold(w, W.voided, x.of(b, B.voided))
  for (let p = 0; p < position; p++) x.n[x.cells.hand(w, p)] = x.get(x.cells.value(b, p))
}

/** A worker whose branch another may have: it fires what it was about to, or is told that it is fenced. */
const zombie = (x: PlaneStep, w: number, b: number): void => {
  x.begin()
  x.letGo(w)
  x.system(labelOf("learn", w, b))
  // Of one that the store believes nothing tells it apart from an owner.
  const believed = x.fault === "unfenced-zombie" || x.ask.append(false, true, false, false) === appendVerdict.append
  if (believed) return works(x, w, b)
  const p = x.held(w, W.position)
  const kind = x.kind(b, p)
  if (kind === K.keyed || kind === K.once) {
    const at = x.held(w, W.phase)
    if (at === phase.marked) fire(x, w, b, p, kind)
    else if (at === phase.inDoubt && kind === K.keyed) inDoubt(x, w, b, p, kind)
  }
}

/** Everything that a worker may do with the branch that it holds. */
const works = (x: PlaneStep, w: number, b: number): void => {
  const p = x.held(w, W.position)
  const kind = x.kind(b, p)
  const base = x.held(w, W.base)
  const at = x.held(w, W.phase)
  persist(x, w, b, p, kind, base, at)
  const caughtUp = base === 2 * p + (at === phase.idle ? 0 : 1) || base >= 2 * p + 1
  if (caughtUp) moveRows(x, w, b, p, kind, at)
  const cancelled = x.of(b, B.cancel) === 3
  if (cancelled && (at === phase.idle || kind === K.gate || kind === K.child)) {
    if (caughtUp || base === 2 * p) end(x, w, b, status.cancelled)
    return
  }
  if (at === phase.unsettled || at === phase.invalid || at === phase.inputChanged) return stuck(x, w, b, at)
  if (p < x.of(b, B.done) && x.isFresh(w) && at === phase.idle) return again(x, w, b, p, kind)
  switch (kind) {
    case K.end:
      if (base === 2 * p) end(x, w, b, status.completed)
      return
    case K.read:
      return read(x, w, b, p)
    case K.transactional:
      if (base === 2 * p) commit(x, w, b, p)
      return
    case K.gate:
      return gate(x, w, b, p, base, at)
    case K.child:
      return child(x, w, b, p, base, at)
    default:
      return effect(x, w, b, p, kind, at)
  }
}

/** Makes the next of the worker's pending entries durable: the mark of an operation, or its outcome. */
const persist = (x: PlaneStep, w: number, b: number, p: number, kind: number, base: number, at: number): void => {
  const next = base >> 1
  if (next < p) {
    if (!stores(x, w, b, undefined)) return
    x.begin()
    const value = x.get(x.cells.hand(w, next))
    if (x.of(b, B.done) <= next) {
      x.outcomeDurable(b, next, value)
      if (x.fault === "order-dependent-recovery") x.set(b, B.damage, x.of(b, B.damage) | 2)
    }
    x.hold(w, W.base, 2 * next + 2)
    return x.system(labelOf("persist", w, b, next))
  }
  const marks = kind === K.keyed || kind === K.once || kind === K.gate || kind === K.child
  if (!marks || at === phase.idle || base !== 2 * p || !stores(x, w, b, undefined)) return
  x.begin()
  if (x.of(b, B.done) === p) {
    x.set(b, B.mark, 1)
    if (kind === K.keyed || kind === K.once) {
      x.set(b, B.input, x.held(w, W.input))
      x.set(b, B.intentBy, w + 1)
    }
    if (x.fault === "order-dependent-recovery") x.set(b, B.damage, x.of(b, B.damage) & 1)
  }
  x.hold(w, W.base, base + 1)
  x.system(labelOf("persistMark", w, b, p))
}

/** Moves what was accepted from outside, other than an answer to the gate at hand, which `gate` serves. */
const moveRows = (x: PlaneStep, w: number, b: number, p: number, kind: number, at: number): void => {
  const cancel = x.of(b, B.cancel)
  const answerFirst = cancel === 2 && kind === K.gate && x.get(x.cells.claim(b, p)) !== 0
  if ((cancel === 1 || cancel === 2) && !answerFirst && stores(x, w, b, undefined)) {
    x.begin()
    x.set(b, B.cancel, x.ask.serveCancel(kind === K.end) ? 3 : 4)
    x.system(labelOf("moveCancel", w, b))
  }
  const settled = x.of(b, B.settled)
  if (settled === 0 || at === phase.fired || !stores(x, w, b, undefined)) return
  x.begin()
  x.set(b, B.settled, 0)
  // It names one try: what is said of a try that was voided since is of no use any more.
  const sameTry = settled >> 2 === x.of(b, B.voided)
  if (x.ask.serveSettlement(sameTry && (at === phase.inDoubt || at === phase.unsettled))) {
    if ((settled & 3) === 1) x.hold(w, W.phase, phase.fired)
    else voids(x, w, b, p)
  }
  x.system(labelOf("moveSettlement", w, b, p))
}

const read = (x: PlaneStep, w: number, b: number, p: number): void => {
  const op = x.world.programs[x.of(b, B.program) - 1]?.[p]
  if (op?.kind !== "read") return
  for (let value = 1; value <= op.outcomes; value++) {
    x.begin()
    x.n[x.cells.hand(w, p)] = value
    x.hold(w, W.position, p + 1)
    x.system(labelOf("run", w, b, value))
  }
  if (op.mayBeInvalid !== true) return
  x.begin()
  if (x.fault === "invalid-persisted" || x.ask.mayPersist(false)) {
    x.n[x.cells.hand(w, p)] = 3
    x.hold(w, W.position, p + 1)
    x.system(labelOf("run", w, b, 3))
  } else {
    x.hold(w, W.phase, phase.invalid)
    x.system(labelOf("refuseInvalid", w, b, p))
  }
}

/** A faulty plane's resumed branch comes by an operation that has a durable outcome. */
const again = (x: PlaneStep, w: number, b: number, p: number, kind: number): void => {
  x.begin()
  x.breaks(bits.PC)
  const effects = x.fault !== "rebuild-from-initial"
  // What the gate lets through starts a second time on one consumption.
  if (effects && kind === K.gate && p + 1 < x.of(b, B.done)) x.breaks(bits.CO)
  if (effects && (kind === K.keyed || kind === K.once || kind === K.transactional)) {
    x.fires(b, p, Math.max(1, p === 0 ? 1 : x.get(x.cells.hand(w, p - 1))))
  }
  // A `repeatable` effect fires after its outcome is durable.
  if (effects && kind === K.read) x.breaks(bits.EO)
  x.n[x.cells.hand(w, p)] = x.get(x.cells.value(b, p))
  x.hold(w, W.position, p + 1)
  if (p + 1 === x.of(b, B.done)) {
    const mark = x.of(b, B.mark) === 1
    const { standing } = x.ask.recovered(x.of(b, B.program) - 1, p + 1, mark, x.of(b, B.voided))
    x.hold(w, W.phase, x.phaseOf(standing))
    x.hold(w, W.input, standing === 2 ? x.of(b, B.input) : 0)
  }
  x.system(labelOf("rerun", w, b, p))
}

const gate = (x: PlaneStep, w: number, b: number, p: number, base: number, at: number): void => {
  if (at === phase.idle) {
    x.begin()
    x.hold(w, W.phase, phase.marked)
    return x.system(labelOf("open", w, b, p))
  }
  if (base !== 2 * p + 1) return
  if (x.answerWaits(b, p)) {
    // A cancel that was accepted first is moved first.
    if (x.of(b, B.cancel) === 1) return
    if (!x.ask.serveAnswer(false, true)) return
    served(x, w, b, p, x.get(x.cells.claimed(b, p)), false)
  } else if (x.fault === "answer-reused") {
    for (let q = p - 1; q >= 0; q--) {
      const earlier = x.kind(b, q) === K.gate ? x.get(x.cells.claimed(b, q)) : 0
      if (earlier === 0) continue
      served(x, w, b, p, earlier, true)
      break
    }
  }
  park(x, w, b, p)
}

const served = (x: PlaneStep, w: number, b: number, p: number, value: number, reused: boolean): void => {
  x.begin()
  x.n[x.cells.hand(w, p)] = value
  x.hold(w, W.position, p + 1)
  x.hold(w, W.phase, phase.idle)
  // CO: the claim is durable before what it gates starts.
  if (x.get(x.cells.claim(b, p)) === 0) x.breaks(bits.CO)
  x.system(labelOf(reused ? "reuse" : "serve", w, b, p))
}

const child = (x: PlaneStep, w: number, b: number, p: number, base: number, at: number): void => {
  if (at === phase.idle) return base === 2 * p ? startChild(x, w, b, p) : undefined
  if (base !== 2 * p + 1) return
  if (x.childEnded(b)) {
    const slot = x.of(b, B.child) - 1
    x.begin()
    x.n[x.cells.hand(w, p)] = x.get(x.cells.value(slot, x.of(slot, B.done) - 1))
    x.hold(w, W.position, p + 1)
    x.hold(w, W.phase, phase.idle)
    x.system(labelOf("adoptChild", w, b, p))
  }
  park(x, w, b, p)
}

const startChild = (x: PlaneStep, w: number, b: number, p: number): void => {
  const op = x.world.programs[x.of(b, B.program) - 1]?.[p]
  if (op?.kind !== "child") return
  // The child's id is made of its parent's, so that a start that was not recorded finds the child that it made.
  const present = x.of(b, B.child) !== 0
  const slot = freeBranch(x)
  const asNew = x.fault === "child-started-again" && slot >= 0
  const creates = x.ask.start(present && !asNew)
  if (creates && slot < 0) return
  x.begin()
  if (creates) {
    x.set(slot, B.program, op.program + 1)
    x.set(slot, B.status, status.ready)
    x.set(slot, B.childOf, b + 1)
    x.set(b, B.child, slot + 1)
  }
  x.hold(w, W.phase, phase.marked)
  x.system(labelOf("startChild", w, b, p))
}

/** A branch that is not there yet, or -1 at the world's bound. */
export const freeBranch = (x: PlaneStep): number => {
  for (let b = 0; b < x.cells.branches; b++) if (x.of(b, B.status) === status.absent) return b
  return -1
}

const park = (x: PlaneStep, w: number, b: number, p: number): void => {
  const unseen = x.fault !== "lost-wake-up" && x.unseen(b, w)
  if (x.of(b, B.cancel) === 3 || x.ask.park(x.isFresh(w), unseen) !== parkVerdict.park) return
  x.begin()
  x.set(b, B.status, status.waiting)
  x.set(b, B.owner, 0)
  x.letGo(w)
  x.system(labelOf("park", w, b, p))
}

const problems: Partial<Record<number, number>> = {
  [phase.unsettled]: 1,
  [phase.invalid]: 2,
  [phase.inputChanged]: 3
}

const stuck = (x: PlaneStep, w: number, b: number, at: number): void => {
  if (x.ask.park(x.isFresh(w), x.unseen(b, w)) !== parkVerdict.park) return
  x.begin()
  x.set(b, B.status, status.stuck)
  x.set(b, B.owner, 0)
  x.set(b, B.problem, problems[at] ?? 0)
  x.letGo(w)
  x.system(labelOf("stuck", w, b))
}

/** The terminal entry: after all that was accepted before it. */
const end = (x: PlaneStep, w: number, b: number, how: number): void => {
  const cancel = x.of(b, B.cancel)
  const unseen = x.of(b, B.settled) !== 0 || cancel === 1 || cancel === 2
  if (!stores(x, w, b, unseen)) return
  x.begin()
  x.set(b, B.status, how)
  x.set(b, B.owner, 0)
  x.letGo(w)
  // LV: whoever waits for this child is woken in the same transaction.
  for (let parent = 0; parent < x.cells.branches; parent++) if (x.of(parent, B.child) === b + 1) x.wake(parent)
  x.system(labelOf(how === status.completed ? "complete" : "endCancelled", w, b))
}
