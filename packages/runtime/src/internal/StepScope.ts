/** What a node's body runs in: the services that its declared side effects find at run time. */
import { Context, type Effect } from "effect"
import type * as SideEffect from "../SideEffect.js"

export interface StepScope {
  readonly perform: (effect: SideEffect.Any, input: unknown, key: string | undefined) => Effect.Effect<unknown, unknown>
}

export const StepScope = Context.GenericTag<StepScope>("fermata/StepScope")
