/** A line of the table: what it measures and how. */
import type { Effect, Scope } from "effect"
import type { Figure } from "./Figure.js"
import type { Target } from "./Target.js"

export interface Line {
  /** What `--only` calls it. */
  readonly name: string
  readonly measure: (target: Target, options: LineOptions) => Effect.Effect<ReadonlyArray<Figure>, unknown, Scope.Scope>
}

export interface LineOptions {
  /** How many rounds the median is taken of. */
  readonly rounds: number
  /** How many runs wait in the line about waiting runs. */
  readonly waiting: number
}
