/** May this start create a run? Starting is idempotent by run id. */

/** What is stored under the run id. */
export type StoredRun =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Present"; readonly workflow: string; readonly version: string; readonly inputDigest: string }
  | { readonly _tag: "Purged" }

export interface StartRequest {
  readonly workflow: string
  readonly version: string
  readonly inputDigest: string
}

export type StartVerdict =
  | { readonly _tag: "Create" }
  /** The same start again: the stored run is the answer. */
  | { readonly _tag: "Existing" }
  | { readonly _tag: "Conflict"; readonly differs: "workflow" | "input" }
  /** The id was used and purged; nothing late may revive it. */
  | { readonly _tag: "Purged" }

export const admitStart = (stored: StoredRun, request: StartRequest): StartVerdict => {
  switch (stored._tag) {
    case "Absent":
      return { _tag: "Create" }
    case "Purged":
      return { _tag: "Purged" }
    case "Present":
      if (stored.workflow !== request.workflow) return { _tag: "Conflict", differs: "workflow" }
      if (stored.inputDigest !== request.inputDigest) return { _tag: "Conflict", differs: "input" }
      // A retried start that crosses a deployment asks for the newer version of the run that exists: same request.
      return { _tag: "Existing" }
  }
}
