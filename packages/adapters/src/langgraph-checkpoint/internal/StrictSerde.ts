/**
 * How LangGraph's values become text and come back: plain data as `StrictJson` writes it, LangChain's own classes as
 * LangChain writes them, a few built-in classes by tag. What would come back as something else is refused with its path
 * before anything is written (CV); nothing is replaced by a string that says so.
 */
import { StrictJson } from "@fermata/contract"
import { load } from "@langchain/core/load"
import { DeltaSnapshot, type SerializerProtocol } from "@langchain/langgraph-checkpoint"
import { Either } from "effect"
import { ValueRefused } from "../SaverError.js"

/** The text of a value. Throws `ValueRefused`; `where` names what the value is, for its message. */
export const encode = (value: unknown, where: string): string => {
  const encoded = Either.flatMap(lower(value), StrictJson.encode)
  if (Either.isRight(encoded)) return encoded.right
  throw new ValueRefused({ where, path: encoded.left.path, reason: encoded.left.reason })
}

/** The value of a text that {@link encode} wrote. */
export const decode = async (text: string): Promise<unknown> => {
  const value = StrictJson.decode(text)
  return text.includes(tag) ? raise(value) : value
}

/** LangGraph's interface over both, for code of its that asks a saver for its serializer. */
export const serde: SerializerProtocol = {
  dumpsTyped: async (value: unknown) => ["fermata", new TextEncoder().encode(encode(value, "a value"))],
  loadsTyped: async (type, data) => {
    if (type !== "fermata") throw new TypeError(`Unknown serialization type: ${type}`)
    return decode(typeof data === "string" ? data : new TextDecoder().decode(data))
  }
}

// ── Classes ─────────────────────────────────────────────────────────────────────────────────────────────────

const tag = "$class"
// A key of the user's that looks like the tag gets one more `$`; the way back takes it off.
const reserved = /^\$+class$/
const escaped = /^\$\$+class$/

const tagged = (name: string, content: unknown): unknown => ({ [tag]: [name, content] })

type Lowered = Either.Either<unknown, StrictJson.StrictJsonIssue>

const lower = (value: unknown): Lowered => {
  try {
    return Either.right(lowered(value, "$", new Set()))
  } catch (error) {
    if (error instanceof StrictJson.StrictJsonIssue) return Either.left(error)
    throw error
  }
}

const refuse = (path: string, reason: string): never => {
  throw new StrictJson.StrictJsonIssue({ path, reason })
}

/** The value with its class instances as tagged data; the value itself if there are none. */
const lowered = (value: unknown, path: string, ancestors: Set<object>): unknown => {
  // What is left as it is here (functions, cycles, foreign instances) `StrictJson` refuses, and says where.
  if (typeof value !== "object" || value === null || ancestors.has(value) || ancestors.size > StrictJson.maxDepth) {
    return value
  }
  ancestors.add(value)
  try {
    if (Array.isArray(value)) return loweredArray(value, path, ancestors)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null) return loweredObject(value, path, ancestors)
    return instance(value, path, ancestors)
  } finally {
    ancestors.delete(value)
  }
}

const loweredArray = (array: ReadonlyArray<unknown>, path: string, ancestors: Set<object>): unknown => {
  let copy: Array<unknown> | undefined
  for (let i = 0; i < array.length; i++) {
    // A hole is left for `StrictJson` to refuse.
    if (!(i in array)) return array
    const before = array[i]
    const after = lowered(before, `${path}[${i}]`, ancestors)
    if (after === before) continue
    copy ??= array.slice()
    copy[i] = after
  }
  return copy ?? array
}

const loweredObject = (object: object, path: string, ancestors: Set<object>): unknown => {
  const fields: Array<[string, unknown]> = []
  let changed = false
  for (const key of Object.keys(object)) {
    const property = Object.getOwnPropertyDescriptor(object, key)
    if (property === undefined || property.get !== undefined) return object
    const before: unknown = property.value
    const after = lowered(before, `${path}.${key}`, ancestors)
    const name = reserved.test(key) ? `$${key}` : key
    fields.push([name, after])
    changed ||= after !== before || name !== key
  }
  if (!changed) return object
  // Hidden properties and symbols go along, for the check that follows to refuse.
  const copy: Record<string, unknown> = Object.defineProperties({}, Object.getOwnPropertyDescriptors(object))
  for (const key of Object.keys(object)) delete copy[key]
  for (const [name, field] of fields) {
    Object.defineProperty(copy, name, { value: field, enumerable: true, writable: true, configurable: true })
  }
  return copy
}

const instance = (value: object, path: string, ancestors: Set<object>): unknown => {
  const inner = (content: unknown, step: string) => lowered(content, `${path}${step}`, ancestors)
  if (isLangChain(value)) return tagged("langchain", langChainJson(value, path))
  if (value instanceof DeltaSnapshot) return tagged("delta", inner(value.value, ".value"))
  // `Send`, `Command` and `Overwrite` say themselves how they are stored; LangGraph knows them again by their form.
  if ("lg_name" in value && "toJSON" in value && typeof value.toJSON === "function") {
    const json: unknown = value.toJSON()
    if (value.lg_name !== "Send" || typeof json !== "object" || json === null) return inner(json, "")
    const { lg_name: _, ...send } = json as Record<string, unknown>
    return inner(Object.fromEntries(Object.entries(send).filter(([, field]) => field !== undefined)), "")
  }
  switch (Object.getPrototypeOf(value)) {
    case Date.prototype:
      return tagged("Date", (value as Date).getTime())
    case Map.prototype:
      return tagged("Map", inner([...(value as Map<unknown, unknown>)], ""))
    case Set.prototype:
      return tagged("Set", inner([...(value as Set<unknown>)], ""))
    case RegExp.prototype:
      return tagged("RegExp", [(value as RegExp).source, (value as RegExp).flags])
    case Uint8Array.prototype:
      return tagged("Uint8Array", Buffer.from(value as Uint8Array).toString("base64"))
    default:
      // LangGraph stores the errors of tasks; a stack is of one process.
      return value instanceof Error ? tagged("Error", [value.name, value.message]) : value
  }
}

interface LangChainObject {
  readonly lc_serializable: true
  readonly toJSON: () => unknown
}

const isLangChain = (value: object): value is LangChainObject =>
  "lc_serializable" in value &&
  value.lc_serializable === true &&
  "toJSON" in value &&
  typeof value.toJSON === "function"

/** LangChain's JSON of one of its objects. It would drop or change what JSON cannot hold; that is refused. */
const langChainJson = (value: LangChainObject, path: string): unknown => {
  const json = JSON.stringify(value, function (this: Record<string, unknown>, key, content: unknown) {
    const raw = this[key]
    const kind = typeof content
    if (kind === "bigint" || kind === "function" || kind === "symbol") {
      return refuse(`${path}…${key}`, `is a ${kind}, which ${nameOf(value)} cannot store`)
    }
    if (kind === "number" && !Number.isFinite(content)) return refuse(`${path}…${key}`, "is no finite number")
    if (typeof raw === "object" && raw !== null && raw !== content && !isLangChain(raw)) {
      return refuse(`${path}…${key}`, `is an instance of ${nameOf(raw)}, which would be stored as something else`)
    }
    return content
  })
  const tree: unknown = JSON.parse(json)
  if (typeof tree === "object" && tree !== null && Reflect.get(tree, "type") === "constructor") return tree
  return refuse(path, `is an instance of ${nameOf(value)}, which LangChain does not store`)
}

const nameOf = (value: object): string => StrictJson.className(value)

/** Undoes {@link lowered}. Copies what it changes only. */
const raise = async (json: unknown): Promise<unknown> => {
  if (typeof json !== "object" || json === null) return json
  if (Array.isArray(json)) {
    const items: Array<unknown> = []
    for (const item of json) items.push(await raise(item))
    return items
  }
  const content: unknown = Reflect.get(json, tag)
  if (Array.isArray(content)) return revived(String(content[0]), content[1])
  const object: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(json)) object[escaped.test(key) ? key.slice(1) : key] = await raise(field)
  return object
}

const revived = async (name: string, content: unknown): Promise<unknown> => {
  switch (name) {
    case "langchain":
      return load(JSON.stringify(content))
    case "delta":
      return new DeltaSnapshot(await raise(content))
    case "Date":
      return new Date(Number(content))
    case "Map":
      // `encode` wrote pairs; the row's digest vouches for the text.
      return new Map((await raise(content)) as Array<[unknown, unknown]>)
    case "Set":
      return new Set((await raise(content)) as Array<unknown>)
    case "RegExp": {
      const [source, flags] = content as [string, string]
      return new RegExp(source, flags)
    }
    case "Uint8Array":
      return Uint8Array.from(Buffer.from(String(content), "base64"))
    case "Error": {
      const [errorName, message] = content as [string, string]
      return Object.assign(new Error(message), errorName === "Error" ? {} : { name: errorName })
    }
    default:
      throw new StrictJson.StrictJsonIssue({ path: "$", reason: `has an unknown class tag ${name}` })
  }
}
