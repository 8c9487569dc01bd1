/**
 * The actions that make sense in a state of the ledger model, in a fixed order: what owners that follow the runtime's
 * rules append (zombies too, from what they believe), and what clients and operators may ask, well or badly.
 *
 * A random test picks by index, so that a sequence of actions is a list of numbers and shrinks as one; an exhaustive test takes
 * them all.
 */
import type { EntryDraft } from "../Entry.js"
import { DeliveryId, effectKey, ForkId, InterruptId, RunId, StepKey } from "../Ids.js"
import type { RecordedTry, Recovery } from "../decisions/Recovery.js"
import type { LedgerModel } from "./LedgerModel.js"
import { type Action, historyOf, isOver, type LedgerState, type ModelBranch, type ModelHandle } from "./LedgerState.js"

/** How much of the ledger's vocabulary is used. */
export interface ActionBounds {
  readonly runs: number
  readonly workers: number
  /** Forks of one run. */
  readonly forks: number
  /** Interrupts, steps and timers that one branch makes. */
  readonly ordinals: number
  /** Ways in which a worker loses its branches. */
  readonly losses: ReadonlyArray<"left" | "dead" | "lapsed">
  /** Values that deliveries carry; the last one is sent once as invalid, too. */
  readonly values: ReadonlyArray<string>
  readonly purge: boolean
}

/** Enough for two of everything. */
export const usualBounds: ActionBounds = {
  runs: 2,
  workers: 2,
  forks: 2,
  ordinals: 2,
  losses: ["left"],
  values: ["false", "1"],
  purge: true
}

const interruptName = "approve"
const nodeName = "pay"

/** All actions that make sense now; never empty. */
export const ledgerActions = (
  model: LedgerModel,
  state: LedgerState,
  bounds: ActionBounds = usualBounds
): ReadonlyArray<Action> => {
  const actions: Array<Action> = []
  for (let n = 1; n <= bounds.runs; n++) {
    const run = RunId.make(`r${n}`)
    actions.push({ _tag: "Start", run, workflow: "w", input: "1" })
    if (state.runs[run] !== undefined) actions.push({ _tag: "Start", run, workflow: "w", input: "2" })
    if (bounds.purge && (state.runs[run] !== undefined || state.purged.includes(run)))
      actions.push({ _tag: "Purge", run })
  }
  for (const worker of workersOf(state, bounds)) {
    actions.push({ _tag: "Claim", worker })
    if (Object.values(state.branches).some(({ owner }) => owner === worker)) {
      for (const how of bounds.losses) actions.push({ _tag: "Lose", worker, how })
    }
  }
  for (const handle of Object.values(state.handles)) actions.push(...ownersActions(model, state, handle, bounds))
  for (const branch of Object.values(state.branches)) actions.push(...outsideActions(state, branch, bounds))
  return actions
}

/** Names of workers that may claim: one that is gone comes back under another name. */
const workersOf = (state: LedgerState, { workers }: ActionBounds): ReadonlyArray<string> =>
  Array.from({ length: workers + state.gone.length }, (_, n) => `w${n + 1}`)
    .filter((name) => !state.gone.includes(name))
    .slice(0, workers)

const ownersActions = (
  model: LedgerModel,
  state: LedgerState,
  handle: ModelHandle,
  bounds: ActionBounds
): ReadonlyArray<Action> => {
  const { worker, branch } = handle
  if (handle.lost) return [{ _tag: "Disown", worker, branch }]
  const recovery = model.recoveryOf(state, handle)
  const append = (draft: EntryDraft, conditional = false): Action => ({
    _tag: "Append",
    worker,
    branch,
    draft,
    conditional
  })
  const actions: Array<Action> = []
  if (model.nextMove(state, handle) !== undefined) actions.push({ _tag: "Move", worker, branch })
  actions.push(...stepDrafts(handle, recovery, historyKeys(state, handle), bounds).map((draft) => append(draft)))
  const { interrupts, timers } = recovery
  const [open] = interrupts.keys()
  if (open !== undefined) {
    actions.push(
      append({ kind: "interrupt.closed", key: open, payload: JSON.stringify({ reason: "withdrawn" }) }, true)
    )
  }
  for (const timer of timers.keys()) actions.push(append({ kind: "timer.fired", key: timer, payload: "{}" }, true))
  if (recovery.effects.size === 0) {
    const ends: ReadonlyArray<EntryDraft> = recovery.cancelRequested
      ? [{ kind: "run.cancelled", key: "", payload: JSON.stringify({ reason: null }) }]
      : [
          { kind: "run.completed", key: "", payload: JSON.stringify({ value: 1 }) },
          { kind: "run.failed", key: "", payload: JSON.stringify({ error: 1 }) }
        ]
    actions.push(...ends.map((draft) => append(draft, true)))
  }
  for (const how of ["Waiting", "Stuck", "Ready"] as const) {
    actions.push({ _tag: "Release", worker, branch, how, wakes: false })
  }
  actions.push({ _tag: "Release", worker, branch, how: "Waiting", wakes: true }, { _tag: "Disown", worker, branch })
  return actions
}

const historyKeys = (state: LedgerState, handle: ModelHandle): ReadonlyArray<string> => {
  const branch = state.branches[handle.branch]
  return branch === undefined ? [] : historyOf(state, branch, handle.head).map(({ kind, key }) => `${kind} ${key}`)
}

/** What the workflow's own progress would append next: steps with their effects, questions and timers. */
const stepDrafts = (
  handle: ModelHandle,
  recovery: Recovery,
  known: ReadonlyArray<string>,
  { ordinals }: ActionBounds
): ReadonlyArray<EntryDraft> => {
  const drafts: Array<EntryDraft> = []
  const next = (kind: string, name: string): string | undefined => {
    for (let n = 1; n <= ordinals; n++) if (!known.includes(`${kind} ${name}#${n}`)) return `${name}#${n}`
    return undefined
  }
  const question = next("interrupt.opened", interruptName)
  if (question !== undefined) {
    const payload = JSON.stringify({ name: interruptName, payload: 1 })
    drafts.push({ kind: "interrupt.opened", key: question, payload })
  }
  const timer = next("timer.started", "timer")
  if (timer !== undefined) drafts.push({ kind: "timer.started", key: timer, payload: JSON.stringify({ due: 0 }) })
  const step = next("step.succeeded", nodeName)
  if (step === undefined) return drafts
  const tries = [...(recovery.steps.get(step)?.effects.values() ?? [])].flat()
  const last = tries.at(-1)
  if (last === undefined || last.state === "voided" || last.state === "failed") {
    const number = last === undefined ? 0 : last.try + 1
    const key = effectKey(handle.branch, StepKey.make(step), "0", number)
    for (const delivery of ["once", "keyed"] as const) {
      drafts.push({
        kind: "effect.intended",
        key,
        payload: JSON.stringify({ ...identity(step, number, delivery), value: 1, worker: handle.worker })
      })
    }
  }
  if (last !== undefined && (last.state === "intended" || last.state === "refused")) drafts.push(...outcomeDrafts(last))
  else
    drafts.push({
      kind: "step.succeeded",
      key: step,
      payload: JSON.stringify({ node: nodeName, input: "in", value: 1 })
    })
  return drafts
}

const identity = (step: string, number: number, delivery: "once" | "keyed") => ({
  step,
  position: "0",
  try: number,
  attempt: 1,
  effect: "charge",
  delivery,
  input: "in"
})

const outcomeDrafts = (recorded: RecordedTry): ReadonlyArray<EntryDraft> => {
  const { key, step, position, attempt, effect, delivery, input } = recorded
  const id = { step, position, try: recorded.try, attempt, effect, delivery, input }
  const outcomes: ReadonlyArray<EntryDraft> = [
    { kind: "effect.succeeded", key, payload: JSON.stringify({ ...id, value: 1, by: "handler" }) },
    { kind: "effect.failed", key, payload: JSON.stringify({ ...id, error: 1, by: "handler" }) },
    { kind: "effect.voided", key, payload: JSON.stringify({ ...id, by: "reconcile" }) }
  ]
  return recorded.state === "refused"
    ? outcomes.slice(0, 1)
    : [...outcomes, { kind: "effect.refused", key, payload: JSON.stringify({ ...id, issue: "no" }) }]
}

const outsideActions = (state: LedgerState, branch: ModelBranch, bounds: ActionBounds): ReadonlyArray<Action> => {
  const actions: Array<Action> = []
  const history = historyOf(state, branch)
  const at = { branch: branch.branch }
  const asked = history.filter(({ kind }) => kind === "interrupt.opened").map(({ key }) => InterruptId.make(key))
  const last = bounds.values.at(-1) ?? "1"
  for (const interrupt of asked) {
    bounds.values.forEach((json, n) => {
      const delivery = DeliveryId.make(`d${n + 1}`)
      actions.push({ _tag: "Deliver", ...at, interrupt, name: interruptName, delivery, value: { valid: true, json } })
    })
    // Another value under a known id, an equal value under another id, an invalid value, another definition's name.
    actions.push(
      {
        _tag: "Deliver",
        ...at,
        interrupt,
        name: interruptName,
        delivery: DeliveryId.make("d1"),
        value: { valid: true, json: last }
      },
      {
        _tag: "Deliver",
        ...at,
        interrupt,
        name: interruptName,
        delivery: DeliveryId.make("d9"),
        value: { valid: true, json: last }
      },
      {
        _tag: "Deliver",
        ...at,
        interrupt,
        name: interruptName,
        delivery: DeliveryId.make("d8"),
        value: { valid: false, json: last }
      },
      {
        _tag: "Deliver",
        ...at,
        interrupt,
        name: "other",
        delivery: DeliveryId.make("d1"),
        value: { valid: true, json: last }
      }
    )
  }
  const strange = InterruptId.make("nobody#1")
  actions.push(
    {
      _tag: "Deliver",
      ...at,
      interrupt: strange,
      name: "nobody",
      delivery: DeliveryId.make("d1"),
      value: { valid: true, json: last }
    },
    { _tag: "Cancel", ...at, reason: null }
  )
  for (const { key, kind } of history) {
    if (kind !== "effect.intended") continue
    actions.push(
      { _tag: "Settle", ...at, effect: key, settlement: { _tag: "Succeeded", json: "1" } },
      { _tag: "Settle", ...at, effect: key, settlement: { _tag: "Failed", json: "1" } },
      { _tag: "Settle", ...at, effect: key, settlement: { _tag: "DidNotHappen" } }
    )
  }
  actions.push({ _tag: "Settle", ...at, effect: "no such effect", settlement: { _tag: "DidNotHappen" } })
  if (branch.status === "stuck") actions.push({ _tag: "Unstick", ...at })
  actions.push(...forksOf(branch, asked, history.length, bounds))
  const step = history.find(({ kind }) => kind === "step.succeeded")
  if (step !== undefined) {
    actions.push({
      _tag: "Fork",
      run: branch.run,
      fork: ForkId.make("f1"),
      parent: branch.branch,
      at: { _tag: "Outcome", step: step.key, outcome: "Succeeded", json: "2" }
    })
  }
  return isOver(branch.status) ? actions.slice(0, 24) : actions
}

const forksOf = (
  { branch, run }: ModelBranch,
  asked: ReadonlyArray<InterruptId>,
  head: number,
  { forks, values }: ActionBounds
): ReadonlyArray<Action> => {
  const actions: Array<Action> = []
  for (let n = 1; n <= forks; n++) {
    const fork = ForkId.make(`f${n}`)
    const base = { _tag: "Fork", run, fork, parent: branch } as const
    for (const seq of new Set([1, head, head + 1])) actions.push({ ...base, at: { _tag: "Checkpoint", seq } })
    for (const interrupt of asked) {
      for (const json of values) {
        const delivery = DeliveryId.make(`f${n}`)
        actions.push({
          ...base,
          at: { _tag: "Interrupt", interrupt, name: interruptName, delivery, value: { valid: true, json } }
        })
      }
    }
  }
  const [first] = asked
  if (first !== undefined) {
    const value = { valid: false, json: values.at(-1) ?? "1" }
    const delivery = DeliveryId.make("f9")
    actions.push({
      _tag: "Fork",
      run,
      fork: ForkId.make("f1"),
      parent: branch,
      at: { _tag: "Interrupt", interrupt: first, name: interruptName, delivery, value }
    })
  }
  return actions
}
