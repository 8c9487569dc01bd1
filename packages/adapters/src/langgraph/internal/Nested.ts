/**
 * A graph that runs inside a node, or without a checkpointer: supersteps on the host, each node recorded in the attempt
 * around it. Its thread is that attempt: a crash or an answer goes on after the nodes that are recorded.
 */
import { Command } from "../Control.js"
import { DidNotHappen, GraphRecursionError, isGraphInterrupt } from "../GraphError.js"
import { Exit } from "effect"
import { randomUUID } from "node:crypto"
import type { Values } from "../Channel.js"
import { Attempt, type Note } from "./Attempt.js"
import { type Core, type NodeResult, outputOf, retries, retryDelay, runNode } from "./Core.js"
import { advance, initialState, type State, withInput } from "./Plan.js"
import { nextPath, type NodeConfig, type Scope } from "./Scope.js"
import type { Perform } from "./Effects.js"
import { fromWire, toWire } from "./Wire.js"

/** What a graph that runs tells while it does. */
export interface Told {
  readonly result?: (name: string, result: NodeResult) => void
  readonly state?: (values: Values) => void
}

/** Runs `core` in the scope of the node that calls it. A `Command.PARENT` of it is returned as a command. */
export const runNested = async (core: Core, input: unknown, scope: Scope, told: Told = {}): Promise<unknown> => {
  const base = `${nextPath(scope, "g")}/`
  let state: State = withInput(initialState(core.topology), base, input)
  for (let ran = 0; state.tasks.length > 0; ran++) {
    if (ran > scope.config.recursionLimit) throw tooManySteps(scope.config.recursionLimit)
    const before = state
    const results = await Promise.allSettled(
      before.tasks.map(async (task) => {
        const path = `${base}${task.id}`
        const result = await scope.attempt.once(path, task.name, () =>
          withRetries(core, task.name, () =>
            runNode(core, task, before.values, { ...scope, path: `${path}/`, counts: new Map() })
          )
        )
        // Written by `runNode` under this path.
        told.result?.(task.name, result as NodeResult)
        return { name: task.name, result: result as NodeResult }
      })
    )
    const failed = results.filter((one) => one.status === "rejected").map(({ reason }): unknown => reason)
    if (failed.length > 0) throw failed.find((error) => !isGraphInterrupt(error)) ?? failed[0]
    const done = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))
    const parent = done.find(({ result }) => result.parent === true)?.result
    if (parent !== undefined) return new Command({ update: parent.writes, goto: [...parent.goto, ...parent.sends] })
    state = advance(core.topology, before, base, done)
    told.state?.(state.values)
  }
  return outputOf(core, state.values)
}

const withRetries = async <A>(core: Core, name: string, body: () => Promise<A>): Promise<A> => {
  const policy = core.nodes.get(name)?.retry
  for (let attempt = 1; ; attempt++) {
    try {
      return await body()
    } catch (error) {
      const delay = retries(policy, error) ? retryDelay(policy, attempt) : undefined
      if (delay === undefined) throw error
      await new Promise((resolve) => setTimeout(resolve, delay))
    }
  }
}

export const tooManySteps = (limit: number): GraphRecursionError =>
  new GraphRecursionError(
    `Recursion limit of ${limit} reached without hitting a stop condition. Raise it by the "recursionLimit" of the config`,
    { code: "GRAPH_RECURSION_LIMIT" }
  )

/** Runs `core` in memory alone: nothing is kept, and nothing can be asked. */
export const runAlone = async (core: Core, input: unknown, config: NodeConfig, told: Told): Promise<unknown> => {
  const notes = new Map<string, Note>()
  const attempt = new Attempt(notes, false)
  const perform: Perform = async ({ body }) => {
    try {
      return Exit.succeed(toWire(await body(randomUUID())))
    } catch (error) {
      return error instanceof DidNotHappen ? Exit.fail(error.message) : Exit.die(error)
    }
  }
  attempt.performBy(perform)
  let output: unknown
  attempt.start(
    async () => {
      output = await runNested(core, input, { attempt, path: "", config, counts: new Map() }, told)
      return null
    },
    () => false
  )
  for (;;) {
    const segment = await attempt.next()
    if (segment._tag === "Notes") {
      attempt.performBy(perform)
      attempt.feed(new Map(segment.notes))
    } else if (segment._tag === "Failed") throw attempt.thrown?.error
    else return output instanceof Command ? undefined : fromWire(toWire(output))
  }
}
