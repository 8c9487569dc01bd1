/** Who may own a branch, and when may an owner give it up? (fencing, LV) */

/** Where a worker runs, as far as another process on the same host can check it. */
export interface WorkerPlace {
  readonly bootId: string
  readonly pidNamespace: string
  readonly pid: number
  /** The process's start time in clock ticks since boot: a pid alone is reused. */
  readonly startTime: string
}

/** What a look at the process table said about another worker's process. */
export type ProcessSight = "running" | "gone" | "cannot tell"

/** May a worker's branches be taken now? */
export const judgeOwner = (facts: {
  readonly sight: ProcessSight
  readonly leaseUntil: number
  readonly now: number
}): { readonly _tag: "Alive" } | { readonly _tag: "Dead" } | { readonly _tag: "Expired" } => {
  if (facts.sight === "gone") return { _tag: "Dead" }
  // A lapsed lease lets another take over; it does not prove that the owner cannot act any more.
  return facts.now >= facts.leaseUntil ? { _tag: "Expired" } : { _tag: "Alive" }
}

/** Can one process judge another's life? Only in the same boot and the same pid namespace, both of them known. */
export const canSee = (self: WorkerPlace | undefined, other: WorkerPlace | undefined): boolean =>
  self !== undefined &&
  other !== undefined &&
  self.bootId !== "" &&
  self.pidNamespace !== "" &&
  self.bootId === other.bootId &&
  self.pidNamespace === other.pidNamespace

/** May the owner park the branch? Not while something accepted from outside is unseen (no lost wake-up). */
export const admitPark = (
  row: { readonly epoch: number; readonly inboxHead: number } | undefined,
  owner: { readonly epoch: number; readonly inboxSeen: number }
): { readonly _tag: "Park" } | { readonly _tag: "InboxAdvanced" } | { readonly _tag: "Fenced" } => {
  if (row === undefined || row.epoch !== owner.epoch) return { _tag: "Fenced" }
  return row.inboxHead === owner.inboxSeen ? { _tag: "Park" } : { _tag: "InboxAdvanced" }
}
