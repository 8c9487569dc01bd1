import { explore, type PackedModel, story } from "@fermata/contract/model"
import { describe, expect, it } from "vitest"
import {
  counter,
  hanoi,
  jugs,
  missionaries,
  peterson,
  philosophers,
  philosopherStates,
  slidingPuzzle,
  toy
} from "./toys.js"

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1))

const found = (model: PackedModel) => {
  const { states, depth, broken, exhaustive } = explore(model)
  return { states, depth, exhaustive, broken: broken.map(({ property, steps }) => `${property} after ${steps.length}`) }
}

describe("explore", () => {
  it("finds as many states as arithmetic says", () => {
    expect(found(counter(10))).toEqual({ states: 1024, depth: 1023, exhaustive: true, broken: [] })
    expect(found(hanoi(6)).states).toBe(3 ** 6)
    expect(found(slidingPuzzle(3, 2)).states).toBe(factorial(6) / 2)
    for (const count of [2, 3, 5, 8, 10]) expect(found(philosophers(count)).states).toBe(philosopherStates(count))
  })

  it("finds as many states, and as long shortest paths, as the literature says", () => {
    expect(found(slidingPuzzle(3, 2)).depth).toBe(21)
    expect(found(slidingPuzzle(3, 3))).toEqual({ states: 181_440, depth: 31, exhaustive: true, broken: [] })
    expect(found(missionaries)).toMatchObject({ states: 16, broken: ["safe after 11"] })
    expect(found(jugs)).toMatchObject({ states: 16, broken: ["safe after 6"] })
    expect(found(hanoi(5)).broken).toEqual(["safe after 31"])
    expect(found(philosophers(5)).broken).toEqual(["safe after 5"])
    expect(found(peterson()).broken).toEqual([])
  })

  it("finds other counts when a transition is taken away", () => {
    expect(found(counter(10, 511)).states).toBe(512)
    expect(found(slidingPuzzle(3, 2, "up")).states).toBeLessThan(360)
    for (const model of [missionaries, philosophers(4), hanoi(4)]) {
      const full = found(model).states
      const changed = new Set<number>()
      for (let removed = 0; removed < 6; removed++) {
        const without: PackedModel = {
          ...model,
          next: (state, emit) =>
            model.next(state, (to, label, outside) => (label === removed ? undefined : emit(to, label, outside)))
        }
        changed.add(found(without).states)
      }
      expect(Math.min(...changed), model.name).toBeLessThan(full)
    }
    expect(found(peterson(false)).broken.length).toBe(1)
  })

  it("tells the shortest path step by step", () => {
    const [broken] = explore(jugs).broken
    expect(broken && story(broken)).toBe(
      [
        "  1.   fill the big one",
        "  2.   big into small",
        "  3.   empty the small one",
        "  4.   big into small",
        "  5.   fill the big one",
        "  6.   big into small",
        "     safe is broken: a bad state"
      ].join("\n")
    )
  })

  it("is deterministic", () => {
    const { seconds: _, ...first } = explore(philosophers(7))
    const { seconds: __, ...second } = explore(philosophers(7))
    expect(second).toEqual(first)
  })

  it("stops at its bound, with the count reached, and says that it is not exhaustive", () => {
    const bounded = explore(slidingPuzzle(3, 3), { maxStates: 5000 })
    expect(bounded.exhaustive).toBe(false)
    expect(bounded.states).toBeGreaterThan(5000)
    expect(bounded.states).toBeLessThan(5100)
    const small = explore(slidingPuzzle(3, 3), { maxBytes: 1_000_000 })
    expect(small.exhaustive).toBe(false)
    expect(small.states * small.bytesPerState).toBeLessThan(2_500_000)
  })

  it("keeps a state in no more than 200 bytes", () => {
    expect(explore(slidingPuzzle(3, 3)).bytesPerState).toBeLessThan(200)
  })
})

describe("liveness", () => {
  const chain = (moves: Readonly<Record<number, ReadonlyArray<number>>>, environment: ReadonlyArray<string> = []) =>
    toy({
      name: "chain",
      cells: 1,
      initial: [0],
      moves: (state) => (moves[state[0] ?? 0] ?? []).map((to) => ({ to: [to], what: `to ${to}` })),
      mayRest: (state) => state[0] === 9,
      environment
    })

  it("holds where every path of the system's own ends in a state that may rest", () => {
    expect(found(chain({ 0: [1, 2], 1: [9], 2: [9] })).broken).toEqual([])
  })

  it("is broken by a dead end", () => {
    expect(found(chain({ 0: [1, 2], 1: [9], 2: [3] })).broken).toEqual(["live after 2"])
  })

  it("is broken by a dead end that only the environment leads out of", () => {
    expect(found(chain({ 0: [1], 1: [9] }, ["to 9"])).broken).toEqual(["live after 1"])
  })

  it("is broken by a cycle of the system's own, and told where it goes round", () => {
    const exploration = explore(chain({ 0: [1], 1: [2, 9], 2: [3], 3: [2] }))
    expect(
      exploration.broken.map(({ property, steps, why }) => [property, steps.length, why.includes("for ever")])
    ).toEqual([["live", 2, true]])
  })

  it("is not broken by a cycle that the environment closes", () => {
    expect(found(chain({ 0: [9], 9: [0] }, ["to 0"])).broken).toEqual([])
  })

  it("is not blamed on states behind a cycle", () => {
    const [broken] = explore(chain({ 0: [5], 5: [4, 6], 4: [5], 6: [9] })).broken
    expect(broken?.steps.at(-1)?.what).toBe("to 5")
  })
})
