import { isTerminal, RunId } from "@fermata/contract"
import {
  type Action,
  emptyLedger,
  historyOf,
  ledgerActions,
  type LedgerState,
  makeLedgerModel,
  usualBounds
} from "@fermata/contract/model"
import { describe, expect, it } from "vitest"

const model = makeLedgerModel()

/** Numbers in a fixed order that look random: the sequence is the same on every machine. */
const draws = (seed: number): (() => number) => {
  let x = seed >>> 0
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0
    return x / 2 ** 32
  }
}

const walk = (
  seed: number,
  length: number,
  visit: (before: LedgerState, action: Action, after: LedgerState) => void
) => {
  const draw = draws(seed)
  let state = emptyLedger
  for (let n = 0; n < length; n++) {
    const actions = ledgerActions(model, state, { ...usualBounds, losses: ["left", "dead", "lapsed"] })
    const action = actions[Math.floor(draw() * actions.length)]
    if (action === undefined) throw new Error("no action makes sense")
    const { state: after } = model.step(state, action)
    visit(state, action, after)
    state = after
  }
}

describe("LedgerModel", () => {
  it("keeps its promises over random sequences of actions", () => {
    const seen = new Map<string, number>()
    for (let seed = 1; seed <= 150; seed++) {
      walk(seed, 48, (before, action, after) => {
        const { verdict } = model.step(before, action)
        seen.set(verdict._tag, (seen.get(verdict._tag) ?? 0) + 1)
        for (const branch of Object.values(after.branches)) {
          const history = historyOf(after, branch)
          expect(history.map(({ seq }) => seq)).toEqual(history.map((_, n) => n + 1))
          expect(history.length).toBe(branch.head)
          // CO: one answer to one interrupt in one history.
          const answered = history.filter(({ kind }) => kind === "interrupt.answered").map(({ key }) => key)
          expect(new Set(answered).size).toBe(answered.length)
          expect(new Set(branch.inbox.map(({ key }) => key)).size).toBe(branch.inbox.length)
          expect(history.slice(0, -1).some(({ kind }) => isTerminal(kind))).toBe(false)
          expect(branch.owner === null).toBe(branch.status !== "running")
          // LV: what waits has seen everything that was accepted.
          const own = history.filter((entry) => entry.branch === branch.branch && entry.payload.includes('"inbox":'))
          const rests = branch.status === "waiting" || branch.status === "stuck"
          expect(rests && own.length !== branch.inbox.length).toBe(false)
        }
      })
    }
    // The walk reaches what the ledger can answer: a generator that never gets there would prove nothing.
    for (const tag of [
      "Started",
      "RunConflict",
      "RunPurged",
      "RunNotOver",
      "Purged",
      "Claimed",
      "Appended",
      "Released",
      "InboxAdvanced",
      "Fenced",
      "Freed",
      "Accepted",
      "Duplicate",
      "DeliveryIdReused",
      "AlreadyConsumed",
      "InterruptClosed",
      "ResumeValueInvalid",
      "UnknownInterrupt",
      "Forked",
      "ForkIdReused",
      "UnknownCheckpoint",
      "EffectInFlight",
      "AlreadySettled",
      "UnknownEffect",
      "EffectUnderWay",
      "Unstuck",
      "TooLate"
    ]) {
      expect(seen.get(tag) ?? 0, tag).toBeGreaterThan(0)
    }
  })

  it("is a function: the same action in the same state gives the same state and leaves the old one alone", () => {
    walk(7, 200, (before, action, after) => {
      const copy = JSON.stringify(before)
      expect(model.step(before, action).state).toEqual(after)
      expect(JSON.stringify(before)).toBe(copy)
    })
  })

  it("answers a start of the same run as the same start, and of another input as a conflict", () => {
    const run = RunId.make("r")
    const first = model.step(emptyLedger, { _tag: "Start", run, workflow: "w", input: "1" })
    expect(model.step(first.state, { _tag: "Start", run, workflow: "w", input: "1" }).verdict).toEqual({
      _tag: "Started",
      created: false
    })
    expect(model.step(first.state, { _tag: "Start", run, workflow: "w", input: "2" }).verdict._tag).toBe("RunConflict")
  })
})
