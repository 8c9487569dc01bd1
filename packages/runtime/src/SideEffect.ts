/**
 * A side effect: a named, declared action on the outside world. Its declaration says what goes in, what comes out and
 * how it may be delivered; its handler is supplied as a Layer to the worker.
 *
 * Calling one requires `Performs<Name>`, which only `Node.make({ effects: [it] })` grants: a node cannot perform what
 * it does not declare, and a workflow cannot perform anything outside a node.
 */
import type { DeliveryPolicy, EffectKey } from "@fermata/contract"
import type { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Schema } from "effect"
import type { Covariant } from "effect/Types"
import type { Delivery } from "./Delivery.js"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { StepScope } from "./internal/StepScope.js"

declare const PerformsId: unique symbol
declare const HandlerId: unique symbol

/** The permit to perform the side effect `N`; granted to a node's body by its declaration. */
export interface Performs<out N extends string> {
  readonly [PerformsId]: Covariant<N>
}

/** The handler of the side effect `N`; provided by `toLayer`, required by whoever runs workflows that use it. */
export interface HandlerOf<out N extends string> {
  readonly [HandlerId]: Covariant<N>
}

/** What a handler knows of the firing that it carries out. */
export interface Firing {
  /** Names this firing; the same on every replay, retry of delivery and worker. */
  readonly key: EffectKey
  /** What to hand to the receiver as its idempotency key: 43 URL-safe characters derived from `key`. */
  readonly idempotencyKey: string
  /** True if an earlier firing under the same key may have reached the outside (`keyed` only). */
  readonly again: boolean
}

/**
 * What the outside says of a firing in doubt. `NeverWill` promises that the receiver refuses the earlier firing from
 * now on, or that it can no longer arrive; "I see nothing" is `Unknown`.
 */
export type Reconciled<A, E> =
  | { readonly _tag: "Happened"; readonly value: A }
  | { readonly _tag: "Declined"; readonly error: E }
  | { readonly _tag: "NeverWill" }
  | { readonly _tag: "Unknown" }

/** It happened, with this outcome. */
export const Happened = <A>(value: A): Reconciled<A, never> => ({ _tag: "Happened", value })
/** The receiver refused it, with this typed error: it did not happen. */
export const Declined = <E>(error: E): Reconciled<never, E> => ({ _tag: "Declined", error })
/** It did not happen and never will. */
export const NeverWill: Reconciled<never, never> = { _tag: "NeverWill" }
/** Nobody can say. */
export const Unknown: Reconciled<never, never> = { _tag: "Unknown" }

/** Services that the runtime provides to a handler: the transaction of a `transactional` effect. */
type Provided<P extends DeliveryPolicy> = P extends "transactional" ? SqlClient : never

/** How a `once` effect in doubt is resolved; absent, an operator settles it. */
export interface Reconcile<I, A, E, R> {
  /** Asks the outside what became of the firing. Asked only when that firing can no longer be under way. */
  readonly reconcile?: (firing: Firing, input: I) => Effect.Effect<Reconciled<A, E>, unknown, R>
}

/**
 * A declared side effect. `N`: its name. `I`: its input. `A`: its success. `E`: its typed error, which means "it
 * definitely did not happen". `P`: its delivery policy.
 */
export interface SideEffect<N extends string, I, A, E, P extends DeliveryPolicy> {
  /**
   * Performs it. Inside one node body, calls one after the other are told apart by their order; concurrent calls each
   * need a `key` of their own.
   */
  (input: I, options?: { readonly key?: string }): Effect.Effect<A, E, Performs<N>>
  readonly name: N
  readonly delivery: Delivery<P>
  readonly input: Schema.Schema<I, unknown>
  readonly success: Schema.Schema<A, unknown>
  readonly error: Schema.Schema<E, unknown>
  /**
   * Supplies the handler. A typed failure means that it definitely did not happen; a defect or exceeding the time limit
   * leaves it in doubt.
   */
  readonly toLayer: <R, R2 = never>(
    handler: (input: I, firing: Firing) => Effect.Effect<A, E, R>,
    options?: P extends "once" ? Reconcile<I, A, E, R2> : { readonly reconcile?: never }
  ) => Layer.Layer<HandlerOf<N>, never, Exclude<R, Provided<P>> | R2>
  /** Compiled once, when the effect is declared. */
  readonly codecs: { readonly input: Codec.Codec<I>; readonly success: Codec.Codec<A>; readonly error: Codec.Codec<E> }
}

/** Any side effect. */
export interface Any {
  readonly name: string
  readonly delivery: Delivery
  readonly codecs: {
    readonly input: Codec.Codec<never> | Codec.Codec<unknown>
    readonly success: Codec.Codec<never> | Codec.Codec<unknown>
    readonly error: Codec.Codec<never> | Codec.Codec<unknown>
  }
}

/** What a handler's layer provides, by the effect's name. */
export interface Handler {
  /** What the layer was built with; whoever runs `handle` provides it. */
  readonly context: Context.Context<never>
  readonly handle: (input: unknown, firing: Firing) => Effect.Effect<unknown, unknown>
  readonly reconcile:
    ((firing: Firing, input: unknown) => Effect.Effect<Reconciled<unknown, unknown>, unknown>) | undefined
}

// A tag records where it was made, which costs more than all else that a firing does: one per name.
const handlerTags = new Map<string, Context.Tag<HandlerOf<string>, Handler>>()

/** The tag under which the handler of the named effect is found. */
export const handlerTag = (name: string): Context.Tag<HandlerOf<string>, Handler> => {
  const known = handlerTags.get(name)
  if (known !== undefined) return known
  const tag = Context.GenericTag<HandlerOf<string>, Handler>(`fermata/SideEffect/${name}`)
  handlerTags.set(name, tag)
  return tag
}

/** Declares a side effect. `input` and `success` default to void, `error` to never. */
export const make = <
  const N extends string,
  P extends DeliveryPolicy,
  I = void,
  IE = void,
  A = void,
  AE = void,
  E = never,
  EE = never
>(
  name: N,
  options: {
    readonly delivery: Delivery<P>
    readonly input?: Schema.Schema<I, IE>
    readonly success?: Schema.Schema<A, AE>
    readonly error?: Schema.Schema<E, EE>
  }
): SideEffect<N, I, A, E, P> => {
  definitionName("side effect", name)
  // Schemas that are left out are the defaults that the type parameters name.
  const input = (options.input ?? Schema.Void) as Schema.Schema<I, unknown>
  const success = (options.success ?? Schema.Void) as Schema.Schema<A, unknown>
  const error = (options.error ?? Schema.Never) as Schema.Schema<E, unknown>
  const codecs = { input: Codec.make(input), success: Codec.make(success), error: Codec.make(error) }
  const tag = handlerTag(name)
  const self = (value: I, call?: { readonly key?: string }): Effect.Effect<A, E, Performs<N>> =>
    // The permit is a type: at run time the step's scope is what grants it, by checking the declaration.
    Effect.flatMap(StepScope, (scope) => scope.perform(effect as never, value, call?.key)) as unknown as Effect.Effect<
      A,
      E,
      Performs<N>
    >
  const toLayer = <R, R2>(
    handle: (input: I, firing: Firing) => Effect.Effect<A, E, R>,
    more?: Reconcile<I, A, E, R2>
  ) =>
    Layer.effect(
      tag,
      Effect.map(Effect.context<R | R2>(), (context): Handler => {
        const reconcile = more?.reconcile
        return {
          // Its requirements are in the context beside it: merging contexts per call would cost more than most handlers.
          context: context as Context.Context<never>,
          handle: handle as Handler["handle"],
          reconcile:
            reconcile === undefined
              ? undefined
              : (firing, value) => Effect.provide(reconcile(firing, value as I), context)
        }
      })
    )
  const effect = Object.assign(self, { delivery: options.delivery, input, success, error, codecs, toLayer })
  // `name` of a function is read-only for assignment, not for definition.
  Object.defineProperty(effect, "name", { value: name, enumerable: true })
  return effect as unknown as SideEffect<N, I, A, E, P>
}
