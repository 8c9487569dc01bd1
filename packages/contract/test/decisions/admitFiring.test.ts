import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  admitFiring,
  BranchId,
  type DeliveryPolicy,
  effectKey,
  type EffectIdentity,
  type EffectTry,
  type Entry,
  type EntryKind,
  Recovery,
  recoverEffect,
  StepKey,
  writesIntent
} from "../../src/index.js"

const policies = ["transactional", "keyed", "once", "repeatable"] as const satisfies ReadonlyArray<DeliveryPolicy>
const states = ["intended", "succeeded", "failed", "voided", "refused"] as const

const recordedTry = fc.record({
  attempt: fc.integer({ min: 1, max: 3 }),
  effect: fc.constantFrom("e", "f"),
  delivery: fc.constantFrom(...policies),
  input: fc.constantFrom("x", "y"),
  state: fc.constantFrom(...states)
})
const tries: fc.Arbitrary<ReadonlyArray<EffectTry>> = fc
  .array(recordedTry, { maxLength: 5 })
  .map((list) => list.map((one, n) => ({ ...one, key: `k~${n}`, try: n })))
const request = fc.record({
  effect: fc.constantFrom("e", "f"),
  delivery: fc.constantFrom(...policies),
  input: fc.constantFrom("x", "y"),
  attempt: fc.integer({ min: 1, max: 3 })
})
const runs = { fastCheck: { numRuns: 5000 } }

describe("admitFiring, over any record", () => {
  it.prop(
    "never fires while a try is undecided, refused or has succeeded",
    [tries, request],
    ([list, asked]) => {
      const verdict = admitFiring(list, asked)
      if (verdict._tag !== "Fire") return
      for (const one of list) assert.include(["voided", "failed"], one.state)
    },
    runs
  )

  it.prop(
    "fires only if every earlier try never happened or failed in an earlier attempt, and as the next try",
    [tries, request],
    ([list, asked]) => {
      const closed = list.every(
        (one) => one.state === "voided" || (one.state === "failed" && one.attempt < asked.attempt)
      )
      const verdict = admitFiring(list, asked)
      assert.strictEqual(verdict._tag === "Fire", closed)
      if (verdict._tag === "Fire") assert.strictEqual(verdict.try, list.length)
    },
    runs
  )

  it.prop(
    "the first try that is not closed decides alone: what it asks for must be the same, and what it says holds",
    [tries, request],
    ([list, asked]) => {
      const deciding = list.find(
        (one) => !(one.state === "voided" || (one.state === "failed" && one.attempt < asked.attempt))
      )
      const verdict = admitFiring(list, asked)
      if (deciding === undefined) return
      assert(verdict._tag !== "Fire")
      assert.strictEqual(verdict.key, deciding.key)
      if (deciding.effect !== asked.effect)
        return assert.deepInclude(verdict, { _tag: "InputChanged", differs: "effect" })
      if (deciding.input !== asked.input) return assert.deepInclude(verdict, { _tag: "InputChanged", differs: "input" })
      switch (deciding.state) {
        case "succeeded":
        case "failed":
          return assert.strictEqual(verdict._tag, "Serve")
        case "refused":
          return assert.strictEqual(verdict._tag, "Refused")
        case "intended":
          return deciding.delivery === asked.delivery
            ? assert.strictEqual(verdict._tag, "InDoubt")
            : assert.deepInclude(verdict, { _tag: "InputChanged", differs: "delivery" })
        case "voided":
          assert.fail("a voided try is closed")
      }
    },
    runs
  )
})

// ── A plane that crashes ────────────────────────────────────────────────────────────────────────────────────

const branch = BranchId.make("run/main")
const step = StepKey.make("charge#0")

/** One move of a world that does its worst: an attempt's call that ends so, or recovery that finds so. */
const move = fc.record({
  /** How a firing ends: with an outcome, or by a crash before or after the outside world saw it. */
  firing: fc.constantFrom(...(["succeeds", "fails", "crashes before", "crashes after", "is refused"] as const)),
  reconciled: fc.constantFrom(...(["unavailable", "notAsked", "Happened", "NeverWill", "Unknown"] as const)),
  fate: fc.constantFrom(...(["dead", "unknown"] as const)),
  /** Milliseconds after the intent. */
  later: fc.integer({ min: 0, max: 200 }),
  settlement: fc.constantFrom(...(["Succeeded", "Failed", "DidNotHappen", "none"] as const)),
  /** Whether the body asks for another input in this attempt. */
  input: fc.constantFrom("x", "x", "x", "y"),
  /** Whether a typed failure is retried as the next attempt. */
  retries: fc.boolean()
} as const)

describe("admitFiring with recoverEffect and Recovery, over any crashes", () => {
  for (const delivery of policies) {
    it.prop(
      `EO holds for ${delivery}`,
      [fc.array(move, { maxLength: 12 })],
      ([moves]) => {
        const entries: Array<Entry> = []
        const append = (kind: EntryKind, key: string, payload: unknown) =>
          entries.push({
            branch,
            seq: entries.length + 1,
            kind,
            key,
            payload: JSON.stringify(payload),
            epoch: 1,
            at: entries.length,
            digest: ""
          })
        /** The outside world's own log: which key, with which input; and whether it really took effect. */
        const world: Array<{ readonly key: string; readonly input: string; readonly arrived: boolean }> = []
        let attempt = 1
        let served: string | undefined

        for (const now of moves) {
          // Every move is another worker: it knows what is recorded and nothing else.
          const recovery = Recovery.of(branch, entries)
          const recorded = recovery.step(step).effects.get("0") ?? []
          assert.isAtMost(recorded.filter(({ state }) => state === "intended").length, 1, "two open tries")
          const fire = (key: string, nth: number, input: string, again: boolean) => {
            const identity: EffectIdentity = { step, position: "0", try: nth, attempt, effect: "e", delivery, input }
            if (writesIntent(delivery) && !again)
              append("effect.intended", key, { ...identity, value: input, worker: "w" })
            // A transaction that did not commit did not happen.
            const arrived =
              now.firing !== "crashes before" && !(delivery === "transactional" && now.firing.startsWith("crashes"))
            world.push({ key, input, arrived })
            if (now.firing === "succeeds") append("effect.succeeded", key, { ...identity, value: "v", by: "handler" })
            if (now.firing === "fails") append("effect.failed", key, { ...identity, error: "no", by: "handler" })
            if (now.firing === "is refused") append("effect.refused", key, { ...identity, issue: "not a receipt" })
          }
          const settle = (
            key: string,
            settlement: "Succeeded" | "Failed" | "DidNotHappen",
            by: "operator" | "reconcile"
          ) => {
            const one = recorded.find((candidate) => candidate.key === key)
            assert(one !== undefined)
            const { effect, input, position } = one
            const identity: EffectIdentity = {
              step,
              position,
              try: one.try,
              attempt: one.attempt,
              effect,
              delivery,
              input
            }
            if (settlement === "Succeeded") append("effect.succeeded", key, { ...identity, value: "v", by })
            if (settlement === "Failed") append("effect.failed", key, { ...identity, error: "no", by })
            if (settlement === "DidNotHappen") append("effect.voided", key, { ...identity, by })
          }

          const verdict = admitFiring(recorded, { effect: "e", delivery, input: now.input, attempt })
          if (served !== undefined) {
            // A recorded success is the answer for ever, unless the body now asks for something else.
            assert.strictEqual(
              verdict._tag,
              now.input === recovery.effects.get(served)?.input ? "Serve" : "InputChanged"
            )
          }
          switch (verdict._tag) {
            case "Fire":
              fire(effectKey(branch, step, "0", verdict.try), verdict.try, now.input, false)
              break
            case "Serve": {
              const state = recovery.effects.get(verdict.key)?.state
              if (state === "succeeded") served = verdict.key
              else if (now.retries) {
                append("step.retried", step, { node: "charge", attempt, error: "no", due: 0 })
                attempt++
              }
              break
            }
            case "InDoubt": {
              const doubted = recorded.find(({ key }) => key === verdict.key)
              assert(doubted !== undefined)
              const recover = recoverEffect({
                delivery,
                firedBy: now.fate,
                overAt: 100,
                now: now.later,
                reconciled: now.reconciled
              })
              if (recover._tag === "FireAgain") fire(doubted.key, doubted.try, String(doubted.value), true)
              // What the outside reports is true.
              const arrived = world.some(({ key, arrived }) => key === doubted.key && arrived)
              if (recover._tag === "Adopt" && arrived) settle(doubted.key, "Succeeded", "reconcile")
              if (recover._tag === "Void" && !arrived) settle(doubted.key, "DidNotHappen", "reconcile")
              if (
                recover._tag === "AwaitSettlement" &&
                now.settlement !== "none" &&
                (now.settlement !== "DidNotHappen" || !arrived)
              ) {
                settle(doubted.key, now.settlement, "operator")
              }
              break
            }
            case "Refused":
              if (now.settlement === "Succeeded" || now.settlement === "Failed")
                settle(verdict.key, now.settlement, "operator")
              break
            case "InputChanged":
              break
          }
        }

        const keys = new Set(world.map(({ key }) => key))
        for (const key of keys) {
          const firings = world.filter((firing) => firing.key === key)
          if (writesIntent(delivery)) {
            assert.strictEqual(new Set(firings.map(({ input }) => input)).size, 1, "one key, two inputs")
          }
          if (delivery === "once") assert.strictEqual(firings.length, 1, "once fired twice")
        }
        const closed = (key: string) =>
          entries.some(
            (entry) => entry.key === key && (entry.kind === "effect.failed" || entry.kind === "effect.voided")
          )
        // Deduplicated by key, at most one firing stands: all the others are recorded as not having happened.
        if (writesIntent(delivery)) assert.isAtMost([...keys].filter((key) => !closed(key)).length, 1)
        // What committed did so once. A firing that failed was rolled back.
        if (delivery === "transactional") {
          assert.isAtMost(world.filter(({ key, arrived }) => arrived && !closed(key)).length, 1)
        }
      },
      { fastCheck: { numRuns: 3000 } }
    )
  }
})
