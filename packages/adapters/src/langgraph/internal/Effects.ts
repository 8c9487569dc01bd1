/**
 * Effects of nodes as side effects of the runtime, which decides what may fire and what recovery does (EO): one definition
 * for each delivery, whose handler runs the body of the call that is under way in this process.
 */
import { Delivery, SideEffect } from "@fermata/runtime"
import { Effect, Exit, FiberRef, Layer, Runtime, Schema } from "effect"
import { DidNotHappen, GraphError } from "../GraphError.js"
import type { Attempt } from "./Attempt.js"
import { fromWire, toWire } from "./Wire.js"

/** How an effect is declared. */
export interface EffectOptions {
  /**
   * `keyed`: the receiver honours the key, so it may be fired again with it. `once`: never fired again blindly.
   * `repeatable`: a read or a model call; memoized once its outcome is recorded.
   */
  readonly delivery: "keyed" | "once" | "repeatable"
  /** What it depends on: a node that asks for the same effect with another input is stuck. Stored. Default: nothing. */
  readonly input?: unknown
  /** Names the call within its node; without it its order does. */
  readonly key?: string
  /** `once`: asks the outside what became of a firing whose outcome is unknown. */
  readonly reconcile?: (idempotencyKey: string) => Promise<Reconciled>
}

/** What reconciling says of an effect in doubt. */
export type Reconciled =
  | { readonly _tag: "Happened"; readonly outcome: unknown }
  /** It did not happen and never will: the receiver refuses it from now on, or it cannot arrive any more. */
  | { readonly _tag: "NeverWill" }
  | { readonly _tag: "Unknown" }

/** One call of an effect. */
export interface Call {
  readonly name: string
  readonly options: EffectOptions
  readonly path: string
  readonly body: (idempotencyKey: string) => Promise<unknown>
}

/** Performs a call in the step that is under way. */
export type Perform = (call: Call) => Promise<Exit.Exit<unknown, string>>

const shape = {
  input: Schema.Struct({ name: Schema.String, input: Schema.Unknown }),
  success: Schema.Unknown,
  /** The message of `DidNotHappen`. */
  error: Schema.String
}

const effects = {
  keyed: SideEffect.make("graph/keyed", { ...shape, delivery: Delivery.keyed }),
  once: SideEffect.make("graph/once", { ...shape, delivery: Delivery.once() }),
  repeatable: SideEffect.make("graph/repeatable", { ...shape, delivery: Delivery.repeatable })
}

/** For settling: what is settled is found by its key, and all of them have the same values. */
export const onceEffect = effects.once

/** What a node may perform. */
export const declared = [effects.keyed, effects.once, effects.repeatable] as const

/** Whose body runs: it comes with the fiber that performs the effect. */
const current = FiberRef.unsafeMake<Call | undefined>(undefined)

const run = (_: unknown, { idempotencyKey }: SideEffect.Firing): Effect.Effect<unknown, string> =>
  Effect.flatMap(FiberRef.get(current), (call) =>
    call === undefined
      ? Effect.dieMessage("no body of this effect runs here")
      : Effect.flatMap(
          Effect.exit(Effect.tryPromise({ try: () => call.body(idempotencyKey), catch: (error) => error })),
          Exit.match({
            onSuccess: (value) => Effect.succeed(toWire(value)),
            onFailure: (cause) => {
              const error = cause._tag === "Fail" ? cause.error : undefined
              return error instanceof DidNotHappen
                ? Effect.fail(error.message)
                : Effect.die(error ?? new Error("interrupted"))
            }
          })
        )
  )

/** The handlers, for a worker of graphs. */
export const handlers = Layer.mergeAll(
  effects.keyed.toLayer(run),
  effects.repeatable.toLayer(run),
  effects.once.toLayer(run, {
    reconcile: ({ idempotencyKey }) =>
      Effect.flatMap(FiberRef.get(current), (call) => {
        const reconcile = call?.options.reconcile
        return reconcile === undefined
          ? Effect.succeed(SideEffect.Unknown)
          : Effect.map(
              Effect.tryPromise(() => reconcile(idempotencyKey)),
              (said) => (said._tag === "Happened" ? SideEffect.Happened(toWire(said.outcome)) : said)
            )
      })
  })
)

type Permits = SideEffect.Performs<(typeof declared)[number]["name"]>

/** Gives what performs calls in the step whose body this is run in. */
export const performer = Effect.map(Effect.runtime<Permits>(), (runtime): Perform => (call) => {
  const { options, path } = call
  const performed: Effect.Effect<unknown, string, Permits> = effects[options.delivery](
    { name: call.name, input: toWire(options.input ?? null) },
    { key: path }
  )
  return Runtime.runPromiseExit(runtime)(Effect.locally(performed, current, call))
})

/** Fires a call, or gets what is known of it. */
export const fire = async (attempt: Attempt, call: Call): Promise<unknown> => {
  const exit = await attempt.perform(call)
  if (Exit.isSuccess(exit)) return fromWire(exit.value)
  const { cause } = exit
  if (cause._tag === "Fail") throw new DidNotHappen(cause.error)
  // The step is stuck, and says why: nothing of this execution counts any more.
  throw new GraphError(`The effect "${call.name}" has no outcome`, { cause })
}
