/** What a call of LangGraph says in its config, checked (CV: input from outside). */
import type { RunnableConfig } from "@langchain/core/runnables"
import type { StoredCheckpoint, ThreadHold } from "@fermata/ledger"
import { ConfigInvalid } from "../SaverError.js"

/** Which checkpoints a call is about. */
export interface Address {
  readonly thread: string | undefined
  readonly ns: string | undefined
  readonly id: string | undefined
}

/** What the front says to the saver through a run's config. Keys that begin with `__` stay out of metadata. */
export interface FrontMark {
  /** `undefined` for reads only. */
  readonly hold: ThreadHold | undefined
  /** The checkpoint of the root graph that the run goes on from: its branch's head, whatever else the thread has. */
  readonly head: string | undefined
  /** A checkpoint that is read as if it were stored as its namespace's latest. */
  readonly preview?: StoredCheckpoint
}

export const frontKey = "__fermata_front"

/** Reads the address. Throws `ConfigInvalid`. */
export const addressOf = (call: string, config: RunnableConfig | undefined): Address => {
  const configurable: unknown = config?.configurable
  if (typeof configurable !== "object" || configurable === null)
    return { thread: undefined, ns: undefined, id: undefined }
  const id = text(call, configurable, "checkpoint_id")
  // The name that it had long ago.
  const ts = id === undefined || id === "" ? text(call, configurable, "thread_ts") : id
  return {
    thread: text(call, configurable, "thread_id"),
    ns: text(call, configurable, "checkpoint_ns"),
    id: ts === "" ? undefined : ts
  }
}

/** The thread, which this call cannot do without. */
export const threadOf = (call: string, { thread }: Address): string => {
  if (thread === undefined) throw new ConfigInvalid({ call, field: "thread_id", problem: "is missing" })
  if (thread === "") throw new ConfigInvalid({ call, field: "thread_id", problem: "is empty" })
  return thread
}

/** A text that both databases can hold. */
export const storable = (call: string, field: string, value: unknown): string => {
  if (typeof value !== "string") throw new ConfigInvalid({ call, field, problem: `is ${kindOf(value)}, not a string` })
  if (value.includes("\0") || !value.isWellFormed()) {
    throw new ConfigInvalid({ call, field, problem: "has a character that cannot be stored (NUL or half a pair)" })
  }
  return value
}

const text = (call: string, configurable: object, field: string): string | undefined => {
  const value: unknown = Reflect.get(configurable, field)
  return value === undefined || value === null ? undefined : storable(call, field, value)
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? "an array" : `of type ${typeof value}`)

/** What the front said, if the call belongs to a run of its. */
export const markOf = (config: RunnableConfig): FrontMark | undefined => {
  const mark: unknown = config.configurable?.[frontKey]
  // Only the front writes under this key.
  return typeof mark === "object" && mark !== null ? (mark as FrontMark) : undefined
}
