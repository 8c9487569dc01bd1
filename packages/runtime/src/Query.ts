/**
 * A query: a typed view of a run that the workflow publishes and anybody may read, without waking the run. What is read was
 * published, and all that it depends on is durable.
 *
 * @example
 * const Progress = Query.make("progress", { result: Schema.Struct({ done: Schema.Number }) })
 * // in the workflow:
 * yield* Query.publish(Progress, { done: 3 })
 * // anywhere:
 * const { done } = yield* client.query(run, Progress)
 */
import { Either, type Effect, type Schema } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { draft } from "./internal/Payload.js"
import { scoped, type WorkflowScope } from "./internal/WorkflowScope.js"
import { InvalidValue } from "./RunError.js"

/** A declared query. `A`: what is read. */
export interface Query<N extends string, A> {
  readonly name: N
  readonly result: Schema.Schema<A, unknown>
  readonly codec: Codec.Codec<A>
}

/** Declares a query. */
export const make = <const N extends string, A, AE>(
  name: N,
  options: { readonly result: Schema.Schema<A, AE> }
): Query<N, A> => {
  definitionName("query", name)
  const result = options.result as Schema.Schema<A, unknown>
  return { name, result, codec: Codec.make(result) }
}

/** Publishes what the query reads from now on: one entry of the history. A value that is none dies with `InvalidValue`. */
export const publish = <N extends string, A>(query: Query<N, A>, value: A): Effect.Effect<void, never, WorkflowScope> =>
  scoped((scope, fiber) =>
    scope.tell(
      Either.mapBoth(query.codec.encode(value), {
        onLeft: ({ issues }) => new InvalidValue({ what: `result of query ${query.name}`, issues }),
        onRight: (text) => draft.viewPublished(`view:${query.name}`, text)
      }),
      fiber
    )
  )
