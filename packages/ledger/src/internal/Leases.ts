/**
 * Who owns which branch. The lease is the worker's: renewing it is one statement on one row however many branches it
 * owns. Taking a branch over raises its epoch, which fences whoever had it.
 */
import { canSee, judgeOwner, type ProcessSight, type WorkerPlace } from "@fermata/contract"
import { Data, Deferred, Duration, Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { Ledger } from "../Ledger.js"
import { type Database, hostSleep, type Transaction } from "./Database.js"
import type { Int } from "./Rows.js"
import { causeOf, failureKind } from "./SqlFailure.js"

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
export interface Leases extends Pick<Ledger, "register" | "fate" | "nextLapse"> {
  /** Frees the branches of workers that are dead or whose lease lapsed, as this worker sees it. */
  readonly freeForeign: (worker: string) => Effect.Effect<void, Effect.Effect.Error<ReturnType<Ledger["fate"]>>>
}

/** A branch is renewed this often within one lease. */
const renewalsPerLease = 3

/** PostgreSQL: milliseconds that freeing a lost worker's branches waits for a row that somebody has locked. */
const lockPatience = 250

/** Milliseconds before a lost worker that could not be freed is looked at again. */
const pauseAfterHeld = 1_000

/** Milliseconds that the row of a worker outlives its lease: nobody asks for its fate so late. */
const rowsKept = 7 * 24 * 60 * 60 * 1_000

/** A row of a lost worker is locked: by a process that stopped inside a transaction, say. */
class HeldByOthers extends Data.TaggedError("HeldByOthers") {}

/** `shared`: other processes can open the database. Where none can, nobody could ever take a branch over. */
export const makeLeases = (db: Database, shared: boolean): Leases => {
  const { sql } = db
  const own = new Map<string, Registration>()
  /** Lost workers that could not be freed, and when to try again. */
  const held = new Map<string, number>()

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

  const freeLost = (other: RawWorker, state: "dead" | "expired") =>
    db.transaction("free a lost worker's branches", (transaction) =>
      Effect.gen(function* () {
        if (db.dialect === "pg") yield* sql.unsafe(`SET LOCAL lock_timeout = ${lockPatience}`)
        // A renewal that came in between keeps the worker; after this update no renewal finds its row alive.
        const marked = yield* sql`UPDATE fermata_workers SET state = ${state}
          WHERE worker_id = ${other.worker_id} AND state = 'alive' AND lease_until = ${Number(other.lease_until)}
          RETURNING worker_id`
        if (marked.length > 0) yield* free(transaction, other.worker_id)
      }).pipe(
        Effect.mapError((error) => {
          const locked = db.dialect === "pg" && failureKind(causeOf(error)) === "busy"
          return locked ? new HeldByOthers() : error
        })
      )
    )

  /**
   * Branches whose owner is none: it claimed them, or started them, when it had been taken for lost already, and ended
   * before it knew. Their epochs rise one by one, since each may have been taken over meanwhile.
   */
  const freeOwnerless = Effect.gen(function* () {
    const rows = yield* db.query(
      "look for branches without an owner",
      sql<{ readonly branch_id: string; readonly epoch: Int }>`SELECT branch_id, epoch FROM fermata_branches
        WHERE owner IS NOT NULL AND owner NOT IN (SELECT worker_id FROM fermata_workers WHERE state = 'alive')`
    )
    if (rows.length === 0) return
    yield* db.transaction("free branches without an owner", (transaction) =>
      Effect.gen(function* () {
        for (const { branch_id, epoch } of rows) {
          yield* sql`UPDATE fermata_branches
            SET owner = NULL, status = 'ready', ready_at = ${db.unsafeNow()}, epoch = epoch + 1
            WHERE branch_id = ${branch_id} AND epoch = ${Number(epoch)} AND owner IS NOT NULL`
        }
        transaction.announce({ _tag: "Ready" })
      })
    )
  })

  const freeForeign: Leases["freeForeign"] = (worker) =>
    Effect.gen(function* () {
      const workers = yield* db.query("look at other workers", aliveForeign)
      for (const id of held.keys()) if (!workers.some(({ worker_id }) => worker_id === id)) held.delete(id)
      const self = own.get(worker)
      for (const other of workers) {
        if ((held.get(other.worker_id) ?? 0) > db.unsafeNow()) continue
        const verdict = judgeOwner({
          sight: sightOf(self, other),
          leaseUntil: Number(other.lease_until),
          now: db.unsafeNow()
        })
        if (verdict._tag === "Alive") continue
        yield* freeLost(other, verdict._tag === "Dead" ? "dead" : "expired").pipe(
          // LV: what one lost worker holds must not keep others from claiming the rest. It is tried again.
          Effect.catchAll((error) =>
            Effect.zipRight(
              Effect.sync(() => held.set(other.worker_id, db.unsafeNow() + pauseAfterHeld)),
              Effect.logDebug(`The branches of worker ${other.worker_id} cannot be taken over yet`, error)
            )
          )
        )
      }
      yield* freeOwnerless
    })

  const leave = (worker: string) =>
    db.transaction("leave", (transaction) =>
      Effect.gen(function* () {
        yield* sql`UPDATE fermata_workers SET state = 'left' WHERE worker_id = ${worker} AND state = 'alive'`
        yield* free(transaction, worker)
      })
    )

  /** LV: a database that is away must not keep its users from closing; what was started ends without them. */
  const bounded = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.raceFirst(
      Effect.interruptible(Effect.disconnect(effect)),
      Effect.interruptible(
        Effect.flatMap(hostSleep(db.patience), () => Effect.fail(new Error(`no answer within ${db.patience} ms`)))
      )
    )

  const register: Leases["register"] = Effect.fn("Ledger.register")(function* (options) {
    const worker = randomUUID()
    const lost = yield* Deferred.make<void>()
    const { place, lease } = options
    let until = db.unsafeNow() + lease
    yield* db.query(
      "forget workers of long ago",
      sql`DELETE FROM fermata_workers WHERE state <> 'alive' AND lease_until < ${db.unsafeNow() - rowsKept}`
    )
    yield* Effect.acquireRelease(
      Effect.zipRight(
        db.query(
          "register a worker",
          sql`INSERT INTO fermata_workers (worker_id, boot_id, pid_ns, pid, start_time, lease_until, state, serves)
            VALUES (${worker}, ${place?.bootId ?? ""}, ${place?.pidNamespace ?? ""}, ${place?.pid ?? 0},
              ${place?.startTime ?? ""}, ${until}, 'alive',
              ${options.definitions === undefined ? null : JSON.stringify(options.definitions)})
            ON CONFLICT (worker_id) DO NOTHING`
        ),
        Effect.sync(() => own.set(worker, { place, look: options.look }))
      ),
      () =>
        bounded(leave(worker)).pipe(
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
        // One that left had waited for its firings first.
        if (row.state === "dead" || row.state === "left") return "dead" as const
        const [self] = own.values()
        if (sightOf(self, row) !== "gone") return "unknown" as const
        return "dead" as const
      })
    )
  )

  const nextLapse: Leases["nextLapse"] = Effect.map(db.query("look at other workers", aliveForeign), (workers) =>
    workers.length === 0
      ? undefined
      : Math.min(
          ...workers.map(({ worker_id, lease_until }) => Math.max(Number(lease_until), held.get(worker_id) ?? 0))
        )
  )

  return { register, fate, freeForeign, nextLapse }
}

const placeOf = (row: RawWorker): WorkerPlace | undefined =>
  row.boot_id === ""
    ? undefined
    : { bootId: row.boot_id, pidNamespace: row.pid_ns, pid: Number(row.pid), startTime: row.start_time }
