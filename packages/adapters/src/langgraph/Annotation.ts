/** How a graph's state is declared: annotations, zod objects (3 and 4) and Effect structs; and the channels they become. */
import { Either, Schema } from "effect"
import type { Channel, Channels } from "./Channel.js"
import { GraphValueError } from "./GraphError.js"

/** One key of an annotated state. `V`: what it holds. `U`: what updates it. */
export interface KeyAnnotation<V, U = V> {
  readonly channel: Channel
  readonly ValueType: V
  readonly UpdateType: U
}

/** Any annotated key, structurally: what `Annotation` returns, or `Annotation<V>` itself, which is a key without options. */
export type AnyKey = AnyAnnotation | (() => AnyAnnotation)

interface AnyAnnotation {
  readonly channel: Channel
  readonly ValueType: unknown
  readonly UpdateType: unknown
}

type AnnotationOf<K> = K extends AnyAnnotation ? K : K extends () => infer A ? Extract<A, AnyAnnotation> : never

export type StateDefinition = Readonly<Record<string, AnyKey>>
export type StateType<D extends StateDefinition> = { [K in keyof D]: AnnotationOf<D[K]>["ValueType"] }
export type UpdateType<D extends StateDefinition> = { [K in keyof D]?: AnnotationOf<D[K]>["UpdateType"] }

/** An annotated state. `State` and `Update` are types: read them with `typeof`. */
export interface AnnotationRoot<D extends StateDefinition> {
  readonly lc_graph_name: "AnnotationRoot"
  readonly spec: D
  readonly State: StateType<D>
  readonly Update: UpdateType<D>
}

interface AnnotationFunction {
  <V, U = V>(options: {
    readonly reducer?: (left: V, right: U) => V
    readonly value?: (left: V, right: U) => V
    readonly default?: () => V
  }): KeyAnnotation<V, U>
  // The last: what TypeScript finds of `Annotation<V>` where it is written without being called.
  <V>(): KeyAnnotation<V>
  readonly Root: <const D extends StateDefinition>(spec: D) => AnnotationRoot<D>
}

const annotate = (options?: {
  readonly reducer?: (left: never, right: never) => unknown
  readonly value?: (left: never, right: never) => unknown
  readonly default?: () => unknown
}): AnyAnnotation => {
  const reducer = options?.reducer ?? options?.value
  return {
    channel: {
      kind: reducer === undefined ? "last" : "reduced",
      // The types of a reducer's sides are those that the annotation names.
      ...(reducer === undefined ? {} : { reducer: reducer as (left: unknown, right: unknown) => unknown }),
      ...(options?.default === undefined ? {} : { initial: options.default })
    },
    ValueType: undefined,
    UpdateType: undefined
  }
}

/** Declares a key of a state; `Annotation.Root` declares the state. */
export const Annotation = Object.assign(annotate, {
  Root: <const D extends StateDefinition>(spec: D) =>
    ({ lc_graph_name: "AnnotationRoot", spec }) as unknown as AnnotationRoot<D>
}) as unknown as AnnotationFunction

/** A zod schema of either major version, as far as this package looks into it. */
interface ZodLike {
  readonly safeParse: (value: unknown) => {
    readonly success: boolean
    readonly data?: unknown
    readonly error?: {
      readonly issues: ReadonlyArray<{ readonly path: ReadonlyArray<PropertyKey>; readonly message: string }>
    }
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  (typeof value === "object" || typeof value === "function") && value !== null

const isZod = (value: unknown): value is ZodLike => isRecord(value) && typeof value["safeParse"] === "function"

const zodChannel = (schema: ZodLike): Channel => {
  const issueOf = (value: unknown): string | undefined => {
    const { error, success } = schema.safeParse(value)
    // Paths and what was expected, never the value: it may be a secret.
    return success
      ? undefined
      : (error?.issues ?? [])
          .map(({ message, path }) => `$${path.map((part) => `.${String(part)}`).join("")}: ${message}`)
          .join("; ")
  }
  const start = schema.safeParse(undefined)
  return {
    kind: "last",
    ...(start.success && start.data !== undefined ? { initial: () => schema.safeParse(undefined).data } : {}),
    check: issueOf,
    checkUpdate: (value) => {
      const parsed = schema.safeParse(value)
      return parsed.success ? { value: parsed.data } : { issue: issueOf(value) ?? "is invalid" }
    }
  }
}

const effectChannel = (schema: Schema.Schema<unknown>): Channel => {
  const is = Schema.validateEither(schema)
  const check = (value: unknown) => (Either.isRight(is(value)) ? undefined : `expected ${String(schema.ast)}`)
  return {
    kind: "last",
    check,
    checkUpdate: (value) => {
      const issue = check(value)
      return issue === undefined ? { value } : { issue }
    }
  }
}

/** The channels of a declared state: an `Annotation.Root`, its definition, a zod object or an Effect struct. */
export const channelsOf = (declared: unknown): Channels => {
  if (!isRecord(declared))
    throw new GraphValueError("A state is declared by Annotation.Root, a zod object or an Effect struct")
  if (declared["lc_graph_name"] === "AnnotationRoot") return channelsOf(declared["spec"])
  if (Schema.isSchema(declared)) {
    const fields = (declared as unknown as { readonly fields?: Readonly<Record<string, Schema.Schema<unknown>>> })
      .fields
    if (fields === undefined) throw new GraphValueError("An Effect Schema of a state must be a Schema.Struct")
    return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, effectChannel(field)]))
  }
  if (isZod(declared)) {
    const shape: unknown = Reflect.get(declared, "shape")
    if (!isRecord(shape)) throw new GraphValueError("A zod schema of a state must be an object")
    return Object.fromEntries(
      Object.entries(shape).flatMap(([name, field]) => (isZod(field) ? [[name, zodChannel(field)] as const] : []))
    )
  }
  return Object.fromEntries(
    Object.entries(declared).map(([name, written]) => {
      const key: unknown = written === Annotation ? annotate() : written
      if (!isRecord(key) || !isRecord(key["channel"]))
        throw new GraphValueError(`"${name}" of the state is no Annotation`)
      return [name, key["channel"] as unknown as Channel]
    })
  )
}
