/**
 * A workflow: a named, versioned definition with Schemas and a body that is a plain Effect. `Effect.all`, `race`,
 * `retry`, `timeout`, `sleep`, queues, fibers and finalizers work inside it and are durable.
 *
 * @example
 * const Greet = Workflow.make("greet", { version: "1", input: Schema.String, success: Schema.String },
 *   (name) => Effect.gen(function* () {
 *     yield* Effect.sleep("3 days")
 *     return `hello ${name}`
 *   }))
 */
import type { BranchId, RunId } from "@fermata/contract"
import { type Context, Effect, Schema, type Scope } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import type { Emits } from "./internal/StepScope.js"
import { command, scoped, WorkflowScope } from "./internal/WorkflowScope.js"
import * as Loop from "./Loop.js"
import type { HandlerOf, Performs } from "./SideEffect.js"
import type * as Signal from "./Signal.js"
import * as Tag from "./Tag.js"
import type * as Update from "./Update.js"

export type { WorkflowScope } from "./internal/WorkflowScope.js"

/** Any tag. Structural, because a tag is invariant in what it identifies. */
type AnyTag = { readonly key: string; readonly Identifier: unknown; readonly Service: unknown }
type IdentifierOf<T> = T extends { readonly Identifier: infer Id } ? Id : never

/** The sentence that a type error ends with when a workflow's body does what only a node may do. */
export type Undeclared<R> = [R] extends [never]
  ? unknown
  : {
      readonly fermata: R extends Performs<infer N>
        ? `"${N}" is performed outside a node: call it from a node's body`
        : `this workflow uses a service: add a pure one to its "services", put everything else in a node`
    }

/**
 * A workflow definition. `I`: input. `A`: success. `E`: typed error. `R`: the handlers and pure services that running it
 * requires. `T`: the Schemas of its tags.
 */
export interface Workflow<N extends string, I, A, E, R, T extends Tag.Schemas = Tag.None> {
  readonly name: N
  readonly version: string
  /** `name@version`: what a worker claims. */
  readonly definition: string
  readonly input: Schema.Schema<I, unknown>
  readonly success: Schema.Schema<A, unknown>
  readonly error: Schema.Schema<E, unknown>
  readonly codecs: { readonly input: Codec.Codec<I>; readonly success: Codec.Codec<A>; readonly error: Codec.Codec<E> }
  readonly services: ReadonlyArray<Context.Tag<never, unknown>>
  /** Signals and updates that may be sent to it. */
  readonly signals: ReadonlyArray<Signal.Any>
  readonly updates: ReadonlyArray<Update.Any>
  /** What its runs may be found by. */
  readonly tags: Tag.Declared<T>
  readonly body: (input: I) => Effect.Effect<A, E, WorkflowScope | Scope.Scope | R>
}

/** Any workflow, as the runtime sees it. */
export interface Any {
  readonly name: string
  readonly version: string
  readonly definition: string
  readonly codecs: {
    readonly input: Codec.Codec<unknown>
    readonly success: Codec.Codec<unknown>
    readonly error: Codec.Codec<unknown>
  }
  readonly services: ReadonlyArray<Context.Tag<never, unknown>>
  readonly signals: ReadonlyArray<Signal.Any>
  readonly updates: ReadonlyArray<Update.Any>
  readonly tags: Tag.Declared<Tag.None>
  readonly body: (input: unknown) => Effect.Effect<unknown, unknown, WorkflowScope | Scope.Scope>
}

/** What running a workflow requires of the worker. */
export type Requirements<W> = W extends Workflow<infer _N, infer _I, infer _A, infer _E, infer R, infer _T> ? R : never

/** Declares a workflow. `input` and `success` default to void, `error` to never. */
export const make = <
  const N extends string,
  I = void,
  IE = void,
  A = void,
  AE = void,
  E = never,
  EE = never,
  const Ts extends ReadonlyArray<AnyTag> = readonly [],
  R = never,
  const T extends Tag.Schemas = Tag.None
>(
  name: N,
  options: {
    /** Changed whenever stored histories would not replay under the new body. */
    readonly version: string
    readonly input?: Schema.Schema<I, IE>
    readonly success?: Schema.Schema<A, AE>
    readonly error?: Schema.Schema<E, EE>
    /** Pure services that the body may use: they must not touch the outside world. */
    readonly services?: Ts
    /** Signals that it takes: clients are refused others. Fixed when a run starts. */
    readonly signals?: ReadonlyArray<Signal.Any>
    /** Updates that it takes: clients are refused others. Fixed when a run starts. */
    readonly updates?: ReadonlyArray<Update.Any>
    /** What its runs may be found by, by name; see `Tag`. */
    readonly tags?: T
  },
  body: (
    input: I
  ) => Effect.Effect<NoInfer<A>, NoInfer<E>, R> &
    Undeclared<Exclude<R, Emits | WorkflowScope | Scope.Scope | HandlerOf<string> | IdentifierOf<Ts[number]>>>
): Workflow<N, I, A, E, Exclude<R, Emits | WorkflowScope | Scope.Scope>, T> => {
  definitionName("workflow", name)
  definitionName("workflow version", options.version)
  // Schemas that are left out are the defaults that the type parameters name.
  const input = (options.input ?? Schema.Void) as Schema.Schema<I, unknown>
  const success = (options.success ?? Schema.Void) as Schema.Schema<A, unknown>
  const error = (options.error ?? Schema.Never) as Schema.Schema<E, unknown>
  return {
    name,
    version: options.version,
    definition: `${name}@${options.version}`,
    input,
    success,
    error,
    codecs: { input: Codec.make(input), success: Codec.make(success), error: Codec.make(error) },
    services: (options.services ?? []) as unknown as ReadonlyArray<Context.Tag<never, unknown>>,
    signals: options.signals ?? [],
    updates: options.updates ?? [],
    // Left out, it is the default that the type parameter names.
    tags: Tag.declare(options.tags ?? ({} as T)),
    body: body as unknown as Workflow<N, I, A, E, Exclude<R, Emits | WorkflowScope | Scope.Scope>>["body"]
  }
}

/**
 * True if this run takes the changed path that `id` names, false if its history was begun by code that did not have it
 * (RD: the decision is journaled, and the same on every replay). Change a workflow under runs that go on by asking:
 * new runs, and runs that had not come this far, take the new path.
 *
 * @example
 * if (yield* Workflow.patched("fraud-check")) yield* checkFraud(order)
 * yield* charge(order)
 */
export const patched = (id: string): Effect.Effect<boolean, never, WorkflowScope> => {
  definitionName("patch", id)
  // The command answers by a boolean.
  return command((scope, fiber) => scope.patched(id, fiber, false)) as Effect.Effect<boolean, never, WorkflowScope>
}

/**
 * In place of `patched` once no run is left that takes the old path, and the code has the new one only. Runs that
 * recorded the patch still replay; new ones record nothing. Remove it when those runs are over, too.
 */
export const deprecatePatch = (id: string): Effect.Effect<void, never, WorkflowScope> => {
  definitionName("patch", id)
  return Effect.asVoid(
    command((scope, fiber) => scope.patched(id, fiber, true)) as Effect.Effect<boolean, never, WorkflowScope>
  )
}

/**
 * Gives the run these tags from now on; others that it has keep their values. One entry of the history, durable with all that
 * the workflow did before it. On a fork it is recorded, and the run is found by its root branch's all the same.
 *
 * A tag that the workflow does not declare, or a value that its Schema refuses, dies with `InvalidValue`.
 */
export const tag = (values: Readonly<Record<string, unknown>>): Effect.Effect<void, never, WorkflowScope> =>
  scoped((scope, fiber) => scope.tag(values, fiber))

export const loop = Loop.loop

/** The run and branch that the workflow is executing as. */
export const current: Effect.Effect<{ readonly run: RunId; readonly branch: BranchId }, never, WorkflowScope> =
  Effect.map(WorkflowScope, ({ branch, run }) => ({ branch, run }))
