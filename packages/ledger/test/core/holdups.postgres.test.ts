/** What stops without a word, a process or a route, must hold up nobody else for long. */
import { describe, expect, it } from "@effect/vitest"
import { type Ledger, layerPostgres } from "@fermata/ledger"
import { freshPostgres } from "@fermata/test/Postgres"
import * as Child from "@fermata/test/processes/Child"
import * as SilentLine from "@fermata/test/SilentLine"
import { Effect, Exit, Schema, Scope } from "effect"
import { fileURLToPath } from "node:url"
import { makeOwner, startRun, anyRun, stepDone } from "../outside/Owner.js"
import { openLedger } from "../outside/Place.js"

const definitions = ["refund@1"]
const blind = { lease: 600_000, place: undefined, look: () => "cannot tell" as const }
const standstill = fileURLToPath(new URL("../children/standstill.mjs", import.meta.url))

/** A worker that owns two branches and stands inside a transaction on one of them; its lease has lapsed. */
const standing = (ledger: Ledger, url: string, idleInTransaction: number) =>
  Effect.gen(function* () {
    const runs = [anyRun(), anyRun()]
    for (const run of runs) yield* startRun(ledger, run)
    const child = yield* Child.spawn(standstill, {
      input: { url, definitions, idleInTransaction },
      stopAt: ["inside"]
    })
    const stop = yield* child.stopped()
    yield* ledger.sql`UPDATE fermata_workers SET lease_until = 1`
    return { child, stop, runs: runs.toSorted() }
  })

const claimUntil = (ledger: Ledger, worker: string, count: number) =>
  Effect.gen(function* () {
    const taken: Array<string> = []
    while (taken.length < count) {
      for (const { run } of yield* ledger.claim({ worker, definitions, limit: 10 })) taken.push(run.run)
      // Its own say of when looking again is worth it.
      const wake = (yield* ledger.nextLapse) ?? 0
      yield* Effect.sleep(Math.min(1_000, Math.max(0, wake - ledger.unsafeNow())))
    }
    return taken.toSorted()
  })

describe("a worker that stands still inside a transaction", () => {
  it.scopedLive("others claim what is there meanwhile, do not spin, and take its branches once it is gone", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const ledger = yield* openLedger(layerPostgres({ url }))
      const { child, runs } = yield* standing(ledger, url, 600_000)
      const { worker } = yield* ledger.register(blind)
      const other = anyRun()
      yield* startRun(ledger, other)
      const claims = yield* ledger.claim({ worker, definitions, limit: 10 })
      expect(claims.map(({ run }) => run.run)).toEqual([other])
      expect(yield* ledger.nextLapse).toBeGreaterThan(ledger.unsafeNow())
      // Its row is still alive: nothing of it was freed by half.
      expect(yield* ledger.sql`SELECT 1 FROM fermata_workers WHERE state = 'expired'`).toEqual([])
      yield* child.kill
      expect(yield* claimUntil(ledger, worker, 2)).toEqual(runs)
    })
  )

  it.scopedLive("the server ends its transaction, others take its branches, and it is fenced when it goes on", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const ledger = yield* openLedger(layerPostgres({ url }))
      const { child, stop, runs } = yield* standing(ledger, url, 500)
      const { worker } = yield* ledger.register(blind)
      expect(yield* claimUntil(ledger, worker, 2)).toEqual(runs)
      yield* child.release(stop)
      expect(yield* child.receive(Schema.String)).toBe("Fenced")
      expect(yield* ledger.sql`SELECT 1 FROM fermata_journal WHERE key = 'late#0'`).toEqual([])
    })
  )
})

describe("a route that is cut without a word", () => {
  it.scopedLive("what the writer has under way is stored over another connection, once", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const line = yield* SilentLine.make(url)
      const near = yield* openLedger(layerPostgres({ url }))
      const ledger = yield* openLedger(layerPostgres({ url: line.url, patience: 1_000 }))
      const owner = yield* makeOwner(ledger)
      const { journal, write } = yield* owner.started()
      yield* write(stepDone("a"))
      yield* line.lose
      yield* write(stepDone("b"), stepDone("c"))
      const { entries } = yield* near.history(journal.branch)
      expect(entries.slice(1).map(({ key }) => key)).toEqual(["a", "b", "c"])
    })
  )

  it.scopedLive("releasing a branch and closing the ledger end all the same, and what is not stored is said", () =>
    Effect.gen(function* () {
      const url = yield* freshPostgres
      const line = yield* SilentLine.make(url)
      const scope = yield* Scope.make()
      const open = Effect.gen(function* () {
        const ledger = yield* openLedger(layerPostgres({ url: line.url, patience: 500 }))
        const { journal, write } = yield* (yield* makeOwner(ledger)).started()
        yield* write(stepDone("a"))
        return journal
      })
      const journal = yield* Scope.extend(open, scope)
      yield* line.silence
      const error = yield* Effect.flip(journal.release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: 0 }))
      expect(error).toMatchObject({ _tag: "LedgerUnavailable" })
      yield* Scope.close(scope, Exit.void)
    })
  )
})
