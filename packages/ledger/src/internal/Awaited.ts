/** Runs that interrupts wait for: an interrupt that is assigned to a run is answered by what becomes of it. */
import { type BranchId, type InterruptId, RunId, runAssignee } from "@fermata/contract"
import { Effect } from "effect"
import type { AwaitedRun, Ledger } from "../Ledger.js"
import type { Database } from "./Database.js"

interface RawAwaited {
  readonly branch_id: BranchId
  readonly interrupt_id: InterruptId
  readonly name: string
  readonly assignee: string
}

export const makeAwaited = (db: Database): Pick<Ledger, "awaitedRuns"> => {
  const { sql } = db
  const over = sql`status IN ('completed', 'failed', 'died', 'cancelled')`
  return {
    awaitedRuns: ({ branch, limit, runs }) =>
      runs !== undefined && runs.length === 0
        ? Effect.succeed([])
        : db.query(
            "look for awaited runs",
            Effect.map(
              // By the index on assignees: of runs they begin with a word that no person's has.
              sql<RawAwaited>`SELECT branch_id, interrupt_id, name, assignee FROM fermata_interrupts i
                WHERE ${
                  runs === undefined
                    ? sql`assignee >= ${runAssignee.from} AND assignee < ${runAssignee.below}`
                    : sql.in("assignee", runs.map(runAssignee.of))
                } ${branch === undefined ? sql`` : sql`AND branch_id = ${branch}`}
                AND (EXISTS (SELECT 1 FROM fermata_branches b
                      WHERE b.branch_id = substr(i.assignee, ${runAssignee.from.length + 1}) || '/main' AND ${over})
                  OR EXISTS (SELECT 1 FROM fermata_purged p WHERE p.run_id = substr(i.assignee, ${runAssignee.from.length + 1})))
                ORDER BY opened_at, branch_id, interrupt_id LIMIT ${limit}`,
              (rows): ReadonlyArray<AwaitedRun> =>
                rows.map((row) => ({
                  branch: row.branch_id,
                  interrupt: row.interrupt_id,
                  name: row.name,
                  run: RunId.make(row.assignee.slice(runAssignee.from.length))
                }))
            )
          )
  }
}
