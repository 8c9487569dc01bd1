import { admitAppend, admitPark, isTerminal, judgeDelivery, RunId } from "@fermata/contract"
import {
  type Action,
  type Decisions,
  emptyLedger,
  historyOf,
  isOver,
  ledgerActions,
  type LedgerState,
  makeLedgerModel,
  shippedDecisions,
  usualBounds
} from "@fermata/contract/model"
import { describe, expect, it } from "vitest"

/** Numbers in a fixed order that look random: the sequence is the same on every machine. */
const draws = (seed: number): (() => number) => {
  let x = seed >>> 0
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0
    return x / 2 ** 32
  }
}

type Visit = (before: LedgerState, action: Action, after: LedgerState, verdict: string) => void

const walk = (seed: number, length: number, visit: Visit, changed: Partial<Decisions> = {}): void => {
  const model = makeLedgerModel({ decisions: { ...shippedDecisions, ...changed } })
  const draw = draws(seed)
  let state = emptyLedger
  for (let n = 0; n < length; n++) {
    const actions = ledgerActions(model, state, { ...usualBounds, losses: ["left", "dead", "lapsed"] })
    const action = actions[Math.floor(draw() * actions.length)]
    if (action === undefined) throw new Error("no action makes sense")
    const { state: after, verdict } = model.step(state, action)
    visit(state, action, after, verdict._tag)
    state = after
  }
}

/** What is wrong with a state of the ledger. */
const problemsOf = (state: LedgerState): ReadonlyArray<string> =>
  Object.values(state.branches).flatMap((branch) => {
    const history = historyOf(state, branch)
    const answered = history.filter(({ kind }) => kind === "interrupt.answered").map(({ key }) => key)
    const moved = history.filter((entry) => entry.branch === branch.branch && entry.payload.includes('"inbox":')).length
    const rests = branch.status === "waiting" || branch.status === "stuck"
    return [
      ...(history.some(({ seq }, n) => seq !== n + 1) || history.length !== branch.head
        ? ["holes in the history"]
        : []),
      ...(new Set(answered).size === answered.length ? [] : ["an interrupt was answered twice"]),
      ...(new Set(branch.inbox.map(({ key }) => key)).size === branch.inbox.length ? [] : ["a key was accepted twice"]),
      ...(history.slice(0, -1).some(({ kind }) => isTerminal(kind)) ? ["something follows the end"] : []),
      ...((branch.owner === null) === (branch.status !== "running") ? [] : ["an owner without a running branch"]),
      ...(rests && moved !== branch.inbox.length ? ["it rests beside something unseen"] : []),
      ...(isOver(branch.status) && branch.open.length > 0 ? ["an open question of a branch that is over"] : [])
    ]
  })

const problemsWith = (changed: Partial<Decisions>): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (let seed = 1; seed <= 100; seed++) {
    walk(seed, 48, (_before, _action, after) => problemsOf(after).forEach((problem) => found.add(problem)), changed)
  }
  return [...found].sort()
}

/** Every answer of the ledger that does not need a corrupt database or a caller's defect. */
const reached = `Started RunConflict RunPurged RunNotOver Purged Claimed Appended Released InboxAdvanced Fenced Freed Accepted
  Duplicate TooLate DeliveryIdReused AlreadyConsumed InterruptClosed ResumeValueInvalid UnknownInterrupt Forked ForkIdReused
  UnknownCheckpoint EffectInFlight UnknownEffect AlreadySettled EffectUnderWay Unstuck`

describe("LedgerModel", () => {
  it("keeps its promises over random sequences of actions, and reaches what the ledger can answer", () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 200; seed++) {
      walk(seed, 48, (_before, _action, after, verdict) => {
        seen.add(verdict)
        const problems = problemsOf(after)
        if (problems.length > 0) throw new Error(`seed ${seed}: ${problems.join()}`)
      })
    }
    expect([...seen].sort()).toEqual(reached.split(/\s+/).sort())
  })

  it("shows a changed decision in what it reaches", () => {
    expect(problemsWith({})).toEqual([])
    expect(
      problemsWith({ admitPark: (row, owner) => admitPark(row && { ...row, inboxHead: owner.inboxSeen }, owner) })
    ).toEqual(["it rests beside something unseen"])
    const forgetful: Decisions["judgeDelivery"] = (facts, request) =>
      judgeDelivery({ ...facts, deliveryUse: undefined, interrupt: { _tag: "Open" } }, request)
    expect(problemsWith({ judgeDelivery: forgetful })).toContain("a key was accepted twice")
    const fenceless: Decisions["admitAppend"] = (row, request) =>
      admitAppend(row, { ...request, epoch: row?.epoch ?? 0, base: row?.head ?? 0, baseDigest: row?.headDigest ?? "" })
    expect(problemsWith({ admitAppend: fenceless })).toContain("holes in the history")
  })

  it("is a function: the same action in the same state gives the same state and leaves the old one alone", () => {
    const model = makeLedgerModel()
    walk(7, 200, (before, action, after) => {
      const copy = JSON.stringify(before)
      expect(model.step(before, action).state).toEqual(after)
      expect(JSON.stringify(before)).toBe(copy)
    })
  })

  it("answers a start of the same run as the same start, and of another input as a conflict", () => {
    const model = makeLedgerModel()
    const run = RunId.make("r")
    const first = model.step(emptyLedger, { _tag: "Start", run, workflow: "w", input: "1" })
    expect(model.step(first.state, { _tag: "Start", run, workflow: "w", input: "1" }).verdict).toEqual({
      _tag: "Started",
      created: false
    })
    expect(model.step(first.state, { _tag: "Start", run, workflow: "w", input: "2" }).verdict._tag).toBe("RunConflict")
  })
})
