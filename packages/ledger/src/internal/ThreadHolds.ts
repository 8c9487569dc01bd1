/** Who runs a thread. Taking it over raises its epoch, which fences whoever had it. */
import { judgeOwner } from "@fermata/contract"
import { Effect } from "effect"
import { type CheckpointStore, ThreadBusy } from "../CheckpointStore.js"
import type { Database } from "./Database.js"
import { lockThread } from "./ThreadRow.js"

/** The part of the store that gives threads to runners. */
export const makeThreadHolds = (db: Database): Pick<CheckpointStore, "hold" | "renew" | "release"> => {
  const { sql } = db
  return {
    hold: Effect.fn("CheckpointStore.hold")((thread, { gone, lease, runner }) =>
      db.transaction("take a thread", () =>
        Effect.gen(function* () {
          const row = yield* lockThread(db, thread)
          const now = db.unsafeNow()
          if (row.runner !== null) {
            const leaseUntil = Number(row.lease_until)
            const owner = judgeOwner({ sight: gone(row.runner) ? "gone" : "cannot tell", leaseUntil, now })
            if (owner._tag === "Alive") return yield* new ThreadBusy({ thread, until: leaseUntil })
          }
          const epoch = Number(row.epoch) + 1
          yield* sql`UPDATE fermata_threads SET epoch = ${epoch}, runner = ${runner}, lease_until = ${now + lease}
            WHERE thread_id = ${thread}`
          return { runner, epoch }
        })
      )
    ),
    renew: (thread, { epoch, runner }, lease) =>
      db.query(
        "keep a thread",
        Effect.map(
          sql`UPDATE fermata_threads SET lease_until = ${db.unsafeNow() + lease}
            WHERE thread_id = ${thread} AND runner = ${runner} AND epoch = ${epoch} RETURNING thread_id`,
          (rows) => rows.length > 0
        )
      ),
    release: (thread, { epoch, runner }) =>
      db.query(
        "give a thread back",
        Effect.asVoid(
          sql`UPDATE fermata_threads SET runner = NULL, lease_until = 0
            WHERE thread_id = ${thread} AND runner = ${runner} AND epoch = ${epoch}`
        )
      )
  }
}
