/**
 * Schedules: rows that any worker fires. One transaction starts the run, under an id that the schedule and the fire's time
 * make, and moves the row on to its next time: no crash loses a fire, and none fires twice.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { dueOf, isOverlapPolicy, judgeFire, nextFire, rootBranch, RunId, ScheduleSpec } from "@fermata/contract"
import { Effect, Schema } from "effect"
import type { Ledger, ScheduleSetup, ScheduleState } from "../Ledger.js"
import { ScheduleConflict, ScheduleNotFound } from "../LedgerError.js"
import { readBranch } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { cancelWithin } from "./Inbox.js"
import { type Int, isOver } from "./Rows.js"
import type { Runs } from "./Runs.js"

/** A row of `fermata_schedules`. */
interface RawSchedule {
  readonly schedule_id: string
  readonly workflow: string
  readonly version: string
  readonly input: string
  readonly input_digest: string
  readonly accepts: string | null
  readonly spec: string
  readonly overlap: string
  readonly catch_up: Int
  readonly jitter: Int
  readonly queue: string | null
  readonly queue_key: string | null
  readonly priority: Int | null
  readonly paused: Int
  readonly next_at: Int | null
  readonly due_at: Int | null
  readonly look_at: Int | null
  readonly waited: Int
  readonly last_at: Int | null
  readonly last_run: string | null
  readonly fired: Int
  readonly missed: Int
  readonly overlapped: Int
  readonly created_at: Int
}

/** Milliseconds between looks at a previous run that a fire waits for. */
const lookAgain = 1000
/** Fires of one schedule that one transaction deals with. */
const mostAtOnce = 100
/** Schedules that are fired in one go. */
const mostDue = 200

/** The run of a fire. */
const runOfFire = (id: string, at: number): RunId => RunId.make(`${id}/${new Date(at).toISOString()}`)

const optional = (value: Int | null): number | null => (value === null ? null : Number(value))

/** Makes them over a database; `startWithin` starts a run within a transaction. */
export const makeSchedules = (
  db: Database,
  startWithin: Runs["startWithin"]
): Pick<
  Ledger,
  | "createSchedule"
  | "schedule"
  | "schedules"
  | "pauseSchedule"
  | "deleteSchedule"
  | "startScheduled"
  | "fireSchedules"
  | "nextScheduleDue"
> => {
  const { sql } = db

  const locked = (id: string) =>
    Effect.flatMap(
      sql<RawSchedule>`SELECT * FROM fermata_schedules WHERE schedule_id = ${id} ${db.forUpdate}`,
      ([row]): Effect.Effect<RawSchedule, ScheduleNotFound> =>
        row === undefined ? Effect.fail(new ScheduleNotFound({ schedule: id })) : Effect.succeed(row)
    )

  /** The first fire after now, as the columns have it. */
  const ahead = (id: string, spec: ScheduleSpec, jitter: number) => {
    const next = nextFire(spec, db.unsafeNow())
    return next === undefined ? { next: null, due: null } : { next, due: dueOf(id, next, jitter) }
  }

  const createSchedule: Ledger["createSchedule"] = Effect.fn("Ledger.createSchedule")((setup, { replace }) =>
    Effect.suspend(() => {
      // If the reply to the commit is lost it runs again, and finds its own row.
      let mine = false
      return db.transaction("create a schedule", (transaction) =>
        Effect.gen(function* () {
          const {
            accepts = null,
            catchUp,
            id,
            input,
            inputDigest,
            jitter,
            overlap,
            queue,
            spec,
            version,
            workflow
          } = setup
          const { due, next } = ahead(id, spec, jitter)
          const text = JSON.stringify(spec)
          const inserted =
            yield* sql`INSERT INTO fermata_schedules (schedule_id, workflow, version, input, input_digest,
              accepts, spec, overlap, catch_up, jitter, queue, queue_key, priority, paused, next_at, due_at, look_at, waited, fired,
              missed, overlapped, created_at)
            VALUES (${id}, ${workflow}, ${version}, ${input}, ${inputDigest}, ${accepts}, ${text}, ${overlap}, ${catchUp}, ${jitter},
              ${queue?.name ?? null}, ${queue?.key ?? null}, ${queue?.priority ?? null}, 0, ${next}, ${due}, ${due}, 0, 0,
              0, 0, ${db.unsafeNow()})
            ON CONFLICT (schedule_id) DO NOTHING RETURNING schedule_id`
          if (inserted.length > 0) {
            mine = true
            transaction.announce({ _tag: "Scheduled" })
            return true
          }
          const stored = yield* locked(id)
          const differs = differences(stored, setup)
          if (differs.length === 0) return mine
          if (!replace) return yield* new ScheduleConflict({ schedule: id, differs })
          // Times that the old spec would have had by now are the old one's: what is ahead is the new one's.
          const sameTimes = !differs.includes("spec") && !differs.includes("jitter")
          const paused = Number(stored.paused) === 1
          yield* sql`UPDATE fermata_schedules SET workflow = ${workflow}, version = ${version}, input = ${input},
              input_digest = ${inputDigest}, accepts = ${accepts}, spec = ${text}, overlap = ${overlap}, catch_up = ${catchUp},
              jitter = ${jitter}, queue = ${queue?.name ?? null}, queue_key = ${queue?.key ?? null},
              priority = ${queue?.priority ?? null}
            WHERE schedule_id = ${id}`
          if (!sameTimes) {
            yield* sql`UPDATE fermata_schedules SET next_at = ${next}, due_at = ${due}, look_at = ${paused ? null : due},
              waited = 0 WHERE schedule_id = ${id}`
          }
          mine = true
          transaction.announce({ _tag: "Scheduled" })
          return true
        }).pipe(
          Effect.catchTag("ScheduleNotFound", () => Effect.dieMessage(`schedule ${setup.id} vanished under its lock`))
        )
      )
    })
  )

  const schedule: Ledger["schedule"] = Effect.fn("Ledger.schedule")((id) =>
    db.query(
      "read a schedule",
      Effect.flatMap(
        sql<RawSchedule>`SELECT * FROM fermata_schedules WHERE schedule_id = ${id}`,
        ([row]): Effect.Effect<ScheduleState, ScheduleNotFound> =>
          row === undefined ? Effect.fail(new ScheduleNotFound({ schedule: id })) : Effect.succeed(stateOf(row))
      )
    )
  )

  const schedules: Ledger["schedules"] = Effect.fn("Ledger.schedules")(({ after = "", limit }) =>
    db.query(
      "list schedules",
      Effect.map(
        sql<RawSchedule>`SELECT * FROM fermata_schedules WHERE schedule_id > ${after} ORDER BY schedule_id LIMIT ${limit}`,
        (rows) => rows.map(stateOf)
      )
    )
  )

  const pauseSchedule: Ledger["pauseSchedule"] = Effect.fn("Ledger.pauseSchedule")((id, paused) =>
    db.transaction("pause a schedule", (transaction) =>
      Effect.gen(function* () {
        const row = yield* locked(id)
        if (Number(row.paused) === (paused ? 1 : 0)) return
        const { due, next } = ahead(id, specOf(row), Number(row.jitter))
        yield* paused
          ? sql`UPDATE fermata_schedules SET paused = 1, look_at = NULL WHERE schedule_id = ${id}`
          : sql`UPDATE fermata_schedules SET paused = 0, next_at = ${next}, due_at = ${due}, look_at = ${due}, waited = 0
              WHERE schedule_id = ${id}`
        transaction.announce({ _tag: "Scheduled" })
      })
    )
  )

  const deleteSchedule: Ledger["deleteSchedule"] = Effect.fn("Ledger.deleteSchedule")((id) =>
    db.transaction("delete a schedule", () =>
      Effect.zipRight(locked(id), sql`DELETE FROM fermata_schedules WHERE schedule_id = ${id}`)
    )
  )

  const start = (transaction: Transaction, row: RawSchedule, at: number) =>
    Effect.map(
      startWithin(
        transaction,
        {
          run: runOfFire(row.schedule_id, at),
          workflow: row.workflow,
          version: row.version,
          input: row.input,
          inputDigest: row.input_digest,
          ...(row.accepts === null ? {} : { accepts: row.accepts }),
          ...(row.queue === null
            ? {}
            : { queue: { name: row.queue, key: row.queue_key ?? "", priority: Number(row.priority ?? 0) } })
        },
        undefined
      ),
      ({ receipt }) => receipt
    )

  const startScheduled: Ledger["startScheduled"] = Effect.fn("Ledger.startScheduled")((id, times) =>
    Effect.gen(function* () {
      const receipts = []
      // One transaction for each: ids make it harmless to stop in between and to ask again.
      for (const at of times) {
        const receipt = yield* db.transaction("start a scheduled run", (transaction) =>
          Effect.flatMap(locked(id), (row) => start(transaction, row, at))
        )
        receipts.push({ ...receipt, at })
      }
      return receipts
    })
  )

  const isGoing = (run: string | null): Effect.Effect<boolean, SqlError> =>
    run === null
      ? Effect.succeed(false)
      : // Ids were checked when they entered.
        Effect.map(readBranch(db, rootBranch(run as RunId)), (branch) => branch !== undefined && !isOver(branch.status))

  /** Deals with what is due of one schedule, unless another worker does. */
  const fireOne = (id: string) =>
    db.transaction("fire a schedule", (transaction) =>
      Effect.gen(function* () {
        const now = db.unsafeNow()
        const [row] = yield* sql<RawSchedule>`SELECT * FROM fermata_schedules
          WHERE schedule_id = ${id} AND look_at IS NOT NULL AND look_at <= ${now} ${db.forUpdateSkipLocked}`
        if (row === undefined || row.next_at === null) return
        const spec = specOf(row)
        const jitter = Number(row.jitter)
        let next: number | null = Number(row.next_at)
        let look: number | null = null
        let waited = Number(row.waited) === 1
        let lastAt = optional(row.last_at)
        let lastRun = row.last_run
        const counts = { fired: 0, missed: 0, overlapped: 0 }
        for (let n = 0; next !== null; n++) {
          const at: number = next
          const due = dueOf(id, at, jitter)
          look = due
          // The rest of a long backlog is for another transaction.
          if (n >= mostAtOnce) break
          const verdict = judgeFire({
            now,
            due,
            catchUp: Number(row.catch_up),
            overlap: isOverlapPolicy(row.overlap) ? row.overlap : "skip",
            previousGoing: yield* isGoing(lastRun),
            waited
          })
          if (verdict._tag === "NotDue") break
          if (verdict._tag === "Wait") {
            waited = true
            look = now + lookAgain
            break
          }
          if (verdict._tag === "LeaveOut") {
            counts[verdict.because === "missed" ? "missed" : "overlapped"]++
          } else {
            if (verdict.cancelPrevious && lastRun !== null) {
              yield* cancelWithin(
                db,
                transaction,
                rootBranch(lastRun as RunId),
                `superseded by run ${runOfFire(id, at)}`
              ).pipe(Effect.catchTags({ RunNotFound: () => Effect.void, RunPurged: () => Effect.void }))
            }
            // Purged already, or somebody else's run of that id: the schedule goes on.
            const receipt = yield* start(transaction, row, at).pipe(
              Effect.catchTags({
                RunConflict: (error) => Effect.as(Effect.logWarning(error.message), undefined),
                RunPurged: () => Effect.succeed(undefined)
              })
            )
            if (receipt !== undefined) {
              counts.fired++
              lastAt = at
              lastRun = runOfFire(id, at)
            }
          }
          waited = false
          next = nextFire(spec, at) ?? null
          if (next === null) look = null
        }
        const due = next === null ? null : dueOf(id, next, jitter)
        yield* sql`UPDATE fermata_schedules SET next_at = ${next}, due_at = ${due}, look_at = ${look},
            waited = ${waited ? 1 : 0}, last_at = ${lastAt}, last_run = ${lastRun}, fired = fired + ${counts.fired},
            missed = missed + ${counts.missed}, overlapped = overlapped + ${counts.overlapped}
          WHERE schedule_id = ${id}`
      })
    )

  const fireSchedules: Ledger["fireSchedules"] = Effect.gen(function* () {
    const due = yield* db.query(
      "look for schedules",
      Effect.suspend(
        () => sql<{ readonly schedule_id: string }>`SELECT schedule_id FROM fermata_schedules
          WHERE look_at IS NOT NULL AND look_at <= ${db.unsafeNow()} ORDER BY look_at LIMIT ${mostDue}`
      )
    )
    for (const { schedule_id } of due) {
      // One that cannot be fired must not keep the others from it (LV).
      yield* Effect.catchAllCause(fireOne(schedule_id), (cause) =>
        Effect.logError(`Schedule ${schedule_id} cannot be fired; it is tried again`, cause)
      )
    }
  })

  const nextScheduleDue: Ledger["nextScheduleDue"] = db.query(
    "look for the next schedule",
    Effect.map(
      sql<{ readonly next: Int | null }>`SELECT MIN(look_at) AS next FROM fermata_schedules WHERE look_at IS NOT NULL`,
      ([row]) => (row === undefined || row.next === null ? undefined : Number(row.next))
    )
  )

  return {
    createSchedule,
    schedule,
    schedules,
    pauseSchedule,
    deleteSchedule,
    startScheduled,
    fireSchedules,
    nextScheduleDue
  }
}

const decodeSpec = Schema.decodeUnknownSync(Schema.parseJson(ScheduleSpec))

/** What this code wrote; a spec that cannot be read is a defect, which fails its schedule alone. */
const specOf = (row: RawSchedule): ScheduleSpec => decodeSpec(row.spec)

const stateOf = (row: RawSchedule): ScheduleState => ({
  id: row.schedule_id,
  workflow: row.workflow,
  version: row.version,
  spec: specOf(row),
  overlap: isOverlapPolicy(row.overlap) ? row.overlap : "skip",
  catchUp: Number(row.catch_up),
  jitter: Number(row.jitter),
  queue: row.queue === null ? null : { name: row.queue, key: row.queue_key ?? "", priority: Number(row.priority ?? 0) },
  paused: Number(row.paused) === 1,
  nextAt: optional(row.next_at),
  dueAt: optional(row.due_at),
  lastAt: optional(row.last_at),
  // It was made from checked parts.
  lastRun: row.last_run as RunId | null,
  fired: Number(row.fired),
  missed: Number(row.missed),
  overlapped: Number(row.overlapped),
  createdAt: Number(row.created_at)
})

/** In what a stored schedule is another one. */
const differences = (stored: RawSchedule, setup: ScheduleSetup): ReadonlyArray<string> => {
  const { queue } = stateOf(stored)
  const same: Record<string, boolean> = {
    workflow: stored.workflow === setup.workflow,
    version: stored.version === setup.version,
    input: stored.input_digest === setup.inputDigest,
    accepts: stored.accepts === (setup.accepts ?? null),
    spec: stored.spec === JSON.stringify(setup.spec),
    overlap: stored.overlap === setup.overlap,
    catchUp: Number(stored.catch_up) === setup.catchUp,
    jitter: Number(stored.jitter) === setup.jitter,
    queue:
      queue?.name === setup.queue?.name && queue?.key === setup.queue?.key && queue?.priority === setup.queue?.priority
  }
  return Object.keys(same).filter((part) => same[part] === false)
}
