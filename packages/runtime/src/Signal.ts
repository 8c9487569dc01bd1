/**
 * A signal: a typed message that anybody may send to a run, also before the run waits for it. Signals queue up in the order
 * in which they were accepted, and each message id is delivered once. A workflow lists the signals that it takes.
 *
 * @example
 * const Joined = Signal.make("joined", { payload: Schema.String })
 * const Party = Workflow.make("party", { version: "1", signals: [Joined], success: Schema.String }, () => Signal.next(Joined))
 * // anywhere:
 * yield* client.signal("party-1", Joined, "Ada", { messageId: "request-7" })
 */
import { Effect, Schema, Stream } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { type Channel, scoped, type WorkflowScope } from "./internal/WorkflowScope.js"

/** A declared signal. `A`: what it carries. */
export interface Signal<N extends string, A> {
  readonly name: N
  readonly payload: Schema.Schema<A, unknown>
  readonly codec: Codec.Codec<A>
}

/** Any signal, as the runtime sees it. */
export interface Any {
  readonly name: string
}

/** Declares a signal. `payload` defaults to void. */
export const make = <const N extends string, A = void, AE = void>(
  name: N,
  options: { readonly payload?: Schema.Schema<A, AE> } = {}
): Signal<N, A> => {
  definitionName("signal", name)
  // A Schema that is left out is the default that the type parameter names.
  const payload = (options.payload ?? Schema.Void) as Schema.Schema<A, unknown>
  return { name, payload, codec: Codec.make(payload) }
}

const channelOf = <N extends string, A>({ codec, name }: Signal<N, A>): Channel => ({ kind: "signal", name, codec })

/** Takes the oldest signal that was not taken, or waits for the next: the run holds no memory and no worker meanwhile. */
export const next = <N extends string, A>(signal: Signal<N, A>): Effect.Effect<A, never, WorkflowScope> =>
  scoped((scope, fiber) =>
    // The channel's codec reads the declared type.
    Effect.map(scope.receive(channelOf(signal), fiber), ({ value }) => value as A)
  )

/** Takes all signals that came and were not taken, oldest first; none is no reason to wait. */
export const drain = <N extends string, A>(
  signal: Signal<N, A>
): Effect.Effect<ReadonlyArray<A>, never, WorkflowScope> =>
  scoped((scope, fiber) =>
    Effect.map(scope.drain(channelOf(signal), fiber), (messages) => messages.map(({ value }) => value as A))
  )

/** The signals as they come, without end. */
export const stream = <N extends string, A>(signal: Signal<N, A>): Stream.Stream<A, never, WorkflowScope> =>
  Stream.repeatEffect(next(signal))
