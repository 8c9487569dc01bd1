/** Where node bodies and handlers wait until a test lets them go on, in the order that the test chooses. */
import { Effect } from "effect"

export class Stage {
  private readonly held = new Map<string, () => void>()
  /** Names that ran, in order: what the outside saw. */
  readonly fired: Array<string> = []

  /** Everything waits: the order of outcomes is then the test's alone, also among those that start again together. */
  strict = false

  /** Names of those that wait, in the order in which they came. */
  get names(): ReadonlyArray<string> {
    return [...this.held.keys()]
  }

  has(name: string): boolean {
    return this.held.has(name)
  }

  /** Waits until the test releases `name`. */
  wait(name: string): Effect.Effect<void> {
    return Effect.async((resume) => {
      const go = () => resume(Effect.void)
      this.held.set(name, go)
      return Effect.sync(() => {
        if (this.held.get(name) === go) this.held.delete(name)
      })
    })
  }

  release(name: string): void {
    const go = this.held.get(name)
    this.held.delete(name)
    go?.()
  }
}

/** Gives the host's event loop one turn. */
export const turn: Effect.Effect<void> = Effect.async((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
