import {
  admitAppend,
  admitEntry,
  admitFiring,
  admitFork,
  admitPark,
  admitStart,
  judgeDelivery,
  recoverEffect
} from "@fermata/contract"
import {
  type Decisions,
  explore,
  explorePlane,
  makePlane,
  shippedDecisions,
  story,
  type World,
  worlds
} from "@fermata/contract/model"
import { describe, expect, it } from "vitest"

const invalidForks: World = {
  name: "invalid forks",
  programs: [[{ kind: "gate" }]],
  branches: 2,
  workers: 1,
  crashes: 0,
  pauses: 0,
  plainForks: 0,
  cancels: 0,
  operator: false,
  deliverers: [{ value: 3, intent: "fork", sends: 1 }]
}

const world = (name: string): World => {
  const found = [...worlds, invalidForks].find((one) => one.name === name)
  if (found === undefined) throw new Error(`no world ${name}`)
  return found
}

/** The properties that break when one decision is another, in the worlds named. */
const brokenBy = (changed: Partial<Decisions>, ...names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const decisions = { ...shippedDecisions, ...changed }
  const broken = names.flatMap((name) => explore(makePlane(world(name), { decisions })).broken)
  return [...new Set(broken.map(({ property }) => property))].filter((id) => id !== "well-formed").sort()
}

describe("the plane", () => {
  it.each<{
    readonly what: string
    readonly changed: Partial<Decisions>
    readonly in: string
    readonly breaks: ReadonlyArray<string>
  }>([
    {
      what: "an append that ignores who owns the branch",
      changed: {
        admitAppend: (row, request) =>
          admitAppend(row, {
            ...request,
            epoch: row?.epoch ?? 0,
            base: row?.head ?? 0,
            baseDigest: row?.headDigest ?? ""
          })
      },
      in: "effects",
      breaks: ["EO", "PC"]
    },
    {
      what: "a park that ignores the inbox",
      changed: { admitPark: (row, owner) => admitPark(row && { ...row, inboxHead: 0 }, owner) },
      in: "gates",
      breaks: ["LV"]
    },
    {
      what: "a gate that accepts everything",
      changed: { judgeDelivery: () => ({ _tag: "Accepted" }) },
      in: "gates",
      breaks: ["CO", "CV"]
    },
    {
      what: "a gate that forgets what was consumed",
      changed: { judgeDelivery: (facts, request) => judgeDelivery({ ...facts, interrupt: { _tag: "Open" } }, request) },
      in: "gates",
      breaks: ["CO"]
    },
    {
      what: "recovery that takes every effect for keyed",
      changed: { recoverEffect: (facts) => recoverEffect({ ...facts, delivery: "keyed" }) },
      in: "effects",
      breaks: ["EO"]
    },
    {
      what: "recovery that asks the outside at once",
      changed: { recoverEffect: (facts) => recoverEffect({ ...facts, now: facts.overAt }) },
      in: "effects",
      breaks: ["EO"]
    },
    {
      what: "recovery that takes every worker for dead",
      changed: { recoverEffect: (facts) => recoverEffect({ ...facts, firedBy: "dead" }) },
      in: "effects",
      breaks: ["EO"]
    },
    {
      what: "a firing that looks at no clock",
      changed: { mayStillFire: () => true },
      in: "effects",
      breaks: ["EO"]
    },
    {
      what: "rows of the inbox that are never served",
      changed: { serveInboxRow: () => ({ _tag: "Unserved", reason: "no" }) },
      in: "gates",
      breaks: ["LV"]
    },
    {
      what: "entries that persist unchecked",
      changed: {
        admitEntry: (branch, entry, limits) => admitEntry(branch, { ...entry, payloadWellFormed: true }, limits)
      },
      in: "effects",
      breaks: ["CV"]
    },
    {
      what: "owners that are never given up",
      changed: { judgeOwner: () => ({ _tag: "Alive" }) },
      in: "gates",
      breaks: ["LV"]
    },
    {
      what: "firing that looks at no record",
      changed: { admitFiring: (_tries, request) => admitFiring([], request) },
      in: "effects",
      breaks: ["EO"]
    },
    {
      what: "a start that finds no earlier one",
      changed: { admitStart: (_stored, request) => admitStart({ _tag: "Absent" }, request) },
      in: "child",
      breaks: ["EO", "LV"]
    },
    {
      what: "a fork that finds no earlier one",
      changed: { admitFork: (facts, request) => admitFork({ ...facts, existing: undefined }, request) },
      in: "forks",
      breaks: ["FI"]
    },
    {
      what: "a fork with an invalid value",
      changed: { admitFork: (facts, request) => admitFork(facts, { ...request, valueValid: true }) },
      in: "invalid forks",
      breaks: ["CV"]
    },
    {
      what: "a fold that sees no history",
      changed: { recover: (branch) => shippedDecisions.recover(branch, []) },
      in: "effects",
      breaks: ["EO"]
    }
  ])("notices $what", ({ changed, in: name, breaks }) => {
    expect(brokenBy(changed, name)).toEqual(breaks)
    expect(brokenBy({}, name)).toEqual([])
  })

  it("tells a lost wake-up as a story that one can follow", () => {
    const [found] = explore(makePlane(world("gates"), { fault: "lost-wake-up" })).broken
    expect(found && story(found)).toBe(
      [
        "  1.   Worker 1 claims the root branch and recovers it from 0 durable outcomes.",
        "  2.   Worker 1 opens the interrupt of operation 1 (gate) of the root branch; it is not durable yet.",
        "  3.   The mark of operation 1 (gate) of the root branch becomes durable.",
        "  4. » Deliverer 1 answers operation 1 (gate) of the root branch with false (retry).",
        "  5.   Worker 1 parks the root branch at operation 1 (gate) and lets go of it.",
        "     LV is broken: nothing of the system's own can happen any more, and a branch is not over and waits for nothing that can be named."
      ].join("\n")
    )
  })

  it("tells why exactly-once is broken by what the outside's log shows", () => {
    const broken = explore(makePlane(world("effects"), { fault: "outcome-before-durable" })).broken
    expect(broken.map(({ why }) => why)).toEqual([
      "the outside's own log shows more than the delivery policy allows: operation 2 (keyed) of the root branch fired with two inputs under one key."
    ])
  })

  it("is found the same by any number of threads", { timeout: 120_000 }, async () => {
    const fault = "lost-wake-up"
    const alone = explore(makePlane(world("child"), { fault }))
    const shown = (broken: typeof alone.broken) => broken.map(({ property, steps }) => [property, steps.length])
    const { states, generated, depth } = alone
    const [two, three, again] = [
      await explorePlane(world("child"), { fault, threads: 2 }),
      await explorePlane(world("child"), { fault, threads: 3 }),
      await explorePlane(world("child"), { fault, threads: 3 })
    ]
    for (const together of [two, three]) {
      expect(together).toMatchObject({ states, generated, depth, exhaustive: true })
      expect(shown(together.broken)).toEqual(shown(alone.broken))
    }
    expect(shown(two.broken)).toEqual([["LV", 11]])
    expect(again.broken).toEqual(three.broken)
  })

  it("says of a bounded parallel exploration that it is not exhaustive", async () => {
    const bounded = await explorePlane(world("forks"), { threads: 2, maxStates: 2000 })
    expect(bounded.exhaustive).toBe(false)
    expect(bounded.states).toBeGreaterThan(2000)
  })
})
