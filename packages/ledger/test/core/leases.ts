/** Claims and leases: every branch has one owner at most, and no branch is forgotten. */
import { expect, it } from "@effect/vitest"
import { type BranchId, rootBranch, type RunId, type WorkerPlace } from "@fermata/contract"
import { type Announcement, type Claim, Fenced, type Ledger, RunConflict } from "@fermata/ledger"
import { Deferred, Effect, Exit, Scope } from "effect"
import { anyRun, stepDone } from "../outside/Owner.js"
import { benchOf, type Place } from "../outside/Place.js"

/** A workflow of the test's own, so that its claims find nothing else. */
const own = () => {
  const workflow = `own-${anyRun()}`
  return { workflow, definitions: [`${workflow}@1`] }
}

const startMany = (ledger: Ledger, workflow: string, count: number) =>
  Effect.map(
    Effect.replicateEffect(
      Effect.suspend(() => ledger.start({ run: anyRun(), workflow, version: "1", input: "0", inputDigest: "0" })),
      count
    ),
    (receipts) => receipts.map(({ branch }) => branch)
  )

const blind = { lease: 600_000, place: undefined, look: () => "cannot tell" as const }

const placeNamed = (pid: number): WorkerPlace => ({ bootId: "boot", pidNamespace: "pid:[1]", pid, startTime: "42" })

/** Its lease has run out without word from it. */
const lapse = (ledger: Ledger, worker: string) =>
  ledger.sql`UPDATE fermata_workers SET lease_until = 1 WHERE worker_id = ${worker}`

/** Hears announcements from now on. */
const hearing = (ledger: Ledger, wanted: (announcement: Announcement) => boolean) =>
  Effect.map(Deferred.make<void>(), (heard) => {
    const stop = ledger.subscribe((announcement) => {
      if (wanted(announcement)) Deferred.unsafeDone(heard, Effect.void)
    })
    return Effect.ensuring(Deferred.await(heard), Effect.sync(stop))
  })

export const leaseSuite = (place: Place): void => {
  const withBench = benchOf(place)

  it.live(
    "many workers claim at once: every branch goes to one of them, none is left, none goes twice",
    withBench(({ ledgers: [first, ...others] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const branches = yield* startMany(first, workflow, 60)
        const claimAll = (ledger: Ledger) =>
          Effect.gen(function* () {
            const { worker } = yield* ledger.register(blind)
            const mine: Array<BranchId> = []
            for (;;) {
              const claims = yield* ledger.claim({ worker, definitions, limit: 3 })
              if (claims.length === 0) return mine
              for (const { branch, run } of claims) {
                expect(branch).toMatchObject({ owner: worker, status: "running", epoch: 1, readyAt: null })
                expect(run.workflow).toBe(workflow)
                mine.push(branch.branch)
              }
            }
          })
        const workers = [first, ...others, first, first]
        const claimed = yield* Effect.all(workers.map(claimAll), { concurrency: "unbounded" })
        expect(claimed.flat().toSorted()).toEqual(branches.toSorted())
      })
    )
  )

  it.live(
    "what is started where a taker keeps a place is claimed by it at once, and every place is used once",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const { worker } = yield* ledger.register(blind)
        let room = 1
        const used: Array<Claim | undefined> = []
        const stop = ledger.takeStarts({
          worker,
          definitions: new Set(definitions),
          reserve: () => room-- > 0,
          use: (claim) => void used.push(claim)
        })
        const start = (run: RunId, input = "0") =>
          ledger.start({ run, workflow, version: "1", input, inputDigest: input })
        const run = anyRun()
        const { branch } = yield* start(run)
        const [taken] = used
        expect(taken?.branch).toEqual(yield* ledger.branch(branch))
        expect(taken?.branch).toMatchObject({ owner: worker, status: "running", epoch: 1, readyAt: null })
        if (taken === undefined) return yield* Effect.dieMessage("not taken")
        expect(yield* ledger.claimed(taken)).toEqual((yield* ledger.history(branch)).entries)
        // There is no room for a second one: it waits for a claim, and the first is not handed out again.
        const second = yield* start(anyRun())
        expect(used).toHaveLength(1)
        const claims = yield* ledger.claim({ worker, definitions, limit: 9 })
        expect(claims.map((claim) => claim.branch.branch)).toEqual([second.branch])
        // The same start again, and one that is refused, give their places back.
        room = 2
        expect(yield* start(run)).toEqual({ branch, created: false })
        expect(yield* Effect.flip(start(run, "1"))).toBeInstanceOf(RunConflict)
        expect(used.slice(1)).toEqual([undefined, undefined])
        expect(yield* Effect.exit(ledger.open(taken).appendIf([stepDone("a")], { inboxSeen: 0 }))).toMatchObject({
          _tag: "Success"
        })
        room = 1
        stop()
        expect(yield* start(anyRun())).toMatchObject({ created: true })
        expect(used).toHaveLength(3)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "a branch whose owner is none any more is freed, and fenced against it",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const [branch] = yield* startMany(ledger, workflow, 1)
        // It was taken for lost before it claimed, and died before it knew.
        const [late] = yield* ledger.claim({ worker: "nobody", definitions, limit: 1 })
        if (late === undefined) return yield* Effect.dieMessage("not claimed")
        const journal = ledger.open(late)
        const { worker } = yield* ledger.register(blind)
        expect(yield* ledger.claim({ worker, definitions, limit: 1, freeLost: false })).toEqual([])
        const [taken] = yield* ledger.claim({ worker, definitions, limit: 1 })
        expect(taken?.branch).toMatchObject({ branch, owner: worker, epoch: 3 })
        expect(yield* Effect.flip(journal.appendIf([stepDone("z")], { inboxSeen: 0 }))).toBeInstanceOf(Fenced)
      })
    )
  )

  it.live(
    "the oldest wishes come first, and no more than asked for",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const a = own()
        const b = own()
        const [a1] = yield* startMany(ledger, a.workflow, 1)
        const [b1] = yield* startMany(ledger, b.workflow, 1)
        const [a2] = yield* startMany(ledger, a.workflow, 1)
        for (const [index, branch] of [a1, b1, a2].entries()) {
          yield* ledger.sql`UPDATE fermata_branches SET ready_at = ${1000 + index} WHERE branch_id = ${branch ?? ""}`
        }
        const { worker } = yield* ledger.register(blind)
        const definitions = [...a.definitions, ...b.definitions]
        const claims = yield* ledger.claim({ worker, definitions, limit: 2 })
        expect(claims.map(({ branch }) => branch.branch).toSorted()).toEqual([a1, b1].toSorted())
        expect(yield* ledger.claim({ worker, definitions: [], limit: 2 })).toEqual([])
        expect(yield* ledger.claim({ worker, definitions: ["other@1"], limit: 2 })).toEqual([])
        // A worker may know more definitions than a statement can unite queries.
        const many = [...Array.from({ length: 600 }, (_, n) => `unknown-${n}@1`), ...definitions]
        expect(yield* ledger.claim({ worker, definitions: many, limit: 2 })).toHaveLength(1)
      })
    )
  )

  it.live(
    "a waiting branch is not claimed before it is due, and the next wake-up is known",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const [branch] = yield* startMany(ledger, workflow, 1)
        const { worker } = yield* ledger.register(blind)
        const [claim] = yield* ledger.claim({ worker, definitions, limit: 1 })
        if (claim === undefined) return yield* Effect.dieMessage("not claimed")
        const due = ledger.unsafeNow() + 1e8
        yield* ledger.open(claim).release({ _tag: "Waiting", wakeAt: due }, { inboxSeen: 0 })
        expect(yield* ledger.claim({ worker, definitions, limit: 1 })).toEqual([])
        expect(yield* ledger.nextWake(definitions)).toBe(due)
        yield* ledger.sql`UPDATE fermata_branches SET ready_at = 5 WHERE branch_id = ${branch ?? ""}`
        expect(yield* ledger.nextWake(definitions)).toBe(5)
        const [again] = yield* ledger.claim({ worker, definitions, limit: 1 })
        expect(again?.branch).toMatchObject({ branch, epoch: 2 })
        expect(yield* ledger.ownedInboxHeads(worker)).toEqual([{ branch, inboxHead: 0, epoch: 2 }])
      })
    )
  )

  it.live(
    "a waiting branch is claimable as soon as something comes in",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const [branch] = yield* startMany(ledger, workflow, 1)
        const { worker } = yield* ledger.register(blind)
        const [claim] = yield* ledger.claim({ worker, definitions, limit: 1 })
        if (claim === undefined || branch === undefined) return yield* Effect.dieMessage("not claimed")
        yield* ledger.open(claim).release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: 0 })
        expect(yield* ledger.claim({ worker, definitions, limit: 1 })).toEqual([])
        const ready = yield* hearing(ledger, ({ _tag }) => _tag === "Ready")
        yield* ledger.cancel(branch, null)
        yield* ready
        const [again] = yield* ledger.claim({ worker, definitions, limit: 1 })
        expect(again?.branch).toMatchObject({ branch, inboxHead: 1 })
      })
    )
  )

  it.live(
    "leaving makes a worker's branches ready for others at once, and fences it",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const [branch] = yield* startMany(ledger, workflow, 1)
        const scope = yield* Scope.make()
        const { worker } = yield* Scope.extend(ledger.register(blind), scope)
        const [claim] = yield* ledger.claim({ worker, definitions, limit: 1 })
        if (claim === undefined || branch === undefined) return yield* Effect.dieMessage("not claimed")
        const journal = ledger.open(claim)
        yield* Scope.close(scope, Exit.void)
        expect(yield* ledger.branch(branch)).toMatchObject({ status: "ready", owner: null, epoch: 2 })
        const loss = yield* Effect.flip(journal.appendIf([stepDone("late")], { inboxSeen: 0 }))
        expect(loss).toBeInstanceOf(Fenced)
        const next = yield* ledger.register(blind)
        expect(yield* ledger.claim({ worker: next.worker, definitions, limit: 1 })).toHaveLength(1)
      })
    )
  )

  if (place.ledgers > 1) {
    it.live(
      "a worker whose row was taken learns that its lease is lost",
      withBench(({ ledgers: [ledger] }) =>
        Effect.gen(function* () {
          const { worker, lost } = yield* ledger.register({ ...blind, lease: 90 })
          yield* ledger.sql`UPDATE fermata_workers SET state = 'expired' WHERE worker_id = ${worker}`
          yield* lost
        })
      )
    )

    it.live(
      "a lease is renewed for as long as the worker lives",
      withBench(({ ledgers: [ledger] }) =>
        Effect.gen(function* () {
          const { worker } = yield* ledger.register({ ...blind, lease: 600 })
          const until = Effect.map(
            ledger.sql<{
              readonly lease_until: number | string
            }>`SELECT lease_until FROM fermata_workers WHERE worker_id = ${worker}`,
            ([row]) => Number(row?.lease_until)
          )
          const first = yield* until
          // Ends by itself once two renewals are seen; without them the test times out.
          for (let renewals = 0, last = first; renewals < 2;) {
            const now = yield* until
            if (now > last) renewals++
            last = now
            yield* Effect.yieldNow()
          }
        })
      )
    )

    it.live(
      "a lapsed lease lets another take over; the first can write nothing more and learns that it lost",
      withBench(({ ledgers: [first, second = first] }) =>
        Effect.gen(function* () {
          const { workflow, definitions } = own()
          const [branch] = yield* startMany(first, workflow, 1)
          const zombie = yield* first.register(blind)
          const [claim] = yield* first.claim({ worker: zombie.worker, definitions, limit: 1 })
          if (claim === undefined || branch === undefined) return yield* Effect.dieMessage("not claimed")
          const journal = first.open(claim)
          const heir = yield* second.register(blind)
          expect(yield* second.claim({ worker: heir.worker, definitions, limit: 1 })).toEqual([])
          yield* lapse(first, zombie.worker)
          expect(yield* second.nextLapse).toBe(1)
          const [taken] = yield* second.claim({ worker: heir.worker, definitions, limit: 1 })
          expect(taken?.branch).toMatchObject({ branch, owner: heir.worker, epoch: 3 })
          expect(yield* Effect.flip(journal.appendIf([stepDone("z")], { inboxSeen: 0 }))).toBeInstanceOf(Fenced)
          // A lapse proves nothing about the process.
          expect(yield* second.fate(zombie.worker)).toBe("unknown")
          const rows = yield* first.sql`SELECT 1 FROM fermata_journal WHERE branch_id = ${branch}`
          expect(rows).toHaveLength(1)
        })
      )
    )

    it.live(
      "a worker whose process is seen to be gone is taken over at once, with no lease wait; one out of sight is not",
      withBench(({ ledgers: [first, second = first] }) =>
        Effect.gen(function* () {
          const { workflow, definitions } = own()
          const branches = yield* startMany(first, workflow, 3)
          const owner = (where: WorkerPlace | undefined) =>
            Effect.tap(first.register({ ...blind, place: where }), ({ worker }) =>
              first.claim({ worker, definitions, limit: 1 })
            )
          const gone = yield* owner(placeNamed(7))
          const running = yield* owner(placeNamed(8))
          const elsewhere = yield* owner({ ...placeNamed(7), pidNamespace: "pid:[2]" })
          const heir = yield* second.register({
            lease: 600_000,
            place: placeNamed(9),
            look: ({ pid }) => (pid === 7 ? "gone" : "running")
          })
          const [taken, ...more] = yield* second.claim({ worker: heir.worker, definitions, limit: 10 })
          expect(more).toEqual([])
          expect(branches).toContain(taken?.branch.branch)
          expect(yield* second.fate(gone.worker)).toBe("dead")
          expect(yield* second.fate(running.worker)).toBe("unknown")
          expect(yield* second.fate(elsewhere.worker)).toBe("unknown")
          expect(yield* second.fate("nobody")).toBe("unknown")
        })
      )
    )

    it.live(
      "what one ledger does another one hears",
      withBench(({ ledgers: [first, second = first] }) =>
        Effect.gen(function* () {
          const { workflow, definitions } = own()
          const anything = ({ _tag }: Announcement) => _tag === "Anything"
          const ready = yield* hearing(second, (a) => a._tag === "Ready" || anything(a))
          const run = anyRun()
          yield* first.start({ run, workflow, version: "1", input: "0", inputDigest: "0" })
          yield* ready
          const branch = rootBranch(run)
          const { worker } = yield* second.register(blind)
          const [claim] = yield* second.claim({ worker, definitions, limit: 1 })
          if (claim === undefined) return yield* Effect.dieMessage("not claimed")
          const inbox = yield* hearing(second, (a) => (a._tag === "Inbox" && a.branch === branch) || anything(a))
          yield* first.cancel(branch, null)
          yield* inbox
          const changed = yield* hearing(first, (a) => (a._tag === "Changed" && a.branch === branch) || anything(a))
          yield* second.open(claim).appendIf([{ kind: "run.completed", key: "", payload: "{}" }], { inboxSeen: 1 })
          yield* changed
        })
      )
    )
  }

  it.live(
    "rows of workers that ended a week ago are forgotten, and their fate is unknown",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const week = 7 * 86_400_000
        const ended = (state: string, ago: number) =>
          Effect.gen(function* () {
            const { worker } = yield* Effect.scoped(ledger.register(blind))
            yield* ledger.sql`UPDATE fermata_workers SET state = ${state}, lease_until = ${ledger.unsafeNow() - ago}
              WHERE worker_id = ${worker}`
            return worker
          })
        const rows = (worker: string) => ledger.sql`SELECT 1 FROM fermata_workers WHERE worker_id = ${worker}`
        const [left, dead] = [yield* ended("left", week + 1e6), yield* ended("dead", week - 1e6)]
        const late = yield* ended("dead", week + 1e6)
        yield* ledger.register(blind)
        for (const worker of [left, late]) {
          expect(yield* rows(worker)).toEqual([])
          expect(yield* ledger.fate(worker)).toBe("unknown")
        }
        expect(yield* rows(dead)).toHaveLength(1)
        expect(yield* ledger.fate(dead)).toBe("dead")
      })
    )
  )

  it.live(
    "a run that does not verify is set aside as stuck, and does not keep a worker from the others",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const { workflow, definitions } = own()
        const [damaged, sound] = yield* startMany(ledger, workflow, 2)
        if (damaged === undefined) return yield* Effect.dieMessage("not started")
        const { run } = yield* ledger.branch(damaged)
        if (ledger.dialect === "pg") yield* ledger.sql`ALTER TABLE fermata_runs DISABLE TRIGGER ALL`
        else yield* ledger.sql`DROP TRIGGER fermata_runs_no_update`
        yield* ledger.sql`UPDATE fermata_runs SET input = '1' WHERE run_id = ${run}`
        const { worker } = yield* ledger.register(blind)
        const claims = yield* ledger.claim({ worker, definitions, limit: 10 })
        expect(claims.map(({ branch }) => branch.branch)).toEqual([sound])
        const row = yield* ledger.branch(damaged)
        expect(row).toMatchObject({ status: "stuck", owner: null })
        const [problem] = JSON.parse(row.problem ?? "") as ReadonlyArray<{ readonly message: string }>
        expect(problem).toMatchObject({ _tag: "CorruptJournal", table: "runs" })
        expect(problem?.message).toContain(run)
      })
    )
  )
}
