/** A measured figure beside the limit that it is judged by; only their ratio travels from machine to machine. */

export type Unit = "steps/s" | "commits/s" | "ms" | "MB" | "bytes/step"

export interface Quantity {
  readonly value: number
  readonly unit: Unit
}

/** What the measured ratio should be. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number }

export interface Figure {
  /** What was done, in the reader's words. */
  readonly what: string
  readonly measured: Quantity
  /** What it is compared with, measured in the same rounds. */
  readonly limit: Quantity & { readonly what: string }
  /** Median over the rounds of `measured / limit`. */
  readonly ratio: number
  readonly goal: Goal
  /** The raw rate around it, in single-row durable commits a second; `undefined` where no commit is involved. */
  readonly raw: number | undefined
}

export const isMet = (figure: Figure): boolean =>
  "atLeast" in figure.goal ? figure.ratio >= figure.goal.atLeast : figure.ratio <= figure.goal.atMost

/** The middle of the values; not a number if there are none. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
