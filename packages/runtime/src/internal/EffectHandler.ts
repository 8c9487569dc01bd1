/** Finds a side effect's handler among the worker's services, and what the handler is told of its firing. */
import type { EffectKey } from "@fermata/contract"
import { Context, type Effect, Option } from "effect"
import * as SideEffect from "../SideEffect.js"
import { digest } from "./Payload.js"
import { missingHandler } from "./Problems.js"
import type { Step } from "./Step.js"

/** The worker's handler of an effect. */
export const handlerOf = (step: Step, effect: SideEffect.Any): SideEffect.Handler | undefined =>
  Option.getOrUndefined(
    Context.getOption(
      step.branch.host.runtime.context as Context.Context<SideEffect.HandlerOf<string>>,
      SideEffect.handlerTag(effect.name)
    )
  )

/** Stops a step whose worker cannot fire the effect. */
export const withoutHandler = (step: Step, effect: SideEffect.Any): Effect.Effect<never> =>
  step.block(missingHandler(step.key, effect.name))

/** What a handler is told. */
export class KeyedFiring implements SideEffect.Firing {
  constructor(
    readonly key: EffectKey,
    readonly again: boolean
  ) {}

  /** Computed when asked for: many receivers have no use for it. */
  get idempotencyKey(): string {
    return digest(this.key)
  }
}
