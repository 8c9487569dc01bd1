/**
 * Which checkpoints a run asked for by name. LangGraph does not tell a saver whether a checkpoint is to follow the head
 * or to branch off; but whoever branches off has read the checkpoint by its id, and who goes on has read the latest.
 */
import type { RunnableConfig } from "@langchain/core/runnables"
import { checkpointKey } from "@fermata/ledger"

/** Reads outside of runs that are remembered. */
const remembered = 1000

export class Addressed {
  /** LangGraph makes one metadata object for each run, and hands it to the saver in every call of it. */
  private readonly runs = new WeakMap<object, Set<string>>()
  /** Reads of callers that have none, `updateState` for one. */
  private readonly callers = new Set<string>()

  /** Notes that the latest was read. */
  latest(config: RunnableConfig): void {
    const run = config.metadata
    if (run !== undefined && !this.runs.has(run)) this.runs.set(run, new Set())
  }

  /** Notes that this checkpoint was read by its name. */
  byName(config: RunnableConfig, thread: string, ns: string, id: string): void {
    this.latest(config)
    const key = `${thread}\n${checkpointKey(ns, id)}`
    if (config.metadata !== undefined) this.runs.get(config.metadata)?.add(key)
    else {
      this.callers.add(key)
      for (const oldest of this.callers) {
        if (this.callers.size <= remembered) break
        this.callers.delete(oldest)
      }
    }
  }

  /** Whether a child of this checkpoint was asked for as a branch. */
  isBranch(config: RunnableConfig, thread: string, ns: string, parent: string | undefined): boolean {
    const run = config.metadata === undefined ? undefined : this.runs.get(config.metadata)
    // Who stores a first checkpoint by hand has read nothing.
    if (parent === undefined) return run === undefined
    const key = `${thread}\n${checkpointKey(ns, parent)}`
    return run === undefined ? this.callers.has(key) : run.has(key)
  }
}
