import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitFork, type ForkFacts, type ForkRequest, type StoredFork } from "../../src/index.js"
import { combinations } from "../domains.js"

const facts: ForkFacts = {
  run: "known",
  existing: undefined,
  head: 5,
  anchor: 0,
  inFlight: [],
  nearest: { below: 2, above: 4 },
  interruptOpen: undefined
}
const request: ForkRequest = { parent: "r/main", seq: 3, firstDigest: "", settlesStep: undefined, valueValid: true }

const domain = {
  run: ["known", "unknown", "purged"],
  existing: [
    undefined,
    { parent: "r/main", seq: 3, firstDigest: "v" },
    { parent: "r/main", seq: 3, firstDigest: "" },
    { parent: "r/main", seq: 2, firstDigest: "v" },
    { parent: "r/f", seq: 3, firstDigest: "v" }
  ],
  head: [undefined, 0, 2, 3, 4],
  anchor: [0, 3, 4],
  inFlight: [
    [],
    [{ key: "k", step: "s#0" }],
    [
      { key: "k", step: "s#0" },
      { key: "l", step: "t#0" }
    ]
  ],
  nearest: [{ below: undefined, above: 4 }],
  interruptOpen: [undefined, true, false],
  seq: [0, 3, -1],
  settlesStep: [undefined, "s#0"],
  valueValid: [true, false]
} as const

describe("admitFork", () => {
  it("forks at a durable position where nothing stands against it", () => {
    assert.deepStrictEqual(admitFork(facts, request), { _tag: "Fork" })
    assert.deepStrictEqual(admitFork(facts, { ...request, seq: 5 }), { _tag: "Fork" })
    assert.deepStrictEqual(admitFork(facts, { ...request, seq: 6 }), { _tag: "UnknownCheckpoint", head: 5 })
    assert.deepStrictEqual(admitFork(facts, { ...request, seq: 0 }), { _tag: "UnknownCheckpoint", head: 5 })
    assert.deepStrictEqual(admitFork({ ...facts, anchor: 4 }, request), { _tag: "CheckpointPruned", anchor: 4 })
  })

  it("admits a new fork only if nothing of its facts stands against it, whatever the combination", () => {
    let forks = 0
    for (const { seq, settlesStep, valueValid, ...rest } of combinations(domain)) {
      const asked: ForkRequest = { parent: "r/main", seq, firstDigest: "v", settlesStep, valueValid }
      const verdict = admitFork(rest, asked)
      const possible =
        rest.run === "known" &&
        rest.existing === undefined &&
        rest.head !== undefined &&
        seq >= 1 &&
        seq <= rest.head &&
        seq >= rest.anchor &&
        rest.interruptOpen !== false &&
        valueValid &&
        rest.inFlight.every(({ step }) => step === settlesStep)
      assert.strictEqual(verdict._tag === "Fork", possible, JSON.stringify({ rest, asked, verdict }))
      if (verdict._tag === "Fork") forks++
      if (verdict._tag === "Existing" || verdict._tag === "ForkIdReused") {
        assert.isDefined(rest.existing)
        assert.strictEqual(
          verdict._tag === "Existing",
          JSON.stringify(rest.existing) === '{"parent":"r/main","seq":3,"firstDigest":"v"}' && seq === 3
        )
      } else if (rest.run === "known" && rest.head !== undefined) {
        // What exists under the id decides before anything else: the same fork again is always the same branch.
        assert.isUndefined(rest.existing)
      }
    }
    assert.isAbove(forks, 0)
  })

  it("refuses a position with an unfinished once effect, naming it and where a fork is possible", () => {
    const inFlight = [
      { key: "k", step: "s#0" },
      { key: "l", step: "t#0" }
    ]
    assert.deepStrictEqual(admitFork({ ...facts, inFlight }, request), {
      _tag: "EffectInFlight",
      keys: ["k", "l"],
      below: 2,
      above: 4
    })
    // The first event of the fork settles one of them.
    assert.deepStrictEqual(admitFork({ ...facts, inFlight }, { ...request, settlesStep: "s#0" }), {
      _tag: "EffectInFlight",
      keys: ["l"],
      below: 2,
      above: 4
    })
    assert.strictEqual(
      admitFork({ ...facts, inFlight: inFlight.slice(0, 1) }, { ...request, settlesStep: "s#0" })._tag,
      "Fork"
    )
  })

  const asked = fc.record({
    fork: fc.constantFrom("f1", "f2"),
    parent: fc.constantFrom("r/main", "r/f1"),
    seq: fc.integer({ min: 0, max: 6 }),
    firstDigest: fc.constantFrom("", "false", "0", "null")
  })

  it.prop(
    "FI: of any sequence of forks one id names one fork, for ever",
    [fc.array(asked, { maxLength: 20 })],
    ([requests]) => {
      const stored = new Map<string, StoredFork>()
      const ask = ({ fork, ...rest }: (typeof requests)[number]) =>
        admitFork({ ...facts, existing: stored.get(fork) }, { ...rest, settlesStep: undefined, valueValid: true })
      for (const one of requests) {
        const before = stored.get(one.fork)
        const verdict = ask(one)
        const { fork, ...wanted } = one
        if (verdict._tag === "Fork") {
          assert.isUndefined(before)
          stored.set(fork, wanted)
        }
        if (verdict._tag === "Existing") assert.deepStrictEqual(before, wanted)
        if (verdict._tag === "ForkIdReused") assert.notDeepEqual(before, wanted)
        for (const [id, exists] of stored) assert.strictEqual(ask({ fork: id, ...exists })._tag, "Existing")
      }
    }
  )
})
