import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import { deepStrictEqual } from "node:assert"
import { isDeepStrictEqual } from "node:util"
import { StrictJson } from "../src/index.js"
import { frozen, reordered, storable } from "./domains.js"

const textOf = (value: unknown): string => Either.getOrThrow(StrictJson.encode(value))
const issueOf = (value: unknown): StrictJson.StrictJsonIssue => Either.getOrThrow(Either.flip(StrictJson.encode(value)))
const runs = { fastCheck: { numRuns: 2000 } }

describe("StrictJson round trip", () => {
  it.prop(
    "a stored value comes back deep-equal",
    [storable],
    ([value]) => deepStrictEqual(StrictJson.decode(textOf(value)), value),
    runs
  )

  it.prop(
    "so does one embedded in a larger payload",
    [storable],
    ([value]) => {
      const payload = JSON.stringify({ node: "n", value: Either.getOrThrow(StrictJson.toJson(frozen(value))) })
      const parsed: unknown = frozen(JSON.parse(payload))
      assert(typeof parsed === "object" && parsed !== null && "value" in parsed)
      deepStrictEqual(StrictJson.fromJson(parsed.value), value)
      // Twice: undoing tags changes nothing of the tree.
      deepStrictEqual(StrictJson.fromJson(parsed.value), value)
    },
    runs
  )

  it.prop(
    "the text holds no raw control character and no lone surrogate",
    [storable],
    ([value]) => {
      const text = textOf(value)
      assert.isTrue(text.isWellFormed())
      // oxlint-disable-next-line no-control-regex -- that there is none is the point
      assert.notMatch(text, /[\u0000-\u001f]/)
    },
    runs
  )

  it.prop(
    "plain JSON data is written as JSON.stringify writes it, and embedded as it is",
    [fc.jsonValue()],
    ([json]) => {
      // Parsing what was written takes away -0 and the prototypes that the generator varies.
      const plain: unknown = JSON.parse(JSON.stringify(json))
      fc.pre(!JSON.stringify(plain).includes("$fermata") && !JSON.stringify(plain).includes("__proto__"))
      assert.strictEqual(textOf(plain), JSON.stringify(plain))
      assert.strictEqual(Either.getOrThrow(StrictJson.toJson(plain)), plain)
      assert.strictEqual(StrictJson.fromJson(plain), plain)
    },
    runs
  )

  it("data that looks like a tag comes back as the data it was, never as what the tag means", () => {
    for (const note of [
      { $fermata: "-0" },
      { $fermata: "undefined" },
      { $fermata: "Date", value: 0 },
      { $$fermata: { $fermata: "1n" } },
      [{ $fermata: ["NaN"] }, -0]
    ]) {
      assert.isTrue(isDeepStrictEqual(StrictJson.decode(textOf({ note })), { note }))
    }
  })

  it("a null-prototype object comes back as a plain one, an object used twice as two", () => {
    const shared = { a: 1 }
    const bare: unknown = Object.assign(Object.create(null), { x: -0 })
    const back = StrictJson.decode(textOf({ bare, l: shared, r: [shared, shared] }))
    assert.isTrue(isDeepStrictEqual(back, { bare: { x: -0 }, l: { a: 1 }, r: [{ a: 1 }, { a: 1 }] }))
  })

  it("long strings survive", () => {
    const long = "a\u0000\ud83d".repeat(500_000)
    assert.strictEqual(StrictJson.decode(textOf(long)), long)
  })
})

class Money {
  constructor(readonly cents: number) {}
}

const forbidden = (): never => {
  throw new Error("it was called")
}

/** Name, a value that cannot be stored, what the message says. */
const refused: ReadonlyArray<readonly [string, unknown, RegExp]> = [
  ["a function", () => 1, /function/],
  ["a symbol", Symbol("s"), /symbol/],
  ["a Date", new Date(0), /instance of Date.*Schema/],
  ["an invalid Date", new Date(NaN), /instance of Date.*Schema/],
  ["a Map", new Map(), /instance of Map.*Schema/],
  ["a Set", new Set(), /instance of Set.*Schema/],
  ["bytes", new Uint8Array(2), /instance of Uint8Array.*Schema/],
  ["an Error", new Error("x"), /instance of Error.*Schema/],
  ["a class instance", new Money(1), /instance of Money.*Schema/],
  ["a boxed primitive", Object("text"), /instance of String.*Schema/],
  ["a promise", Promise.resolve(1), /instance of Promise.*Schema/],
  ["a regular expression", /x/, /instance of RegExp.*Schema/],
  ["an array of a subclass", new (class Row extends Array<number> {})(), /instance of Row.*Schema/],
  ["a symbol key", { [Symbol("k")]: 1 }, /symbol as its key/],
  ["a hidden symbol key", Object.defineProperty({}, Symbol("k"), { value: 1 }), /symbol as its key/],
  ["a symbol key of an array", Object.assign([1], { [Symbol("k")]: 1 }), /symbol as its key/],
  ["a revoked proxy", revoked(), /cannot be read/]
]

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** The same, where the path goes on into the value. */
const refusedInside: ReadonlyArray<readonly [string, unknown, string, RegExp]> = [
  // oxlint-disable-next-line no-sparse-arrays -- a hole is the point
  ["a hole", [1, , 3], "[1]", /hole/],
  ["a trailing hole", Object.assign([], { length: 2 }), "[0]", /hole/],
  [
    "a getter",
    {
      get price() {
        return forbidden()
      }
    },
    ".price",
    /accessor/
  ],
  [
    "a setter",
    {
      set price(_: number) {
        forbidden()
      }
    },
    ".price",
    /accessor/
  ],
  ["a hidden property", Object.defineProperty({ a: 1 }, "h", { value: 1 }), ".h", /hidden/],
  ["an own __proto__", JSON.parse('{"__proto__":{"admin":true}}'), ".__proto__", /prototype/],
  ["a toJSON method", { toJSON: forbidden }, ".toJSON", /toJSON.*never called.*Schema/],
  ["a named property of an array", Object.assign([1, 2], { index: 0 }), ".index", /named property/],
  ["the result of a match", /b/.exec("abc"), ".index", /named property/]
]

describe("StrictJson refusals", () => {
  for (const [name, value, reason] of refused) {
    it(`${name} is refused with its path`, () => {
      const issue = issueOf(value)
      assert.strictEqual(issue.path, "$")
      assert.match(issue.reason, reason)
      assert.strictEqual(issueOf({ items: [0, { price: value }] }).path, "$.items[1].price")
      // Among specials too, where the cheap walk gave up before.
      assert.strictEqual(issueOf([undefined, { "a b": value }]).path, '$[1]["a b"]')
    })
  }

  for (const [name, value, path, reason] of refusedInside) {
    it(`${name} is refused with its path`, () => {
      const issue = issueOf({ items: [undefined, value] })
      assert.strictEqual(issue.path, `$.items[1]${path}`)
      assert.match(issue.reason, reason)
      assert.strictEqual(issueOf(value).path, `$${path}`)
      assert.strictEqual(Either.isLeft(StrictJson.canonical(value)), true)
      assert.strictEqual(Either.isLeft(StrictJson.toJson(value)), true)
    })
  }

  it.prop(
    "wherever it is, one bad value is found, and named by its path",
    [
      fc.array(fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom("a", "b_2", "$x", "items")), { maxLength: 6 }),
      fc.constantFrom<unknown>(forbidden, Symbol("x"), new Date(), new Map()),
      storable
    ],
    ([path, bad, sibling]) => {
      const value = path.reduceRight<unknown>(
        (inner, segment) =>
          typeof segment === "number"
            ? [...Array.from({ length: segment }, () => sibling), inner]
            : { before: sibling, [segment]: inner, after: forbidden },
        bad
      )
      const text = path.map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${segment}`)).join("")
      assert.strictEqual(issueOf(value).path, `$${text}`)
    }
  )

  it("no code of the value is run, also if it would give plain data", () => {
    let calls = 0
    const value = {
      get price() {
        return ++calls
      },
      toJSON: () => ++calls
    }
    assert.strictEqual(issueOf([{ value }]).path, "$[0].value.price")
    assert.strictEqual(issueOf([{ value: { toJSON: value.toJSON } }]).path, "$[0].value.toJSON")
    assert.strictEqual(calls, 0)
  })

  it("a cycle is refused where it closes", () => {
    const order: { items: Array<unknown>; self?: unknown } = { items: [] }
    order.items.push({ order })
    assert.strictEqual(issueOf(order).path, "$.items[0].order")
    assert.match(issueOf(order).reason, /cycle/)
    const list: Array<unknown> = []
    list.push(list)
    assert.strictEqual(issueOf(list).path, "$[0]")
  })

  const nested = (levels: number, array: boolean): unknown => {
    let value: unknown = array ? [] : {}
    for (let i = 1; i < levels; i++) value = array ? [value] : { d: value }
    return value
  }

  it("nesting is stored to its limit and refused beyond, without exhausting the stack", () => {
    for (const array of [true, false]) {
      const deepest = nested(StrictJson.maxDepth, array)
      assert.strictEqual(textOf(StrictJson.decode(textOf(deepest))), JSON.stringify(deepest))
      for (const levels of [StrictJson.maxDepth + 1, 100_000]) {
        assert.match(issueOf(nested(levels, array)).reason, /levels deep/)
        assert.isTrue(Either.isLeft(StrictJson.canonical(nested(levels, array))))
      }
    }
    const far = `${'{"$fermata":'.repeat(100_000)}"NaN"${"}".repeat(100_000)}`
    assert.throws(() => StrictJson.decode(far), /./)
    assert.throws(() => StrictJson.fromJson(nested(100_000, true)), /levels deep/)
  })

  it("an object that unfolds without end is refused", () => {
    let value: unknown = { leaf: 1 }
    for (let i = 0; i < 60; i++) value = [value, value]
    assert.match(issueOf(value).reason, /too large/)
  })

  it("a text that the codec did not write is refused, not guessed at", () => {
    for (const text of [
      "",
      "{",
      "undefined",
      '{"$fermata":"Date"}',
      '{"$fermata":1}',
      '{"$fermata":"1.5n"}',
      '{"$fermata":"-0","x":1}',
      '[{"a":{"$fermata":null}}]'
    ]) {
      assert.throws(() => StrictJson.decode(text), StrictJson.StrictJsonIssue)
    }
  })
})

/** Few values, so that two drawn ones are often equal. */
const few: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(0, -0, 1, 1n, "1", "", null, undefined, NaN, false),
    fc.array(tie("value"), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom("a", "b", "$fermata"), tie("value"), { maxKeys: 2, noNullPrototype: true })
  )
})).value

describe("StrictJson.canonical", () => {
  const canonical = (value: unknown): string => Either.getOrThrow(StrictJson.canonical(value))

  it.prop(
    "does not depend on the order of keys, and is a text of the same value",
    [storable],
    ([value]) => {
      assert.strictEqual(canonical(reordered(value)), canonical(value))
      deepStrictEqual(StrictJson.decode(canonical(value)), value)
    },
    runs
  )

  it.prop(
    "is equal exactly for deep-equal values",
    [few, few],
    ([left, right]) => {
      assert.strictEqual(canonical(left) === canonical(right), isDeepStrictEqual(left, right))
    },
    { fastCheck: { numRuns: 5000 } }
  )

  it("orders keys by code unit", () => {
    assert.strictEqual(canonical({ b: 1, a: 2, B: 3, ä: 4, "10": 5, "9": 6 }), '{"10":5,"9":6,"B":3,"a":2,"b":1,"ä":4}')
  })
})
