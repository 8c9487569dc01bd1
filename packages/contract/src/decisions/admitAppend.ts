/** Is this append fenced? (one owner, one order: RD, EO) */

/** The branch's row as the database has it. */
export interface BranchRow {
  readonly epoch: number
  readonly head: number
  readonly headDigest: string
  readonly inboxHead: number
}

export interface AppendRequest {
  readonly epoch: number
  /** The position and digest that the writer appends after. */
  readonly base: number
  readonly baseDigest: string
  /** The position and digest that the branch will have when the append is stored. */
  readonly head: number
  readonly headDigest: string
  /** If given: the append stands only while nothing came in after this inbox position. */
  readonly inboxSeen: number | undefined
}

export type AppendVerdict =
  | { readonly _tag: "Append" }
  /** These very rows are stored already (a commit whose reply was lost). */
  | { readonly _tag: "AlreadyAppended" }
  /** Something was accepted from outside in the meantime: journal and deliver that first. */
  | { readonly _tag: "InboxAdvanced"; readonly inboxHead: number }
  /** Another owner has the branch, or it is gone. */
  | { readonly _tag: "Fenced" }

export const admitAppend = (row: BranchRow | undefined, request: AppendRequest): AppendVerdict => {
  if (row === undefined || row.epoch !== request.epoch) return { _tag: "Fenced" }
  if (row.head === request.head && row.headDigest === request.headDigest) return { _tag: "AlreadyAppended" }
  // Same epoch, other base: two writers share one epoch, which a claim excludes; refuse rather than guess.
  if (row.head !== request.base || row.headDigest !== request.baseDigest) return { _tag: "Fenced" }
  if (request.inboxSeen !== undefined && row.inboxHead !== request.inboxSeen) {
    return { _tag: "InboxAdvanced", inboxHead: row.inboxHead }
  }
  return { _tag: "Append" }
}
