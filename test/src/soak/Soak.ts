/**
 * The soak: workers on PostgreSQL that are killed, stopped and paused at random under load, and a server that loses its
 * power twice. Then peace, and everything must be over: nothing lost, nothing doubled, nothing stuck, by the log outside.
 */
import { Client, type Plane } from "@fermata/runtime"
import { Ledger } from "@fermata/ledger"
import { Cause, Duration, Effect, Exit, Ref, Schedule, type Scope } from "effect"
import { join } from "node:path"
import * as EffectLog from "../EffectLog.js"
import * as PlaneAddress from "../PlaneAddress.js"
import { startPostgres } from "../PostgresServer.js"
import * as Child from "../processes/Child.js"
import { Approval, bookTable, type Job, resultOf, Soak } from "./Load.js"

export interface Options {
  /** How long there is chaos. */
  readonly seconds: number
  /** Decides who is killed, stopped and paused, in which order; times are the machine's. */
  readonly seed: number
  readonly workers: number
  /** Runs that are under way at once, at most. */
  readonly load: number
  readonly say?: (line: string) => void
}

export interface Report {
  readonly runs: number
  readonly forks: number
  readonly completed: number
  readonly cancelled: number
  readonly killed: number
  readonly stopped: number
  readonly paused: number
  readonly crashes: number
  /** All that is wrong, as sentences; none, if the contract held. */
  readonly violations: ReadonlyArray<string>
}

/** mulberry32. */
const random = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const over = (status: string) => status === "completed" || status === "failed" || status === "cancelled"

interface Counts {
  killed: number
  stopped: number
  paused: number
  crashes: number
}

export const soak = (options: Options): Effect.Effect<Report, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const say = options.say ?? (() => undefined)
    const chance = random(options.seed)
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startPostgres()),
      ({ stop }) => Effect.promise(stop)
    )
    const plane: PlaneAddress.PlaneAddress = { _tag: "Postgres", url: server.url, maxConnections: 6 }
    const logFile = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(logFile)),
      ({ close }) => Effect.sync(close)
    )
    const counts: Counts = { killed: 0, stopped: 0, paused: 0, crashes: 0 }
    const worker = Child.spawn("soak/worker", { input: { plane, log: logFile } })

    return yield* Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.sql.unsafe(bookTable)
      const workers = yield* Effect.replicateEffect(worker, options.workers)
      const peace = yield* Ref.make(false)
      const load = yield* Effect.fork(underLoad(options.load, chance, peace))

      const chaos = Effect.gen(function* () {
        yield* Effect.sleep(300 + chance() * 1500)
        const which = Math.floor(chance() * workers.length)
        const victim = workers[which]
        if (victim === undefined) return
        const way = chance()
        if (way < 0.5) {
          yield* victim.kill
          counts.killed++
        } else if (way < 0.75) {
          // A graceful stop, in its own time: others may take over meanwhile.
          yield* victim.terminate
          counts.stopped++
        } else {
          // Longer than its lease: it comes back as a zombie, beside who took over.
          yield* victim.freeze
          counts.paused++
          yield* Effect.forkScoped(Effect.delay(victim.thaw, Duration.seconds(2 + chance() * 4)))
        }
        workers[which] = yield* worker
      })
      const crash = (after: Duration.DurationInput) =>
        Effect.delay(
          Effect.gen(function* () {
            yield* Effect.promise(server.crash)
            yield* Effect.sleep(Duration.millis(500 + chance() * 1500))
            yield* Effect.promise(server.start)
            counts.crashes++
            say("PostgreSQL was restarted")
          }),
          after
        )
      const time = Duration.seconds(options.seconds)
      const telling = Effect.repeat(
        Effect.sync(() => say(`${counts.killed} killed, ${counts.stopped} stopped, ${counts.paused} paused`)),
        Schedule.spaced("10 seconds")
      )
      yield* Effect.all(
        [
          Effect.timeoutOption(Effect.forever(chaos), time),
          crash(Duration.times(time, 0.3)),
          crash(Duration.times(time, 0.7))
        ],
        { concurrency: "unbounded" }
      ).pipe(Effect.raceFirst(telling))

      yield* Ref.set(peace, true)
      say("peace")
      const jobs = yield* Effect.flatten(load.await)
      const report = yield* judge(jobs, log)
      return { ...report, ...counts }
    }).pipe(Effect.provide(PlaneAddress.layer(plane)))
  })

/** What was asked of the plane, and what it said. */
interface Asked {
  readonly jobs: Map<string, Job>
  /** The answer that was accepted, by branch. */
  readonly answers: Map<string, string>
  readonly cancelled: Set<string>
  readonly forks: Set<string>
  readonly violations: Array<string>
}

/** Starts runs, answers them (twice, at once, or with a fork), cancels some; until there is peace and all are over. */
const underLoad = (
  most: number,
  chance: () => number,
  peace: Ref.Ref<boolean>
): Effect.Effect<Asked, unknown, Plane.Plane> =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const asked: Asked = {
      jobs: new Map(),
      answers: new Map(),
      cancelled: new Set(),
      forks: new Set(),
      violations: []
    }
    const going = new Set<string>()
    // The server may be away for a moment: what was asked is asked again, and is the same request.
    const again = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
      Effect.retry(effect, {
        while: (error) => error._tag === "LedgerUnavailable",
        schedule: Schedule.spaced("200 millis")
      })

    const start = Effect.gen(function* () {
      const id = `job-${asked.jobs.size + 1}`
      const job = { id, asks: chance() < 0.4 }
      asked.jobs.set(id, job)
      yield* again(client.start(Soak, job, { run: id }))
      going.add(`${id}/main`)
      if (chance() < 0.05) {
        const verdict = yield* again(client.cancel(id, { reason: "enough" }))
        if (verdict !== "TooLate") asked.cancelled.add(`${id}/main`)
      }
    })

    const answer = (pending: Client.Pending, value: string, deliveryId: string) =>
      Effect.map(
        Effect.either(
          again(
            client.resume(Approval, {
              branch: pending.branch,
              interrupt: pending.interrupt,
              value,
              deliveryId,
              intent: "retry"
            })
          )
        ),
        (result) => {
          if (result._tag === "Left") return
          const known = asked.answers.get(pending.branch)
          // CO: of all answers to a question one is accepted.
          if (known !== undefined && known !== value) {
            asked.violations.push(`${pending.branch} accepted ${known} and ${value}`)
          }
          asked.answers.set(pending.branch, value)
        }
      )

    const answerAll = Effect.gen(function* () {
      const page = yield* again(client.pendingInterrupts({ limit: 20 }))
      yield* Effect.forEach(
        page,
        (pending) =>
          Effect.gen(function* () {
            if (chance() < 0.1 && !pending.branch.includes("/f")) {
              const fork = yield* Effect.either(
                again(
                  client.resume(Approval, {
                    branch: pending.branch,
                    interrupt: pending.interrupt,
                    value: "fork",
                    deliveryId: `${pending.branch}-fork`,
                    intent: "fork",
                    forkId: "f"
                  })
                )
              )
              if (fork._tag === "Right") {
                asked.forks.add(fork.right.branch)
                asked.answers.set(fork.right.branch, "fork")
                going.add(fork.right.branch)
              }
            }
            const first = answer(pending, "Ada", `${pending.branch}-1`)
            yield* chance() < 0.3
              ? Effect.all([first, answer(pending, "Bob", `${pending.branch}-2`), first], { concurrency: "unbounded" })
              : first
          }),
        { concurrency: 4, discard: true }
      )
    })

    const sweep = Effect.suspend(() =>
      Effect.forEach(
        [...going],
        (branch) =>
          Effect.map(again(client.describe(branch)), ({ status }) => {
            if (over(status)) going.delete(branch)
          }),
        { concurrency: 4, discard: true }
      )
    )

    // The end is waited for as long as it may take on a loaded machine; what is not over then is reported.
    let quiet = 0
    while (going.size > 0 || !(yield* Ref.get(peace))) {
      const calm = yield* Ref.get(peace)
      if (!calm && going.size < most) yield* Effect.replicateEffect(start, Math.min(5, most - going.size))
      yield* answerAll
      yield* sweep
      yield* Effect.sleep("50 millis")
      quiet = calm ? quiet + 1 : 0
      if (quiet > 1200) break
    }
    for (const branch of going) {
      const { problems, status, waitingFor } = yield* client.describe(branch)
      asked.violations.push(
        `${branch} is not over: ${status}, waits for ${JSON.stringify(waitingFor)}, ${JSON.stringify(problems)}`
      )
    }
    return asked
  })

/** EO and the results, branch by branch. */
const judge = (asked: Asked, log: EffectLog.EffectLog) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const ledger = yield* Ledger
    const violations = [...asked.violations]
    const firings = new Map<string, Array<EffectLog.Recorded>>()
    for (const row of log.rows()) {
      const branch = row.at.split("|")[0] ?? ""
      const of = firings.get(branch) ?? []
      firings.set(branch, of)
      of.push(row)
    }
    const booked = new Map(
      (yield* ledger.sql<{
        readonly branch: string
        readonly n: number | string
      }>`SELECT branch, COUNT(*) AS n FROM soak_book GROUP BY branch`).map(({ branch, n }) => [branch, Number(n)])
    )
    let completed = 0
    let cancelled = 0
    const branches = [...[...asked.jobs.keys()].map((id) => `${id}/main`), ...asked.forks]
    for (const branch of branches) {
      const wrong = (what: string) => violations.push(`${branch}: ${what}`)
      const job = asked.jobs.get(branch.slice(0, branch.indexOf("/")))
      if (job === undefined) continue
      const { status } = yield* client.describe(branch)
      const fork = asked.forks.has(branch)
      const rows = firings.get(branch) ?? []
      const distinct = (effect: string, of: (row: EffectLog.Recorded) => string) =>
        new Set(rows.filter((row) => row.effect === effect).map(of)).size
      const count = (effect: string) => rows.filter((row) => row.effect === effect).length
      if (count("pay") > 1) wrong(`paid ${count("pay")} times`)
      for (const effect of ["charge", "release"]) {
        if (distinct(effect, (row) => row.idempotencyKey) > 1) wrong(`${effect} under two keys`)
        if (distinct(effect, (row) => row.inputDigest) > 1) wrong(`${effect} with two inputs`)
      }
      if ((booked.get(branch) ?? 0) > 1) wrong(`booked ${booked.get(branch)} times`)
      const released = yield* Effect.exit(client.result(Soak, branch))
      if (status === "completed") {
        completed++
        const answer = job.asks ? (asked.answers.get(branch) ?? "?") : "nobody"
        const expected = resultOf(job, answer)
        if (!Exit.isSuccess(released) || released.value !== expected)
          wrong(`came to ${String(released)}, not ${expected}`)
        if (count("pay") !== 1) wrong("completed without having paid once")
        // A fork begins after the charge: that is its parent's.
        if (!fork && count("charge") < 1) wrong("completed without having charged")
        if (booked.get(branch) !== 1) wrong("completed without being booked")
        if (count("release") < 1) wrong("completed without its finalizer")
      } else if (status === "cancelled") {
        cancelled++
        if (!asked.cancelled.has(branch)) wrong("was cancelled by nobody")
      } else if (over(status)) {
        wrong(`failed: ${Exit.isFailure(released) ? Cause.pretty(released.cause) : ""}`)
      }
    }
    const { problems } = yield* ledger.verify
    violations.push(...problems.map(({ message }) => message))
    return { runs: asked.jobs.size, forks: asked.forks.size, completed, cancelled, violations }
  })
