/** What follows when a handler or a node's body did not succeed, or came too late to fire (EO, LV). */

/** How often a `keyed` handler that dies is fired under the same key before a person is asked. */
const keyedTries = 5
/** Pause before firing again (milliseconds): four times as long each time. */
const firstPause = 200

export type DefectVerdict =
  /** The receiver tells firings apart by their key: fire again, after this many milliseconds. */
  | { readonly _tag: "FireAgain"; readonly after: number }
  /** It will not do by itself: an operator settles it. */
  | { readonly _tag: "AwaitSettlement" }

/** What follows when a `keyed` effect's handler has died `tries` times: whether it happened is not known. */
export const afterKeyedDefect = (tries: number): DefectVerdict =>
  tries < keyedTries ? { _tag: "FireAgain", after: firstPause * 4 ** (tries - 1) } : { _tag: "AwaitSettlement" }

/**
 * May a `once` effect's handler still be entered, so long (milliseconds, on a monotonic clock) after its intent was
 * written? Whoever takes the branch over trusts that it is not entered later.
 */
export const mayStillFire = (elapsed: number, fireWithin: number): boolean => elapsed < fireWithin

export interface AttemptFacts {
  /** The attempt that failed with a typed error, 1-based; a lost worker is none. */
  readonly attempt: number
  /** Further attempts after the first that the node's policy allows; `undefined` without a policy. */
  readonly retries: number | undefined
  /** The policy takes this error for one that may pass. */
  readonly passing: boolean
  /** Nobody waits for the step any more. */
  readonly withdrawn: boolean
  /** The next attempt would begin when the time for all of them is over. */
  readonly late: boolean
}

/** Is a typed error the step's outcome, or is there another attempt? */
export const afterTypedError = ({ attempt, late, passing, retries, withdrawn }: AttemptFacts): "Retry" | "Final" =>
  !withdrawn && !late && passing && retries !== undefined && attempt <= retries ? "Retry" : "Final"
