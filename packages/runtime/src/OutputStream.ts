/**
 * An output stream: what a run says while it runs (tokens, progress), for whoever listens, from any process and from any
 * offset. Chunks decide nothing and are no part of the history. They are visible no earlier than what they depend on is
 * durable, and no later than the outcome of the step that said them.
 *
 * A node's body that runs again, after a crash or after a typed error, says its chunks again: they carry another
 * `execution`. What a workflow's body says itself is said once.
 *
 * @example
 * const Tokens = OutputStream.make("tokens", { chunk: Schema.String })
 * // in a node's body or in a workflow:
 * yield* Tokens("Hello")
 * // anywhere:
 * const tokens = client.listen(Tokens, run) // a Stream
 */
import { Context, Effect, type Schema } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { type Emits, StepScope } from "./internal/StepScope.js"
import { WorkflowScope } from "./internal/WorkflowScope.js"
import * as Node from "./Node.js"

export type { Emits } from "./internal/StepScope.js"

/** A declared output stream. `A`: what a chunk is. */
export interface OutputStream<N extends string, A> {
  /** Says one chunk. In a node's body it goes on at once, unless more was said than the database takes. */
  (chunk: A): Effect.Effect<void, never, Emits>
  readonly name: N
  readonly chunk: Schema.Schema<A, unknown>
  readonly codec: Codec.Codec<A>
}

/** Any output stream, as the runtime sees it. */
export interface Any {
  readonly name: string
  readonly codec: Codec.Codec<unknown>
}

/** One chunk as a listener gets it. */
export interface Emitted<A> {
  /** 1, 2, 3 … in the order in which the branch said them: listening goes on `after` it. */
  readonly offset: number
  readonly value: A
  /** The key of the step that said it. */
  readonly step: string
  /** 1 for the first time that the step's body ran; one more each time it ran again and said its chunks again. */
  readonly execution: number
  /** Ledger milliseconds. */
  readonly at: number
}

/** Declares an output stream. */
export const make = <const N extends string, A, AE>(
  name: N,
  options: { readonly chunk: Schema.Schema<A, AE> }
): OutputStream<N, A> => {
  definitionName("output stream", name)
  const chunk = options.chunk as Schema.Schema<A, unknown>
  const codec = Codec.make(chunk)
  const stream: Any = { name, codec: codec as Codec.Codec<unknown> }
  // Said by a workflow it is a step: journaled, matched in order on replay, and so said once.
  const said = Node.make(
    name,
    { input: chunk },
    (value) => Effect.flatMap(StepScope, (scope) => scope.emit(stream, value, "once")) as Effect.Effect<void>
  )
  const self = (value: A): Effect.Effect<void> =>
    Effect.withFiberRuntime((fiber) => {
      const step = Context.getOption(fiber.currentContext, StepScope)
      if (step._tag === "Some") return step.value.emit(stream, value, "again")
      const workflow = Context.getOption(fiber.currentContext, WorkflowScope)
      // A node's typed errors are none here.
      if (workflow._tag === "Some")
        return workflow.value.call(said as unknown as Node.Any, value, fiber) as Effect.Effect<void>
      return Effect.dieMessage(`The output stream ${name} is written outside of a workflow and of a node's body`)
    })
  const output = Object.assign(self, { chunk, codec })
  Object.defineProperty(output, "name", { value: name, enumerable: true })
  return output as unknown as OutputStream<N, A>
}
