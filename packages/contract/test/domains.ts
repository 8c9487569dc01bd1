/** Finite domains for exhaustive tests, and the arbitrary values that the property tests share. */
import { FastCheck as fc } from "effect"

/** Every combination of one value per key. */
export function* combinations<D extends Readonly<Record<string, ReadonlyArray<unknown>>>>(
  domain: D
): Generator<{ readonly [K in keyof D]: D[K][number] }> {
  const keys = Object.keys(domain)
  const sizes = keys.map((key) => domain[key]?.length ?? 0)
  const total = sizes.reduce((product, size) => product * size, 1)
  for (let n = 0; n < total; n++) {
    let rest = n
    const combination: Record<string, unknown> = {}
    keys.forEach((key, i) => {
      const size = sizes[i] ?? 1
      combination[key] = domain[key]?.[rest % size]
      rest = Math.floor(rest / size)
    })
    // Every key of the domain was given one of its values just above.
    yield combination as { readonly [K in keyof D]: D[K][number] }
  }
}

/** Any text of UTF-16 code units: lone surrogates, NUL and control characters included. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string(),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom("", "\u0000", "\ud800", "\udc00x", "\\u0000", "\\ud800", "😀", "😀".slice(0, 1), "\u2028", '"', "\\")
)

const key = fc.oneof(
  text.filter((name) => name !== "__proto__"),
  fc.constantFrom(
    "$fermata",
    "$$fermata",
    "$$$fermata",
    "fermata",
    "$",
    "$fermata2",
    "constructor",
    "toString",
    "toJSON"
  ),
  fc.constantFrom("hasOwnProperty", "valueOf", "length", "0", "1", "-1", "01", "a", "b")
)

const leaf: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.boolean(),
  fc.double(),
  fc.integer(),
  fc.bigInt(),
  fc.constantFrom<unknown>(
    null,
    undefined,
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    5e-324,
    Number.MAX_VALUE,
    2 ** 53,
    0n,
    false,
    ""
  ),
  // What an attacker, or an honest user, may send: data that looks like a tag.
  fc.constantFrom<unknown>(
    { $fermata: "-0" },
    { $fermata: "undefined" },
    { $fermata: "12n" },
    { $fermata: null },
    { $fermata: { $fermata: "NaN" } },
    { $$fermata: "NaN" },
    { $fermata: "NaN", other: 1 }
  )
)

/** Everything that the strict codec stores. */
export const storable: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(key, tie("value"), { maxKeys: 5, noNullPrototype: true })
  )
})).value

/** A copy with the keys of every object in the opposite order. */
export const reordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reordered)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, field]) => [name, reordered(field)])
  )
}

/** Freezes a value and everything in it: whoever changes it throws. */
export const frozen = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const field of Object.values(value)) frozen(field)
  }
  return value
}
