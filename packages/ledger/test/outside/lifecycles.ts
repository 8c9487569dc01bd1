/** CO over whole lifecycles: random scripts of asking, answering, journaling, closing, forking and ending, against a model. */
import { expect, it } from "@effect/vitest"
import type { Ledger } from "@fermata/ledger"
import { Effect } from "effect"
import * as fc from "effect/FastCheck"
import { answer, answered, closed, completed, forkId, opened, type Owned, type Owner, unserved } from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

export const lifecycleSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "whatever is asked, answered, closed and forked in whatever order: one consumer each, and the database is sound",
    onBench(({ owner, ledgers }) =>
      Effect.gen(function* () {
        const scripts = fc.sample(
          fc.array(fc.tuple(fc.constantFrom(...actions), fc.nat(5), fc.nat(3)), { minLength: 5, maxLength: 40 }),
          12
        )
        for (const script of scripts) yield* play(owner, ledgers.at(-1) ?? ledgers[0], script)
        expect((yield* ledgers[0].verify).problems).toEqual([])
      })
    )
  )
}

const actions = ["open", "deliver", "deliver", "move", "close", "fork", "end"] as const

/** Plays a script on a run; after each delivery the model says what the verdict had to be. */
const play = (
  owner: Owner,
  outside: Ledger,
  script: ReadonlyArray<readonly [(typeof actions)[number], number, number]>
) =>
  Effect.gen(function* () {
    const root = yield* owner.started()
    const { run } = root.claim.run
    interface Model {
      readonly owned: Owned
      readonly state: Map<
        string,
        "open" | "closed" | { readonly by: string; readonly journaled: boolean; readonly pos: number }
      >
      inbox: number
      over: boolean
    }
    const branches: Array<Model> = [{ owned: root, state: new Map(), inbox: 0, over: false }]
    let names = 0
    for (const [action, n, m] of script) {
      const model = branches[m % branches.length]
      if (model === undefined) continue
      const { owned, state } = model
      const { branch } = owned.journal
      const key = `approve#${n}`
      const now = state.get(key)
      switch (action) {
        case "open":
          if (model.over || now !== undefined) break
          yield* owned.write(opened(key))
          state.set(key, "open")
          break
        case "deliver": {
          const by = `d${names++}`
          const result = yield* Effect.either(outside.deliver(answer(branch, key, by, m)))
          const tag = result._tag === "Right" ? result.right.verdict : result.left._tag
          if (now === undefined) expect(tag).toBe("UnknownInterrupt")
          else if (typeof now === "object") expect(tag).toBe("AlreadyConsumed")
          else if (now === "closed" || model.over) expect(tag).toBe("InterruptClosed")
          else {
            expect(tag).toBe("Accepted")
            state.set(key, { by, journaled: false, pos: ++model.inbox })
          }
          break
        }
        case "move": {
          // In order of position, as an owner does.
          for (const row of yield* outside.inbox(branch, 0)) {
            const answerOf: { readonly interrupt: string; readonly delivery: string; readonly value: number } =
              JSON.parse(row.payload)
            const known = state.get(answerOf.interrupt)
            if (model.over || typeof known !== "object" || known.journaled) continue
            yield* owned.write(answered(answerOf.interrupt, answerOf.value, answerOf.delivery, row.pos))
            state.set(answerOf.interrupt, { ...known, journaled: true })
          }
          break
        }
        case "close":
          if (model.over || now === undefined || now === "closed") break
          if (now === "open") {
            yield* owned.write(closed(key))
            state.set(key, "closed")
          } else if (
            !now.journaled &&
            ![...state.values()].some((one) => typeof one === "object" && !one.journaled && one.pos < now.pos)
          ) {
            yield* owned.write(closed(key), unserved(`answer:${key}`, now.pos, "withdrawn"))
            state.set(key, { ...now, journaled: true })
          }
          break
        case "fork": {
          if (branches.length > 3 || model.over) break
          const { branch: child } = yield* outside.fork({
            run,
            fork: forkId(`f${names++}`),
            parent: branch,
            at: { _tag: "Checkpoint", seq: owned.journal.durable }
          })
          const inherited = new Map(
            [...state].map(([id, one]) => [id, typeof one === "object" && !one.journaled ? "open" : one])
          )
          branches.push({ owned: yield* owner.own(child), state: inherited, inbox: 0, over: false })
          break
        }
        case "end":
          if (n > 0 || model.over) break
          yield* owned.write(completed)
          model.over = true
      }
    }
  })
