/**
 * Lockstep: the ledger and the contract's model of it are driven by the same actions and compared after each. The model
 * decides by the functions that the ledger calls; what is tested is that the ledger asks them the right thing, and does
 * what they say.
 *
 * FERMATA_SEED repeats a run; `npm run contract:lockstep` is for longer ones.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Decisions, shippedDecisions } from "@fermata/contract/model"
import { FastCheck as fc } from "effect"
import { postgres, sqliteFile, sqliteMemory } from "../outside/Place.js"
import { begin, is } from "./Beginning.js"
import { Ledgers } from "./Ledgers.js"
import { extent, numbers, patience, playRandom, withoutStacks } from "./Random.js"
import { byNumbers, play } from "./Sequence.js"

withoutStacks()

const { sequences } = extent

/** All that the ledger can answer without a corrupt database or a caller's defect. */
const answers = `Started RunConflict RunPurged RunNotOver Purged Claimed Appended Released InboxAdvanced Fenced Freed
  Accepted Duplicate TooLate DeliveryIdReused AlreadyConsumed InterruptClosed ResumeValueInvalid UnknownInterrupt Forked
  ForkIdReused UnknownCheckpoint EffectInFlight UnknownEffect AlreadySettled EffectUnderWay Unstuck`

describe("random sequences", () => {
  it(
    `agree in memory (${sequences} sequences), and get every answer that there is`,
    async () => {
      const heard = new Set<string>()
      await playRandom(sqliteMemory, sequences, { hear: (_action, answer) => heard.add(answer) })
      // Fewer sequences may miss the rarest.
      if (sequences >= 2000) assert.deepStrictEqual([...heard].sort(), answers.split(/\s+/).sort())
    },
    patience
  )
})

// ── What once differed ──────────────────────────────────────────────────────────────────────────────────────

describe("sequences in which ledger and model once differed", () => {
  it("a delivery id comes again for another question, on a fork that began with a question", async () => {
    const first = [
      is("Start"),
      is("Fork", `"seq":1`),
      is("Claim"),
      is("Append", `"branch":"r1/f1","draft":{"kind":"interrupt.opened"`),
      is("Deliver", `"branch":"r1/f1","interrupt":"approve#1","name":"approve","delivery":"d1"`),
      is("Deliver", `"branch":"r1/f1","interrupt":"nobody#1"`)
    ]
    for (const place of [sqliteMemory, sqliteFile, postgres]) {
      const ledgers = new Ledgers(place)
      const heard: Array<string> = []
      const hear = (_action: string, answer: string) => heard.push(answer)
      await ledgers.play((ledger) => play(ledger, begin(first, []), { hear }))
      await ledgers.close()
      assert.deepStrictEqual(heard.slice(-2), ["Accepted", "UnknownInterrupt"])
    }
  })
})

// ── The other direction: if a decision were another one, the two would part ─────────────────────────────────

const wrong: Readonly<Record<string, Partial<Decisions>>> = {
  "a start that exists is created again": { admitStart: () => ({ _tag: "Create" }) },
  "an answer is accepted whatever came before": { judgeDelivery: () => ({ _tag: "Accepted" }) },
  "a question that closed takes an answer": {
    judgeDelivery: (facts, request) =>
      shippedDecisions.judgeDelivery(
        facts.interrupt._tag === "Closed" ? { ...facts, interrupt: { _tag: "Open" } } : facts,
        request
      )
  },
  "a fork is made at a question that is not open": {
    admitFork: (facts, request) => shippedDecisions.admitFork({ ...facts, interruptOpen: undefined }, request)
  },
  "a question that closed gives a reason that is not its own": {
    judgeDelivery: (facts, request) => {
      const verdict = shippedDecisions.judgeDelivery(facts, request)
      return verdict._tag === "InterruptClosed" ? { ...verdict, reason: "no reason" } : verdict
    }
  },
  "a cancel is always news": { admitCancel: () => ({ _tag: "Accepted" }) },
  "a zombie writes": {
    admitAppend: (row, request) =>
      shippedDecisions.admitAppend(row && { ...row, epoch: request.epoch }, { ...request, base: row?.head ?? 0 })
  },
  "an owner parks beside an answer": {
    admitPark: (row, owner) => shippedDecisions.admitPark(row && { ...row, inboxHead: owner.inboxSeen }, owner)
  },
  "a fork id names any fork": {
    admitFork: (facts, request) => shippedDecisions.admitFork({ ...facts, existing: undefined }, request)
  },
  "a settlement is accepted twice": {
    admitSettlement: (facts, request) => shippedDecisions.admitSettlement({ ...facts, accepted: undefined }, request)
  }
}

describe("ledger and model differ where", () => {
  for (const [what, decisions] of Object.entries(wrong)) {
    it(`${what}`, async () => {
      const ledgers = new Ledgers(sqliteMemory)
      const parted = await fc.check(
        fc.asyncProperty(numbers, (chosen) =>
          ledgers.play((ledger) =>
            play(ledger, byNumbers(chosen), { decisions: { ...shippedDecisions, ...decisions } })
          )
        ),
        { numRuns: 2000, seed: 1, endOnFailure: true }
      )
      assert.isTrue(parted.failed)
      assert.match(Object(parted.errorInstance).name, /AssertionError/)
    })
  }
})
