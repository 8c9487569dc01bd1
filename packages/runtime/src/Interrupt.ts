/**
 * An interrupt: a typed, durable request to the outside (a person, usually) for a value. While none came the branch
 * is waiting and holds no memory and no worker.
 *
 * @example
 * const Approval = Interrupt.make("approval", { payload: Question, answer: Schema.Boolean })
 * const approved = yield* Approval({ cents: 12_000 })
 */
import { type Effect, Schema } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { command, type WorkflowScope } from "./internal/WorkflowScope.js"

/** A declared interrupt. `P`: what is asked. `A`: what is answered. */
export interface Interrupt<N extends string, P, A> extends Answerable<N, P, A> {
  /** Asks, and waits for the answer. The n-th ask of a branch is answered as `name#n` (a node of the same name counts too). */
  (payload: P): Effect.Effect<A, never, WorkflowScope>
}

/** What an answer is given to by `client.resume`: an interrupt or a human task. */
export interface Answerable<N extends string, P, A> {
  readonly name: N
  readonly payload: Schema.Schema<P, unknown>
  readonly answer: Schema.Schema<A, unknown>
  readonly codecs: { readonly payload: Codec.Codec<P>; readonly answer: Codec.Codec<A> }
}

/** Any interrupt. */
export interface Any {
  readonly name: string
  readonly codecs: {
    readonly payload: Codec.Codec<never> | Codec.Codec<unknown>
    readonly answer: Codec.Codec<never> | Codec.Codec<unknown>
  }
}

/** Declares an interrupt. `payload` and `answer` default to void. */
export const make = <const N extends string, P = void, PE = void, A = void, AE = void>(
  name: N,
  options: { readonly payload?: Schema.Schema<P, PE>; readonly answer?: Schema.Schema<A, AE> } = {}
): Interrupt<N, P, A> => {
  definitionName("interrupt", name)
  // Schemas that are left out are the defaults that the type parameters name.
  const payload = (options.payload ?? Schema.Void) as Schema.Schema<P, unknown>
  const answer = (options.answer ?? Schema.Void) as Schema.Schema<A, unknown>
  const self = (value: P) => command((scope, fiber) => scope.ask(interrupt as Any, value, fiber))
  const interrupt = Object.assign(self, {
    payload,
    answer,
    codecs: { payload: Codec.make(payload), answer: Codec.make(answer) }
  })
  Object.defineProperty(interrupt, "name", { value: name, enumerable: true })
  return interrupt as unknown as Interrupt<N, P, A>
}
