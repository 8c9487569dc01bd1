/** What a node's body runs in: the services that its declared side effects and output streams find at run time. */
import { Context, type Effect } from "effect"
import type * as OutputStream from "../OutputStream.js"
import type * as SideEffect from "../SideEffect.js"

/** Required by writing to an output stream; provided in workflows and in nodes' bodies. */
export interface Emits {
  readonly _: unique symbol
}

export interface StepScope {
  readonly perform: (effect: SideEffect.Any, input: unknown, key: string | undefined) => Effect.Effect<unknown, unknown>
  /** Says a chunk: `again` with every execution of the body, or `once` over all of them. */
  readonly emit: (stream: OutputStream.Any, value: unknown, how: "again" | "once") => Effect.Effect<void>
}

export const StepScope = Context.GenericTag<StepScope>("fermata/StepScope")
