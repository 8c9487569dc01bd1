/**
 * Lockstep: the ledger and the contract's model of it are driven by the same actions and compared after each. The model
 * decides by the functions that the ledger calls; what is tested is that the ledger asks them the right thing, and does
 * what they say.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Decisions, emptyLedger, ledgerActions, makeLedgerModel, shippedDecisions } from "@fermata/contract/model"
import { jsonDigest } from "@fermata/ledger"
import { Effect, FastCheck as fc } from "effect"
import { openLedger, type Place, postgres, sqliteFile, sqliteMemory } from "../outside/Place.js"
import { type Answer, modelled, RealLedger } from "./RealLedger.js"

/** Random sequences on SQLite in memory; a tenth of them on a file, and a twentieth on PostgreSQL. */
const sequences = Number(process.env["FERMATA_SEQUENCES"] ?? 300)
const seed = process.env["FERMATA_SEED"] === undefined ? {} : { seed: Number(process.env["FERMATA_SEED"]) }
const longest = 48

/** What of a verdict both sides say. */
const comparable = (verdict: { readonly _tag: string }): Answer => {
  switch (verdict._tag) {
    case "Freed":
      return { _tag: "Freed" }
    case "Appended": {
      const { entry, seq } = verdict as { readonly entry?: { readonly seq: number }; readonly seq?: number }
      return { _tag: "Appended", seq: entry?.seq ?? seq }
    }
    default:
      return verdict as Answer
  }
}

/** Plays the actions that the numbers choose, on a fresh database; fails at the first difference. */
const play = (place: Place, choices: ReadonlyArray<number>, decisions: Decisions = shippedDecisions) =>
  Effect.gen(function* () {
    const model = makeLedgerModel({ digestOf: jsonDigest, decisions })
    const real = new RealLedger(yield* openLedger(yield* place.fresh), model)
    let state = emptyLedger
    const story: Array<string> = []
    for (const choice of choices) {
      const actions = ledgerActions(model, state)
      const action = actions[choice % actions.length]
      if (action === undefined) return yield* Effect.dieMessage("there is always something to do")
      const { state: after, verdict } = model.step(state, action)
      const answer = yield* real.perform(state, action)
      story.push(`${JSON.stringify(action)} => ${answer._tag}`)
      const where = () => story.slice(-12).join("\n")
      assert.deepStrictEqual(comparable(answer), comparable(verdict), where())
      for (const branch of Object.values(after.branches)) {
        assert.deepStrictEqual(yield* real.look(branch.branch), modelled(after, branch), where())
      }
      state = after
    }
    yield* real.close
  }).pipe(Effect.scoped)

const choices = fc.array(fc.nat(9999), { minLength: 1, maxLength: longest, size: "max" })

const lockstep = (place: Place, count: number) =>
  fc.assert(
    fc.asyncProperty(choices, (chosen) => Effect.runPromise(play(place, chosen))),
    { numRuns: count, ...seed }
  )

describe("ledger and model", () => {
  it(
    `agree after every action of ${sequences} random sequences in memory`,
    () => lockstep(sqliteMemory, sequences),
    3_600_000
  )
  it("agree on a file", () => lockstep(sqliteFile, Math.ceil(sequences / 10)), 3_600_000)
  it("agree on PostgreSQL", () => lockstep(postgres, Math.ceil(sequences / 20)), 3_600_000)

  it("agree after every action of all short sequences", async () => {
    const model = makeLedgerModel({ digestOf: jsonDigest })
    let played = 0
    // Depth first over the model; each longest sequence is played, and with it all that begin it.
    const visit = async (state: typeof emptyLedger, path: ReadonlyArray<number>): Promise<void> => {
      if (path.length === 3) {
        played++
        return Effect.runPromise(play(sqliteMemory, path))
      }
      for (const [index, action] of ledgerActions(model, state).entries()) {
        await visit(model.step(state, action).state, [...path, index])
      }
    }
    await visit(emptyLedger, [])
    assert.isAbove(played, 100)
  }, 600_000)

  // The other direction: if a decision were another one, the two would part.
  const wrong: ReadonlyArray<readonly [string, Partial<Decisions>]> = [
    ["a start that exists is created again", { admitStart: () => ({ _tag: "Create" }) }],
    ["an answer is accepted whatever came before", { judgeDelivery: () => ({ _tag: "Accepted" }) }],
    ["a cancel is always news", { admitCancel: () => ({ _tag: "Accepted" }) }]
  ]
  for (const [what, decisions] of wrong) {
    it(`differ where ${what}`, async () => {
      const parted = await fc.check(
        fc.asyncProperty(choices, (chosen) =>
          Effect.runPromise(play(sqliteMemory, chosen, { ...shippedDecisions, ...decisions }))
        ),
        { numRuns: 200, seed: 1, endOnFailure: true }
      )
      assert.isTrue(parted.failed)
    })
  }
})
