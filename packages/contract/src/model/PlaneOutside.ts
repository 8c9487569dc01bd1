/** What the outside does: it kills and pauses workers, answers, forks, cancels and settles, as often as the world lets it. */
import { branchCell as B, byFork, dead, opKinds as K, status, workerCell as W } from "./PlaneCells.js"
import { freeBranch } from "./PlaneOwner.js"
import { bits, labelOf, type PlaneStep } from "./PlaneStep.js"
import { deliveryVerdict, forkVerdict } from "./PlaneVerdicts.js"

/** Everything that the outside may do next. */
export const environmentTransitions = (x: PlaneStep): void => {
  const { cells } = x
  for (let w = 0; w < cells.workers; w++) {
    if (x.get(cells.crashes) > 0) crash(x, w)
    if (x.get(cells.pauses) > 0 && x.held(w, W.at) !== 0 && !x.isPaused(w)) {
      x.begin()
      x.n[cells.pauses] = x.get(cells.pauses) - 1
      x.hold(w, W.flags, x.held(w, W.flags) | 2)
      x.environment(labelOf("pause", w, x.held(w, W.at) - 1))
    }
  }
  x.world.deliverers.forEach(({ sends, intent }, d) => {
    const pending = x.get(cells.deliverer(d) + 1)
    if (pending !== 0) return act(x, d, Math.floor((pending - 1) / cells.ops), (pending - 1) % cells.ops)
    if (x.get(cells.deliverer(d)) >= sends) return
    for (let b = 0; b < cells.branches; b++) {
      if (x.of(b, B.status) === status.absent) continue
      for (let p = 0; p < cells.ops; p++) {
        if (x.kind(b, p) !== K.gate || !isOpened(x, b, p)) continue
        if (intent === "retry") deliver(x, d, b, p)
        else forkAtGate(x, d, b, p)
      }
    }
  })
  for (let b = 0; b < cells.branches; b++) {
    if (x.of(b, B.status) === status.absent) continue
    if (x.get(cells.plainForks) > 0) plainFork(x, b)
    if (x.get(cells.cancels) > 0) cancel(x, b)
    if (x.world.operator) settle(x, b)
  }
}

const isOpened = (x: PlaneStep, b: number, p: number): boolean =>
  x.of(b, B.done) > p || (x.of(b, B.done) === p && x.of(b, B.mark) === 1)

/** The process is gone, with all that it had in memory. Also one that holds nothing while branches are parked. */
const crash = (x: PlaneStep, w: number): void => {
  const at = x.held(w, W.at)
  x.begin()
  x.n[x.cells.crashes] = x.get(x.cells.crashes) - 1
  if (at !== 0) {
    if (x.isFresh(w)) x.set(at - 1, B.owner, dead)
    x.buryWriter(w)
    x.letGo(w)
    return x.environment(labelOf("crash", w, at - 1))
  }
  let parked = false
  for (let b = 0; b < x.cells.branches; b++) {
    if (x.of(b, B.status) !== status.waiting) continue
    parked = true
    if (x.fault === "parked-state-lost") x.set(b, B.damage, x.of(b, B.damage) | 1)
  }
  if (parked) {
    x.buryWriter(w)
    x.environment(labelOf("crash", w, 15))
  }
}

const isOver = (x: PlaneStep, b: number): boolean => x.of(b, B.status) >= status.completed

/** An answer with intent "retry", judged and accepted in one transaction. */
const deliver = (x: PlaneStep, d: number, b: number, p: number): void => {
  const { cells } = x
  const value = x.world.deliverers[d]?.value ?? 1
  const verdict = judge(x, d, b, p, value)
  const accepted = verdict === deliveryVerdict.accepted
  x.begin()
  x.n[cells.deliverer(d)] = x.get(cells.deliverer(d)) + 1
  if (accepted && x.fault === "double-consume") {
    x.n[cells.deliverer(d) + 1] = b * cells.ops + p + 1
    return x.environment(labelOf("check", d, b, p))
  }
  if (accepted) {
    accept(x, d, b, p, value)
  } else if (
    x.fault === "retry-taken-for-fork" &&
    verdict === deliveryVerdict.alreadyConsumed &&
    x.get(cells.claimed(b, p)) !== value &&
    value !== 3
  ) {
    // A losing delivery starts the gated step, on a branch that nobody asked for.
    const slot = freeBranch(x)
    if (slot >= 0) makeFork(x, d, b, p, slot, value)
  }
  x.environment(labelOf("deliver", d, b, p))
}

const judge = (x: PlaneStep, d: number, b: number, p: number, value: number): number => {
  const { cells } = x
  const claim = x.get(cells.claim(b, p))
  const lost = (x.of(b, B.damage) & 1) !== 0
  const interrupt = lost ? 0 : claim === 0 ? 1 : claim !== d + 1 ? 4 : x.get(cells.claimed(b, p)) === value ? 2 : 3
  let used = false
  for (let q = 0; q < cells.ops; q++) {
    if (q !== p && x.kind(b, q) === K.gate && x.get(cells.claim(b, q)) === d + 1) used = true
  }
  const valid = value !== 3 || x.fault === "invalid-persisted"
  return x.ask.deliver(interrupt, used, isOver(x, b), valid)
}

/** Writes the claim of a delivery that addressed this interrupt, and wakes a branch that waits, in one transaction. */
const accept = (x: PlaneStep, d: number, b: number, p: number, value: number): void => {
  claim(x, d, b, p, value, true)
  if (x.fault !== "bare-broadcast") return
  for (let other = 0; other < x.cells.branches; other++) {
    const at = x.of(other, B.done)
    if (other === b || x.of(other, B.mark) === 0 || x.kind(other, at) !== K.gate) continue
    if (x.get(x.cells.claim(other, at)) === 0 && !isOver(x, other)) claim(x, d, other, at, value, false)
  }
}

const claim = (x: PlaneStep, d: number, b: number, p: number, value: number, addressed: boolean): void => {
  const { cells } = x
  // CO: consumed once, by a delivery that addressed it.
  if (!addressed || x.get(cells.claim(b, p)) !== 0) x.breaks(bits.CO)
  x.n[cells.claim(b, p)] = d + 1
  x.n[cells.claimed(b, p)] = value
  x.wake(b)
}

/** The second transaction of a gate that checks and then acts. */
const act = (x: PlaneStep, d: number, b: number, p: number): void => {
  x.begin()
  x.n[x.cells.deliverer(d) + 1] = 0
  accept(x, d, b, p, x.world.deliverers[d]?.value ?? 1)
  x.environment(labelOf("deliver", d, b, p))
}

const forkAtGate = (x: PlaneStep, d: number, b: number, p: number): void => {
  const { cells } = x
  const value = x.world.deliverers[d]?.value ?? 1
  let existing = 0
  for (let other = 0; other < cells.branches; other++) {
    if (x.of(other, B.forkedBy) !== d + 1) continue
    const same = x.of(other, B.parent) === b + 1 && x.of(other, B.forkedAt) === p + 1 && x.of(other, B.wanted) === value
    existing = same ? 1 : 2
  }
  const verdict = x.ask.fork(existing, isOpened(x, b, p), true, value !== 3, false)
  const slot = freeBranch(x)
  if (verdict === forkVerdict.fork && slot < 0) return
  x.begin()
  x.n[cells.deliverer(d)] = x.get(cells.deliverer(d)) + 1
  if (verdict === forkVerdict.fork) {
    if (x.fault === "fork-taken-for-retry" && x.get(cells.claim(b, p)) === 0 && !isOver(x, b)) {
      accept(x, d, b, p, value)
    } else makeFork(x, d, b, p, slot, value)
  }
  x.environment(labelOf("fork", d, b, p))
}

/** A branch from the gate's checkpoint, with the answer as its first event. */
const makeFork = (x: PlaneStep, d: number, b: number, p: number, slot: number, value: number): void => {
  const { cells } = x
  inherit(x, b, slot, p)
  const recorded = x.get(cells.claimed(b, p))
  const served = x.fault === "fork-ignored" && x.get(cells.claim(b, p)) !== 0 ? recorded : value
  x.n[cells.value(slot, p)] = served
  x.n[cells.claim(slot, p)] = byFork
  x.n[cells.claimed(slot, p)] = served
  x.set(slot, B.done, p + 1)
  x.set(slot, B.wanted, value)
  x.set(slot, B.forkedAt, p + 1)
  x.set(slot, B.forkedBy, d + 1)
}

/** The history before `upTo`: outcomes and consumed interrupts, but not what the parent's branch fired. */
const inherit = (x: PlaneStep, b: number, slot: number, upTo: number): void => {
  const { cells } = x
  x.set(slot, B.program, x.of(b, B.program))
  x.set(slot, B.status, status.ready)
  x.set(slot, B.parent, b + 1)
  for (let p = 0; p < upTo; p++) {
    x.n[cells.value(slot, p)] = x.get(cells.value(b, p))
    const kind = x.kind(b, p)
    if (kind === K.gate) {
      x.n[cells.claim(slot, p)] = x.get(cells.claim(b, p))
      x.n[cells.claimed(slot, p)] = x.get(cells.claimed(b, p))
    } else if (kind === K.child) x.set(slot, B.child, x.of(b, B.child))
  }
}

/** A branch from the latest checkpoint: what is open there is open on it, what is intended keeps its key. */
const plainFork = (x: PlaneStep, b: number): void => {
  const done = x.of(b, B.done)
  const mark = x.of(b, B.mark)
  const kind = x.kind(b, done)
  const slot = freeBranch(x)
  const inFlight = kind === K.once && mark === 1
  if (slot < 0 || isOver(x, b) || x.ask.fork(0, true, true, true, inFlight) !== forkVerdict.fork) return
  x.begin()
  x.n[x.cells.plainForks] = x.get(x.cells.plainForks) - 1
  inherit(x, b, slot, done)
  x.set(slot, B.done, done)
  x.set(slot, B.mark, mark)
  x.set(slot, B.voided, x.of(b, B.voided))
  if (mark === 1) {
    x.set(slot, B.input, x.of(b, B.input))
    x.set(slot, B.intentBy, x.of(b, B.intentBy))
    if (kind === K.keyed) x.set(slot, B.origin, x.of(b, B.origin) === 0 ? b + 1 : x.of(b, B.origin))
    if (kind === K.child) x.set(slot, B.child, x.of(b, B.child))
  }
  x.environment(labelOf("plainFork", 0, b, done))
}

const cancel = (x: PlaneStep, b: number): void => {
  if (!x.ask.cancel(isOver(x, b), x.of(b, B.cancel) !== 0)) return
  const p = x.of(b, B.done)
  const answerWaits = x.kind(b, p) === K.gate && x.get(x.cells.claim(b, p)) !== 0
  x.begin()
  x.n[x.cells.cancels] = x.get(x.cells.cancels) - 1
  x.set(b, B.cancel, answerWaits ? 2 : 1)
  x.wake(b)
  x.environment(labelOf("cancel", 0, b))
}

/** An operator says what became of an effect in doubt. "Did not happen" promises that it never will, so it is not said too early. */
const settle = (x: PlaneStep, b: number): void => {
  const p = x.of(b, B.done)
  if (x.of(b, B.mark) === 0 || x.kind(b, p) !== K.once) return
  if (!x.ask.settle(isOver(x, b), x.of(b, B.owner) !== 0, true, x.of(b, B.settled) !== 0)) return
  const happened = x.get(x.cells.claim(b, p)) > 0
  if (!happened && x.of(b, B.intentBy) !== dead && x.of(b, B.late) === 0) return
  x.begin()
  x.set(b, B.settled, (happened ? 1 : 2) | (Math.min(3, x.of(b, B.voided)) << 2))
  x.wake(b)
  x.environment(labelOf("settle", happened ? 1 : 2, b, p))
}
