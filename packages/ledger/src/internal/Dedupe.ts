/** Dedupe keys: a start whose key is in use is answered by the run that has it, or takes the place of one that never began. */
import type { SqlError } from "@effect/sql/SqlError"
import { admitDuplicate, type BranchId, rootBranch, type RunId } from "@fermata/contract"
import { Effect } from "effect"
import type { StartRequest } from "../Ledger.js"
import { lockBranch } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { entryDigest } from "./Digest.js"
import { type Int, isOver } from "./Rows.js"

/** What a start with a dedupe key has to do. */
export type Deduped =
  { readonly _tag: "Existing"; readonly branch: BranchId } | { readonly _tag: "Create"; readonly startAt: number }

/** Within the transaction that starts a run, whose id is free. The key's row is locked until it ends. */
export const dedupe = (
  db: Database,
  transaction: Transaction,
  request: StartRequest,
  { debounce, key }: NonNullable<StartRequest["dedupe"]>,
  startAt: number
): Effect.Effect<Deduped, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const now = db.unsafeNow()
    // The insert is the lock under which two starts of one key find out who is first.
    const inserted = yield* sql`INSERT INTO fermata_dedupe (workflow, key, run_id, since)
      VALUES (${request.workflow}, ${key}, ${request.run}, ${now}) ON CONFLICT (workflow, key) DO NOTHING RETURNING key`
    const [row] =
      inserted.length > 0
        ? []
        : yield* sql<{ readonly run_id: string; readonly since: Int }>`SELECT run_id, since FROM fermata_dedupe
            WHERE workflow = ${request.workflow} AND key = ${key} ${db.forUpdate}`
    // Ids were checked when they entered.
    const holder = row === undefined ? undefined : rootBranch(row.run_id as RunId)
    const branch = holder === undefined ? undefined : yield* lockBranch(db, holder)
    const verdict = admitDuplicate({
      holder:
        row === undefined
          ? { _tag: "Absent" }
          : branch === undefined || isOver(branch.status)
            ? { _tag: "Over" }
            : { _tag: "Going", begun: branch.epoch > 0, since: Number(row.since) },
      now,
      startAt,
      debounce: debounce ?? undefined
    })
    if (verdict._tag === "Existing") {
      // There is a holder, or the verdict is another one.
      return holder === undefined ? { _tag: "Create", startAt } : { _tag: "Existing", branch: holder }
    }
    if (verdict._tag === "Supersede" && branch !== undefined) {
      const entry = {
        branch: branch.branch,
        seq: branch.head + 1,
        kind: "run.cancelled",
        key: "",
        payload: JSON.stringify({ reason: `superseded by run ${request.run}` }),
        epoch: branch.epoch,
        at: now
      } as const
      const digest = entryDigest(branch.headDigest, entry)
      yield* sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
        VALUES (${entry.branch}, ${entry.seq}, ${entry.kind}, '', ${entry.payload}, ${entry.epoch}, ${now}, ${digest})`
      yield* sql`UPDATE fermata_branches SET status = 'cancelled', ready_at = NULL, head = ${entry.seq},
          head_digest = ${digest} WHERE branch_id = ${branch.branch}`
      transaction.announce({ _tag: "Changed", branch: branch.branch })
    }
    yield* sql`UPDATE fermata_dedupe SET run_id = ${request.run}, since = ${verdict.since}
      WHERE workflow = ${request.workflow} AND key = ${key}`
    return { _tag: "Create", startAt: verdict.startAt }
  })
