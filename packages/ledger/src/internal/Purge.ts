/**
 * Purge: the one way in which a run's rows leave the database. What stays is a generation under the run's id, so that
 * nothing late (a start, an answer, a paused worker's append) can revive it.
 */
import { rootBranch } from "@fermata/contract"
import { Effect } from "effect"
import type { Ledger } from "../Ledger.js"
import { RunNotOver } from "../LedgerError.js"
import { notFound } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { branchOfRow, isOver, type RawBranch } from "./Rows.js"

export const makePurge = (db: Database): Pick<Ledger, "purge"> => ({
  purge: Effect.fn("Ledger.purge")((run) =>
    Effect.suspend(() => {
      const { sql } = db
      // If the reply to the commit is lost the transaction runs again and finds its own tombstone.
      let mine: number | undefined
      return db.transaction("purge", (transaction) =>
        Effect.gen(function* () {
          // Not verified: a damaged run may be purged, too. The lock excludes forks.
          const locked = yield* sql`SELECT run_id FROM fermata_runs WHERE run_id = ${run} ${db.forUpdate}`
          if (locked.length === 0) {
            const tombstone = yield* sql<{ readonly purged_at: number | string }>`
              SELECT purged_at FROM fermata_purged WHERE run_id = ${run}`
            if (mine !== undefined && tombstone.some((row) => Number(row.purged_at) === mine)) return
            return yield* notFound(db, run, run)
          }
          // In id order, as everyone locks branches.
          const branches = (yield* sql<RawBranch>`
            SELECT * FROM fermata_branches WHERE run_id = ${run} ORDER BY branch_id ${db.forUpdate}`).map(branchOfRow)
          const going = branches.filter(({ status }) => !isOver(status))
          if (going.length > 0) return yield* new RunNotOver({ run, branches: going.map(({ branch }) => branch) })
          mine = db.unsafeNow()
          yield* sql`INSERT INTO fermata_purged (run_id, generation, purged_at) VALUES (${run}, 1, ${mine})`
          // The append-only triggers let go of these branches until the transaction ends.
          yield* sql`INSERT INTO fermata_erasing (branch_id) SELECT branch_id FROM fermata_branches WHERE run_id = ${run}`
          // The root's name stands for the run's row, also if damage took the root's own.
          yield* sql`INSERT INTO fermata_erasing (branch_id) VALUES (${rootBranch(run)}) ON CONFLICT DO NOTHING`
          const erasing = sql`SELECT branch_id FROM fermata_erasing`
          yield* sql`DELETE FROM fermata_tags WHERE run_id = ${run}`
          yield* sql`DELETE FROM fermata_dedupe WHERE run_id = ${run}`
          yield* sql`DELETE FROM fermata_interrupts WHERE branch_id IN (${erasing})`
          yield* sql`DELETE FROM fermata_chunks WHERE branch_id IN (${erasing})`
          yield* sql`DELETE FROM fermata_inbox WHERE branch_id IN (${erasing})`
          yield* sql`DELETE FROM fermata_journal WHERE branch_id IN (${erasing})`
          yield* sql`DELETE FROM fermata_runs WHERE run_id = ${run}`
          yield* sql`DELETE FROM fermata_branches WHERE run_id = ${run}`
          // Others' rows are never visible here: they are gone when their transactions end.
          yield* sql`DELETE FROM fermata_erasing`
          for (const { branch } of branches) transaction.announce({ _tag: "Changed", branch })
        })
      )
    })
  )
})
