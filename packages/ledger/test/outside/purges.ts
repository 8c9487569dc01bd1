/** Purge: what is over may go, and nothing late brings it back. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { answer, anyRun, answered, completed, failed, forkId, opened, type Owner, startRun, stepDone } from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

/** A run with an answered interrupt and a fork; the root is over, the fork is not. */
const forked = (owner: Owner) =>
  Effect.gen(function* () {
    const owned = yield* owner.started()
    const { branch } = owned.journal
    const { run } = owned.claim.run
    yield* owned.write(opened("approve#1"), opened("approve#2"))
    yield* Effect.orDie(owner.ledger.deliver(answer(branch, "approve#1", "d1", true)))
    yield* owned.write(answered("approve#1", true, "d1", 1), completed)
    const { branch: child } = yield* Effect.orDie(
      owner.ledger.fork({ run, fork: forkId("f"), parent: branch, at: { _tag: "Checkpoint", seq: 3 } })
    )
    return { owned, run, branch, child }
  })

export const purgeSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "a run with a branch that is not over is not purged, and the branch is named",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { run, child } = yield* forked(owner)
        expect(yield* Effect.flip(ledger.purge(run))).toMatchObject({ _tag: "RunNotOver", run, branches: [child] })
        expect(yield* ledger.branches(run)).toHaveLength(2)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "a purged run is gone with its branches, and everything late is refused",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const bystander = yield* forked(owner)
        const { owned, run, branch, child } = yield* forked(owner)
        const other = yield* owner.own(child)
        yield* other.write(stepDone("step#1"), failed)
        yield* ledger.purge(run)

        for (const table of ["runs", "branches", "interrupts"]) {
          expect(yield* ledger.sql.unsafe(`SELECT 1 FROM fermata_${table} WHERE run_id = '${run}'`)).toEqual([])
        }
        for (const table of ["journal", "inbox", "erasing"]) {
          expect(yield* ledger.sql.unsafe(`SELECT 1 FROM fermata_${table} WHERE branch_id LIKE '${run}/%'`)).toEqual([])
        }
        const late = { _tag: "RunPurged", run }
        expect(yield* Effect.flip(startRun(ledger, run))).toMatchObject(late)
        expect(yield* Effect.flip(ledger.deliver(answer(branch, "approve#1", "d1", true)))).toMatchObject(late)
        expect(yield* Effect.flip(ledger.deliver(answer(child, "approve#2", "d2", true)))).toMatchObject(late)
        expect(yield* Effect.flip(ledger.cancel(branch, null))).toMatchObject(late)
        expect(
          yield* Effect.flip(ledger.settle({ branch, effect: "e", settlement: { _tag: "DidNotHappen" } }))
        ).toMatchObject(late)
        const again = { run, fork: forkId("late"), parent: branch, at: { _tag: "Checkpoint", seq: 1 } } as const
        expect(yield* Effect.flip(ledger.fork(again))).toMatchObject(late)
        expect(yield* Effect.flip(ledger.purge(run))).toMatchObject(late)
        expect(yield* Effect.flip(ledger.history(branch))).toMatchObject(late)

        // A worker that was paused before the end and wakes up now.
        const zombie = ledger.open(owned.claim)
        zombie.append(stepDone("step#9"))
        const loss = yield* Effect.async<unknown>((resume) =>
          zombie.onDurable(zombie.head, (lost) => resume(Effect.succeed(lost)))
        )
        expect(loss).toMatchObject({ _tag: "Fenced" })
        expect(yield* ledger.sql.unsafe(`SELECT 1 FROM fermata_journal WHERE branch_id LIKE '${run}/%'`)).toEqual([])

        expect(yield* ledger.branches(bystander.run)).toHaveLength(2)
        expect((yield* ledger.history(bystander.branch)).entries).toHaveLength(5)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "an unknown run cannot be purged",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const run = anyRun()
        expect(yield* Effect.flip(owner.ledger.purge(run))).toMatchObject({ _tag: "RunNotFound", id: run })
      })
    )
  )

  it.live(
    "a purge against forks and answers at once: either the fork exists, or the run is gone",
    onBench(({ owner, ledgers }) =>
      Effect.gen(function* () {
        for (let round = 0; round < 8; round++) {
          const owned = yield* owner.started()
          const { run } = owned.claim.run
          const { branch } = owned.journal
          yield* owned.write(opened("approve#1"), completed)
          const at = (index: number) => ledgers[index % ledgers.length] ?? ledgers[0]
          const [purge, ...others] = yield* Effect.all(
            [
              Effect.either(at(1).purge(run)),
              Effect.either(at(2).fork({ run, fork: forkId("f"), parent: branch, at: { _tag: "Checkpoint", seq: 2 } })),
              Effect.either(at(3).deliver(answer(branch, "approve#1", "d", 1))),
              Effect.either(startRun(at(0), run))
            ],
            { concurrency: "unbounded" }
          )
          const [fork] = others
          expect(purge._tag === "Right").toBe(fork._tag === "Left")
          if (fork._tag === "Left") expect(fork.left).toMatchObject({ _tag: "RunPurged" })
          else expect(yield* ledgers[0].branches(run)).toHaveLength(2)
        }
        expect((yield* ledgers[0].verify).problems).toEqual([])
      })
    )
  )
}
