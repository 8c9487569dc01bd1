/**
 * The JSON text that every payload passes: an encoded Schema value in, text out, and back as a deep-equal value.
 *
 * JSON alone is neither exact nor loud: it turns `undefined`, `NaN` and `-0` into something else, drops functions and
 * calls `toJSON`. Here what JSON cannot say is tagged (`{"$fermata":"-0"}`), and what cannot come back equal is refused
 * with its path before anything is written (CV). Data of the user that looks like a tag is escaped and comes back as
 * the data it was; no tag ever builds a class instance.
 *
 * The text holds no raw NUL and no lone surrogate (JSON escapes them), so it is the same text on every database.
 * A value without specials is checked in one cheap walk and then left to `JSON.stringify`.
 */
import { Either, Schema } from "effect"

/** How deep arrays and objects may be nested. */
export const maxDepth = 2000

/** How many values one payload may hold: an object that is shared at every level would else unfold without end. */
export const maxValues = 5_000_000

/** A value that has no exact JSON form, or a text that this codec did not write. */
export class StrictJsonIssue extends Schema.TaggedError<StrictJsonIssue>("fermata/StrictJsonIssue")("StrictJsonIssue", {
  /** Where it is: `$` is the value itself, `$.items[3].price` a field. */
  path: Schema.String,
  /** What is wrong with it; continues the sentence that the path begins. */
  reason: Schema.String
}) {
  override get message() {
    return `${this.path} ${this.reason}`
  }
}

/**
 * The value as JSON text, or the first thing in it that has no exact JSON form.
 *
 * @example
 * StrictJson.encode({ cents: -0 }) // right('{"cents":{"$fermata":"-0"}}')
 * StrictJson.encode({ at: new Date() }) // left($.at is an instance of Date: …)
 */
export const encode = (value: unknown): Either.Either<string, StrictJsonIssue> =>
  attempt(() => JSON.stringify(jsonOf(value)))

/**
 * The value that {@link encode} was given. The text must be `encode`'s own (a digest vouches for stored text); one that
 * is not JSON, or holds a tag that `encode` does not write, throws a {@link StrictJsonIssue} rather than being guessed at.
 */
export const decode = (text: string): unknown => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    // What the parser says repeats the text, which may be a secret.
    throw new StrictJsonIssue({ path: "$", reason: "is not JSON text" })
  }
  // `encode` writes the tag letter by letter, so a text without it has nothing to undo.
  return text.includes(tag) ? fromJson(json) : json
}

/**
 * The value as a tree that `JSON.stringify` writes exactly, for embedding in a larger payload. It is the value itself
 * if nothing in it needs a tag.
 */
export const toJson = (value: unknown): Either.Either<unknown, StrictJsonIssue> => attempt(() => jsonOf(value))

/** Undoes {@link toJson} on a parsed tree, without changing it. It is the tree itself if nothing in it is tagged. */
export const fromJson = (json: unknown): unknown => (isUntagged(json, 0) ? json : restored(json, []))

/**
 * As {@link encode}, with the keys of every object in code unit order: two values have the same canonical text exactly
 * if they are deep-equal (an absent field and an `undefined` one differ, and so do `0` and `-0`).
 */
export const canonical = (value: unknown): Either.Either<string, StrictJsonIssue> =>
  attempt(() => sortedText(jsonOf(value)))

// ── Tags ────────────────────────────────────────────────────────────────────────────────────────────────────

const tag = "$fermata"
const dollar = 36
// A key of the user's that is the tag, or an escaped one, gets one more `$`; the way back takes one off.
const reserved = /^\$+fermata$/
const escaped = /^\$\$+fermata$/
const bigintText = /^-?\d+n$/

const tagged = (text: string): unknown => ({ [tag]: text })

const untagged = (text: unknown, path: Path): unknown => {
  switch (text) {
    case "undefined":
      return undefined
    case "-0":
      return -0
    case "NaN":
      return NaN
    case "Infinity":
      return Infinity
    case "-Infinity":
      return -Infinity
  }
  if (typeof text === "string" && bigintText.test(text)) return BigInt(text.slice(0, -1))
  return refuse(path, `has an unknown ${tag} tag`)
}

// ── Encoding ────────────────────────────────────────────────────────────────────────────────────────────────

type Path = Array<string | number>

const refuse = (path: Path, reason: string): never => {
  throw new StrictJsonIssue({ path: pathText(path), reason })
}

const pathText = (path: Path): string => {
  let text = "$"
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`
    else text += /^[A-Za-z_$][\w$]*$/.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`
  }
  return text.length <= 500 ? text : `${text.slice(0, 250)} … ${text.slice(-250)}`
}

const attempt = <A>(encoding: () => A): Either.Either<A, StrictJsonIssue> => {
  try {
    return Either.right(encoding())
  } catch (error) {
    return Either.left(
      error instanceof StrictJsonIssue
        ? error
        : new StrictJsonIssue({ path: "$", reason: "is too large or too deep to be written as text" })
    )
  }
}

const jsonOf = (value: unknown): unknown => {
  budget = maxValues
  const path: Path = []
  try {
    if (isPlain(value, 0)) return value
  } catch {
    // The slow walk finds where it is.
  }
  // Not walked a second time: that would also build a copy of it.
  if (budget < 0) return refuse(path, tooLarge)
  budget = maxValues
  try {
    return converted(value, path, new Set())
  } catch (error) {
    // Anything else comes from the value (a proxy's trap) or from the engine's limits.
    throw error instanceof StrictJsonIssue
      ? error
      : new StrictJsonIssue({ path: pathText(path), reason: "cannot be read" })
  }
}

const tooLarge = `is too large: it holds more than ${maxValues} values (an object used twice counts twice)`

/** Values that the walk under way may still visit. A walk is synchronous, so one counter serves all. */
let budget = 0

const objectPrototype: unknown = Object.prototype
const arrayPrototype: unknown = Array.prototype

/**
 * True if `JSON.stringify` writes the value exactly. The hot path: `for … in` and the length checks use the engine's
 * cached key lists. Everything doubtful is false, and left to the slow walk, which knows paths and reasons. Cycles end at
 * the depth limit. Elements of arrays are read without looking for accessors, which would cost more than writing them.
 */
const isPlain = (value: unknown, depth: number): boolean => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      // Finite and not -0.
      return value !== 0 ? value - value === 0 : 1 / value > 0
    case "object": {
      if (value === null) return true
      if (depth >= maxDepth || --budget < 0) return false
      const prototype: unknown = Object.getPrototypeOf(value)
      if (Array.isArray(value)) {
        // A hole makes it fewer keys, a named property more.
        if (prototype !== arrayPrototype || Object.keys(value).length !== value.length) return false
        budget -= value.length
        for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false
        return Object.getOwnPropertySymbols(value).length === 0
      }
      if (prototype !== objectPrototype && prototype !== null) return false
      let enumerable = 0
      for (const key in value) {
        if (key.charCodeAt(0) === dollar ? reserved.test(key) : key === "__proto__") return false
        const property = Object.getOwnPropertyDescriptor(value, key)
        // An accessor has no value, and `undefined` is not plain.
        if (property === undefined || !isPlain(property.value, depth + 1)) return false
        enumerable++
      }
      budget -= enumerable
      return Object.getOwnPropertyNames(value).length === enumerable && Object.getOwnPropertySymbols(value).length === 0
    }
    default:
      return false
  }
}

/** The value with its specials tagged, or the issue thrown. `ancestors` are the objects that the path goes through. */
const converted = (value: unknown, path: Path, ancestors: Set<object>): unknown => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      if (Object.is(value, -0)) return tagged("-0")
      return Number.isFinite(value) ? value : tagged(String(value))
    case "undefined":
      return tagged("undefined")
    case "bigint":
      return tagged(`${value}n`)
    case "function":
      return refuse(path, "is a function, which cannot be stored")
    case "symbol":
      return refuse(path, "is a symbol, which cannot be stored")
    case "object": {
      if (value === null) return null
      if (ancestors.has(value)) return refuse(path, "refers back to an object that contains it (a cycle)")
      if (path.length >= maxDepth) return refuse(path, `is nested more than ${maxDepth} levels deep`)
      if (--budget < 0) return refuse(path, tooLarge)
      ancestors.add(value)
      const json = Array.isArray(value)
        ? convertedArray(value, path, ancestors)
        : convertedObject(value, path, ancestors)
      ancestors.delete(value)
      return json
    }
  }
}

const convertedArray = (array: ReadonlyArray<unknown>, path: Path, ancestors: Set<object>): unknown => {
  if (Object.getPrototypeOf(array) !== arrayPrototype) return refuse(path, instanceReason(array))
  budget -= array.length
  const json: Array<unknown> = []
  for (let i = 0; i < array.length; i++) {
    path.push(i)
    const property = Object.getOwnPropertyDescriptor(array, i)
    // A hole is neither absent nor `undefined`: JSON can say neither of it.
    if (property === undefined) return refuse(path, "is a hole in a sparse array: fill it, with undefined or null say")
    json.push(converted(dataOf(property, path), path, ancestors))
    path.pop()
  }
  for (const key of Reflect.ownKeys(array)) {
    if (typeof key === "symbol") return refuse(path, `has a property with a symbol as its key (${String(key)})`)
    if (key !== "length" && !isIndex(key, array.length)) {
      return refuse([...path, key], "is a named property of an array, which JSON cannot hold")
    }
  }
  return json
}

const convertedObject = (object: object, path: Path, ancestors: Set<object>): unknown => {
  const prototype: unknown = Object.getPrototypeOf(object)
  if (prototype !== objectPrototype && prototype !== null) return refuse(path, instanceReason(object))
  const json: Record<string, unknown> = {}
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === "symbol") return refuse(path, `has a property with a symbol as its key (${String(key)})`)
    path.push(key)
    if (key === "__proto__") return refuse(path, "is a property that would replace the prototype when it is read back")
    const property = Object.getOwnPropertyDescriptor(object, key)
    if (property === undefined) return refuse(path, "cannot be read")
    if (!property.enumerable) return refuse(path, "is a hidden (non-enumerable) property")
    const data = dataOf(property, path)
    if (key === "toJSON" && typeof data === "function") {
      return refuse(path, "is a toJSON method, which is never called: declare a Schema that encodes the value")
    }
    budget--
    json[reserved.test(key) ? `$${key}` : key] = converted(data, path, ancestors)
    path.pop()
  }
  return json
}

const dataOf = (property: PropertyDescriptor, path: Path): unknown =>
  property.get === undefined && property.set === undefined
    ? property.value
    : refuse(path, "is an accessor (getter or setter): its value could differ each time it is read")

const isIndex = (key: string, length: number): boolean => {
  const index = Number(key)
  return Number.isInteger(index) && index >= 0 && index < length && String(index) === key
}

const instanceReason = (value: object): string =>
  `is an instance of ${className(value)}: declare a Schema that encodes it as plain data`

/** The name of an object's class, for a message. */
export const className = (value: object): string => {
  try {
    const prototype: unknown = Object.getPrototypeOf(value)
    const constructor: unknown =
      typeof prototype === "object" && prototype !== null ? Reflect.get(prototype, "constructor") : undefined
    return typeof constructor === "function" && typeof constructor.name === "string" && constructor.name !== ""
      ? constructor.name
      : "an unnamed class"
  } catch {
    return "an unreadable class"
  }
}

// ── Decoding ────────────────────────────────────────────────────────────────────────────────────────────────

/** True if nothing in a parsed tree needs undoing. The hot path; everything doubtful is false. */
const isUntagged = (json: unknown, depth: number): boolean => {
  if (typeof json !== "object" || json === null) return true
  if (depth > maxDepth) return false
  if (Array.isArray(json)) {
    for (let i = 0; i < json.length; i++) if (!isUntagged(json[i], depth + 1)) return false
    return true
  }
  for (const key in json) {
    if (key.charCodeAt(0) === dollar ? reserved.test(key) : key === "__proto__") return false
    if (!isUntagged(Reflect.get(json, key), depth + 1)) return false
  }
  return true
}

/** The tree with its tags undone. Copies only what changes: the caller's tree may be decoded again. */
const restored = (json: unknown, path: Path): unknown => {
  if (typeof json !== "object" || json === null) return json
  if (path.length > maxDepth) return refuse(path, `is nested more than ${maxDepth} levels deep`)
  if (Array.isArray(json)) {
    let copy: Array<unknown> | undefined
    for (let i = 0; i < json.length; i++) {
      const before: unknown = json[i]
      if (typeof before !== "object" || before === null) continue
      path.push(i)
      const after = restored(before, path)
      path.pop()
      if (after !== before) {
        copy ??= json.slice()
        copy[i] = after
      }
    }
    return copy ?? json
  }
  return restoredObject(json, path)
}

const restoredObject = (json: object, path: Path): unknown => {
  let changed = false
  const entries = Object.entries(json)
  for (const entry of entries) {
    const [key, before] = entry
    if (key.charCodeAt(0) === dollar) {
      if (key === tag)
        return entries.length === 1 ? untagged(before, path) : refuse(path, `mixes a ${tag} tag with data`)
      if (escaped.test(key)) {
        entry[0] = key.slice(1)
        changed = true
      }
    } else if (key === "__proto__") return refuse([...path, key], "would replace the prototype")
    if (typeof before === "object" && before !== null) {
      path.push(key)
      const after = restored(before, path)
      path.pop()
      if (after !== before) {
        entry[1] = after
        changed = true
      }
    }
  }
  return changed ? Object.fromEntries(entries) : json
}

// ── Canonical text ──────────────────────────────────────────────────────────────────────────────────────────

const sortedText = (json: unknown): string => {
  if (typeof json !== "object" || json === null) return JSON.stringify(json)
  if (Array.isArray(json)) return `[${json.map(sortedText).join(",")}]`
  const fields = Object.entries(json)
  // Code unit order: the same in every locale.
  fields.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, value]) => `${JSON.stringify(key)}:${sortedText(value)}`).join(",")}}`
}
