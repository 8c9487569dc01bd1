/**
 * Tags: what runs are found by. A workflow declares each by a Schema whose encoded form is a text or a number; a run gets
 * its values when it is started, and by `Workflow.tag` while it runs.
 *
 * Tags are stored plain, so that a database can search them: a plane's payload codecs do not hide them.
 *
 * @example
 * const Order = Workflow.make("order", { version: "1", tags: { tenant: Schema.String, cents: Schema.Number } }, () =>
 *   Workflow.tag({ cents: 1200 }))
 * yield* client.start(Order, undefined, { tags: { tenant: "acme" } })
 * const found = yield* client.list({ tags: { tenant: "acme", cents: { min: 1000 } } })
 */
import type { TagFilter, TagValue, Tags } from "@fermata/ledger"
import { Either, type Schema } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"

/** Declarations of tags, by name. */
export type Schemas = Readonly<Record<string, Schema.Schema.AnyNoContext & { readonly Encoded: TagValue }>>

/** No tags. */
export type None = Readonly<Record<never, never>>

/** Values of declared tags: any of them. */
export type Values<T extends Schemas> = { readonly [K in keyof T]?: Schema.Schema.Type<T[K]> }

/** The tags that a workflow declares. `T`: their Schemas. */
export interface Declared<T extends Schemas> {
  readonly schemas: T
  readonly codecs: ReadonlyMap<string, Codec.Codec<unknown>>
}

/** What a list or a count asks of tags, as they are stored (encoded): a value, or a range of numbers with both ends. */
export type Conditions = Readonly<Record<string, TagValue | { readonly min?: number; readonly max?: number }>>

/** The longest text of a tag, in UTF-16 code units: an index entry has to fit a page of the database. */
export const maxLength = 256

/** Declares tags; throws for a name that is none. */
export const declare = <const T extends Schemas>(schemas: T): Declared<T> => {
  for (const name of Object.keys(schemas)) definitionName("tag", name)
  return {
    schemas,
    codecs: new Map(Object.entries(schemas).map(([name, schema]) => [name, Codec.make<unknown>(schema)]))
  }
}

/** Values as they are stored, or what is wrong with them: names and expected types, never the values. */
export const encoded = (
  { codecs }: { readonly codecs: ReadonlyMap<string, Codec.Codec<unknown>> },
  values: Readonly<Record<string, unknown>>
): Either.Either<Tags, ReadonlyArray<string>> => {
  const issues: Array<string> = []
  const tags: Record<string, TagValue> = {}
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue
    const codec = codecs.get(name)
    if (codec === undefined) {
      const declared = codecs.size === 0 ? "none" : [...codecs.keys()].join(", ")
      issues.push(`${name}: the workflow does not declare it; it declares ${declared}`)
      continue
    }
    const text = codec.encode(value)
    if (Either.isLeft(text)) {
      issues.push(...text.left.issues.map((issue) => `${name}${issue.replace(/^\$/, "")}`))
      continue
    }
    const stored: unknown = JSON.parse(text.right)
    const problem = valueProblem(stored)
    if (problem === undefined)
      tags[name] = stored as TagValue // What has no problem is a text or a number.
    else issues.push(`${name}: ${problem}`)
  }
  return issues.length === 0 ? Either.right(tags) : Either.left(issues)
}

/** The conditions as the ledger takes them, or what is wrong with them. */
export const filters = (conditions: Conditions): Either.Either<ReadonlyArray<TagFilter>, ReadonlyArray<string>> => {
  const issues: Array<string> = []
  const found = Object.entries(conditions).map(([name, condition]): TagFilter => {
    const asked: ReadonlyArray<unknown> =
      typeof condition === "object" && condition !== null
        ? [condition.min, condition.max].filter((end) => end !== undefined)
        : [condition]
    for (const each of asked) {
      const problem =
        valueProblem(each) ??
        (typeof condition === "object" && typeof each !== "number" ? "a range is of numbers" : undefined)
      if (problem !== undefined) issues.push(`tags.${name}: ${problem}`)
    }
    if (valueProblem(name) !== undefined) issues.push("tags: a name is none")
    return typeof condition === "object" ? { name, ...condition } : { name, equals: condition }
  })
  return issues.length === 0 ? Either.right(found) : Either.left(issues)
}

/** What cannot be stored in an indexed column of either database. */
const valueProblem = (value: unknown): string | undefined => {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "is not a finite number"
  if (typeof value !== "string") return "its encoded form is neither a text nor a number"
  if (value.length > maxLength) return `is longer than ${maxLength} characters (${value.length})`
  return value.includes("\0") || !value.isWellFormed() ? "contains NUL or a lone surrogate" : undefined
}
