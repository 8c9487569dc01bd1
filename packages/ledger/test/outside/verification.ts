/** CV: damage to any column is found at load and by `verify`, and nothing else is. */
import { expect, it } from "@effect/vitest"
import type { BranchId, RunId } from "@fermata/contract"
import type { Ledger } from "@fermata/ledger"
import { Effect } from "effect"
import {
  answer,
  answered,
  forkId,
  opened,
  type Owner,
  delivery,
  interruptId,
  makeOwner,
  stepDone,
  valid
} from "./Owner.js"
import { benchOf, openLedger, type Place } from "./Place.js"

interface Damaged {
  readonly run: RunId
  readonly branch: BranchId
  readonly child: BranchId
  /** With the append-only triggers out of the way: writes, hands on, and writes back. */
  readonly during: <A, E>(damage: string, repair: string, look: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** A run with answers journaled and not, and a fork, in a database whose triggers were taken away. */
const damageable = (owner: Owner) =>
  Effect.gen(function* () {
    const { ledger } = owner
    const { sql } = ledger
    for (const table of ["runs", "journal", "inbox"]) {
      if (ledger.dialect === "pg") yield* sql.unsafe(`ALTER TABLE fermata_${table} DISABLE TRIGGER ALL`)
      else {
        yield* sql.unsafe(`DROP TRIGGER IF EXISTS fermata_${table}_no_update`)
        yield* sql.unsafe(`DROP TRIGGER IF EXISTS fermata_${table}_no_delete`)
      }
    }
    const owned = yield* owner.started()
    const { run } = owned.claim.run
    const { branch } = owned.journal
    yield* owned.write(stepDone("step#1"), opened("approve#1"), opened("approve#2"), opened("approve#3"))
    yield* ledger.deliver(answer(branch, "approve#1", "d1", true))
    yield* owned.write(answered("approve#1", true, "d1", 1), stepDone("step#2"))
    yield* ledger.deliver(answer(branch, "approve#2", "d2", true))
    const { branch: child } = yield* ledger.fork({
      run,
      fork: forkId("f"),
      parent: branch,
      at: {
        _tag: "Interrupt",
        interrupt: interruptId("approve#3"),
        name: "approve",
        delivery: delivery("d3"),
        value: valid(1)
      }
    })
    const during: Damaged["during"] = (damage, repair, look) =>
      Effect.acquireUseRelease(
        Effect.orDie(sql.unsafe(damage)),
        () => look,
        () => Effect.orDie(sql.unsafe(repair))
      )
    return { run, branch, child, during } satisfies Damaged
  })

/** The value with one thing about it changed. */
const flipped = (value: unknown): string => {
  if (value === null) return "'x'"
  if (typeof value === "number" || /^\d+$/.test(String(value))) return String(Number(value) + 1)
  const text = String(value)
  // In the middle, by one letter: JSON stays JSON where it can.
  const at = Math.floor(text.length / 2)
  const letter = text[at] === "e" ? "f" : "e"
  return `'${text.slice(0, at)}${letter}${text.slice(at + 1)}'`
}

const literal = (value: unknown): string =>
  value === null ? "NULL" : typeof value === "number" ? String(value) : `'${String(value)}'`

const reading = (ledger: Ledger, { branch, run }: Damaged) =>
  Effect.all({
    history: Effect.either(ledger.history(branch)),
    inbox: Effect.either(ledger.inbox(branch, 0)),
    run: Effect.either(ledger.run(run)),
    verify: ledger.verify
  })

export const verificationSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "a sound database has no problems, and everything in it was counted",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const before = yield* owner.ledger.verify
        yield* damageable(owner)
        const { runs, branches, entries, problems } = yield* owner.ledger.verify
        expect(problems).toEqual([])
        expect({ runs, branches, entries }).toEqual({
          runs: before.runs + 1,
          branches: before.branches + 2,
          entries: before.entries + 8
        })
      })
    )
  )

  const columns = {
    runs: ["run_id", "workflow", "version", "input", "input_digest", "created_at", "digest"],
    journal: ["branch_id", "seq", "kind", "key", "payload", "epoch", "at", "digest"],
    inbox: ["branch_id", "pos", "kind", "key", "delivery", "payload", "at", "digest"]
  }
  for (const [table, names] of Object.entries(columns)) {
    it.live(
      `a change in any column of ${table} is found by verify, and at load`,
      onBench(({ owner }) =>
        Effect.gen(function* () {
          const { ledger } = owner
          const stored = yield* damageable(owner)
          const where =
            table === "runs"
              ? `run_id = '${stored.run}'`
              : table === "journal"
                ? `branch_id = '${stored.branch}' AND seq = 3`
                : `branch_id = '${stored.branch}' AND pos = 1`
          const [row] = yield* ledger.sql.unsafe<Record<string, unknown>>(
            `SELECT * FROM fermata_${table} WHERE ${where}`
          )
          if (row === undefined) throw new Error("there is nothing to damage")
          for (const name of names) {
            // Where the row's address is damaged, the new address finds it again.
            const next = name === "seq" ? "300" : name === "pos" ? "300" : flipped(row[name])
            const again = where.replace(new RegExp(`\\b${name} = (\\d+|'[^']*')`), `${name} = ${next}`)
            const found = yield* stored.during(
              `UPDATE fermata_${table} SET ${name} = ${next} WHERE ${where}`,
              `UPDATE fermata_${table} SET ${name} = ${literal(row[name])} WHERE ${again}`,
              reading(ledger, stored)
            )
            const label = `${table}.${name}`
            expect(found.verify.problems.length, label).toBeGreaterThan(0)
            const loads = table === "inbox" ? found.inbox : table === "runs" ? found.run : found.history
            expect(loads._tag, label).toBe("Left")
            if (loads._tag === "Left") {
              expect(loads.left._tag, label).toBe(name === "run_id" ? "RunNotFound" : "CorruptJournal")
            }
          }
          expect((yield* ledger.verify).problems).toEqual([])
        })
      )
    )
  }

  it.live(
    "a gate is not moved by damaged rows: the delivery is refused as corrupt and nothing is written",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const stored = yield* damageable(owner)
        const { branch } = stored
        const late = (key: string) => Effect.flip(ledger.deliver(answer(branch, key, "late", false)))
        // The answer's row says another delivery.
        const other = yield* stored.during(
          `UPDATE fermata_inbox SET delivery = 'late' WHERE branch_id = '${branch}' AND pos = 2`,
          `UPDATE fermata_inbox SET delivery = 'd2' WHERE branch_id = '${branch}' AND pos = 2`,
          late("approve#2")
        )
        expect(other).toMatchObject({ _tag: "CorruptJournal", table: "inbox" })
        // The entry that closes the gate is hidden under another key, and so is its row.
        const hidden = yield* stored.during(
          `UPDATE fermata_journal SET key = 'x' WHERE branch_id = '${branch}' AND seq = 6`,
          `UPDATE fermata_journal SET key = 'approve#1' WHERE branch_id = '${branch}' AND seq = 6`,
          stored.during(
            `UPDATE fermata_inbox SET key = 'x' WHERE branch_id = '${branch}' AND pos = 1`,
            `UPDATE fermata_inbox SET key = 'answer:approve#1' WHERE branch_id = '${branch}' AND pos = 1`,
            late("approve#1")
          )
        )
        expect(hidden).toMatchObject({ _tag: "CorruptJournal" })
        expect(yield* ledger.inbox(branch, 0)).toHaveLength(2)
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "a truncated journal, a missing entry and a missing inbox row are found",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const stored = yield* damageable(owner)
        for (const [table, where] of [
          ["journal", "seq = 7"],
          ["journal", "seq >= 4"],
          ["journal", "seq = 2"],
          ["inbox", "pos = 1"],
          ["inbox", "pos = 2"]
        ]) {
          const name = `fermata_${table}`
          const condition = `branch_id = '${stored.branch}' AND ${where}`
          const found = yield* stored.during(
            `CREATE TABLE removed AS SELECT * FROM ${name} WHERE ${condition}`,
            `DROP TABLE removed`,
            stored.during(
              `DELETE FROM ${name} WHERE ${condition}`,
              `INSERT INTO ${name} SELECT * FROM removed`,
              reading(ledger, stored)
            )
          )
          expect(found.verify.problems.length, `${table} ${where}`).toBeGreaterThan(0)
          if (table === "journal") expect(found.history._tag, where).toBe("Left")
          if (where === "pos = 1") expect(found.inbox._tag).toBe("Left")
        }
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "derived columns and rows that say something else than the journal are found",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const stored = yield* damageable(owner)
        const of = (branch: BranchId, column: string, value: string, back: string) =>
          [
            `UPDATE fermata_branches SET ${column} = ${value} WHERE branch_id = '${branch}'`,
            `UPDATE fermata_branches SET ${column} = ${back} WHERE branch_id = '${branch}'`
          ] as const
        const row = yield* ledger.branch(stored.branch)
        const child = yield* ledger.branch(stored.child)
        const [fork] = yield* ledger.sql.unsafe<{ readonly fork_digest: string }>(
          `SELECT fork_digest FROM fermata_branches WHERE branch_id = '${stored.child}'`
        )
        const open = `branch_id = '${stored.branch}' AND interrupt_id = 'approve#3'`
        const damages: ReadonlyArray<readonly [string, string]> = [
          of(row.branch, "head", `${row.head - 1}`, `${row.head}`),
          of(row.branch, "head_digest", "'x'", `'${row.headDigest}'`),
          of(row.branch, "status", "'completed'", `'${row.status}'`),
          of(row.branch, "owner", "NULL", `'${row.owner ?? ""}'`),
          of(row.branch, "inbox_head", "1", "2"),
          of(row.branch, "inbox_head", "3", "2"),
          of(row.branch, "definition", "'other@1'", "'refund@1'"),
          of(child.branch, "version", "'2'", "'1'"),
          of(child.branch, "fork_seq", "4", "5"),
          of(child.branch, "parent", "'nobody/main'", `'${stored.branch}'`),
          of(child.branch, "fork_digest", "'x'", `'${fork?.fork_digest ?? ""}'`),
          of(child.branch, "ready_at", "NULL", `${child.readyAt ?? 0}`),
          [
            `UPDATE fermata_interrupts SET seq = 4 WHERE ${open}`,
            `UPDATE fermata_interrupts SET seq = 5 WHERE ${open}`
          ],
          [
            `UPDATE fermata_interrupts SET interrupt_id = 'approve#9' WHERE ${open}`,
            `UPDATE fermata_interrupts SET interrupt_id = 'approve#3' WHERE ${open.replace("#3", "#9")}`
          ]
        ]
        for (const [damage, repair] of damages) {
          const { problems } = yield* stored.during(damage, repair, ledger.verify)
          expect(problems.length, damage).toBeGreaterThan(0)
        }
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  it.live(
    "rows that belong to nothing, and a row that was cut to fit its truncated journal, are named",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const stored = yield* damageable(owner)
        const { branch, child } = stored
        const entries = (yield* ledger.history(branch)).entries
        const [last, previous] = [entries.at(-1), entries.at(-2)]
        const row = (id: string, seq: number) =>
          `INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
           VALUES ('${id}', ${seq}, 'step.succeeded', 'x', '{}', 0, 0, 'x')`
        const unrow = (id: string, seq: number) =>
          `DELETE FROM fermata_journal WHERE branch_id = '${id}' AND seq = ${seq}`
        const head = (seq: number, digest: string | undefined) =>
          `UPDATE fermata_branches SET head = ${seq}, head_digest = '${digest ?? ""}' WHERE branch_id = '${branch}'`
        const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
          [head(entries.length - 1, previous?.digest), head(entries.length, last?.digest), /goes on beyond the head/],
          [row(child, 1), unrow(child, 1), /before its fork point/],
          [row("nobody/main", 1), unrow("nobody/main", 1), /branch that does not exist/],
          [
            `UPDATE fermata_branches SET run_id = 'nobody' WHERE branch_id = '${child}'`,
            `UPDATE fermata_branches SET run_id = '${stored.run}' WHERE branch_id = '${child}'`,
            /run nobody does not exist/
          ],
          [
            `UPDATE fermata_branches SET run_id = 'nobody' WHERE branch_id = '${branch}'`,
            `UPDATE fermata_branches SET run_id = '${stored.run}' WHERE branch_id = '${branch}'`,
            /root branch is missing/
          ]
        ]
        for (const [damage, repair, detail] of cases) {
          const { problems } = yield* stored.during(damage, repair, ledger.verify)
          expect(problems.map((problem) => problem.detail).join("\n"), damage).toMatch(detail)
        }
        expect((yield* ledger.verify).problems).toEqual([])
      })
    )
  )

  // Its own ledger: what an owner wrote is not to be repaired.
  it.live("an owner that delivered an inbox row twice, or another than it says, is found", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const ledger = yield* Effect.flatMap(place.fresh, openLedger)
        const owned = yield* (yield* makeOwner(ledger)).started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"), opened("approve#2"))
        yield* ledger.deliver(answer(branch, "approve#1", "d1", 1))
        yield* owned.write(answered("approve#1", 1, "d1", 1))
        expect((yield* ledger.verify).problems).toEqual([])
        yield* owned.write(answered("approve#2", 1, "d1", 1))
        const details = (yield* ledger.verify).problems.map(({ detail }) => detail)
        expect(details).toContain("row 1 is not what entry 5 delivered")
        expect(details).toContain("it delivers inbox row 1 after row 1")
      })
    )
  )

  it.live(
    "a branch that moves while it is verified is not taken for a damaged one",
    onBench(({ owner, ledgers }) =>
      Effect.gen(function* () {
        const owned = yield* owner.started()
        const { branch } = owned.journal
        let turn = 0
        const work = Effect.gen(function* () {
          const n = ++turn
          yield* owned.write(opened(`approve#${n}`), stepDone(`step#${n}`))
          yield* owner.ledger.deliver(answer(branch, `approve#${n}`, `d${n}`, n))
          yield* owned.write(answered(`approve#${n}`, n, `d${n}`, n))
        })
        const watch = Effect.gen(function* () {
          for (let n = 0; n < 15; n++) expect((yield* (ledgers.at(-1) ?? ledgers[0]).verify).problems).toEqual([])
        })
        yield* Effect.raceFirst(watch, Effect.forever(work))
        expect(turn).toBeGreaterThan(1)
      })
    )
  )
}
