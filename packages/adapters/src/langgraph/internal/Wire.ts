/**
 * Values of a graph's state as plain data that the journal stores exactly, and back: JSON values and what the journal's
 * text tags, and beside those dates, maps, sets, byte arrays, errors, `Send`s and LangChain messages. What cannot come
 * back deep-equal is refused with its path (CV); nothing is ever stringified.
 */
import { Send } from "../Control.js"
import {
  DidNotHappen,
  EmptyInputError,
  GraphRecursionError,
  GraphValueError,
  InvalidUpdateError,
  NodeTimeoutError,
  NotStorable
} from "../GraphError.js"
import { isMessage, messageFrom, messageToWire } from "./LangChain.js"

const tag = "$g"

/** Plain data for `value`. */
export const toWire = (value: unknown): unknown => encoded(value, "$", new Set())

const encoded = (value: unknown, path: string, ancestors: Set<object>): unknown => {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
    case "undefined":
    case "bigint":
      return value
    case "function":
      throw new NotStorable(path, "is a function, which cannot be stored")
    case "symbol":
      throw new NotStorable(path, "is a symbol, which cannot be stored")
  }
  if (typeof value !== "object" || value === null) return null
  if (ancestors.has(value)) throw new NotStorable(path, "is part of a cycle, which cannot be stored")
  ancestors.add(value)
  try {
    return encodedObject(value, path, ancestors)
  } finally {
    ancestors.delete(value)
  }
}

const encodedObject = (value: object, path: string, ancestors: Set<object>): unknown => {
  const inner = (part: unknown, name: string | number) =>
    encoded(part, typeof name === "number" ? `${path}[${name}]` : `${path}.${name}`, ancestors)
  if (Array.isArray(value)) {
    return Array.from({ length: value.length }, (_, i) => {
      if (!Object.hasOwn(value, i)) throw new NotStorable(`${path}[${i}]`, "is a hole in a sparse array")
      return inner(value[i], i)
    })
  }
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new NotStorable(path, "is an invalid date")
    return { [tag]: "date", v: value.toISOString() }
  }
  if (value instanceof Map)
    return { [tag]: "map", v: [...value].map(([key, part], i) => [inner(key, `key${i}`), inner(part, i)]) }
  if (value instanceof Set) return { [tag]: "set", v: [...value].map(inner) }
  if (value instanceof Uint8Array) return { [tag]: "bytes", v: Buffer.from(value).toString("base64") }
  if (value instanceof Send) return { [tag]: "send", node: value.node, v: inner(value.args, "args") }
  if (isMessage(value)) return { [tag]: "message", v: inner(messageToWire(value), "message") }
  if (value instanceof Error)
    return {
      [tag]: "error",
      name: value.name,
      message: value.message,
      v: inner(Object.fromEntries(Object.entries(value).filter(([, part]) => typeof part !== "function")), "error")
    }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    const name = value.constructor.name
    throw new NotStorable(path, `is an instance of ${name === "" ? "a class" : name}, which cannot come back as one`)
  }
  if (Object.hasOwn(value, "__proto__")) throw new NotStorable(`${path}.__proto__`, "is a key that cannot be stored")
  const plain: Record<string, unknown> = {}
  for (const symbol of Object.getOwnPropertySymbols(value))
    throw new NotStorable(`${path}[${String(symbol)}]`, "has a symbol for its key, which cannot be stored")
  for (const [key, part] of Object.entries(value))
    plain[key === tag || key === `$${tag}` ? `$${key}` : key] = inner(part, key)
  return plain
}

/** The value that {@link toWire} was given: a fresh copy, which shares nothing with the tree. */
export const fromWire = (wire: unknown): unknown => {
  if (typeof wire !== "object" || wire === null) return wire
  if (Array.isArray(wire)) return wire.map(fromWire)
  const fields = wire as Readonly<Record<string, unknown>>
  const parts = () => fields["v"] as ReadonlyArray<unknown>
  switch (fields[tag]) {
    case "date":
      return new Date(fields["v"] as string)
    case "map":
      return new Map(parts().map((pair) => fromWire(pair) as [unknown, unknown]))
    case "set":
      return new Set(parts().map(fromWire))
    case "bytes":
      return new Uint8Array(Buffer.from(fields["v"] as string, "base64"))
    case "send":
      return new Send(fields["node"] as string, fromWire(fields["v"]))
    case "message":
      return messageFrom(fromWire(fields["v"]))
    case "error":
      return errorFrom(fields["name"] as string, fields["message"] as string, fromWire(fields["v"]) as object)
  }
  const plain: Record<string, unknown> = {}
  for (const [key, part] of Object.entries(fields))
    plain[key.startsWith("$$") && key.endsWith(tag) ? key.slice(1) : key] = fromWire(part)
  return plain
}

/** Errors of this package come back as what they are; others by name and message, with their own fields. */
const known = {
  DidNotHappen,
  EmptyInputError,
  GraphRecursionError,
  GraphValueError,
  InvalidUpdateError,
  NodeTimeoutError
}

const isKnown = (name: string): name is keyof typeof known => Object.hasOwn(known, name)

const errorFrom = (name: string, message: string, fields: object): Error => {
  const error = isKnown(name) ? new known[name](message) : new Error(message)
  for (const [key, value] of Object.entries({ ...fields, name }))
    Object.defineProperty(error, key, { value: value as unknown, configurable: true, writable: true })
  return error
}

/** Any error as plain data: what of it cannot be stored is left out, for an error must not hide behind another. */
export const errorToWire = (error: unknown): unknown => {
  const plain = error instanceof Error ? error : new Error(String(error))
  try {
    return toWire(plain)
  } catch {
    return { [tag]: "error", name: plain.name, message: plain.message, v: {} }
  }
}
