import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { admitKeyedCall, keyedStep, loopsAround } from "../../src/index.js"

describe("keyedStep", () => {
  it("names a step by its scope, its node and the key", () => {
    assert.deepStrictEqual(keyedStep("", "charge", "a@b.example/7"), { _tag: "Named", step: "charge@a@b.example/7" })
    assert.deepStrictEqual(keyedStep("up#1/3/", "charge", "k"), { _tag: "Named", step: "up#1/3/charge@k" })
  })

  it("refuses what would read as another key", () => {
    for (const key of ["", " a", "a\n", "a#1", "a|b", "a~1", "a%7C", "a".repeat(256)]) {
      assert.strictEqual(keyedStep("", "charge", key)._tag, "Refused", JSON.stringify(key))
    }
    assert.strictEqual(keyedStep("", "a@b", "c")._tag, "Refused")
  })

  const text = fc.string({ unit: fc.constantFrom("a", "@", "/", "1", "#"), minLength: 1, maxLength: 5 })
  it.prop(
    "RD: no two calls have one step, and a key is in its scope's loops only",
    [text, text, text, text],
    (texts) => {
      const [node, key, otherNode, otherKey] = texts
      const one = keyedStep("up#1/2/", node, key)
      const other = keyedStep("up#1/2/", otherNode, otherKey)
      if (one._tag === "Refused") return
      assert.isFalse(/#\d+$/.test(one.step))
      if (!node.includes("#")) assert.deepStrictEqual(loopsAround(one.step), ["up#1"])
      if (other._tag === "Named" && one.step === other.step) {
        assert.deepStrictEqual([node, key], [otherNode, otherKey])
      }
    }
  )
})

describe("admitKeyedCall", () => {
  it("one step for all who call it with the same input", () => {
    assert.strictEqual(admitKeyedCall(undefined, "i"), "Start")
    const verdicts = (["running", "ended", "withdrawn"] as const).map((state) => [
      admitKeyedCall({ input: "i", state }, "i"),
      admitKeyedCall({ input: "i", state }, "other")
    ])
    assert.deepStrictEqual(verdicts, [
      ["Join", "OtherInput"],
      ["Serve", "OtherInput"],
      ["Withdrawn", "OtherInput"]
    ])
  })
})
