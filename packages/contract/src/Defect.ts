/**
 * What was thrown, as JSON and back: an unknown value is recorded so that a handler sees the same name, message, code
 * and cause on replay as in the first run.
 *
 * Both directions are total. A defect is what is left when something went wrong already, so recording it must not fail:
 * what cannot be encoded or is too large is replaced by a text that says so, and the rest is kept.
 */
import { Either } from "effect"
import * as StrictJson from "./StrictJson.js"

/** A recorded defect: plain JSON (its values in the form of `StrictJson.toJson`). */
export type EncodedDefect =
  | {
      readonly _tag: "Error"
      readonly name: string
      readonly message: string
      readonly stack?: string
      /** Own enumerable fields: `code`, `errno`, `_tag` and whatever the class adds. */
      readonly fields?: unknown
      readonly cause?: EncodedDefect
      /** What an AggregateError gathers. */
      readonly errors?: ReadonlyArray<EncodedDefect>
    }
  /** Something else than an Error was thrown. */
  | { readonly _tag: "Value"; readonly value: unknown }
  /** The error that contains this one, `up` levels out: a cause chain that comes back to itself. */
  | { readonly _tag: "Again"; readonly up: number }

/** What a recorded defect may hold. Beyond it texts are cut and values replaced; nothing fails. */
export interface DefectLimits {
  /** Whether stacks are recorded. */
  readonly stack: boolean
  /** UTF-16 code units of text over the whole defect. */
  readonly text: number
  /** Errors over the whole defect: the error itself, its causes and what it gathers. */
  readonly errors: number
}

export const defaultLimits: DefectLimits = { stack: true, text: 65_536, errors: 64 }

/** Records whatever was thrown. Total. */
export const encode = (thrown: unknown, limits: DefectLimits = defaultLimits): EncodedDefect => {
  try {
    return encodeAny(thrown, [], { stack: limits.stack, text: limits.text, errors: limits.errors, values: 10_000 })
  } catch {
    // A proxy or an exhausted stack: even looking at it throws.
    return { _tag: "Error", name: "Error", message: "[not recorded: what was thrown cannot be read]" }
  }
}

/**
 * The thrown value again: an `Error` with the recorded name, message, stack, fields and cause (an `AggregateError` or
 * one of the language's other error classes if its name says so; never a user's class), or the value. Total.
 */
export const decode = (encoded: unknown): unknown => {
  try {
    return decodeAny(encoded, [])
  } catch {
    return new Error("The recorded defect cannot be read", { cause: encoded })
  }
}

// ── Encoding ────────────────────────────────────────────────────────────────────────────────────────────────

interface Allowance {
  readonly stack: boolean
  text: number
  errors: number
  values: number
}

const maxNesting = 32

const encodeAny = (thrown: unknown, path: ReadonlyArray<object>, left: Allowance): EncodedDefect => {
  if (isError(thrown)) {
    const at = path.lastIndexOf(thrown)
    return at < 0 ? encodeError(thrown, path, left) : { _tag: "Again", up: path.length - at }
  }
  return { _tag: "Value", value: jsonOf(thrown, left) }
}

const encodeError = (error: Error, path: ReadonlyArray<object>, left: Allowance): EncodedDefect => {
  left.errors--
  const inside = [...path, error]
  const name = read(error, "name")
  const message = read(error, "message")
  const stack = left.stack ? read(error, "stack") : undefined
  const encodedName = typeof name === "string" ? cut(name, left) : "Error"
  const encodedMessage = typeof message === "string" ? cut(message, left) : ""
  const fields = jsonOf(ownFields(error), left)
  const errors = read(error, "errors")
  const gathered = Array.isArray(errors) ? gather(errors, inside, left) : undefined
  const cause = has(error, "cause") ? inner(read(error, "cause"), inside, left) : undefined
  return {
    _tag: "Error",
    name: encodedName,
    message: encodedMessage,
    // Last: a long stack must not take the room of what a handler can look at.
    ...(isEmpty(fields) ? {} : { fields }),
    ...(gathered === undefined ? {} : { errors: gathered }),
    ...(cause === undefined ? {} : { cause }),
    ...(typeof stack === "string" && left.text > 0 ? { stack: cut(stack, left) } : {})
  }
}

const inner = (thrown: unknown, path: ReadonlyArray<object>, left: Allowance): EncodedDefect =>
  left.errors > 0 && left.text > 0 && path.length < maxNesting
    ? encodeAny(thrown, path, left)
    : { _tag: "Value", value: "[not recorded: the chain of causes is too long]" }

const gather = (
  errors: ReadonlyArray<unknown>,
  path: ReadonlyArray<object>,
  left: Allowance
): ReadonlyArray<EncodedDefect> => {
  const encoded: Array<EncodedDefect> = []
  for (const error of errors) {
    if (left.errors <= 0 || left.text <= 0) {
      encoded.push({ _tag: "Value", value: `[not recorded: ${errors.length - encoded.length} more]` })
      break
    }
    left.values--
    encoded.push(inner(error, path, left))
  }
  return encoded
}

const isError = (thrown: unknown): thrown is Error =>
  // Errors of another realm (a vm context) are not instances of this one's class.
  thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]"

const read = (object: object, key: string): unknown => {
  try {
    return Reflect.get(object, key)
  } catch {
    return undefined
  }
}

const has = (object: object, key: string): boolean => {
  try {
    return Reflect.has(object, key)
  } catch {
    return false
  }
}

/** Fields with a place of their own in the recorded form, and the one that would replace a prototype. */
const placed: ReadonlySet<string> = new Set(["name", "message", "stack", "cause", "errors", "__proto__"])

const ownFields = (error: Error): Record<string, unknown> => {
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(error)) {
    // `errors` has its place only if it is a list.
    if (placed.has(key) && !(key === "errors" && !Array.isArray(read(error, key)))) continue
    fields[key] = read(error, key)
  }
  return fields
}

const isEmpty = (json: unknown): boolean => typeof json === "object" && json !== null && Object.keys(json).length === 0

const jsonOf = (value: unknown, left: Allowance): unknown =>
  Either.getOrElse(
    StrictJson.toJson(substituted(value, new Set(), left)),
    (issue) => `[not recorded: ${issue.message}]`
  )

/** The value with whatever has no exact JSON form replaced by a text in its place. */
const substituted = (value: unknown, ancestors: Set<object>, left: Allowance): unknown => {
  if (--left.values < 0) return "[not recorded: too many values]"
  switch (typeof value) {
    case "string":
      return cut(value, left)
    case "bigint":
      // A bigint has no natural bound on its digits.
      return value > -maxBigint && value < maxBigint ? value : "[not recorded: a very large bigint]"
    case "function":
      return "[not recorded: a function]"
    case "symbol":
      return "[not recorded: a symbol]"
    case "object":
      break
    default:
      return value
  }
  if (value === null) return null
  if (ancestors.has(value)) return "[not recorded: a cycle]"
  if (ancestors.size >= maxNesting) return "[not recorded: nested too deep]"
  if (isError(value)) return cut(`[${String(read(value, "name"))}: ${String(read(value, "message"))}]`, left)
  const prototype: unknown = Object.getPrototypeOf(value)
  const array = Array.isArray(value)
  if (!array && prototype !== Object.prototype && prototype !== null) {
    return `[not recorded: an instance of ${cut(StrictJson.className(value), left)}]`
  }
  ancestors.add(value)
  const copy = array ? substitutedArray(value, ancestors, left) : substitutedObject(value, ancestors, left)
  ancestors.delete(value)
  return copy
}

const substitutedArray = (array: ReadonlyArray<unknown>, ancestors: Set<object>, left: Allowance): unknown => {
  const copy: Array<unknown> = []
  for (let i = 0; i < array.length; i++) {
    if (left.values <= 0 || left.text <= 0) {
      copy.push(`[not recorded: ${array.length - i} more]`)
      break
    }
    copy.push(substituted(read(array, String(i)), ancestors, left))
  }
  return copy
}

const substitutedObject = (object: object, ancestors: Set<object>, left: Allowance): unknown => {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(object)) {
    if (left.values <= 0 || left.text <= 0) break
    if (key === "__proto__") continue
    copy[cut(key, left)] = substituted(read(object, key), ancestors, left)
  }
  return copy
}

const maxBigint = 2n ** 4096n

const cut = (text: string, left: Allowance): string => {
  const room = Math.max(0, left.text)
  left.text -= text.length
  return text.length <= room ? text : `${text.slice(0, room)} [cut: ${text.length} characters]`
}

// ── Decoding ────────────────────────────────────────────────────────────────────────────────────────────────

const languageErrors: ReadonlyMap<unknown, new (message: string) => Error> = new Map<
  unknown,
  new (message: string) => Error
>([
  ["TypeError", TypeError],
  ["RangeError", RangeError],
  ["SyntaxError", SyntaxError],
  ["ReferenceError", ReferenceError],
  ["URIError", URIError],
  ["EvalError", EvalError]
])

const decodeAny = (encoded: unknown, path: ReadonlyArray<Error>): unknown => {
  if (typeof encoded !== "object" || encoded === null) return unreadable(encoded)
  switch (read(encoded, "_tag")) {
    case "Value":
      return StrictJson.fromJson(read(encoded, "value"))
    case "Again": {
      const up = read(encoded, "up")
      return (typeof up === "number" ? path.at(-up) : undefined) ?? unreadable(encoded)
    }
    case "Error":
      return decodeError(encoded, path)
    default:
      return unreadable(encoded)
  }
}

const unreadable = (encoded: unknown): Error => new Error("The recorded defect cannot be read", { cause: encoded })

const decodeError = (encoded: object, path: ReadonlyArray<Error>): Error => {
  const name = read(encoded, "name")
  const message = String(read(encoded, "message"))
  const errors = read(encoded, "errors")
  const aggregate = Array.isArray(errors)
  const error: Error =
    aggregate && name === "AggregateError"
      ? new AggregateError([], message)
      : new (languageErrors.get(name) ?? Error)(message)
  const inside = [...path, error]
  if (error.name !== name) define(error, "name", String(name))
  const stack = read(encoded, "stack")
  // Without a recorded stack there is none: the decoder's own would mislead.
  define(error, "stack", typeof stack === "string" ? stack : `${String(name)}: ${message}`)
  if (aggregate) {
    define(
      error,
      "errors",
      errors.map((one) => decodeAny(one, inside))
    )
  }
  if (has(encoded, "cause")) define(error, "cause", decodeAny(read(encoded, "cause"), inside))
  const fields = StrictJson.fromJson(read(encoded, "fields"))
  if (typeof fields === "object" && fields !== null) {
    for (const [key, value] of Object.entries(fields)) {
      Object.defineProperty(error, key, { value, writable: true, enumerable: true, configurable: true })
    }
  }
  return error
}

/** As the language itself defines them: hidden from enumeration. */
const define = (error: Error, key: string, value: unknown): void => {
  Object.defineProperty(error, key, { value, writable: true, enumerable: false, configurable: true })
}
