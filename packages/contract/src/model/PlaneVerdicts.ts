/**
 * The contract's decisions as the packed model asks them: of small numbers. Each answer is the shipped function's, computed
 * the first time that its facts come up and remembered (the functions are pure), so that millions of transitions call them.
 */
import type { DeliveryPolicy } from "../Delivery.js"
import type { Entry, EntryKind } from "../Entry.js"
import { RunId, rootBranch } from "../Ids.js"
import type { Decisions } from "./Decisions.js"
import { opKinds } from "./PlaneCells.js"
import type { Op, World } from "./PlaneWorld.js"

/** Verdicts of `admitAppend`. */
export const appendVerdict = { append: 0, already: 1, inboxAdvanced: 2, fenced: 3 } as const
/** Verdicts of `admitPark`. */
export const parkVerdict = { park: 0, inboxAdvanced: 1, fenced: 2 } as const
/** Verdicts of `judgeDelivery`. */
export const deliveryVerdict = { accepted: 0, duplicate: 1, alreadyConsumed: 2, refused: 3 } as const
/** Verdicts of `admitFork`. */
export const forkVerdict = { fork: 0, existing: 1, refused: 2 } as const
/** Verdicts of `admitFiring`. */
export const firingVerdict = { fire: 0, serve: 1, inDoubt: 2, inputChanged: 3, refused: 4 } as const
/** Verdicts of `recoverEffect`. */
export const recoveryVerdict = { fireAgain: 0, ask: 1, wait: 2, adopt: 3, void: 4, await: 5 } as const
/** What the outside answered. */
export const reconciled = { notAsked: 0, happened: 1, neverWill: 2, unknown: 3 } as const

/** What a durable history says of the operation at its end. */
export interface Recovered {
  /** Operations with an outcome. */
  readonly done: number
  /** 0 nothing, 1 an open interrupt or a started child, 2 an intent in doubt. */
  readonly standing: 0 | 1 | 2
}

/** The decisions, on numbers. */
export interface Verdicts {
  readonly append: (fresh: boolean, sameBase: boolean, conditional: boolean, unseen: boolean) => number
  readonly park: (fresh: boolean, unseen: boolean) => number
  /**
   * `interrupt`: 0 unknown, 1 open, 2 consumed by this delivery with this value, 3 by it with another, 4 by another, 5 closed.
   * `use`: the delivery id was used for another interrupt.
   */
  readonly deliver: (interrupt: number, use: boolean, over: boolean, valid: boolean) => number
  /** `existing`: 0 no fork of this id, 1 the same fork, 2 another. */
  readonly fork: (existing: number, durable: boolean, open: boolean, valid: boolean, inFlight: boolean) => number
  readonly fire: (policy: number, intended: boolean, voided: number, sameInput: boolean) => number
  /** May a handler still be entered? `passed`: the time in which it may is up. */
  readonly mayStillFire: (passed: boolean) => boolean
  readonly recover: (policy: number, firedByDead: boolean, late: boolean, reconciled: number) => number
  readonly serveAnswer: (over: boolean, open: boolean) => boolean
  readonly serveCancel: (over: boolean) => boolean
  readonly serveSettlement: (intended: boolean) => boolean
  readonly cancel: (over: boolean, requested: boolean) => boolean
  readonly settle: (over: boolean, owned: boolean, intended: boolean, accepted: boolean) => boolean
  /** True if a start creates a run; false if it finds the same one. */
  readonly start: (present: boolean) => boolean
  readonly mayTake: (gone: boolean, lapsed: boolean) => boolean
  readonly mayPersist: (valid: boolean) => boolean
  readonly recovered: (program: number, done: number, mark: boolean, voided: number) => Recovered
}

const remembered = (size: number, compute: (key: number) => number): ((key: number) => number) => {
  const known = new Int8Array(size).fill(-1)
  return (key) => {
    const found = known[key] ?? -1
    return found >= 0 ? found : (known[key] = compute(key))
  }
}

const bit = (flag: boolean, at: number): number => (flag ? 1 << at : 0)
const has = (key: number, at: number): boolean => (key & (1 << at)) !== 0

const policies: Partial<Record<number, DeliveryPolicy>> = {
  [opKinds.read]: "repeatable",
  [opKinds.keyed]: "keyed",
  [opKinds.once]: "once",
  [opKinds.transactional]: "transactional"
}
const policyOf = (kind: number): DeliveryPolicy => policies[kind] ?? "repeatable"

const answers = ["notAsked", "Happened", "NeverWill", "Unknown"] as const

/** Builds them for a world. */
export const makeVerdicts = (decisions: Decisions, world: World): Verdicts => {
  const append = remembered(16, (key) => {
    const row = { epoch: 2, head: 5, headDigest: "here", inboxHead: has(key, 3) ? 1 : 0 }
    const base = has(key, 1) ? 5 : 4
    const verdict = decisions.admitAppend(row, {
      epoch: has(key, 0) ? 2 : 1,
      base,
      baseDigest: has(key, 1) ? "here" : "behind",
      head: base + 1,
      headDigest: "mine",
      inboxSeen: has(key, 2) ? 0 : undefined
    })
    return ["Append", "AlreadyAppended", "InboxAdvanced", "Fenced"].indexOf(verdict._tag)
  })
  const park = remembered(4, (key) => {
    const row = { epoch: 2, inboxHead: has(key, 1) ? 1 : 0 }
    const verdict = decisions.admitPark(row, { epoch: has(key, 0) ? 2 : 1, inboxSeen: 0 })
    return ["Park", "InboxAdvanced", "Fenced"].indexOf(verdict._tag)
  })
  const deliver = remembered(64, (key) => {
    const interrupt = key & 7
    const state =
      interrupt === 0
        ? ({ _tag: "Unknown" } as const)
        : interrupt === 1
          ? ({ _tag: "Open" } as const)
          : interrupt === 5
            ? ({ _tag: "Closed", reason: "ended" } as const)
            : ({
                _tag: "Consumed",
                delivery: interrupt === 4 ? "other" : "this",
                valueDigest: interrupt === 3 ? "another" : "value"
              } as const)
    const verdict = decisions.judgeDelivery(
      {
        run: "known",
        over: has(key, 4),
        interrupt: state,
        deliveryUse: has(key, 3) ? { interrupt: "elsewhere", valueDigest: "value" } : undefined
      },
      {
        interrupt: "here",
        delivery: "this",
        value: has(key, 5) ? { _tag: "Valid", digest: "value" } : { _tag: "Invalid", digest: "value" }
      }
    )
    const { _tag } = verdict
    return _tag === "Accepted"
      ? deliveryVerdict.accepted
      : _tag === "Duplicate"
        ? deliveryVerdict.duplicate
        : _tag === "AlreadyConsumed"
          ? deliveryVerdict.alreadyConsumed
          : deliveryVerdict.refused
  })
  const fork = remembered(64, (key) => {
    const existing = key & 3
    const verdict = decisions.admitFork(
      {
        run: "known",
        existing: existing === 0 ? undefined : { parent: "p", seq: 3, firstDigest: existing === 1 ? "first" : "other" },
        head: has(key, 2) ? 4 : 2,
        anchor: 0,
        inFlight: has(key, 5) ? [{ key: "k", step: "s" }] : [],
        nearest: { below: undefined, above: undefined },
        interruptOpen: has(key, 3)
      },
      { parent: "p", seq: 3, firstDigest: "first", settlesStep: undefined, valueValid: has(key, 4) }
    )
    return verdict._tag === "Fork"
      ? forkVerdict.fork
      : verdict._tag === "Existing"
        ? forkVerdict.existing
        : forkVerdict.refused
  })
  const fire = remembered(256, (key) => {
    const delivery = policyOf(key & 7)
    const voided = (key >> 5) & 7
    const at = { attempt: 1, effect: "e", delivery } as const
    const tries = Array.from({ length: voided }, (_, n) => ({
      ...at,
      key: `k${n}`,
      try: n,
      input: "recorded",
      state: "voided" as const
    }))
    const intended = has(key, 3)
      ? [{ ...at, key: "k", try: voided, input: "recorded", state: "intended" as const }]
      : []
    const verdict = decisions.admitFiring([...tries, ...intended], { ...at, input: has(key, 4) ? "recorded" : "other" })
    return ["Fire", "Serve", "InDoubt", "InputChanged", "Refused"].indexOf(verdict._tag)
  })
  const recover = remembered(128, (key) => {
    const verdict = decisions.recoverEffect({
      delivery: policyOf(key & 7),
      firedBy: has(key, 3) ? "dead" : "unknown",
      overAt: 10,
      now: has(key, 4) ? 10 : 9,
      reconciled: answers[(key >> 5) & 3] ?? "Unknown"
    })
    return ["FireAgain", "AskOutside", "WaitUntil", "Adopt", "Void", "AwaitSettlement"].indexOf(verdict._tag)
  })
  const mayStillFire = remembered(2, (key) => (decisions.mayStillFire(has(key, 0) ? 10 : 9, 10) ? 1 : 0))
  const yes = (verdict: { readonly _tag: string }, tag: string): number => (verdict._tag === tag ? 1 : 0)
  const serveAnswer = remembered(4, (key) =>
    yes(decisions.serveInboxRow({ kind: "answer", over: has(key, 0), open: has(key, 1) }), "Serve")
  )
  const serveCancel = remembered(2, (key) =>
    yes(decisions.serveInboxRow({ kind: "cancel", over: has(key, 0) }), "Serve")
  )
  const serveSettlement = remembered(2, (key) =>
    yes(decisions.serveInboxRow({ kind: "settlement", state: has(key, 0) ? "intended" : undefined }), "Serve")
  )
  const cancel = remembered(4, (key) =>
    yes(decisions.admitCancel({ run: "known", over: has(key, 0), requested: has(key, 1) }), "Accepted")
  )
  const settle = remembered(16, (key) =>
    yes(
      decisions.admitSettlement(
        {
          run: "known",
          over: has(key, 0),
          owned: has(key, 1),
          effect: has(key, 2) ? { state: "intended" } : undefined,
          accepted: has(key, 3) ? { digest: "said" } : undefined
        },
        { digest: "said", valid: true }
      ),
      "Accepted"
    )
  )
  const start = remembered(2, (key) => {
    const request = { workflow: "child", version: "1", inputDigest: "in" }
    return yes(
      decisions.admitStart(has(key, 0) ? { _tag: "Present", ...request } : { _tag: "Absent" }, request),
      "Create"
    )
  })
  const mayTake = remembered(4, (key) => {
    const verdict = decisions.judgeOwner({
      sight: has(key, 0) ? "gone" : "cannot tell",
      leaseUntil: 10,
      now: has(key, 1) ? 10 : 9
    })
    return verdict._tag === "Alive" ? 0 : 1
  })
  const mayPersist = remembered(2, (key) =>
    yes(
      decisions.admitEntry(
        { head: 3, over: false },
        { kind: "step.succeeded", key: "s", payloadLength: 2, payloadWellFormed: has(key, 0) },
        { maxPayload: 100 }
      ),
      "Persist"
    )
  )
  const histories = new Map<number, Recovered>()
  return {
    append: (fresh, sameBase, conditional, unseen) =>
      append(bit(fresh, 0) | bit(sameBase, 1) | bit(conditional, 2) | bit(unseen, 3)),
    park: (fresh, unseen) => park(bit(fresh, 0) | bit(unseen, 1)),
    deliver: (interrupt, use, over, valid) => deliver(interrupt | bit(use, 3) | bit(over, 4) | bit(valid, 5)),
    fork: (existing, durable, open, valid, inFlight) =>
      fork(existing | bit(durable, 2) | bit(open, 3) | bit(valid, 4) | bit(inFlight, 5)),
    fire: (policy, intended, voided, sameInput) => fire(policy | bit(intended, 3) | bit(sameInput, 4) | (voided << 5)),
    recover: (policy, firedByDead, late, said) => recover(policy | bit(firedByDead, 3) | bit(late, 4) | (said << 5)),
    mayStillFire: (passed) => mayStillFire(bit(passed, 0)) === 1,
    serveAnswer: (over, open) => serveAnswer(bit(over, 0) | bit(open, 1)) === 1,
    serveCancel: (over) => serveCancel(bit(over, 0)) === 1,
    serveSettlement: (intended) => serveSettlement(bit(intended, 0)) === 1,
    cancel: (over, requested) => cancel(bit(over, 0) | bit(requested, 1)) === 1,
    settle: (over, owned, intended, accepted) =>
      settle(bit(over, 0) | bit(owned, 1) | bit(intended, 2) | bit(accepted, 3)) === 1,
    start: (present) => start(bit(present, 0)) === 1,
    mayTake: (gone, lapsed) => mayTake(bit(gone, 0) | bit(lapsed, 1)) === 1,
    mayPersist: (valid) => mayPersist(bit(valid, 0)) === 1,
    recovered: (program, done, mark, voided) => {
      const key = program | (done << 3) | bit(mark, 7) | (voided << 8)
      let known = histories.get(key)
      if (known === undefined) {
        known = fold(decisions, world.programs[program] ?? [], done, mark, voided)
        histories.set(key, known)
      }
      return known
    }
  }
}

const branch = rootBranch(RunId.make("model"))

/** Folds the entries that a branch with so many outcomes has, as a worker does that takes it up. */
const fold = (
  decisions: Decisions,
  program: ReadonlyArray<Op>,
  done: number,
  mark: boolean,
  voided: number
): Recovered => {
  const entries: Array<Entry> = []
  const add = (kind: EntryKind, key: string, payload: unknown = {}): void => {
    const seq = entries.length + 1
    entries.push({ branch, seq, kind, key, payload: JSON.stringify(payload), epoch: 1, at: 0, digest: "" })
  }
  const effect = (n: number, number: number, delivery: DeliveryPolicy) => ({
    step: `s${n}`,
    position: "0",
    try: number,
    attempt: 1,
    effect: "e",
    delivery,
    input: "in"
  })
  add("run.started", "")
  const outcome = (n: number, op: Op): void => {
    if (op.kind === "gate") {
      add("interrupt.opened", `i${n}`, { name: "i", payload: null })
      add("interrupt.answered", `i${n}`, { value: 1, delivery: "d", valueDigest: "v", inbox: n + 1 })
      return
    }
    if (op.kind === "keyed" || op.kind === "once") {
      add("effect.intended", `e${n}`, effect(n, 0, op.kind))
      add("effect.succeeded", `e${n}`, { ...effect(n, 0, op.kind), value: 1, by: "handler" })
    }
    add("step.succeeded", `s${n}`, { node: "n", input: "in", value: 1 })
  }
  for (const [n, op] of program.entries()) if (n < done) outcome(n, op)
  const op = program[done]
  if (op !== undefined && (op.kind === "keyed" || op.kind === "once")) {
    for (let number = 0; number < voided; number++) {
      add("effect.intended", `e${done}~${number}`, effect(done, number, op.kind))
      add("effect.voided", `e${done}~${number}`, { ...effect(done, number, op.kind), by: "reconcile" })
    }
    if (mark) add("effect.intended", `e${done}~${voided}`, effect(done, voided, op.kind))
  } else if (mark && op?.kind === "gate") add("interrupt.opened", `i${done}`, { name: "i", payload: null })
  const recovery = decisions.recover(branch, entries)
  const outcomes = entries.filter(({ kind }) => kind === "step.succeeded" || kind === "interrupt.answered").length
  // A child's start is a row of the runs, not an entry of its parent.
  if (op?.kind === "child") return { done: outcomes, standing: mark ? 1 : 0 }
  const inDoubt = [...recovery.effects.values()].some(({ state }) => state === "intended")
  return { done: outcomes, standing: inDoubt ? 2 : recovery.interrupts.size > 0 ? 1 : 0 }
}
