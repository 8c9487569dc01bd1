/** Chunks: said under the owner's epoch, once each, in one order, and verified when read. */
import { expect, it } from "@effect/vitest"
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { completed, makeOwner, type Owned } from "./Owner.js"
import { benchOf, openLedger, type Place } from "./Place.js"

const request = (owned: Owned, execution: number | undefined, ...chunks: ReadonlyArray<readonly [string, number]>) => ({
  branch: owned.journal.branch,
  epoch: owned.journal.epoch,
  step: "talk#1",
  execution,
  chunks: chunks.map(([stream, n]) => ({ stream, n, payload: `"${stream}${n}"` }))
})

const read = (owned: Owned, stream: string, after = 0) =>
  Effect.map(
    owned.ledger.chunks({ branch: owned.journal.branch, stream, after, limit: 10 }),
    ({ chunks, over }) => [chunks.map(({ execution, payload, pos }) => [pos, payload, execution]), over] as const
  )

export const chunkSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "are stored once, each stream in an order of its own",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const owned = yield* owner.started()
        const { ledger } = owned
        expect(yield* ledger.emit(request(owned, undefined, ["a", 0], ["b", 1], ["a", 2]))).toBe(1)
        // As after a commit whose reply was lost: what is there is passed over.
        expect(yield* ledger.emit(request(owned, 1, ["a", 2], ["b", 3]))).toBe(1)
        expect(yield* ledger.emit(request(owned, undefined, ["a", 0]))).toBe(2)
        expect(yield* read(owned, "a")).toEqual([
          [
            [1, `"a0"`, 1],
            [2, `"a2"`, 1],
            [3, `"a0"`, 2]
          ],
          false
        ])
        expect(yield* read(owned, "b", 1)).toEqual([[[2, `"b3"`, 1]], false])
        yield* owned.write(completed)
        expect(yield* read(owned, "b", 2)).toEqual([[], true])
      })
    )
  )

  it.live(
    "of an owner that was fenced are refused",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const fenced = yield* owner.started()
        const { branch } = fenced.journal
        yield* fenced.park
        expect(yield* Effect.flip(fenced.ledger.emit(request(fenced, undefined, ["a", 0])))).toMatchObject({
          _tag: "Fenced",
          branch
        })
        yield* fenced.ledger.cancel(branch, null)
        const owned = yield* owner.own(branch)
        yield* owned.ledger.emit(request(owned, undefined, ["a", 0]))
        expect(yield* Effect.flip(fenced.ledger.emit(request(fenced, 1, ["a", 1])))).toMatchObject({ _tag: "Fenced" })
        expect(yield* read(owned, "a")).toEqual([[[1, `"a0"`, 1]], false])
      })
    )
  )

  it.live("that were changed or are missing are found, when read and by verify; purge takes them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const ledger = yield* openLedger(yield* place.fresh)

        const owner = yield* makeOwner(ledger)
        const owned = yield* owner.started()
        yield* ledger.emit(request(owned, undefined, ["a", 0], ["a", 1], ["a", 2]))
        expect((yield* ledger.verify).problems).toEqual([])
        const refused = yield* Effect.exit(ledger.sql`UPDATE fermata_chunks SET payload = '"x"'`)
        expect(refused._tag).toBe("Failure")
        yield* unguarded(ledger.sql, ledger.dialect)
        yield* ledger.sql`UPDATE fermata_chunks SET payload = '"x"' WHERE pos = 2`
        const changed = { _tag: "CorruptJournal", table: "chunks", id: owned.journal.branch, seq: 2 }
        expect(yield* Effect.flip(read(owned, "a"))).toMatchObject(changed)
        expect((yield* ledger.verify).problems).toMatchObject([changed])
        yield* ledger.sql`DELETE FROM fermata_chunks WHERE pos = 2`
        expect(yield* Effect.flip(read(owned, "a"))).toMatchObject({ ...changed, detail: "the chunk is missing" })
        expect((yield* ledger.verify).problems).toMatchObject([changed])
        yield* owned.write(completed)
        yield* ledger.purge(owned.claim.run.run)
        expect(yield* ledger.sql`SELECT 1 AS one FROM fermata_chunks`).toEqual([])
        expect(yield* Effect.flip(read(owned, "a"))).toMatchObject({ _tag: "RunPurged" })
      })
    )
  )
}

/** Damage comes from outside: the triggers do not see it. */
const unguarded = (sql: SqlClient, dialect: "sqlite" | "pg") =>
  dialect === "pg"
    ? sql`ALTER TABLE fermata_chunks DISABLE TRIGGER ALL`
    : Effect.forEach(["update", "delete"], (what) => sql.unsafe(`DROP TRIGGER fermata_chunks_no_${what}`))
