/**
 * A Schema compiled once into text and back. Everything that is journaled passes here: what does not satisfy its
 * Schema, or cannot be stored exactly, is refused with a path (CV). Messages name paths and expected types, never
 * values: a value may be a secret.
 */
import { StrictJson } from "@fermata/contract"
import { Cause, Either, ParseResult, type Schema, SchemaAST } from "effect"

/** Why a value was refused: lines of `path: what was expected`. */
export interface Refusal {
  readonly issues: ReadonlyArray<string>
}

export interface Codec<in out A> {
  /** The text of the encoded value. */
  readonly encode: (value: A) => Either.Either<string, Refusal>
  /** The value of a text that `encode` made. */
  readonly decode: (text: string) => Either.Either<A, Refusal>
  /** The value of what a stored payload holds: parsed JSON with tags still in it. */
  readonly revive: (parsed: unknown) => Either.Either<A, Refusal>
}

export const make = <A>(schema: Schema.Schema<A, unknown>): Codec<A> => {
  const encodeValue = ParseResult.encodeUnknownEither(schema, { errors: "all" })
  const decodeValue = ParseResult.decodeUnknownEither(schema, { errors: "all" })
  const fromJson = (read: () => unknown): Either.Either<A, Refusal> => guarded(() => decodeValue(read()))
  return {
    encode: (given) => {
      const value = unwrapped(given)
      // A Schema that copies keys drops an own `__proto__` in silence, and fills holes: look before it does.
      const lost = lossIn(value)
      if (lost !== undefined) return Either.left({ issues: [lost] })
      const encoded = guarded(() => encodeValue(value))
      if (Either.isLeft(encoded)) return Either.left(encoded.left)
      const text = StrictJson.encode(encoded.right)
      return Either.mapLeft(text, (issue): Refusal => ({ issues: [`${issue.path}: ${issue.reason}`] }))
    },
    decode: (text) => fromJson(() => StrictJson.decode(text)),
    revive: (parsed) => fromJson(() => StrictJson.fromJson(parsed))
  }
}

/** A recursive Schema on a cyclic value overflows the stack, and a user's transformation may throw. */
const guarded = <A>(run: () => Either.Either<A, ParseResult.ParseIssue>): Either.Either<A, Refusal> => {
  try {
    const result = run()
    return Either.isRight(result) ? Either.right(result.right) : Either.left({ issues: describe(result.left, "$") })
  } catch (thrown) {
    if (thrown instanceof StrictJson.StrictJsonIssue)
      return Either.left({ issues: [`${thrown.path}: ${thrown.reason}`] })
    return Either.left({
      issues: [thrown instanceof RangeError ? "$: too deep, or a cycle" : "$: the Schema's own code threw"]
    })
  }
}

/** An error that was raised in a span is wrapped in a proxy, which a Schema of a class cannot look into. */
const unwrapped = <A>(value: A): A => {
  if (typeof value !== "object" || value === null) return value
  try {
    return Cause.originalError(value)
  } catch {
    return value
  }
}

/** What copying a value would change in silence: its path below `value`, and what is wrong there. */
interface Loss {
  readonly path: string
  readonly reason: string
}

/**
 * The first plain object that has a property named `__proto__` of its own, or array that has a hole. `seen` keeps shared
 * and cyclic objects linear.
 */
const findLoss = (value: unknown, depth: number, seen: Set<object>): Loss | undefined => {
  // What is nested deeper is refused anyway.
  if (typeof value !== "object" || value === null || depth > StrictJson.maxDepth || seen.has(value)) return undefined
  seen.add(value)
  const array = Array.isArray(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!array && prototype !== Object.prototype && prototype !== null) return undefined
  if (Object.hasOwn(value, "__proto__")) return { path: ".__proto__", reason: "is a key that cannot be stored" }
  const names = Object.keys(value)
  if (array && names.length < value.length) {
    const hole = value.findIndex((_, i) => !Object.hasOwn(value, i))
    if (hole >= 0) return { path: `[${hole}]`, reason: "is a hole in a sparse array" }
  }
  for (const name of names) {
    const found = findLoss(Reflect.get(value, name), depth + 1, seen)
    if (found !== undefined) return { ...found, path: key("", array ? Number(name) : name) + found.path }
  }
  return undefined
}

/** As `findLoss`, for values that cannot be walked (a getter or a proxy that throws): others refuse those. */
const lossIn = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  try {
    const found = findLoss(value, 0, new Set())
    return found === undefined ? undefined : `$${found.path}: ${found.reason}`
  } catch {
    return undefined
  }
}

const key = (path: string, part: PropertyKey): string =>
  typeof part === "number" ? `${path}[${part}]` : `${path}.${String(part)}`

const expected = (ast: SchemaAST.AST): string => {
  const text = SchemaAST.getIdentifierAnnotation(ast)
  return text._tag === "Some" ? text.value : String(ast)
}

const describe = (issue: ParseResult.ParseIssue, path: string): ReadonlyArray<string> => {
  switch (issue._tag) {
    case "Pointer": {
      const parts: ReadonlyArray<PropertyKey> = Array.isArray(issue.path) ? issue.path : [issue.path as PropertyKey]
      return describe(issue.issue, parts.reduce(key, path))
    }
    case "Composite": {
      const issues: ReadonlyArray<ParseResult.ParseIssue> = Array.isArray(issue.issues)
        ? issue.issues
        : [issue.issues as ParseResult.ParseIssue]
      // A union lists one complaint per member: the union itself says it better.
      if (issue.ast._tag === "Union") return [`${path}: expected ${expected(issue.ast)}`]
      return issues.flatMap((inner) => describe(inner, path))
    }
    case "Refinement":
      return issue.kind === "From" ? describe(issue.issue, path) : [`${path}: expected ${expected(issue.ast)}`]
    case "Transformation":
      return issue.kind === "Transformation"
        ? [`${path}: expected ${expected(issue.ast)}`]
        : describe(issue.issue, path)
    case "Missing":
      return [`${path}: is missing`]
    case "Unexpected":
      return [`${path}: is not expected`]
    case "Forbidden":
      return [`${path}: needs an asynchronous or service-using Schema, which cannot be used here`]
    case "Type":
      return [`${path}: expected ${expected(issue.ast)}`]
  }
}
