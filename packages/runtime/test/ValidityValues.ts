/** Values that are awkward to store: those that must come back as they were, and those that must be refused. */
import { Schema } from "effect"

/** Part of every value that is refused: no message may repeat it. */
export const canary = "CANARY-7f3a"

/** A value that satisfies its Schema and comes back deep-equal. */
export interface Sound {
  readonly name: string
  readonly schema: Schema.Schema<unknown, unknown>
  readonly value: unknown
}

/** A value that is refused before anything is written. */
export interface Flawed {
  readonly name: string
  readonly schema: Schema.Schema<unknown, unknown>
  readonly value: unknown
  /** Where the refusal says that the flaw is: a path that one of its lines begins with. */
  readonly path: string
  /** A value that the same Schema accepts. */
  readonly good: unknown
}

/** Tables hold Schemas of many types; each is only ever used with its own value. */
const erased = <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<unknown, unknown> =>
  schema as unknown as Schema.Schema<unknown, unknown>

const sound = <A, I>(name: string, schema: Schema.Schema<A, I>, value: A): Sound => ({
  name,
  schema: erased(schema),
  value
})

const flawed = <A, I>(name: string, schema: Schema.Schema<A, I>, path: string, value: unknown, good: A): Flawed => ({
  name,
  schema: erased(schema),
  path,
  value,
  good
})

class Point extends Schema.Class<Point>("Point")({ x: Schema.Number, label: Schema.String }) {}
class Declined extends Schema.TaggedError<Declined>()("Declined", { cents: Schema.Number }) {}

interface Tree {
  readonly label: string
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Schema<Tree> = Schema.Struct({
  label: Schema.String,
  children: Schema.Array(Schema.suspend((): Schema.Schema<Tree> => Tree))
})

const nested = (depth: number): unknown => {
  let value: unknown = canary
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { in: value }
  return value
}

const shared = { cents: 1 }
const anything = Schema.Unknown

export const soundValues: ReadonlyArray<Sound> = [
  sound("nothing", Schema.Void, undefined),
  sound("false", Schema.Boolean, false),
  sound("zero", Schema.Number, 0),
  sound("an empty text", Schema.String, ""),
  sound("null", anything, null),
  sound("empty collections", anything, { list: [], record: {} }),
  sound("a text with NUL", Schema.String, "a\u0000b\u0000"),
  sound("lone surrogates", Schema.String, "\ud800 a \udfff"),
  sound("the letters of an escaped NUL", Schema.String, "\\u0000 \\\\u0000 \\ud800"),
  sound("line ends, quotes and emoji", Schema.String, "\r\n\u2028\u2029'\"`;-- $1 ? \ud83d\udc34 e\u0301 \u00e9"),
  sound("odd keys", anything, {
    "": 1,
    constructor: 2,
    prototype: { constructor: 3 },
    toString: 4,
    hasOwnProperty: 5,
    "a\u0000b": 6,
    "\ud800": 7,
    "2": 8,
    "1": 9
  }),
  sound("data that looks like a tag of the codec", anything, {
    $fermata: "undefined",
    $$fermata: [{ $fermata: "1n" }],
    $type: "Date"
  }),
  sound("a toJSON field that is data", anything, { toJSON: "no method" }),
  sound("special numbers", anything, [NaN, Infinity, -Infinity, -0, 0, 5e-324, 2 ** 53]),
  sound("special numbers, declared", Schema.Array(Schema.Number), [NaN, Infinity, -Infinity, -0]),
  sound("undefined in a field and in an array", anything, { a: undefined, b: [undefined, null] }),
  sound("an optional field that is undefined", Schema.Struct({ a: Schema.optional(Schema.String) }), { a: undefined }),
  sound("an optional field that is absent", Schema.Struct({ a: Schema.optional(Schema.String) }), {}),
  sound("bigints", anything, { cents: 12345678901234567890n, debt: -1n }),
  sound("a declared bigint", Schema.BigInt, -(2n ** 100n)),
  sound("a date", Schema.Struct({ at: Schema.Date }), { at: new Date("2026-02-28T12:00:00.123Z") }),
  sound("a date before Christ", Schema.Date, new Date(-1e14)),
  sound(
    "a map with keys that are objects",
    Schema.Map({ key: Schema.Struct({ id: Schema.Number }), value: Schema.Date }),
    new Map([[{ id: 1 }, new Date(0)]])
  ),
  sound("a set", Schema.Set(Schema.BigInt), new Set([1n, 2n])),
  sound("bytes", Schema.Uint8ArrayFromBase64, new Uint8Array([0, 255, 128])),
  sound("an instance of a class that its Schema declares", Point, new Point({ x: -0, label: "\u0000" })),
  sound("an error that its Schema declares", Declined, new Declined({ cents: 5 })),
  sound("one object used twice", anything, { a: shared, b: [shared, shared] }),
  sound("a recursive Schema", Tree, { label: "a", children: [{ label: "b", children: [] }] }),
  sound("500 levels", anything, nested(500)),
  sound(
    "100,000 values",
    anything,
    Array.from({ length: 100_000 }, (_, i) => i % 7)
  ),
  sound("a text of 1 MB", Schema.String, "é\u0000x".repeat(30_000) + "x".repeat(900_000))
]

const cycle = { canary, self: undefined as unknown }
cycle.self = cycle
const loop: { label: string; children: Array<unknown> } = { label: canary, children: [] }
loop.children.push(loop)

class Secret {
  readonly value = canary
}

const withGetter = {
  get secret(): string {
    return canary
  }
}

// A hole is no element, and `undefined` is one.
const sparse: Array<unknown> = [canary, undefined, canary]
delete sparse[1]
const sparseNumbers: Array<unknown> = [1, undefined, 3]
delete sparseNumbers[1]

const Cents = Schema.Struct({ cents: Schema.Number })
const fine = { cents: 1 }
const Strange = Schema.transform(Schema.String, Schema.String, {
  decode: (text) => text,
  encode: (text) => {
    if (text.includes("CANARY")) throw new Error(`cannot take ${text}`)
    return text
  }
})
// Its own text must not come through either: it is written by whoever sees the value.
const Spoken = Schema.String.pipe(
  Schema.filter((text) => !text.includes("CANARY") || `I will not have ${text}`, { identifier: "Harmless" })
)

export const flawedValues: ReadonlyArray<Flawed> = [
  flawed("a text for a number", Cents, "$.cents", { cents: canary }, fine),
  flawed("a missing field", Cents, "$.cents", { canary }, fine),
  flawed("undefined in a required field", Cents, "$.cents", { cents: undefined, canary }, fine),
  flawed("null for a struct", Cents, "$", null, fine),
  flawed("a text for a struct", Cents, "$", canary, fine),
  flawed("a bigint for a number", Cents, "$.cents", { cents: 1n }, fine),
  flawed(
    "a flaw deep inside",
    Schema.Struct({ a: Schema.Array(Cents) }),
    "$.a[1].cents",
    { a: [fine, { cents: canary }] },
    {
      a: []
    }
  ),
  flawed("no member of a union", Schema.Union(Cents, Schema.Boolean), "$", { cents: canary }, true),
  flawed("another literal", Schema.Literal("yes", "no"), "$", canary, "yes"),
  flawed("NaN where finite is declared", Schema.Struct({ cents: Schema.Finite }), "$.cents", { cents: NaN }, fine),
  flawed("an invalid date", Schema.Struct({ at: Schema.Date }), "$.at", { at: new Date(NaN) }, { at: new Date(0) }),
  flawed("what its own filter refuses", Spoken, "$", canary, "fine"),
  flawed("a Schema whose code throws", Strange, "$", canary, "fine"),
  flawed("a cycle", anything, "$.self", cycle, "fine"),
  flawed("a cycle under a recursive Schema", Tree, "$", loop, { label: "", children: [] }),
  flawed("a function", anything, "$.f", { f: () => canary }, "fine"),
  flawed("a symbol", anything, "$[0]", [Symbol(canary)], "fine"),
  flawed("a symbol as a key", anything, "$.a", { a: { [Symbol("key")]: canary } }, "fine"),
  flawed("an instance of a class", anything, "$.it", { it: new Secret() }, "fine"),
  flawed("an undeclared date", anything, "$.at", { at: new Date(0) }, "fine"),
  flawed("an undeclared map", anything, "$", new Map([[canary, canary]]), "fine"),
  flawed("an undeclared set", anything, "$", new Set([canary]), "fine"),
  flawed("an undeclared error", anything, "$", new Error(canary), "fine"),
  flawed("undeclared bytes", anything, "$", new Uint8Array([1]), "fine"),
  flawed("a promise", anything, "$.later", { later: Promise.resolve(canary) }, "fine"),
  flawed("a toJSON method", anything, "$.toJSON", { toJSON: () => canary }, "fine"),
  flawed("a getter", anything, "$.secret", withGetter, "fine"),
  flawed("a key named __proto__", anything, "$.a.__proto__", JSON.parse(`{"a":{"__proto__":"${canary}"}}`), "fine"),
  flawed(
    "a key named __proto__ under a record",
    Schema.Record({ key: Schema.String, value: anything }),
    "$.__proto__",
    JSON.parse(`{"__proto__":"${canary}"}`),
    {}
  ),
  flawed("a sparse array", anything, "$[1]", sparse, "fine"),
  flawed(
    "a sparse array of optional numbers",
    Schema.Array(Schema.UndefinedOr(Schema.Number)),
    "$[1]",
    sparseNumbers,
    []
  ),
  flawed("a named property of an array", anything, "$.label", Object.assign([1], { label: canary }), "fine"),
  flawed("10,000 levels", anything, "$", nested(10_000), "fine"),
  flawed("a text of 5 MB", Schema.String, "$", canary + "x".repeat(5_000_000), "fine"),
  flawed("a text of 50 MB", anything, "$", canary + "x".repeat(50_000_000), "fine")
]
