/**
 * CV at the load: a stored row with one thing about it changed is found when its run is loaded and by `verify`, nothing
 * is guessed, other runs go on, and once the row is as it was the run goes on, too.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger } from "@fermata/ledger"
import { Client, Interrupt, Node, Plane, Worker, Workflow } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect, Layer, Logger, Schema } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const work = Node.make("work", { input: Schema.Number, success: Schema.Number }, (n) => Effect.succeed(n + 1))
const Ask = Interrupt.make("ask", { answer: Schema.Number })
const Two = Workflow.make("two", { version: "1", input: Schema.Number, success: Schema.Number }, (n) =>
  Effect.gen(function* () {
    const first = yield* Ask()
    const worked = yield* work(n + first)
    return worked + (yield* Ask())
  })
)

type Row = Readonly<Record<string, unknown>>
type Table = "runs" | "journal" | "inbox"

/** One row, and what it is replaced by. */
interface Damage {
  readonly name: string
  readonly table: Table
  /** Of the damaged row: its run's id stands for `run`. */
  readonly where: (run: string) => Row
  /** `undefined` removes the row. */
  readonly damaged: (row: Row) => Row | undefined
}

const columns = {
  runs: ["run_id", "workflow", "version", "input", "input_digest", "created_at", "digest"],
  journal: ["branch_id", "seq", "kind", "key", "payload", "epoch", "at", "digest"],
  inbox: ["branch_id", "pos", "kind", "key", "delivery", "payload", "at", "digest"]
} as const

/** The value with one thing about it changed. */
const flipped = (column: string, value: unknown): unknown => {
  if (column === "seq" || column === "pos") return 300
  if (typeof value === "number" || /^\d+$/.test(String(value))) return Number(value) + 1
  const text = String(value)
  const at = Math.floor(text.length / 2)
  return `${text.slice(0, at)}${text[at] === "e" ? "f" : "e"}${text.slice(at + 1)}`
}

// run.started, interrupt.opened, interrupt.answered, step.succeeded, interrupt.opened
const keys: Record<Table, ReadonlyArray<(run: string) => Row>> = {
  runs: [(run) => ({ run_id: run })],
  journal: [1, 3, 4, 5].map((seq) => (run: string) => ({ branch_id: `${run}/main`, seq })),
  // The second answer is not in the journal yet.
  inbox: [(run) => ({ branch_id: `${run}/main`, pos: 2 })]
}

const damages = (["runs", "journal", "inbox"] as const).flatMap((table) =>
  keys[table].flatMap((where): ReadonlyArray<Damage> => {
    const row = `${table}-${String(Object.values(where("")).at(-1))}`
    return [
      ...columns[table].map((column) => ({
        name: `${row}-${column}`,
        table,
        where,
        damaged: (stored: Row) => ({ ...stored, [column]: flipped(column, stored[column]) })
      })),
      { name: `${row}-missing`, table, where, damaged: () => undefined }
    ]
  })
)

const keyColumns = { runs: ["run_id"], journal: ["branch_id", "seq"], inbox: ["branch_id", "pos"] } as const

/** The append-only triggers out of the way. */
const unlock = Effect.gen(function* () {
  const { dialect, sql } = yield* Ledger
  for (const table of ["runs", "journal", "inbox"]) {
    if (dialect === "pg") yield* sql.unsafe(`ALTER TABLE fermata_${table} DISABLE TRIGGER ALL`)
    else {
      yield* sql.unsafe(`DROP TRIGGER fermata_${table}_no_update`)
      yield* sql.unsafe(`DROP TRIGGER fermata_${table}_no_delete`)
    }
  }
})

const replace = (table: Table, before: Row | undefined, after: Row | undefined) =>
  Effect.gen(function* () {
    const { sql } = yield* Ledger
    const name = sql(`fermata_${table}`)
    if (before !== undefined) {
      const key = keyColumns[table].map((column) => sql`${sql(column)} = ${before[column]}`)
      yield* sql`DELETE FROM ${name} WHERE ${sql.and(key)}`
    }
    if (after !== undefined) yield* sql`INSERT INTO ${name} ${sql.insert(after)}`
  })

const inflict = (damage: Damage, run: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Ledger
    const key = Object.entries(damage.where(run)).map(([column, value]) => sql`${sql(column)} = ${value}`)
    const [row] = yield* sql<Row>`SELECT * FROM ${sql(`fermata_${damage.table}`)} WHERE ${sql.and(key)}`
    if (row === undefined) return assert.fail(`${damage.name} has no row`)
    const after = damage.damaged(row)
    assert.notDeepEqual(after, row)
    yield* replace(damage.table, row, after)
    return { ...damage, run, repair: replace(damage.table, after, row) }
  })

const withWorker = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.zipRight(Layer.build(Worker.layer({ workflows: [Two], residentBranches: 0, poll: "100 millis" })), body)
  )

const answer = (run: string, n: 1 | 2) =>
  Effect.flatMap(Client.Client, (client) =>
    client.resume(Ask, {
      branch: `${run}/main`,
      interrupt: `ask#${n}`,
      deliveryId: `d${n}`,
      value: n,
      intent: "retry"
    })
  )

const isAsking =
  (n: 1 | 2) =>
  ({ waitingFor }: Client.Description): boolean =>
    waitingFor.some((one) => one._tag === "Answer" && one.interrupt === `ask#${n}`)

/** What is damaged is logged, too; here it is expected. */
const quiet = Logger.remove(Logger.defaultLogger)

const damageSuite = <E>(place: string, plane: Layer.Layer<Plane.Plane, E>): void => {
  describe(`damaged rows on ${place}`, () => {
    it.scopedLive("are found when the run is loaded and by verify; other runs go on, and a repaired one does", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        const ledger = yield* Ledger
        const runs = [...damages.map(({ name }) => name), "sound"]
        yield* unlock
        for (const run of runs) yield* client.start(Two, 1, { run })
        yield* withWorker(
          Effect.gen(function* () {
            for (const run of runs) {
              yield* client.awaitStatus(run, isAsking(1))
              yield* answer(run, 1)
            }
            for (const run of runs) yield* client.awaitStatus(run, isAsking(2))
          })
        )
        // Nobody works: what comes in now is not in the journal yet.
        for (const run of runs) yield* answer(run, 2)
        assert.deepStrictEqual((yield* ledger.verify).problems, [])

        const inflicted = yield* Effect.forEach(damages, (damage) => inflict(damage, damage.name))
        const found = yield* ledger.verify
        const ids = new Set(found.problems.map(({ id }) => id.replace(/\/main$/, "")))
        for (const { name, run } of inflicted) {
          // A row that now names another run is reported under that name at least.
          const moved = /(run_id|branch_id)$/.test(name)
          assert.isTrue(moved || ids.has(run), `verify finds ${name}`)
        }
        for (const { run, table } of inflicted) {
          const history = yield* Effect.either(client.history(run))
          // What is not moved into the journal yet is no part of the history.
          assert.strictEqual(history._tag, table === "inbox" ? "Right" : "Left", run)
          if (history._tag === "Left") {
            const tag = history.left._tag
            assert.isTrue(tag === "CorruptJournal" || tag === "RunNotFound", `${run}: ${tag}`)
          }
        }

        yield* withWorker(
          Effect.gen(function* () {
            assert.strictEqual(yield* client.result(Two, "sound"), 5)
            for (const { run } of inflicted) {
              const stuck = yield* client.awaitStatus(run, ({ status }) => status === "stuck" || status === "completed")
              assert.deepStrictEqual(
                stuck.problems.map(({ _tag }) => _tag),
                ["CorruptJournal"],
                `${run} ${stuck.status}`
              )
              assert.include(stuck.problems[0]?.message, "does not verify")
            }
            // Nothing was written meanwhile, and nobody takes it up again and again.
            for (const { repair, run } of inflicted) {
              const before = yield* ledger.branch((yield* client.describe(run)).branch)
              assert.strictEqual(before.head, 5, run)
              yield* repair
              assert.isTrue(yield* client.unstick(before.branch))
              assert.strictEqual(yield* client.result(Two, run), 5, run)
            }
          })
        )
        assert.deepStrictEqual((yield* ledger.verify).problems, [])
      }).pipe(Effect.provide(Layer.merge(plane, quiet)))
    )

    it.scopedLive("a journal without its end is not taken for a shorter one", () =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        const ledger = yield* Ledger
        yield* unlock
        const { branch: root } = yield* client.start(Two, 1, { run: "r" })
        yield* withWorker(client.awaitStatus("r", isAsking(1)))
        yield* answer("r", 1)
        yield* withWorker(client.awaitStatus("r", isAsking(2)))
        yield* ledger.sql`DELETE FROM fermata_journal WHERE branch_id = ${"r/main"} AND seq > 2`
        const history = yield* Effect.flip(client.history("r"))
        assert.strictEqual(history._tag, "CorruptJournal")
        assert.include(history.message, "r/main")
        assert.isAbove((yield* ledger.verify).problems.length, 0)
        // The question that is gone is refused, not asked anew.
        const refused = yield* Effect.flip(answer("r", 2))
        assert.isTrue(refused._tag === "UnknownInterrupt" || refused._tag === "CorruptJournal", refused._tag)
        const forked = yield* Effect.flip(client.fork({ from: { branch: root, seq: 4 }, forkId: "f" }))
        assert.strictEqual(forked._tag, "CorruptJournal")
        // What is there and verifies can still be forked: the way back from the damage.
        const { branch } = yield* client.fork({ from: { branch: root, seq: 2 }, forkId: "g" })
        yield* withWorker(client.awaitStatus(branch, isAsking(1)))
      }).pipe(Effect.provide(Layer.merge(plane, quiet)))
    )
  })
}

const file = Layer.unwrapScoped(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-damage-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    ),
    (folder) => Plane.sqlite({ filename: join(folder, "plane.db"), synchronous: "normal" })
  )
)

damageSuite("a SQLite file", file)
damageSuite("PostgreSQL", Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url }))))
