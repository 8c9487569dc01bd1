/**
 * Lockstep: the ledger and the contract's model of it are driven by the same actions and compared after each. The model
 * decides by the functions that the ledger calls; what is tested is that the ledger asks them the right thing, and does
 * what they say.
 *
 * FERMATA_SEED repeats a run. `npm run contract:lockstep` has the options for longer ones.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  type ActionBounds,
  type Decisions,
  emptyLedger,
  ledgerActions,
  type LedgerState,
  makeLedgerModel,
  shippedDecisions
} from "@fermata/contract/model"
import { jsonDigest } from "@fermata/ledger"
import { FastCheck as fc } from "effect"
import { type Place, postgres, sqliteFile, sqliteMemory } from "../outside/Place.js"
import { Ledgers } from "./Ledgers.js"
import { byNumbers, choices, type Next, play, type SequenceOptions } from "./Sequence.js"

const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)

/** Random sequences on SQLite in memory. */
const sequences = numberOf("FERMATA_SEQUENCES", 1000)
/** Random sequences on a file, and on PostgreSQL. */
const stored = numberOf("FERMATA_SEQUENCES_STORED", 100)
/** How many actions the exhaustive sequences go on after their beginnings. */
const depth = numberOf("FERMATA_DEPTH", 2)
const seed = process.env["FERMATA_SEED"] === undefined ? {} : { seed: numberOf("FERMATA_SEED", 0) }
const longest = 48
const hour = 3_600_000

const numbers = fc.array(fc.nat(choices), { minLength: 1, maxLength: longest, size: "max" })

const lockstep = async (place: Place, count: number, options: SequenceOptions = {}): Promise<void> => {
  const ledgers = new Ledgers(place)
  await fc.assert(
    fc.asyncProperty(numbers, (chosen) => ledgers.play((ledger) => play(ledger, byNumbers(chosen), options))),
    { numRuns: count, ...seed }
  )
  await ledgers.close()
}

/** All that the ledger can answer without a corrupt database or a caller's defect. */
const answers = `Started RunConflict RunPurged RunNotOver Purged Claimed Appended Released InboxAdvanced Fenced Freed
  Accepted Duplicate TooLate DeliveryIdReused AlreadyConsumed InterruptClosed ResumeValueInvalid UnknownInterrupt Forked
  ForkIdReused UnknownCheckpoint EffectInFlight UnknownEffect AlreadySettled EffectUnderWay Unstuck`

describe("random sequences", () => {
  it(
    `agree in memory (${sequences} sequences), and get every answer that there is`,
    async () => {
      const heard = new Set<string>()
      await lockstep(sqliteMemory, sequences, { hear: (_action, answer) => heard.add(answer) })
      // Fewer sequences may miss the rarest.
      if (sequences >= 2000) assert.deepStrictEqual([...heard].sort(), answers.split(/\s+/).sort())
    },
    hour
  )
  it(`agree on a file (${stored} sequences)`, () => lockstep(sqliteFile, stored), hour)
  it(`agree on PostgreSQL (${stored} sequences)`, () => lockstep(postgres, stored), hour)
})

// ── All sequences to a depth ────────────────────────────────────────────────────────────────────────────────

/** One of everything, so that all sequences are not too many. */
const one: ActionBounds = {
  runs: 1,
  workers: 1,
  forks: 1,
  ordinals: 1,
  losses: ["left"],
  values: ["false"],
  purge: true
}

const is =
  (tag: Action["_tag"], part = "") =>
  (action: Action): boolean =>
    action._tag === tag && JSON.stringify(action).includes(part)

/** Where the exhaustive sequences begin: each is what is done first, by tag and a part of the action. */
const beginnings: Readonly<Record<string, ReadonlyArray<(action: Action) => boolean>>> = {
  "nothing at all": [],
  "a run that a worker has": [is("Start"), is("Claim")],
  "a question that is open": [is("Start"), is("Claim"), is("Append", "interrupt.opened")],
  "an answer that is not moved": [
    is("Start"),
    is("Claim"),
    is("Append", "interrupt.opened"),
    is("Deliver", `"delivery":"d1"`)
  ],
  "an effect in flight": [is("Start"), is("Claim"), is("Append", `\\"delivery\\":\\"once\\"`)],
  "an effect that nobody has": [is("Start"), is("Claim"), is("Append", `\\"delivery\\":\\"once\\"`), is("Lose")],
  "a fork with an answer": [
    is("Start"),
    is("Claim"),
    is("Append", "interrupt.opened"),
    is("Fork", `"_tag":"Interrupt"`)
  ],
  "a run that is over": [is("Start"), is("Claim"), is("Append", "run.completed")]
}

const begin = (first: ReadonlyArray<(action: Action) => boolean>, then: ReadonlyArray<number>): Next => {
  return (actions, n) => {
    const wanted = first[n]
    if (wanted !== undefined) {
      const action = actions.find(wanted)
      assert(action !== undefined, `no action of the beginning's number ${n + 1} makes sense`)
      return action
    }
    const index = then[n - first.length]
    return index === undefined ? undefined : actions[index]
  }
}

describe(`all sequences of ${depth} actions after`, () => {
  for (const [name, first] of Object.entries(beginnings)) {
    it(
      `${name}`,
      async () => {
        const model = makeLedgerModel({ digestOf: jsonDigest })
        const ledgers = new Ledgers(sqliteMemory)
        let state: LedgerState = emptyLedger
        first.forEach((_, n) => {
          const action = begin(first, [])(ledgerActions(model, state, one), n)
          if (action !== undefined) ({ state } = model.step(state, action))
        })
        let played = 0
        // Depth first over the model. Each longest sequence is played, and with it all that begin it.
        const visit = async (state: LedgerState, path: ReadonlyArray<number>): Promise<void> => {
          if (path.length === depth) {
            played++
            return ledgers.play((ledger) => play(ledger, begin(first, path), { bounds: one }))
          }
          for (const [index, action] of ledgerActions(model, state, one).entries()) {
            await visit(model.step(state, action).state, [...path, index])
          }
        }
        await visit(state, [])
        await ledgers.close()
        assert.isAtLeast(played, 2 ** depth)
      },
      hour
    )
  }
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
