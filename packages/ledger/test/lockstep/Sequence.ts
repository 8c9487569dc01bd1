/** A sequence of actions, played by the ledger and by its model, and compared after every one. */
import { type BranchId, type Entry, Recovery } from "@fermata/contract"
import {
  type Action,
  type ActionBounds,
  type Decisions,
  emptyLedger,
  ledgerActions,
  type LedgerState,
  makeLedgerModel,
  shippedDecisions,
  usualBounds
} from "@fermata/contract/model"
import { jsonDigest, type Ledger } from "@fermata/ledger"
import { Effect } from "effect"
import { expected, nothingSaid, noting } from "./Answer.js"
import { Comparison } from "./Comparison.js"
import { RealLedger } from "./RealLedger.js"

/** How often each kind of action is chosen where there is one: what makes a branch go on more often than what ends it. */
const weights: Readonly<Record<Action["_tag"], number>> = {
  Append: 7,
  Claim: 4,
  Deliver: 4,
  Move: 3,
  Fork: 3,
  Settle: 2,
  Release: 2,
  Start: 2,
  Cancel: 1,
  Lose: 1,
  Disown: 1,
  Unstick: 1,
  Purge: 1
}

/** The largest number that chooses an action. */
export const choices = 999_999

/** The action that a number chooses: first its kind, then one of that kind. */
const chosen = (actions: ReadonlyArray<Action>, state: LedgerState, choice: number): Action => {
  const kinds = new Map<Action["_tag"], Array<Action>>()
  // A claim of nothing is tried now and then only: it would be what happens most.
  const idle = choice % 16 > 0 && !Object.values(state.branches).some(({ due, owner }) => due && owner === null)
  for (const action of actions) {
    if (idle && action._tag === "Claim") continue
    const of = kinds.get(action._tag)
    if (of === undefined) kinds.set(action._tag, [action])
    else of.push(action)
  }
  const total = [...kinds.keys()].reduce((sum, kind) => sum + weights[kind], 0)
  let rest = choice % total
  for (const [kind, of] of kinds) {
    const action = of[Math.floor(choice / total) % of.length]
    if (rest < weights[kind] && action !== undefined) return action
    rest -= weights[kind]
  }
  throw new Error("there is always something to do")
}

/** Folds of histories, by their last entry: a history's last entry is the same object only in the same history. */
const remembering = (): Decisions["recover"] => {
  const known = new WeakMap<Entry, Map<BranchId, Recovery>>()
  return (branch, history) => {
    const entries = [...history]
    const last = entries.at(-1)
    if (last === undefined) return Recovery.of(branch, entries)
    const of = known.get(last) ?? new Map<BranchId, Recovery>()
    known.set(last, of)
    const recovery = of.get(branch) ?? Recovery.of(branch, entries)
    of.set(branch, recovery)
    return recovery
  }
}

/** How a sequence is chosen and judged. */
export interface SequenceOptions {
  readonly decisions?: Decisions
  readonly bounds?: ActionBounds
  /** Hears each action's tag and its answer's. */
  readonly hear?: (action: string, answer: string) => void
}

let sequences = 0

/** The next action from the model's state; `undefined` ends the sequence. */
export type Next = (actions: ReadonlyArray<Action>, n: number, state: LedgerState) => Action | undefined

/** Actions as numbers choose them. */
export const byNumbers =
  (numbers: ReadonlyArray<number>): Next =>
  (actions, n, state) => {
    const choice = numbers[n]
    return choice === undefined ? undefined : chosen(actions, state, choice)
  }

/** Plays a sequence in runs of its own; fails at the first difference. */
export const play = (ledger: Ledger, next: Next, options: SequenceOptions = {}): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { bounds = usualBounds, decisions = shippedDecisions } = options
    const said = nothingSaid()
    const model = makeLedgerModel({
      digestOf: jsonDigest,
      decisions: noting({ ...decisions, recover: remembering() }, said)
    })
    const real = new RealLedger(ledger, model, `s${++sequences}-`)
    const story: Array<readonly [Action, unknown]> = []
    const where = () =>
      story.map(([action, due], n) => `${n + 1}. ${JSON.stringify(action)} should be ${JSON.stringify(due)}`).join("\n")
    const comparison = new Comparison(real, where)
    return Effect.gen(function* () {
      let state: LedgerState = emptyLedger
      for (let n = 0; ; n++) {
        const action = next(ledgerActions(model, state, bounds), n, state)
        if (action === undefined) break
        const { state: after, verdict } = model.step(state, action)
        const due = expected(state, action, verdict, said)
        story.push([action, due])
        const answer = real.shown(yield* real.perform(state, action))
        comparison.same(answer, due, "the answer")
        yield* comparison.look(after, false)
        options.hear?.(action._tag, answer._tag)
        state = after
      }
      yield* comparison.look(state, true)
      yield* comparison.lists(state)
    }).pipe(Effect.ensuring(real.close), Effect.withTracerEnabled(false))
  })
