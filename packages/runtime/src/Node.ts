/**
 * A node: a named unit of work with Schemas, declared side effects and a body that is an Effect. Its outcome is
 * journaled once; afterwards it is served, not run.
 *
 * @example
 * const chargeCard = Node.make(
 *   "charge-card",
 *   { input: Order, success: Receipt, error: CardDeclined, effects: [Charge] },
 *   (order) => Charge({ account: order.account, cents: order.cents })
 * )
 */
import { Duration, type Effect, Schema } from "effect"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import type { Emits } from "./internal/StepScope.js"
import { command, type WorkflowScope } from "./internal/WorkflowScope.js"
import type { HandlerOf, Performs } from "./SideEffect.js"
import type * as SideEffect from "./SideEffect.js"

/** How a node is tried again after a typed error. A lost worker is not an attempt; a defect is not retried. */
export interface RetryPolicy<E> {
  /** How many further attempts there may be after the first. */
  readonly times: number
  /** Pause before the second attempt; no pause by default. */
  readonly delay?: Duration.DurationInput
  /** What each further pause is multiplied by; 1 by default. */
  readonly factor?: number
  /** The longest pause; 1 hour by default. */
  readonly maxDelay?: Duration.DurationInput
  /** Errors for which it is false are final. */
  readonly while?: (error: E) => boolean
  /** Errors with these tags are final. */
  readonly nonRetryable?: ReadonlyArray<E extends { readonly _tag: infer T extends string } ? T : never>
}

/** What ran out of time, and when. */
export interface TimedOut {
  /** `startToClose`: one attempt. `scheduleToClose`: all of them together, with the pauses between. */
  readonly limit: "startToClose" | "scheduleToClose"
  /** The attempt that was under way, counted from 1. */
  readonly attempt: number
}

/**
 * How long a node may take. An attempt that takes longer is interrupted, which waits for effects that may not be; then it has
 * failed with `error`, and is tried again if the retry policy says so.
 */
export interface Timeouts<E> {
  /** For each attempt, from its beginning. */
  readonly startToClose?: Duration.DurationInput
  /**
   * For all attempts, from when the workflow called the node: the time goes on while no worker is there. What is over stays
   * over: its error is not retried, and no attempt begins after it.
   */
  readonly scheduleToClose?: Duration.DurationInput
  readonly error: (timedOut: TimedOut) => E
}

type NameOf<Es> = Es extends { readonly name: infer N extends string } ? N : never
/** Any tag. Structural, because a tag is invariant in what it identifies. */
type AnyTag = { readonly key: string; readonly Identifier: unknown; readonly Service: unknown }
type IdentifierOf<T> = T extends { readonly Identifier: infer Id } ? Id : never

/** The sentence that a type error ends with when a node's body does what it does not declare. */
export type Undeclared<R> = [R] extends [never]
  ? unknown
  : {
      readonly fermata: R extends Performs<infer N>
        ? `this node performs "${N}": add it to its "effects"`
        : R extends WorkflowScope
          ? `nodes, interrupts and timers belong in the workflow, not inside a node`
          : `this node uses a service: add a pure one to its "services", put the outside world behind a side effect`
    }

/** One handler for each name: a Layer provides them one by one. */
type HandlersOf<H extends string> = H extends string ? HandlerOf<H> : never

/** A declared node. `I`: input. `A`: success. `E`: typed error. `H`: names of the side effects that it declares. */
export interface Node<N extends string, I, A, E, H extends string, S = never> {
  /** Calls it from a workflow. */
  (input: I): Effect.Effect<A, E, WorkflowScope | HandlersOf<H> | S>
  /**
   * Calls it as the step `name@key`, instead of counting calls: wherever the workflow calls it by this key, and however often,
   * it is one step, which runs once. Who calls it while it runs waits for it, who calls it later has its outcome. An iteration
   * of a loop has keys of its own. Dies with `StepKeyReused` if the key's step has another input, or was interrupted; with
   * `InvalidValue` if the key is not an identifier, contains `#`, `|`, `~` or `%`, or if the node's name contains `@`.
   */
  readonly withKey: (key: string) => (input: I) => Effect.Effect<A, E, WorkflowScope | HandlersOf<H> | S>
  readonly name: N
  readonly input: Schema.Schema<I, unknown>
  readonly success: Schema.Schema<A, unknown>
  readonly error: Schema.Schema<E, unknown>
  readonly codecs: { readonly input: Codec.Codec<I>; readonly success: Codec.Codec<A>; readonly error: Codec.Codec<E> }
}

/** Any node, as the runtime sees it. */
export interface Any {
  readonly name: string
  readonly effects: ReadonlyMap<string, SideEffect.Any>
  readonly retry: CompiledRetry | undefined
  readonly timeouts: CompiledTimeouts | undefined
  /** Its body begins only when all before it is durable. */
  readonly undeclared: boolean
  readonly body: (input: unknown) => Effect.Effect<unknown, unknown>
  readonly codecs: {
    readonly input: Codec.Codec<unknown>
    readonly success: Codec.Codec<unknown>
    readonly error: Codec.Codec<unknown>
  }
}

/** Timeouts in milliseconds. */
export interface CompiledTimeouts {
  readonly startToClose: number
  readonly scheduleToClose: number
  readonly error: (timedOut: TimedOut) => unknown
}

/** A retry policy in milliseconds. */
export interface CompiledRetry {
  readonly times: number
  readonly delay: (attempt: number) => number
  readonly while: (error: unknown) => boolean
}

/** Declares a node. `input` and `success` default to void, `error` to never, `effects` to none. */
export const make = <
  const N extends string,
  I = void,
  IE = void,
  A = void,
  AE = void,
  E = never,
  EE = never,
  const Es extends ReadonlyArray<{ readonly name: string; readonly delivery: unknown }> = readonly [],
  const Ts extends ReadonlyArray<AnyTag> = readonly [],
  R = never
>(
  name: N,
  options: {
    readonly input?: Schema.Schema<I, IE>
    readonly success?: Schema.Schema<A, AE>
    readonly error?: Schema.Schema<E, EE>
    /** The side effects that the body may perform. */
    readonly effects?: Es
    /** Pure services that the body may use: they must not touch the outside world. */
    readonly services?: Ts
    readonly retry?: RetryPolicy<NoInfer<E>>
    readonly timeouts?: Timeouts<NoInfer<E>>
    /**
     * True for a body that may do anything to the outside without saying so: it begins only when the branch's whole
     * history is durable, so that no crash makes what it did come before what led to it. A crash inside it runs it again.
     */
    readonly undeclared?: boolean
  },
  body: (
    input: I
  ) => Effect.Effect<NoInfer<A>, NoInfer<E>, R> &
    Undeclared<Exclude<R, Emits | Performs<NameOf<Es[number]>> | IdentifierOf<Ts[number]>>>
): Node<N, I, A, E, NameOf<Es[number]>, IdentifierOf<Ts[number]>> => {
  definitionName("node", name)
  // Schemas that are left out are the defaults that the type parameters name.
  const input = (options.input ?? Schema.Void) as Schema.Schema<I, unknown>
  const success = (options.success ?? Schema.Void) as Schema.Schema<A, unknown>
  const error = (options.error ?? Schema.Never) as Schema.Schema<E, unknown>
  const self = (value: I) => command((scope, fiber) => scope.call(node as unknown as Any, value, fiber))
  const withKey = (key: string) => (value: I) =>
    command((scope, fiber) => scope.call(node as unknown as Any, value, fiber, key))
  const effects: ReadonlyArray<{ readonly name: string }> = options.effects ?? []
  const node = Object.assign(self, {
    withKey,
    input,
    success,
    error,
    body,
    undeclared: options.undeclared === true,
    effects: new Map(effects.map((effect) => [effect.name, effect])),
    retry: options.retry === undefined ? undefined : compileRetry(options.retry as RetryPolicy<unknown>),
    timeouts: options.timeouts === undefined ? undefined : compileTimeouts(name, options.timeouts),
    codecs: { input: Codec.make(input), success: Codec.make(success), error: Codec.make(error) }
  })
  Object.defineProperty(node, "name", { value: name, enumerable: true })
  return node as unknown as Node<N, I, A, E, NameOf<Es[number]>, IdentifierOf<Ts[number]>>
}

const compileRetry = (policy: RetryPolicy<unknown>): CompiledRetry => {
  const first = Duration.toMillis(policy.delay ?? 0)
  const factor = policy.factor ?? 1
  const longest = Duration.toMillis(policy.maxDelay ?? "1 hour")
  if (!Number.isFinite(longest) || !(policy.times >= 0) || !(factor > 0)) {
    throw new TypeError("A retry policy needs a finite maxDelay, a factor above 0, and times of 0 or more")
  }
  return {
    times: policy.times,
    // No pause stays no pause: zero times a power that overflows is not a number.
    delay: (attempt) => (first === 0 ? 0 : Math.min(longest, first * factor ** (attempt - 1))),
    while: (error) =>
      policy.while?.(error) !== false &&
      !(
        typeof error === "object" &&
        error !== null &&
        "_tag" in error &&
        // Tags of errors that have one.
        (policy.nonRetryable as ReadonlyArray<unknown> | undefined)?.includes(error._tag) === true
      )
  }
}

const compileTimeouts = <E>(node: string, { error, scheduleToClose, startToClose }: Timeouts<E>): CompiledTimeouts => {
  const millis = (limit: Duration.DurationInput | undefined): number =>
    limit === undefined ? Infinity : Duration.toMillis(limit)
  const limits = { startToClose: millis(startToClose), scheduleToClose: millis(scheduleToClose) }
  if (!(limits.startToClose > 0) || !(limits.scheduleToClose > 0))
    throw new TypeError(`The timeouts of node ${node} must be above zero`)
  return { ...limits, error }
}
