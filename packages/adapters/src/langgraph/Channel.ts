/** Channels: how the writes of a superstep become the next value of a key of the state. Pure. */
import { overwriteOf } from "./Control.js"
import { InvalidUpdateError } from "./GraphError.js"

/** How one key of the state takes its writes. */
export interface Channel {
  /**
   * `last`: one write a superstep at most. `reduced`: each write goes through the reducer. `ephemeral`: gone after the
   * superstep that follows. `untracked`: as `last`, and never stored.
   */
  readonly kind: "last" | "reduced" | "ephemeral" | "untracked"
  readonly reducer?: (left: unknown, right: unknown) => unknown
  readonly initial?: () => unknown
  /** What is wrong with a value that is about to be stored; `undefined` if nothing is (CV). */
  readonly check?: (value: unknown) => string | undefined
  /** What is wrong with a single update, and what it becomes when nothing is. */
  readonly checkUpdate?: (value: unknown) => { readonly issue: string } | { readonly value: unknown }
}

export type Channels = Readonly<Record<string, Channel>>
export type Values = Readonly<Record<string, unknown>>

/** What a thread holds before anything was written. */
export const initialValues = (channels: Channels): Values => {
  const values: Record<string, unknown> = {}
  for (const [name, channel] of Object.entries(channels))
    if (channel.initial !== undefined) values[name] = channel.initial()
  return values
}

/** One write: the channel and the value, in the order in which they count. */
export type Write = readonly [channel: string, value: unknown]

/** The values after `writes`, which are in task order. Unknown channels are dropped, as LangGraph does. */
export const applyWrites = (channels: Channels, values: Values, writes: ReadonlyArray<Write>): Values => {
  const byChannel = new Map<string, Array<unknown>>()
  for (const [name, value] of writes) {
    if (!Object.hasOwn(channels, name)) continue
    const known = byChannel.get(name)
    if (known === undefined) byChannel.set(name, [value])
    else known.push(value)
  }
  if (byChannel.size === 0) return values
  const next: Record<string, unknown> = { ...values }
  for (const [name, written] of byChannel) {
    const channel = channels[name] as Channel
    const value = nextValue(name, channel, Object.hasOwn(values, name) ? { value: values[name] } : undefined, written)
    if (value === undefined) delete next[name]
    else next[name] = value
    const issue = value === undefined ? undefined : channel.check?.(value)
    if (issue !== undefined)
      throw new InvalidUpdateError(`The new value of "${name}" breaks its schema: ${issue}. Nothing was written`)
  }
  return next
}

const nextValue = (
  name: string,
  channel: Channel,
  current: { readonly value: unknown } | undefined,
  written: ReadonlyArray<unknown>
): unknown => {
  const overwrites = written.flatMap((value) => overwriteOf(value) ?? [])
  if (overwrites.length > 1)
    throw new InvalidUpdateError(`Can receive only one Overwrite value per step for channel "${name}"`, {
      code: "INVALID_CONCURRENT_GRAPH_UPDATE"
    })
  const overwrite = overwrites[0]
  if (channel.kind !== "reduced" || channel.reducer === undefined) {
    if (written.length > 1)
      throw new InvalidUpdateError(
        `Invalid update for channel "${name}": LastValue can only receive one value per step. ` +
          `Give it a reducer to take several`,
        { code: "INVALID_CONCURRENT_GRAPH_UPDATE" }
      )
    return overwrite === undefined ? written[0] : overwrite.value
  }
  if (overwrite !== undefined) return overwrite.value
  let value = current
  for (const one of written) {
    // Without a default the first write is the value itself.
    value = value === undefined ? { value: one } : { value: channel.reducer(value.value, one) }
  }
  return value?.value
}

/** What changed, small: a list that only grew is told by what it grew by. */
export type Delta = Readonly<
  Record<string, { readonly set: unknown } | { readonly append: ReadonlyArray<unknown> } | { readonly unset: true }>
>

/** The difference of two states, by identity of their parts. */
export const deltaOf = (before: Values, after: Values, channels: Channels): Delta => {
  const delta: Record<string, Delta[string]> = {}
  for (const [name, value] of Object.entries(after)) {
    if (channels[name]?.kind === "untracked") continue
    const had = before[name]
    if (Object.hasOwn(before, name) && had === value) continue
    delta[name] =
      Array.isArray(had) && Array.isArray(value) && had.length > 0 && extendsList(had, value)
        ? { append: value.slice(had.length) as ReadonlyArray<unknown> }
        : { set: value }
  }
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) delta[name] = { unset: true }
  return delta
}

const extendsList = (before: ReadonlyArray<unknown>, after: ReadonlyArray<unknown>): boolean =>
  before.length <= after.length && before.every((value, i) => Object.is(value, after[i]))

/** Undoes {@link deltaOf}. */
export const withDelta = (before: Values, delta: Delta): Values => {
  const next: Record<string, unknown> = { ...before }
  for (const [name, change] of Object.entries(delta)) {
    if ("set" in change) next[name] = change.set
    else if ("append" in change) next[name] = [...(next[name] as ReadonlyArray<unknown>), ...change.append]
    else delete next[name]
  }
  return next
}
