/**
 * Who owns which branch. The lease is the worker's: renewing it is one statement on one row however many branches it
 * owns. Taking a branch over raises its epoch, which fences whoever had it.
 */
import { canSee, judgeOwner, type ProcessSight, type WorkerPlace } from "@fermata/contract"
import type { SqlError } from "@effect/sql/SqlError"
import { Deferred, Duration, Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { Ledger } from "../Ledger.js"
import type { Database, Transaction } from "./Database.js"
import type { Int } from "./Rows.js"

interface RawWorker {
  readonly worker_id: string
  readonly boot_id: string
  readonly pid_ns: string
  readonly pid: Int
  readonly start_time: string
  readonly lease_until: Int
  readonly state: "alive" | "dead" | "expired" | "left"
}

/** A worker of this ledger, and how it looks at others. */
interface Registration {
  readonly place: WorkerPlace | undefined
  readonly look: (place: WorkerPlace) => ProcessSight
}

/** The part of the leases that claiming needs. */
export interface Leases extends Pick<Ledger, "register" | "fate"> {
  /** Frees the branches of workers that are dead or whose lease lapsed, as this worker sees it. */
  readonly freeForeign: (worker: string) => Effect.Effect<void, Effect.Effect.Error<ReturnType<Ledger["fate"]>>>
  /** When the next lease of a worker of another ledger lapses. */
  readonly nextLapse: Effect.Effect<number | undefined, SqlError>
}

/** A branch is renewed this often within one lease. */
const renewalsPerLease = 3

/** `shared`: other processes can open the database. Where none can, nobody could ever take a branch over. */
export const makeLeases = (db: Database, shared: boolean): Leases => {
  const { sql } = db
  const own = new Map<string, Registration>()

  const sightOf = (self: Registration | undefined, worker: RawWorker): ProcessSight => {
    const place = placeOf(worker)
    return self !== undefined && place !== undefined && canSee(self.place, place) ? self.look(place) : "cannot tell"
  }

  /** Makes a worker's branches ready for others; their epoch rises, so that it can write nothing more (fencing). */
  const free = (transaction: Transaction, worker: string) =>
    Effect.gen(function* () {
      const freed = yield* sql`UPDATE fermata_branches
        SET owner = NULL, status = 'ready', ready_at = ${db.unsafeNow()}, epoch = epoch + 1
        WHERE owner = ${worker} RETURNING branch_id`
      if (freed.length > 0) transaction.announce({ _tag: "Ready" })
    })

  const aliveForeign = Effect.map(sql<RawWorker>`SELECT * FROM fermata_workers WHERE state = 'alive'`, (workers) =>
    workers.filter(({ worker_id }) => !own.has(worker_id))
  )

  const freeForeign: Leases["freeForeign"] = (worker) =>
    Effect.gen(function* () {
      const workers = yield* db.query("look at other workers", aliveForeign)
      const self = own.get(worker)
      for (const other of workers) {
        const verdict = judgeOwner({
          sight: sightOf(self, other),
          leaseUntil: Number(other.lease_until),
          now: db.unsafeNow()
        })
        if (verdict._tag === "Alive") continue
        const state = verdict._tag === "Dead" ? "dead" : "expired"
        yield* db.transaction("free a lost worker's branches", (transaction) =>
          Effect.gen(function* () {
            // A renewal that came in between keeps the worker; after this update no renewal finds its row alive.
            const marked = yield* sql`UPDATE fermata_workers SET state = ${state}
              WHERE worker_id = ${other.worker_id} AND state = 'alive' AND lease_until = ${Number(other.lease_until)}
              RETURNING worker_id`
            if (marked.length > 0) yield* free(transaction, other.worker_id)
          })
        )
      }
    })

  const leave = (worker: string) =>
    db.transaction("leave", (transaction) =>
      Effect.gen(function* () {
        yield* sql`UPDATE fermata_workers SET state = 'left' WHERE worker_id = ${worker} AND state = 'alive'`
        yield* free(transaction, worker)
      })
    )

  const register: Leases["register"] = Effect.fn("Ledger.register")(function* (options) {
    const worker = randomUUID()
    const lost = yield* Deferred.make<void>()
    const { place, lease } = options
    let until = db.unsafeNow() + lease
    yield* Effect.acquireRelease(
      Effect.zipRight(
        db.query(
          "register a worker",
          sql`INSERT INTO fermata_workers (worker_id, boot_id, pid_ns, pid, start_time, lease_until, state)
            VALUES (${worker}, ${place?.bootId ?? ""}, ${place?.pidNamespace ?? ""}, ${place?.pid ?? 0},
              ${place?.startTime ?? ""}, ${until}, 'alive')
            ON CONFLICT (worker_id) DO NOTHING`
        ),
        Effect.sync(() => own.set(worker, { place, look: options.look }))
      ),
      () =>
        leave(worker).pipe(
          // The lease ends by itself then; nothing that it guards is harmed.
          Effect.catchAllCause((cause) => Effect.logWarning("A worker could not take its leave of the ledger", cause)),
          Effect.ensuring(Effect.sync(() => own.delete(worker)))
        )
    )
    const renewal = Effect.gen(function* () {
      yield* db.syncTime
      const next = db.unsafeNow() + lease
      const renewed = yield* db.query(
        "renew a lease",
        sql`UPDATE fermata_workers SET lease_until = ${next} WHERE worker_id = ${worker} AND state = 'alive' RETURNING worker_id`
      )
      if (renewed.length > 0) until = next
      return renewed.length > 0
    })
    /** False once the lease is lost: taken by others, or past its end without word from the database. */
    const held: Effect.Effect<boolean> = Effect.suspend(() =>
      renewal.pipe(
        Effect.timeoutOption(Duration.millis(Math.max(0, until - db.unsafeNow()))),
        Effect.map(Option.getOrElse(() => db.unsafeNow() < until)),
        Effect.catchAll(() => Effect.sync(() => db.unsafeNow() < until))
      )
    )
    const keep: Effect.Effect<void> = Effect.gen(function* () {
      for (;;) {
        yield* Effect.sleep(Duration.millis(lease / renewalsPerLease))
        // A jump of the clock past the lease (a paused process) asks the database all the same: if nobody took the
        // branches, the lease goes on.
        const late = db.unsafeNow() >= until
        const holds = late ? yield* Effect.catchAll(renewal, () => Effect.succeed(false)) : yield* held
        if (!holds) break
      }
      yield* Deferred.succeed(lost, undefined)
    })
    if (shared) yield* Effect.forkScoped(keep)
    return { worker, lost: Deferred.await(lost) }
  })

  const fate: Leases["fate"] = Effect.fn("Ledger.fate")((worker) =>
    db.query(
      "look at a worker",
      Effect.gen(function* () {
        const [row] = yield* sql<RawWorker>`SELECT * FROM fermata_workers WHERE worker_id = ${worker}`
        if (row === undefined || own.has(worker)) return "unknown" as const
        if (row.state === "dead") return "dead" as const
        const [self] = own.values()
        if (sightOf(self, row) !== "gone") return "unknown" as const
        return "dead" as const
      })
    )
  )

  const nextLapse: Leases["nextLapse"] = Effect.map(aliveForeign, (workers) =>
    workers.length === 0 ? undefined : Math.min(...workers.map(({ lease_until }) => Number(lease_until)))
  )

  return { register, fate, freeForeign, nextLapse }
}

const placeOf = (row: RawWorker): WorkerPlace | undefined =>
  row.boot_id === ""
    ? undefined
    : { bootId: row.boot_id, pidNamespace: row.pid_ns, pid: Number(row.pid), startTime: row.start_time }
