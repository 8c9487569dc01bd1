/**
 * A module of workflows: a file that a worker of the command line runs.
 *
 * It exports `workflows`, an array of what `Workflow.make` returns, and optionally `layer`, which provides the handlers
 * and services that they require. Interrupts and side effects that it exports, under any name or in arrays
 * `interrupts` and `effects`, can be answered and settled by `fermata answer` and `fermata settle`.
 */
import type { Interrupt, SideEffect, Workflow } from "@fermata/runtime"
import { Effect, Layer, ParseResult, Schema } from "effect"
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { ModuleInvalid, UsageError } from "./CliError.js"

/** Any interrupt, with values of unknown types. */
export type AnyInterrupt = Interrupt.Interrupt<string, unknown, unknown>
/** Any side effect, with values of unknown types. */
export type AnyEffect = SideEffect.SideEffect<
  string,
  unknown,
  unknown,
  unknown,
  "keyed" | "once" | "transactional" | "repeatable"
>
/** Any workflow, with values of unknown types, whose requirements the module's layer provides. */
export type AnyWorkflow = Workflow.Workflow<string, unknown, unknown, unknown, never>

const fieldsOf = (value: unknown): Record<string, unknown> =>
  (typeof value === "object" && value !== null) || typeof value === "function"
    ? // Any object can be looked into by name.
      (value as unknown as Record<string, unknown>)
    : {}

const isWorkflow = (value: unknown): value is AnyWorkflow => {
  const { body, codecs, definition, name, version } = fieldsOf(value)
  return (
    typeof name === "string" &&
    typeof version === "string" &&
    definition === `${name}@${version}` &&
    typeof body === "function" &&
    "input" in fieldsOf(codecs)
  )
}

const isInterrupt = (value: unknown): value is AnyInterrupt =>
  typeof value === "function" && "answer" in fieldsOf(fieldsOf(value)["codecs"])

const isEffect = (value: unknown): value is AnyEffect =>
  typeof value === "function" && "delivery" in value && "success" in fieldsOf(fieldsOf(value)["codecs"])

const isLayer = (value: unknown): value is Layer.Layer<never, unknown> => Layer.isLayer(value)

/** What a module exports, checked. */
const Exports = Schema.Struct({
  workflows: Schema.NonEmptyArray(
    Schema.declare(isWorkflow, { identifier: "a workflow, as Workflow.make returns it" })
  ).pipe(
    Schema.filter((workflows) => {
      const names = workflows.map(({ definition }) => definition)
      const twice = names.find((name, index) => names.indexOf(name) !== index)
      return twice === undefined ? undefined : `${twice} is there twice`
    })
  ),
  layer: Schema.optional(Schema.declare(isLayer, { identifier: "a Layer" })),
  interrupts: Schema.optional(Schema.Array(Schema.declare(isInterrupt, { identifier: "an interrupt" }))),
  effects: Schema.optional(Schema.Array(Schema.declare(isEffect, { identifier: "a side effect" })))
})

/** A module that was loaded and checked. */
export interface WorkflowModule {
  readonly file: string
  readonly workflows: ReadonlyArray<AnyWorkflow>
  readonly layer: Layer.Layer<never, unknown>
  readonly interrupts: ReadonlyMap<string, AnyInterrupt>
  readonly effects: ReadonlyMap<string, AnyEffect>
}

const decode = Schema.decodeUnknown(Exports, { errors: "all" })

/** Loads a file; fails with `UsageError` if it cannot be loaded and with `ModuleInvalid` if it exports something else. */
export const load = (file: string): Effect.Effect<WorkflowModule, UsageError | ModuleInvalid> =>
  Effect.gen(function* () {
    const path = resolve(file)
    if (!existsSync(path)) yield* new UsageError({ what: "the module", detail: `${file} does not exist` })
    const exported = yield* Effect.tryPromise({
      try: (): Promise<Record<string, unknown>> => import(pathToFileURL(path).href),
      catch: (error) =>
        new UsageError({
          what: "the module",
          detail: `${file} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`
        })
    })
    const { effects, interrupts, layer, workflows } = yield* Effect.mapError(decode({ ...exported }), (error) => {
      const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
      return new ModuleInvalid({ file, issues: issues.map(({ message, path }) => `${path.join(".")}: ${message}`) })
    })
    const all = Object.values(exported)
    return {
      file,
      workflows,
      layer: layer ?? Layer.empty,
      interrupts: named([...all.filter(isInterrupt), ...(interrupts ?? [])]),
      effects: named([...all.filter(isEffect), ...(effects ?? [])])
    }
  })

const named = <A extends { readonly name: string }>(all: ReadonlyArray<A>): ReadonlyMap<string, A> =>
  new Map(all.map((one) => [one.name, one]))

/** The module's definition of that name; fails with what it has instead. */
export const pick = <A>(
  what: string,
  all: ReadonlyMap<string, A>,
  name: string,
  file: string
): Effect.Effect<A, UsageError> => {
  const found = all.get(name)
  return found === undefined
    ? Effect.fail(
        new UsageError({
          what: `the module ${file}`,
          detail: `exports no ${what} ${name}; it has ${all.size === 0 ? "none" : [...all.keys()].join(", ")}`
        })
      )
    : Effect.succeed(found)
}

/** The module's workflow: by `name@version`, or by name, which means the last one of that name. */
export const pickWorkflow = (module: WorkflowModule, name: string): Effect.Effect<AnyWorkflow, UsageError> => {
  const byName = module.workflows.flatMap((one) => [[one.name, one] as const, [one.definition, one] as const])
  return pick("workflow", new Map(byName), name, module.file)
}
