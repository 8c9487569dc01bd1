/** Verifying a history that comes from elsewhere than the database: a file, say. */
import type { History } from "../Ledger.js"
import { entryDigest, runDigest } from "./Digest.js"

/** What is wrong with a history's digests or order, or `undefined` if it verifies: the rules of reading a journal (CV). */
export const historyProblem = ({
  branch,
  entries,
  run
}: Pick<History, "entries" | "run"> & {
  readonly branch: Pick<History["branch"], "branch" | "head" | "headDigest">
}): { readonly seq: number | null; readonly detail: string } | undefined => {
  if (runDigest(run) !== run.digest) return { seq: null, detail: "the run's digest does not match its fields" }
  let digest = run.digest
  for (const [index, entry] of entries.entries()) {
    if (entry.seq !== index + 1) return { seq: index + 1, detail: `entry ${index + 1} is missing` }
    if (entryDigest(digest, entry) !== entry.digest) {
      return { seq: entry.seq, detail: "the entry's digest does not match its fields and predecessor" }
    }
    digest = entry.digest
  }
  return digest === branch.headDigest && entries.length === branch.head
    ? undefined
    : { seq: entries.length, detail: "the last entry is not the one that the branch names" }
}
