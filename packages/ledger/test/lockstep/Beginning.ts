/** Sequences whose first actions are given: by what they are, not by their place in a list. */
import { assert } from "@effect/vitest"
import type { Action } from "@fermata/contract/model"
import type { Next } from "./Sequence.js"

/** An action by its tag and a part of its JSON text. */
export const is =
  (tag: Action["_tag"], part = "") =>
  (action: Action): boolean =>
    action._tag === tag && JSON.stringify(action).includes(part)

/** The first action of each kind in turn, then those at these places of the lists. */
export const begin = (first: ReadonlyArray<(action: Action) => boolean>, then: ReadonlyArray<number>): Next => {
  return (actions, n) => {
    const wanted = first[n]
    if (wanted !== undefined) {
      const action = actions.find(wanted)
      assert(action !== undefined, `no action of the beginning's number ${n + 1} makes sense`)
      return action
    }
    const index = then[n - first.length]
    return index === undefined ? undefined : actions[index]
  }
}
