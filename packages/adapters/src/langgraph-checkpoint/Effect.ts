/** Declared side effects inside nodes of a graph that a front runs. */
import type { DeliveryPolicy } from "@fermata/contract"
import type { RunnableConfig } from "@langchain/core/runnables"
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons"
import { EffectRefused } from "./FrontError.js"
import { type Reconciled, runEffect } from "./internal/EffectRun.js"
import { runOf } from "./internal/Front.js"

export { DidNotHappen, type Reconciled, type Settlement } from "./internal/EffectRun.js"

/** How an effect is declared. */
export interface EffectOptions {
  /**
   * `keyed`: the receiver honours the key, so it may be fired again with it. `once`: never fired again blindly.
   * `repeatable`: a read or a model call; memoized once its outcome is stored.
   */
  readonly delivery: Exclude<DeliveryPolicy, "transactional">
  /** What it depends on: a re-run with another input does not fire. Stored, so no secrets. Default: nothing. */
  readonly input?: unknown
  /** Names the call within its node. Needed where calls of one name run at the same time; else their order names them. */
  readonly key?: string
  /** `once`: how long the body may take, in milliseconds; before that nobody asks what became of it. Default: 60 000. */
  readonly timeLimit?: number
  /** `once`: asks the outside what became of a firing whose outcome is unknown. */
  readonly reconcile?: (idempotencyKey: string) => Promise<Reconciled>
}

/**
 * Runs `body` as a side effect of the node, and gives its outcome; on a re-run of the node (after an answer, a crash or a
 * retry) the recorded outcome is given and nothing fires (EO). The outcome must be storable.
 *
 * Throws `EffectRefused`, `EffectInDoubt`, and what the body throws. A body that throws `DidNotHappen` says that nothing
 * was done; after any other error it counts as in doubt if it is `once`.
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
  const config: RunnableConfig | undefined = AsyncLocalStorageProviderSingleton.getRunnableConfig()
  const run = runOf(config?.configurable)
  const task: unknown = config?.configurable?.["checkpoint_ns"]
  if (run === undefined || typeof task !== "string") {
    const detail = "it was called outside of a node that conformant(graph) runs; nothing would remember it."
    throw new EffectRefused({ effect: name, reason: "OutsideFront", detail })
  }
  const execution = executionOf(config)
  const n = (execution.counts.get(name) ?? 0) + 1
  if (options.key === undefined) {
    if (execution.firing.has(name)) {
      const detail = "another call of this name is under way in the same node; give each of them a key of its own."
      throw new EffectRefused({ effect: name, reason: "KeyNeeded", detail })
    }
    execution.counts.set(name, n)
    execution.firing.add(name)
  }
  try {
    return await runEffect(run, {
      name,
      delivery: options.delivery,
      input: options.input ?? null,
      task,
      position: options.key === undefined ? `${name}#${n}` : `${name}:${options.key}`,
      // Holds of a thread are numbered, and so are a node's attempts within one.
      attempt: run.hold.epoch * 1000 + execution.attempt,
      answered: execution.answered(),
      timeLimit: options.timeLimit ?? 60_000,
      reconcile: options.reconcile,
      fire: async (key) => body(key)
    })
  } finally {
    if (options.key === undefined) execution.firing.delete(name)
  }
}

/** One execution of a node's body. */
interface Execution {
  readonly attempt: number
  readonly counts: Map<string, number>
  readonly firing: Set<string>
  /** How many of the node's questions were answered so far. */
  readonly answered: () => number
}

const executions = new WeakMap<object, Execution>()

/** LangGraph makes one scratchpad for each task, and numbers its attempts. */
const executionOf = (config: RunnableConfig | undefined): Execution => {
  const scratchpad: unknown = config?.configurable?.["__pregel_scratchpad"]
  const info: unknown = config === undefined ? undefined : Reflect.get(config, "executionInfo")
  const number: unknown = typeof info === "object" && info !== null ? Reflect.get(info, "nodeAttempt") : undefined
  const attempt = typeof number === "number" ? number : 1
  const pad = typeof scratchpad === "object" && scratchpad !== null ? scratchpad : {}
  const known = executions.get(pad)
  if (known !== undefined && known.attempt === attempt) return known
  const execution: Execution = {
    attempt,
    counts: new Map(),
    firing: new Set(),
    answered: () => {
      const counter: unknown = Reflect.get(pad, "interruptCounter")
      return typeof counter === "number" ? counter + 1 : 0
    }
  }
  executions.set(pad, execution)
  return execution
}
