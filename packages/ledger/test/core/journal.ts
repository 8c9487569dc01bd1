/** The journal: order, fencing, conditions, transactions, and what happens when replies are lost. */
import { expect, it } from "@effect/vitest"
import type { BranchId, EntryDraft } from "@fermata/contract"
import { type Announcement, EntryRefused, Fenced, InboxAdvanced, jsonDigest, type Ledger } from "@fermata/ledger"
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { anyRun, completed, opened, stepDone } from "../outside/Owner.js"
import { benchOf, type Place } from "../outside/Place.js"

/** What the owner of another epoch leaves behind: the branch was taken over. */
const takeOver = (ledger: Ledger, branch: BranchId) =>
  ledger.sql`UPDATE fermata_branches SET epoch = epoch + 1 WHERE branch_id = ${branch}`

const rowsOf = (ledger: Ledger, branch: BranchId) =>
  Effect.map(
    ledger.sql<{ readonly seq: number | string; readonly kind: string }>`SELECT seq, kind FROM fermata_journal
      WHERE branch_id = ${branch} ORDER BY seq`,
    (rows) => rows.map(({ seq, kind }) => `${Number(seq)} ${kind}`)
  )

export const journalSuite = (place: Place): void => {
  const withBench = benchOf(place)

  it.live(
    "entries become durable in the order in which they were appended, and the history verifies",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal, write } = yield* owner.started()
        const keys = Array.from({ length: 3000 }, (_, index) => `step#${index}`)
        // More than one commit takes, with callbacks on the way.
        const durable: Array<number> = []
        for (const key of keys) {
          const { seq } = journal.append(stepDone(key))
          if (seq % 100 === 0) journal.onDurable(seq, () => durable.push(seq))
        }
        yield* write(stepDone("last"))
        expect(durable).toEqual(durable.toSorted((a, b) => a - b))
        expect(durable).toHaveLength(30)
        const { entries } = yield* ledger.history(journal.branch)
        expect(entries.map((entry) => entry.key)).toEqual(["", ...keys, "last"])
        expect(entries.at(-1)?.digest).toBe(journal.headDigest)
        expect(journal.durable).toBe(journal.head)
      })
    )
  )

  it.live(
    "a row that the database does not take costs its own branch at once, and no other branch anything",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const owned = yield* Effect.replicateEffect(
          Effect.suspend(() => owner.started()),
          5
        )
        const poisoned = owned[2]?.journal
        if (poisoned === undefined) return yield* Effect.dieMessage("not owned")
        // Something stands already where the branch's next entry belongs.
        yield* ledger.sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
          VALUES (${poisoned.branch}, 2, 'timer.fired', 'x', '{}', 0, 0, 'x')`
        const since = performance.now()
        const outcomes = yield* Effect.forEach(
          owned,
          ({ journal }) =>
            Effect.async<string>((resume) => {
              journal.append(stepDone("s#0"))
              journal.onDurable(journal.head, (lost) =>
                resume(
                  Effect.succeed(lost === undefined ? "stored" : `${lost._tag} ${"reason" in lost ? lost.reason : ""}`)
                )
              )
            }),
          { concurrency: "unbounded" }
        )
        expect(outcomes).toEqual(["stored", "stored", "LedgerUnavailable failed", "stored", "stored"])
        // No patience was had with it: trying again would not help.
        expect(performance.now() - since).toBeLessThan(3_000)
      })
    )
  )

  it.live(
    "times between milliseconds, or beyond all integers, are stored as whole ones that are not too early",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal } = yield* owner.started()
        const soon = ledger.unsafeNow() + 1000.25
        expect(journal.append(stepDone("s#0"), soon).at).toBe(Math.ceil(soon))
        yield* journal.release({ _tag: "Waiting", wakeAt: 1e20 }, { inboxSeen: 0 })
        expect(yield* ledger.branch(journal.branch)).toMatchObject({
          status: "waiting",
          readyAt: Number.MAX_SAFE_INTEGER
        })
      })
    )
  )

  it.live(
    "time never goes back within a branch, and an entry is not before the time it asks for",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal, claim, write } = yield* owner.started()
        const later = ledger.unsafeNow() + 86_400_000
        const first = journal.append(stepDone("a"))
        const second = journal.append(stepDone("b"), later)
        const third = journal.append(stepDone("c"))
        expect(first.at).toBeGreaterThanOrEqual(claim.headAt)
        expect([second.at, third.at]).toEqual([later, later])
        yield* write()
      })
    )
  )

  it.live(
    "a stale epoch writes nothing, and the others of the same commit are unharmed",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const stale = yield* owner.started()
        const sound = yield* owner.started()
        yield* takeOver(ledger, stale.journal.branch)
        const lost = yield* Deferred.make<unknown>()
        stale.journal.onLost((cause) => Deferred.unsafeDone(lost, Effect.succeed(cause)))
        stale.journal.append(stepDone("zombie"))
        yield* sound.write(stepDone("sound"))
        expect(yield* Deferred.await(lost)).toBeInstanceOf(Fenced)
        expect(stale.journal.lost).toBe(true)
        expect(() => stale.journal.append(stepDone("again"))).toThrow(Fenced)
        expect(yield* rowsOf(ledger, stale.journal.branch)).toEqual(["1 run.started"])
        expect(yield* rowsOf(ledger, sound.journal.branch)).toEqual(["1 run.started", "2 step.succeeded"])
      })
    )
  )

  it.live(
    "every write of a fenced owner is refused: conditional appends, transactions and releases",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const one = yield* owner.started()
        const two = yield* owner.started()
        const three = yield* owner.started()
        for (const { journal } of [one, two, three]) yield* takeOver(ledger, journal.branch)
        expect(yield* Effect.flip(one.journal.appendIf([completed], { inboxSeen: 0 }))).toBeInstanceOf(Fenced)
        let ran = false
        const body = Effect.sync(() => {
          ran = true
        })
        expect(yield* Effect.flip(two.journal.transact(body, () => stepDone("t")))).toBeInstanceOf(Fenced)
        expect(ran).toBe(false)
        const park = three.journal.release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: 0 })
        expect(yield* Effect.flip(park)).toBeInstanceOf(Fenced)
        for (const { journal } of [one, two, three]) {
          expect(journal.lost).toBe(true)
          expect(yield* rowsOf(ledger, journal.branch)).toEqual(["1 run.started"])
          expect((yield* ledger.branch(journal.branch)).status).toBe("running")
        }
      })
    )
  )

  it.live(
    "a conditional append changes nothing when something came in; what was appended before it stands",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal } = yield* owner.started()
        yield* ledger.cancel(journal.branch, null)
        journal.append(stepDone("before"))
        const refusal = yield* Effect.flip(journal.appendIf([completed], { inboxSeen: 0 }))
        expect(refusal).toBeInstanceOf(InboxAdvanced)
        expect(refusal).toMatchObject({ inboxHead: 1 })
        expect(yield* rowsOf(ledger, journal.branch)).toEqual(["1 run.started", "2 step.succeeded"])
        // Still owned, and nothing of the refused entries is left: the next goes where they would have gone.
        journal.append(stepDone("after"))
        const entries = yield* journal.appendIf([completed], { inboxSeen: 1 })
        expect(entries.map(({ seq, kind }) => `${seq} ${kind}`)).toEqual(["4 run.completed"])
        expect((yield* ledger.history(journal.branch)).entries).toHaveLength(4)
      })
    )
  )

  it.live(
    "while a conditional append is under way nothing gets between",
    withBench(({ owner }) =>
      Effect.gen(function* () {
        const { journal } = yield* owner.started()
        const conditional = yield* Effect.fork(journal.appendIf([stepDone("if")], { inboxSeen: 0 }))
        yield* Effect.yieldNow()
        expect(() => journal.append(stepDone("between"))).toThrow(/under way/)
        yield* Fiber.join(conditional)
        expect(journal.append(stepDone("then")).seq).toBe(3)
      })
    )
  )

  it.live(
    "a terminal entry ends the branch in the same commit: status, owner, open interrupts, announcement",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal, write } = yield* owner.started()
        yield* write(opened("approve#0"))
        expect(yield* ledger.pendingInterrupts({ run: (yield* ledger.branch(journal.branch)).run })).toHaveLength(1)
        const heard: Array<Announcement> = []
        const stop = ledger.subscribe((announcement) => heard.push(announcement))
        yield* journal.appendIf([completed], { inboxSeen: 0 })
        stop()
        expect(heard).toContainEqual({ _tag: "Changed", branch: journal.branch })
        const row = yield* ledger.branch(journal.branch)
        expect(row).toMatchObject({ status: "completed", owner: null, readyAt: null, head: 3 })
        expect(yield* ledger.pendingInterrupts({ run: row.run })).toEqual([])
        expect((yield* ledger.ending(journal.branch)).entry?.kind).toBe("run.completed")
        expect(journal.lost).toBe(true)
        expect(() => journal.append(stepDone("late"))).toThrow(Fenced)
        journal.onDurable(3, (lost) => expect(lost).toBeUndefined())
      })
    )
  )

  it.live(
    "what the journal cannot store is refused before anything is written, and the branch goes on",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal, write } = yield* owner.started()
        const huge: EntryDraft = { ...stepDone("huge"), payload: JSON.stringify("x".repeat(ledger.maxPayload)) }
        const malformed: EntryDraft = { ...stepDone("malformed"), payload: `"\ud800"` }
        const second: EntryDraft = { kind: "run.started", key: "", payload: "{}" }
        for (const draft of [huge, malformed, second]) {
          expect(() => journal.append(draft)).toThrow(EntryRefused)
          const exit = yield* Effect.exit(journal.appendIf([draft], { inboxSeen: 0 }))
          expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
        }
        yield* write(stepDone("sound"))
        expect(yield* rowsOf(ledger, journal.branch)).toEqual(["1 run.started", "2 step.succeeded"])
      })
    )
  )

  it.live(
    "keys, payloads and ids of any well-formed text come back as they were",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { journal, write } = yield* owner.started()
        const texts = [
          "\u0000 null",
          "é ü 漢字 🎵",
          "a\nb\tc",
          "'; DROP TABLE fermata_journal; --",
          '\\ " {}',
          "\ufeff"
        ]
        yield* write(
          ...texts.map((text) => ({ ...stepDone(text.replaceAll("\u0000", "")), payload: JSON.stringify(text) }))
        )
        const { entries } = yield* ledger.history(journal.branch)
        expect(entries.slice(1).map((entry) => JSON.parse(entry.payload) as unknown)).toEqual(texts)
      })
    )
  )

  it.live(
    "a transaction commits its writes with its entry; a typed failure rolls them back and is recorded",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { sql } = ledger
        const { journal } = yield* owner.started()
        yield* sql`CREATE TABLE IF NOT EXISTS shop (id TEXT PRIMARY KEY, cents INTEGER)`
        const pay = (id: string) => sql`INSERT INTO shop (id, cents) VALUES (${id}, 1)`
        const paid = (id: string) => Effect.map(sql`SELECT 1 FROM shop WHERE id = ${id}`, (rows) => rows.length)
        const a = `${journal.branch}-a`
        journal.append(stepDone("before"))
        const entry = yield* journal.transact(pay(a), (exit) => stepDone("pay#0", exit._tag))
        expect(entry).toMatchObject({ seq: 3, kind: "step.succeeded" })
        expect(journal.durable).toBe(3)
        const b = `${journal.branch}-b`
        const declined = Effect.zipRight(pay(b), Effect.fail("declined"))
        const failed = yield* journal.transact(declined, (exit) =>
          stepDone("pay#1", exit._tag === "Failure" ? exit.error : "paid")
        )
        expect(JSON.parse(failed.payload)).toMatchObject({ value: "declined" })
        // A statement that fails is the body's typed failure as well.
        yield* journal.transact(pay(a), (exit) =>
          stepDone("pay#2", exit._tag === "Failure" && exit.error instanceof SqlError ? "refused" : "paid")
        )
        expect([yield* paid(a), yield* paid(b)]).toEqual([1, 0])
        const { entries } = yield* ledger.history(journal.branch)
        expect(entries.map(({ key }) => key)).toEqual(["", "before", "pay#0", "pay#1", "pay#2"])
        expect(JSON.parse(entries[4]?.payload ?? "")).toMatchObject({ value: "refused" })
      })
    )
  )

  it.live(
    "a defect or an interruption in a transaction rolls back everything, and the branch goes on",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { sql } = ledger
        const { journal, write } = yield* owner.started()
        yield* sql`CREATE TABLE IF NOT EXISTS shop (id TEXT PRIMARY KEY, cents INTEGER)`
        const id = `${journal.branch}-d`
        const pay = sql`INSERT INTO shop (id, cents) VALUES (${id}, 1)`
        const died = yield* Effect.exit(
          journal.transact(Effect.zipRight(pay, Effect.die("bug")), () => stepDone("never"))
        )
        expect(Exit.isFailure(died) && Cause.squash(died.cause)).toBe("bug")
        const inside = yield* Deferred.make<void>()
        const fiber = yield* Effect.fork(
          journal.transact(
            Effect.zipRight(pay, Effect.zipRight(Deferred.succeed(inside, undefined), Effect.never)),
            () => stepDone("never")
          )
        )
        yield* Deferred.await(inside)
        const exit = yield* Fiber.interrupt(fiber)
        expect(Exit.isInterrupted(exit)).toBe(true)
        expect(yield* sql`SELECT 1 FROM shop WHERE id = ${id}`).toEqual([])
        yield* write(stepDone("on"))
        expect(yield* rowsOf(ledger, journal.branch)).toEqual(["1 run.started", "2 step.succeeded"])
      })
    )
  )

  it.live(
    "parking and what comes in at the same moment: never does a branch wait with something unseen",
    withBench(({ ledgers, owner }) =>
      Effect.gen(function* () {
        const outcomes = new Set<string>()
        for (let round = 0; round < 30; round++) {
          const { journal } = yield* owner.started()
          const other = ledgers[ledgers.length - 1] ?? ledgers[0]
          const cancel = other.cancel(journal.branch, null)
          const park = Effect.either(journal.release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: 0 }))
          const [parked] = yield* Effect.all(round % 2 === 0 ? [park, cancel] : [park, Effect.delay(cancel, 0)], {
            concurrency: "unbounded"
          })
          const row = yield* ledgers[0].branch(journal.branch)
          outcomes.add(parked._tag)
          // Let go before the cancel: that made it ready. After it: refused, and still owned.
          expect(row).toMatchObject(
            parked._tag === "Right" ? { status: "ready", owner: null } : { status: "running", inboxHead: 1 }
          )
          if (parked._tag === "Right") expect(row.readyAt).not.toBeNull()
          else expect(journal.append(stepDone("still mine")).seq).toBe(2)
        }
        expect(outcomes.size).toBeGreaterThan(0)
      })
    )
  )

  it.live(
    "letting go says how the branch stands",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const due = ledger.unsafeNow() + 1e9
        const waiting = yield* owner.started()
        yield* waiting.journal.release({ _tag: "Waiting", wakeAt: due }, { inboxSeen: 0 })
        expect(yield* ledger.branch(waiting.journal.branch)).toMatchObject({
          status: "waiting",
          readyAt: due,
          owner: null
        })
        const stuck = yield* owner.started()
        yield* stuck.journal.release({ _tag: "Stuck", problem: `{"_tag":"NonDeterminism"}` }, { inboxSeen: 0 })
        expect(yield* ledger.branch(stuck.journal.branch)).toMatchObject({
          status: "stuck",
          readyAt: null,
          problem: `{"_tag":"NonDeterminism"}`
        })
        expect(yield* ledger.unstick({ branch: stuck.journal.branch })).toBe(1)
        expect(yield* ledger.branch(stuck.journal.branch)).toMatchObject({ status: "ready", problem: null })
        // What came in unseen does not keep a branch from going to another worker, who reads the inbox.
        const ready = yield* owner.started()
        yield* ledger.cancel(ready.journal.branch, null)
        ready.journal.append(stepDone("before"))
        yield* ready.journal.release({ _tag: "Ready" }, { inboxSeen: 0 })
        expect(yield* ledger.branch(ready.journal.branch)).toMatchObject({ status: "ready", head: 2, owner: null })
        expect(ready.journal.lost).toBe(true)
      })
    )
  )

  it.live(
    "the journal, the inbox and the runs refuse to be changed or emptied",
    withBench(({ ledgers: [ledger], owner }) =>
      Effect.gen(function* () {
        const { sql } = ledger
        const { journal } = yield* owner.started()
        yield* ledger.cancel(journal.branch, null)
        const attempts = [
          sql`UPDATE fermata_journal SET payload = '{}' WHERE branch_id = ${journal.branch}`,
          sql`DELETE FROM fermata_journal WHERE branch_id = ${journal.branch}`,
          sql`UPDATE fermata_inbox SET payload = '{}' WHERE branch_id = ${journal.branch}`,
          sql`DELETE FROM fermata_inbox WHERE branch_id = ${journal.branch}`,
          sql`UPDATE fermata_runs SET input = '2'`,
          sql`DELETE FROM fermata_runs`,
          ...(ledger.dialect === "pg"
            ? [sql`TRUNCATE fermata_journal`, sql`TRUNCATE fermata_inbox`, sql`TRUNCATE fermata_runs`]
            : [])
        ]
        for (const attempt of attempts) {
          const error = yield* Effect.flip(attempt)
          expect(String(error.cause)).toMatch(/append-only/)
        }
        expect((yield* ledger.history(journal.branch)).entries).toHaveLength(1)
      })
    )
  )

  it.live(
    "a start is idempotent, also when many come at once; another input or workflow is a conflict",
    withBench(({ ledgers }) =>
      Effect.gen(function* () {
        const run = anyRun()
        const request = {
          run,
          workflow: "idempotent",
          version: "1",
          input: `{"a":1}`,
          inputDigest: jsonDigest(`{"a":1}`)
        }
        const receipts = yield* Effect.all(
          Array.from({ length: 20 }, (_, index) => (ledgers[index % ledgers.length] ?? ledgers[0]).start(request)),
          { concurrency: "unbounded" }
        )
        expect(receipts.filter(({ created }) => created)).toHaveLength(1)
        const [ledger] = ledgers
        expect(yield* ledger.start({ ...request, version: "2" })).toMatchObject({ created: false })
        const otherInput = { ...request, input: "2", inputDigest: jsonDigest("2") }
        expect(yield* Effect.flip(ledger.start(otherInput))).toMatchObject({ _tag: "RunConflict", differs: "input" })
        const otherWorkflow = { ...request, workflow: "other" }
        expect(yield* Effect.flip(ledger.start(otherWorkflow))).toMatchObject({
          _tag: "RunConflict",
          differs: "workflow"
        })
        expect(yield* rowsOf(ledger, receipts[0]?.branch ?? ("" as BranchId))).toEqual(["1 run.started"])
        expect(yield* ledger.branches(run)).toHaveLength(1)
        expect(yield* ledger.run(run)).toMatchObject({ workflow: "idempotent", version: "1", input: `{"a":1}` })
      })
    )
  )

  it.live(
    "runs are listed newest first, page by page, each once",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const workflow = `listed-${anyRun()}`
        const runs = Array.from({ length: 7 }, anyRun)
        for (const run of runs) yield* ledger.start({ run, workflow, version: "1", input: "0", inputDigest: "0" })
        const seen: Array<string> = []
        for (let after: (typeof runs)[number] | undefined; ;) {
          const page = yield* ledger.list({
            workflow,
            status: "ready",
            limit: 3,
            ...(after === undefined ? {} : { after })
          })
          if (page.length === 0) break
          seen.push(...page.map(({ run }) => run))
          after = page.at(-1)?.run
        }
        expect(seen.toSorted()).toEqual(runs.toSorted())
        expect(yield* ledger.list({ workflow, status: "completed" })).toEqual([])
      })
    )
  )

  it.live(
    "what is not there is said so",
    withBench(({ ledgers: [ledger] }) =>
      Effect.gen(function* () {
        const run = anyRun()
        const branch = `${run}/main` as BranchId
        for (const read of [
          Effect.asVoid(ledger.run(run)),
          Effect.asVoid(ledger.branch(branch)),
          Effect.asVoid(ledger.branches(run)),
          Effect.asVoid(ledger.history(branch)),
          Effect.asVoid(ledger.ending(branch))
        ]) {
          expect(yield* Effect.flip(read)).toMatchObject({ _tag: "RunNotFound" })
        }
      })
    )
  )
}
