/** Effects of the plane: their intents, firings and outcomes, and what recovery makes of one in doubt (EO). */
import { branchCell as B, dead, opKinds as K, phase, workerCell as W } from "./PlaneCells.js"
import { labelOf, type PlaneStep } from "./PlaneStep.js"
import { appendVerdict, firingVerdict, reconciled, recoveryVerdict } from "./PlaneVerdicts.js"

/** True if the store takes what the worker appends. */
export const stores = (x: PlaneStep, w: number, b: number, unseen: boolean | undefined): boolean => {
  const current = 2 * x.of(b, B.done) + x.of(b, B.mark)
  const fresh = x.isFresh(w) || x.fault === "unfenced-zombie"
  const sameBase = x.held(w, W.base) === current || x.fault === "unfenced-zombie" || x.fault === "rerun-on-resume"
  return x.ask.append(fresh, sameBase, unseen !== undefined, unseen === true) === appendVerdict.append
}

/** The try at hand never happened and never will: the next may fire. */
export const voids = (x: PlaneStep, w: number, b: number, p: number): void => {
  x.clearStanding(b)
  const tries = Math.min(7, x.of(b, B.voided) + 1)
  x.set(b, B.voided, tries)
  x.hold(w, W.voided, tries)
  x.hold(w, W.phase, phase.idle)
  x.hold(w, W.input, 0)
  x.hold(w, W.base, 2 * p)
}

/** A `transactional` effect: its writes, its outcome and its position are one commit. */
export const commit = (x: PlaneStep, w: number, b: number, p: number): void => {
  // Its writes, its outcome and its position commit in one transaction, or nothing does.
  if (!stores(x, w, b, undefined)) return
  const input = p === 0 ? 1 : x.get(x.cells.hand(w, p - 1))
  if (x.ask.fire(K.transactional, false, 0, true) !== firingVerdict.fire) return
  x.begin()
  x.fires(b, p, input)
  if (x.of(b, B.done) <= p) x.outcomeDurable(b, p, input)
  x.n[x.cells.hand(w, p)] = input
  x.hold(w, W.position, p + 1)
  x.hold(w, W.base, 2 * p + 2)
  x.system(labelOf("commit", w, b, p))
}

/** What a worker may do with a `keyed` or `once` effect. */
export const effect = (x: PlaneStep, w: number, b: number, p: number, kind: number, at: number): void => {
  switch (at) {
    case phase.idle: {
      if (x.ask.fire(kind, false, x.held(w, W.voided), true) !== firingVerdict.fire) return
      x.begin()
      x.hold(w, W.phase, phase.marked)
      x.hold(w, W.input, p === 0 ? 1 : x.get(x.cells.hand(w, p - 1)))
      return x.system(labelOf("intend", w, b, p))
    }
    case phase.marked:
      return fire(x, w, b, p, kind)
    case phase.fired:
      x.begin()
      x.n[x.cells.hand(w, p)] = x.held(w, W.input)
      x.hold(w, W.position, p + 1)
      x.hold(w, W.phase, phase.idle)
      x.hold(w, W.input, 0)
      return x.system(labelOf("outcome", w, b, p))
    case phase.inDoubt:
      return inDoubt(x, w, b, p, kind)
  }
}

/** The handler is entered: only with a durable intent, and a `once` effect only before its time is up. */
export const fire = (x: PlaneStep, w: number, b: number, p: number, kind: number): void => {
  const base = x.held(w, W.base)
  const early =
    (x.fault === "fired-before-intent" && base === 2 * p) ||
    (x.fault === "outcome-before-durable" && kind === K.keyed && base < 2 * p)
  if (base !== 2 * p + 1 && !early) return
  if (kind === K.once && !x.isFresh(w) && x.fault !== "unfenced-zombie") {
    if (!x.ask.mayStillFire((x.held(w, W.flags) & 4) !== 0)) return
  }
  x.begin()
  x.fires(b, p, x.held(w, W.input))
  x.hold(w, W.phase, phase.fired)
  x.system(labelOf("fire", w, b, p))
}

/** An intent without an outcome: if the body still asks for the same, the delivery policy and what is known decide. */
export const inDoubt = (x: PlaneStep, w: number, b: number, p: number, kind: number): void => {
  const asked = p === 0 ? 1 : x.get(x.cells.hand(w, p - 1))
  const recorded = x.held(w, W.input)
  switch (x.ask.fire(kind, true, x.held(w, W.voided), asked === recorded)) {
    case firingVerdict.inDoubt:
      return recovers(x, w, b, p, kind)
    case firingVerdict.fire:
      x.begin()
      x.fires(b, p, asked)
      x.hold(w, W.phase, phase.fired)
      return x.system(labelOf("fire", w, b, p))
    case firingVerdict.inputChanged:
      x.begin()
      x.hold(w, W.phase, phase.inputChanged)
      return x.system(labelOf("inputChanged", w, b, p))
  }
}

const recovers = (x: PlaneStep, w: number, b: number, p: number, kind: number): void => {
  const recorded = x.held(w, W.input)
  const by = x.of(b, B.intentBy)
  // A worker that holds the branch again knows that its own firing is over.
  const byDead = by === dead || by === w + 1
  const late = x.of(b, B.late) === 1
  let verdict = x.ask.recover(kind, byDead, late, reconciled.notAsked)
  if (x.fault === "blind-refire") verdict = recoveryVerdict.fireAgain
  if (x.fault === "reconciled-early" && verdict === recoveryVerdict.wait) verdict = recoveryVerdict.ask
  switch (verdict) {
    case recoveryVerdict.fireAgain:
      x.begin()
      x.fires(b, p, recorded)
      x.hold(w, W.phase, phase.fired)
      return x.system(labelOf("fire", w, b, p))
    case recoveryVerdict.wait:
      x.begin()
      x.set(b, B.late, 1)
      for (let other = 0; other < x.cells.workers; other++) {
        // Its own clock says so to whoever is still about to fire.
        if (other !== w && x.held(other, W.at) === b + 1) x.hold(other, W.flags, x.held(other, W.flags) | 4)
      }
      return x.system(labelOf("time", w, b, p))
    case recoveryVerdict.ask: {
      const origin = x.of(b, B.origin)
      const happened = x.get(x.cells.claim(origin === 0 ? b : origin - 1, p)) > 0
      const said = happened ? reconciled.happened : reconciled.neverWill
      const then = x.ask.recover(kind, byDead, late, said)
      if (then === recoveryVerdict.adopt) {
        x.begin()
        x.hold(w, W.phase, phase.fired)
        x.system(labelOf("happened", w, b, p))
      } else if (then === recoveryVerdict.void && stores(x, w, b, undefined)) {
        x.begin()
        voids(x, w, b, p)
        x.system(labelOf("neverWill", w, b, p))
      }
      if (x.ask.recover(kind, byDead, late, reconciled.unknown) === recoveryVerdict.await) {
        x.begin()
        x.hold(w, W.phase, phase.unsettled)
        x.system(labelOf("unknown", w, b, p))
      }
      return
    }
    case recoveryVerdict.await:
      x.begin()
      x.hold(w, W.phase, phase.unsettled)
      return x.system(labelOf("unknown", w, b, p))
  }
}
