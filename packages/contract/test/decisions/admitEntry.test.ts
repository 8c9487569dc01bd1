import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitEntry, EntryKind, eventKinds, isEvent, isTerminal, markKinds, terminalKinds } from "../../src/index.js"
import { text } from "../domains.js"

const kinds = EntryKind.literals
const entry = fc.record({
  kind: fc.constantFrom(...kinds),
  key: text,
  payloadLength: fc.integer({ min: 0, max: 20 }),
  payloadWellFormed: fc.boolean()
})
const branch = fc.record({ head: fc.integer({ min: 0, max: 2 }), over: fc.boolean() })

describe("admitEntry", () => {
  it("every kind is an event, a mark or a terminal, and of one sort only", () => {
    assert.deepStrictEqual([...kinds], [...eventKinds, ...markKinds, ...terminalKinds])
    assert.strictEqual(new Set(kinds).size, kinds.length)
    for (const kind of kinds) {
      assert.strictEqual(
        isEvent(kind),
        eventKinds.some((event) => event === kind)
      )
      assert.strictEqual(
        isTerminal(kind),
        terminalKinds.some((terminal) => terminal === kind)
      )
    }
  })

  it.prop(
    "CV: what persists is well-formed text within the limit, on a branch that has begun and is not over",
    [branch, entry],
    ([at, one]) => {
      const verdict = admitEntry(at, one, { maxPayload: 10 })
      const valid =
        !at.over &&
        (one.kind === "run.started") === (at.head === 0) &&
        one.payloadLength <= 10 &&
        one.payloadWellFormed &&
        one.key.isWellFormed() &&
        !one.key.includes("\0")
      assert.strictEqual(verdict._tag === "Persist", valid)
    },
    { fastCheck: { numRuns: 3000 } }
  )

  it.prop(
    "of any sequence of entries the first is the start, and nothing follows an end",
    [fc.array(entry, { maxLength: 20 })],
    ([entries]) => {
      let head = 0
      let over = false
      const persisted: Array<EntryKind> = []
      for (const one of entries) {
        if (admitEntry({ head, over }, one, { maxPayload: 10 })._tag !== "Persist") continue
        persisted.push(one.kind)
        head++
        over = isTerminal(one.kind)
      }
      persisted.forEach((kind, i) => {
        assert.strictEqual(kind === "run.started", i === 0)
        if (isTerminal(kind)) assert.strictEqual(i, persisted.length - 1)
      })
    }
  )
})
