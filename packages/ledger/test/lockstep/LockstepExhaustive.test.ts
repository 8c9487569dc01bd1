/** Lockstep of all sequences: from several beginnings, every way to go on, to a depth. */
import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  type ActionBounds,
  emptyLedger,
  ledgerActions,
  type LedgerState,
  makeLedgerModel
} from "@fermata/contract/model"
import { jsonDigest } from "@fermata/ledger"
import { sqliteMemory } from "../outside/Place.js"
import { begin, is } from "./Beginning.js"
import { Ledgers } from "./Ledgers.js"
import { extent, patience, withoutStacks } from "./Random.js"
import { play } from "./Sequence.js"

withoutStacks()

const { depth } = extent

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

describe(`all sequences of ${depth} actions after`, () => {
  for (const [name, first] of Object.entries(beginnings)) {
    it(
      `${name}`,
      async () => {
        const model = makeLedgerModel({ digestOf: jsonDigest })
        const ledgers = new Ledgers(sqliteMemory)
        let state: LedgerState = emptyLedger
        first.forEach((_, n) => {
          const action = begin(first, [])(ledgerActions(model, state, one), n, state)
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
      patience
    )
  }
})
