import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { deepStrictEqual } from "node:assert"
import { runInNewContext } from "node:vm"
import { Defect } from "../src/index.js"
import { storable, text } from "./domains.js"

/** Through text, as it is stored. */
const recorded = (thrown: unknown, limits?: Defect.DefectLimits): unknown =>
  Defect.decode(JSON.parse(JSON.stringify(Defect.encode(thrown, limits))))

const asError = (value: unknown): Error => {
  assert.instanceOf(value, Error)
  return value
}

class PaymentRefused extends Error {
  override readonly name = "PaymentRefused"
  constructor(
    message: string,
    readonly code: string,
    readonly details: unknown,
    options?: ErrorOptions
  ) {
    super(message, options)
  }
}

describe("Defect", () => {
  it("an error keeps its name, message, stack, code, fields and its three causes", () => {
    const root = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", errno: -111 })
    const thrown = new PaymentRefused(
      "refused",
      "E42",
      { cents: 10n, at: -0, note: undefined },
      {
        cause: new TypeError("second", { cause: new RangeError("third", { cause: root }) })
      }
    )
    const back = asError(recorded(thrown))
    assert.deepStrictEqual([back.name, back.message, back.stack], [thrown.name, thrown.message, thrown.stack])
    assert.strictEqual(Reflect.get(back, "code"), "E42")
    deepStrictEqual(Reflect.get(back, "details"), { cents: 10n, at: -0, note: undefined })
    const second = asError(back.cause)
    assert.instanceOf(second, TypeError)
    const third = asError(second.cause)
    assert.instanceOf(third, RangeError)
    const last = asError(third.cause)
    assert.deepStrictEqual(
      [last.message, Reflect.get(last, "code"), Reflect.get(last, "errno")],
      ["connect ECONNREFUSED", "ECONNREFUSED", -111]
    )
    assert.isFalse(Object.hasOwn(last, "cause"))
    // A user's class is never rebuilt.
    assert.strictEqual(Object.getPrototypeOf(back), Error.prototype)
  })

  it("an AggregateError keeps what it gathers, in order", () => {
    const back = recorded(new AggregateError([new TypeError("a"), "text", undefined, null, 0], "many"))
    assert.instanceOf(back, AggregateError)
    assert.strictEqual(back.message, "many")
    assert.strictEqual(asError(back.errors[0]).message, "a")
    assert.deepStrictEqual(back.errors.slice(1), ["text", undefined, null, 0])
  })

  it.prop(
    "what is thrown without being an Error comes back equal",
    [storable],
    ([thrown]) => deepStrictEqual(recorded(thrown), thrown),
    {
      fastCheck: { numRuns: 1000 }
    }
  )

  it("a cause that is undefined or false is a cause", () => {
    for (const cause of [undefined, false, 0, "", null]) {
      const back = asError(recorded(new Error("m", { cause })))
      assert.isTrue(Object.hasOwn(back, "cause"))
      assert.strictEqual(back.cause, cause)
    }
  })

  it("a cause chain that comes back to itself does so again", () => {
    const outer = new Error("outer")
    const inner = new Error("inner", { cause: outer })
    outer.cause = inner
    const back = asError(recorded(outer))
    assert.strictEqual(asError(back.cause).message, "inner")
    assert.strictEqual(asError(back.cause).cause, back)
    const self = new AggregateError([], "self")
    self.errors.push(self)
    const again = recorded(self)
    assert.instanceOf(again, AggregateError)
    assert.strictEqual(again.errors[0], again)
  })

  it("an error of another realm is an error", () => {
    const back = asError(recorded(runInNewContext("Object.assign(new TypeError('there'), { code: 7 })")))
    assert.deepStrictEqual([back.name, back.message, Reflect.get(back, "code")], ["TypeError", "there", 7])
  })

  it("details that cannot be recorded are replaced one by one; the rest is kept", () => {
    const cycle: Record<string, unknown> = { ok: 1 }
    cycle["again"] = cycle
    const details = {
      cycle,
      f: () => 1,
      s: Symbol("s"),
      when: new Date(0),
      map: new Map(),
      big: 1n,
      kept: [1, undefined]
    }
    const back = asError(recorded(new PaymentRefused("m", "E1", details)))
    const kept = Reflect.get(back, "details")
    deepStrictEqual(kept, {
      cycle: { ok: 1, again: "[not recorded: a cycle]" },
      f: "[not recorded: a function]",
      s: "[not recorded: a symbol]",
      when: "[not recorded: an instance of Date]",
      map: "[not recorded: an instance of Map]",
      big: 1n,
      kept: [1, undefined]
    })
    assert.strictEqual(Reflect.get(back, "code"), "E1")
  })

  const hostile = (): ReadonlyArray<unknown> => {
    const fail = (): never => {
      throw new Error("trap")
    }
    const long = new Error("x".repeat(5_000_000))
    let chain: Error = new Error("end")
    for (let i = 0; i < 10_000; i++) chain = new Error(`${i}`, { cause: chain })
    let deep: unknown = {}
    for (let i = 0; i < 100_000; i++) deep = { deep }
    let doubling: unknown = "leaf"
    for (let i = 0; i < 60; i++) doubling = [doubling, doubling]
    const crowd = new AggregateError(Array.from({ length: 100_000 }, (_, i) => new Error(`${i}`)))
    const nestedCrowd = new AggregateError([crowd, crowd], "twice")
    return [
      long,
      chain,
      crowd,
      nestedCrowd,
      Object.assign(new Error("m"), {
        deep,
        doubling,
        huge: 2n ** 100_000n,
        items: Array.from({ length: 1_000_000 }, () => "item")
      }),
      Object.assign(new Error("m"), { ["k".repeat(1_000_000)]: 1 }),
      Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key${i}`, i])),
      Object.defineProperty(new Error("m"), "message", { get: fail }),
      Object.defineProperty(new Error("m"), "name", { value: Symbol("n") }),
      Object.defineProperty(new Error("m"), "cause", { get: fail }),
      Object.defineProperty(new Error("m"), "code", { get: fail, enumerable: true }),
      Object.assign(new Error("m"), { toJSON: fail, errors: "not a list", __proto__: Error.prototype }),
      Object.assign(new Error("m"), JSON.parse('{"__proto__":{"x":1},"constructor":1}')),
      new Proxy({}, { getPrototypeOf: fail, get: fail, ownKeys: fail, has: fail, getOwnPropertyDescriptor: fail }),
      new Proxy(new Error("m"), { get: fail, ownKeys: fail }),
      Object.assign([], { length: 1_000_000 }),
      () => 1,
      Symbol("s"),
      NaN,
      new Date(NaN)
    ]
  }

  it("recording is total and bounded, whatever is thrown", () => {
    for (const thrown of hostile()) {
      const stored = JSON.stringify(Defect.encode(thrown))
      // A text unit takes at most six characters of JSON; values and errors have a bounded frame each.
      assert.isBelow(stored.length, Defect.defaultLimits.text * 6 + 600_000)
      recorded(thrown)
    }
    assert.isBelow(JSON.stringify(Defect.encode(new Error("x".repeat(5_000_000)))).length, 100_000)
  })

  it.prop(
    "any value is recorded and read back without throwing",
    [
      fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withSparseArray: true,
        withTypedArray: true,
        withNullPrototype: true,
        withObjectString: true
      }),
      text
    ],
    ([thrown, message]) => {
      recorded(thrown)
      recorded(Object.assign(new Error(message, { cause: thrown }), { thrown }))
    },
    { fastCheck: { numRuns: 1000 } }
  )

  it.prop("what was recorded once is recorded alike again", [text, text, storable], ([message, code, cause]) => {
    const first = Defect.encode(Object.assign(new TypeError(message, { cause }), { code }))
    deepStrictEqual(Defect.encode(Defect.decode(first)), first)
  })

  it.prop("reading is total: a record that is none gives an error that says so", [fc.anything()], ([encoded]) => {
    Defect.decode(encoded)
  })

  it("a record that is none says so", () => {
    for (const encoded of [
      undefined,
      null,
      1,
      {},
      { _tag: "Again", up: 1 },
      { _tag: "Value", value: { $fermata: "?" } }
    ]) {
      assert.match(asError(Defect.decode(encoded)).message, /cannot be read/)
    }
  })

  it("without stacks nothing of a stack is recorded", () => {
    const encoded = Defect.encode(new Error("m"), { ...Defect.defaultLimits, stack: false })
    assert.deepStrictEqual(encoded, { _tag: "Error", name: "Error", message: "m" })
    assert.strictEqual(asError(Defect.decode(encoded)).stack, "Error: m")
  })
})
