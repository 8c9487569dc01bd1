/** Those of this process who run what is started here: a run that one of them has room for needs no claim of its own. */
import type { StartTaker } from "../Ledger.js"

export class StartTakers {
  private readonly takers = new Set<StartTaker>()

  /** Returns how to stop. */
  add(taker: StartTaker): () => void {
    this.takers.add(taker)
    return () => void this.takers.delete(taker)
  }

  /** Whoever keeps a place for a branch of this definition, if anybody does. */
  reserve(definition: string): StartTaker | undefined {
    for (const taker of this.takers) if (taker.definitions.has(definition) && taker.reserve()) return taker
    return undefined
  }
}
