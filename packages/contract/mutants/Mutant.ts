/**
 * A mutant: one change of one decision function that breaks a promise of the contract. The list is written by hand, so
 * that each is a mistake somebody could make. The decision's tests, or the lockstep, must notice every one.
 */

/** One change of one decision function. */
export interface Mutant {
  /** The file in `src/decisions`, without its extension. */
  readonly decision: string
  /** Text that the file has exactly once. */
  readonly find: string
  readonly replace: string
  /** What goes wrong with it. */
  readonly breaks: string
}

/** Changes of one decision function: what is found, what replaces it, what that breaks. */
export const mutantsOf = (
  decision: string,
  changes: ReadonlyArray<readonly [find: string, replace: string, breaks: string]>
): ReadonlyArray<Mutant> => changes.map(([find, replace, breaks]) => ({ decision, find, replace, breaks }))

/** The changed source; fails if the text is not there exactly once, or if nothing changes. */
export const mutated = (source: string, { breaks, decision, find, replace }: Mutant): string => {
  const parts = source.split(find)
  if (parts.length !== 2) {
    throw new Error(
      `${decision}.ts has the text of the mutant "${breaks}" ${parts.length - 1} times, not once: ${find}`
    )
  }
  const changed = parts.join(replace)
  if (changed === source) throw new Error(`The mutant "${breaks}" of ${decision}.ts changes nothing.`)
  return changed
}
