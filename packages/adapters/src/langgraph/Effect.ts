/** Declared side effects inside nodes, tasks and entrypoints: what may be done again, and what never is. */
import { type EffectOptions, fire } from "./internal/Effects.js"
import { nextPath, requiredScope } from "./internal/Scope.js"

export type { EffectOptions, Reconciled } from "./internal/Effects.js"

/**
 * Runs `body` as a side effect of the node, and gives its outcome. When the node runs again (after an answer, a crash or a
 * retry) the recorded outcome is given and nothing fires (EO). The outcome must be storable.
 *
 * A body that throws `DidNotHappen` says that nothing was done: that is recorded and thrown. After any other error it is
 * unknown what was done: `keyed` and `repeatable` are fired again, some times, under the same key; `once` is asked about by
 * `reconcile`, and without an answer the thread is stuck until `graph.settle`. A body has 60 seconds.
 *
 * @example
 * const receipt = await effect("charge", { delivery: "keyed", input: order.cents }, (idempotencyKey) =>
 *   payments.charge(order.cents, { idempotencyKey }))
 */
export const effect = async <A>(
  name: string,
  options: EffectOptions,
  body: (idempotencyKey: string) => Promise<A> | A
): Promise<A> => {
  const scope = requiredScope(`The effect "${name}"`)
  const path = options.key === undefined ? nextPath(scope, "e") : `${scope.path}e:${options.key}`
  const call = { name, options, path, body: async (key: string): Promise<unknown> => body(key) }
  // What is served is what the body returned, as it was stored.
  return (await scope.attempt.once(path, name, () => fire(scope.attempt, call))) as A
}
