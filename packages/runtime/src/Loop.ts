/**
 * What an iteration of `Workflow.loop` returns: the state of the next one, or the loop's result.
 *
 * @example
 * const total = yield* Workflow.loop("count", { state: Schema.Number, initial: 0 }, (n) =>
 *   n < 10 ? Effect.as(step(n), Loop.next(n + 1)) : Effect.succeed(Loop.done(n)))
 */
import { Effect, type Schema, type Scope } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import type { LoopStep } from "./internal/WorkflowLoop.js"
import { WorkflowScope } from "./internal/WorkflowScope.js"

/** Another iteration follows, with this state. `S`: the state. */
export interface Next<out S> {
  readonly _tag: "Next"
  readonly state: S
}

/** The loop is over. `A`: its result. */
export interface Done<out A> {
  readonly _tag: "Done"
  readonly value: A
}

/** Goes on with `state`. It is checked by the loop's Schema and journaled before the next iteration begins. */
export const next = <S>(state: S): Next<S> => ({ _tag: "Next", state })

/** Ends the loop with `value`, which is the loop's result; it is not journaled. */
export const done = <A>(value: A): Done<A> => ({ _tag: "Done", value })

/** The result of a loop whose iterations return `B`; `never` if none ends it. */
export type ResultOf<B> = B extends Done<infer A> ? A : never

/** Codecs are built once a Schema, not once a call. */
const codecs = new WeakMap<object, Codec.Codec<unknown>>()

const codecOf = (schema: Schema.Schema<unknown, unknown>): Codec.Codec<unknown> => {
  let codec = codecs.get(schema)
  if (codec === undefined) codecs.set(schema, (codec = Codec.make(schema)))
  return codec
}

/**
 * Repeats `body` until it returns {@link done}: each iteration's state is journaled as a snapshot, and a replay begins with
 * the last one. `iteration` counts from 1.
 *
 * An iteration is a scope of its own: step keys, interrupt ids and random draws are counted within it
 * (`<name>#<n>/<iteration>/<step>#<m>`), and its resources are released at its end. What it hands on goes through the state: memory shared with what
 * is outside of the loop is not rebuilt. Typed errors of the body are the loop's. State that fails its Schema, or would
 * not fit into the journal, dies as `InvalidValue` before anything is written (CV). A fiber, step, interrupt or timer that
 * has not ended with its iteration makes the branch stuck with `IterationOutlived` (RD).
 */
export const loop = <S, SE, B extends Effect.Effect<Next<S> | Done<unknown>, unknown, unknown>>(
  name: string,
  options: { readonly state: Schema.Schema<S, SE>; readonly initial: NoInfer<S> },
  body: (state: S, iteration: number) => B
): Effect.Effect<
  ResultOf<Effect.Effect.Success<B>>,
  Effect.Effect.Error<B>,
  WorkflowScope | Exclude<Effect.Effect.Context<B>, Scope.Scope | WorkflowScope>
> => {
  definitionName("loop", name)
  // The state's type is checked by the signature; the machinery sees it only through its codec.
  const definition = {
    name,
    state: codecOf(options.state as unknown as Schema.Schema<unknown, unknown>),
    initial: options.initial,
    body: body as (state: unknown, iteration: number) => Effect.Effect<LoopStep, unknown, unknown>
  }
  // The body's own types say what the loop gives, fails with and requires.
  return Effect.flatMap(WorkflowScope, (scope) => scope.loop(definition)) as Effect.Effect<
    ResultOf<Effect.Effect.Success<B>>,
    Effect.Effect.Error<B>,
    WorkflowScope | Exclude<Effect.Effect.Context<B>, Scope.Scope | WorkflowScope>
  >
}
