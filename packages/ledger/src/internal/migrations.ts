/**
 * The tables, by migration. Both databases have the same shape; what differs between the dialects is in `dialectOf`.
 * A released migration is never edited: a change is another one at the end.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"

/**
 * Entry kinds that gates and forks look up by key. Rows of steps and effects stay out, so that the commonest appends cost
 * no index; a settlement, the one that looks for an effect's key, is rare enough to walk its branch.
 */
const indexedKinds = ["interrupt.opened", "interrupt.answered", "interrupt.closed", "inbox.unserved"] as const

/** Repeat it in a query's WHERE (as a literal) for SQLite to use the journal's index on keys. */
export const isIndexedKind = `kind IN (${indexedKinds.map((kind) => `'${kind}'`).join(", ")})`

/** What the dialects say differently. */
const dialectOf = (dialect: "sqlite" | "pg") => {
  // SQLite keeps rows in their primary key, but for a log, which it appends at its end: a commit that serves many
  // branches then writes few pages.
  const table = (
    name: string,
    columns: string,
    { fillFactor, log = false }: { fillFactor?: number; log?: boolean } = {}
  ) =>
    dialect === "sqlite"
      ? `CREATE TABLE ${name} (${columns}) STRICT${log ? "" : ", WITHOUT ROWID"}`
      : // Ids compare by code unit, as on SQLite, whatever the database's collation.
        `CREATE TABLE ${name} (${columns.replaceAll("TEXT", 'TEXT COLLATE "C"')})${fillFactor === undefined ? "" : ` WITH (fillfactor = ${fillFactor})`}`
  /** `condition` is over OLD; `undefined` refuses always. */
  const refuse = (name: string, on: string, event: "UPDATE" | "DELETE", unless: string | undefined) =>
    dialect === "sqlite"
      ? [
          `CREATE TRIGGER ${name} BEFORE ${event} ON ${on}${unless === undefined ? "" : ` WHEN NOT (${unless})`} ` +
            `BEGIN SELECT RAISE(ABORT, '${on} is append-only'); END`
        ]
      : [
          `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` +
            (unless === undefined ? "" : `IF ${unless} THEN RETURN OLD; END IF; `) +
            `RAISE EXCEPTION '${on} is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$`,
          `CREATE TRIGGER ${name} BEFORE ${event} ON ${on} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
          ...(event === "DELETE"
            ? [`CREATE TRIGGER ${name}_all BEFORE TRUNCATE ON ${on} FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`]
            : [])
        ]
  return { int: dialect === "sqlite" ? "INTEGER" : "BIGINT", table, refuse }
}

const appendOnly = (dialect: "sqlite" | "pg", name: string, erasing: string): ReadonlyArray<string> => {
  const { refuse } = dialectOf(dialect)
  return [
    ...refuse(`${name}_no_update`, name, "UPDATE", undefined),
    // TRUNCATE has no OLD row; PostgreSQL refuses it because `erasing` is never true of a null.
    ...refuse(
      `${name}_no_delete`,
      name,
      "DELETE",
      `EXISTS (SELECT 1 FROM fermata_erasing WHERE branch_id = ${erasing})`
    )
  ]
}

const foundation = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  return [
    // Lets purge delete, inside its transaction only.
    table("fermata_erasing", "branch_id TEXT NOT NULL PRIMARY KEY"),
    table(
      "fermata_runs",
      `run_id TEXT NOT NULL PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, input TEXT NOT NULL,
       input_digest TEXT NOT NULL, created_at ${int} NOT NULL, digest TEXT NOT NULL`
    ),
    table("fermata_purged", `run_id TEXT NOT NULL PRIMARY KEY, generation ${int} NOT NULL, purged_at ${int} NOT NULL`),
    table(
      "fermata_branches",
      `branch_id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT NOT NULL,
       definition TEXT NOT NULL, parent TEXT, fork_seq ${int}, fork_digest TEXT NOT NULL DEFAULT '',
       anchor ${int} NOT NULL DEFAULT 0, status TEXT NOT NULL, head ${int} NOT NULL, head_digest TEXT NOT NULL,
       epoch ${int} NOT NULL, owner TEXT, ready_at ${int}, inbox_head ${int} NOT NULL DEFAULT 0, problem TEXT,
       created_at ${int} NOT NULL`,
      // Appends change no indexed column: room on the page keeps their updates in it.
      { fillFactor: 60 }
    ),
    // LV: a claim looks at due rows only; a branch that waits for an answer is in neither index.
    `CREATE INDEX fermata_branches_claimable ON fermata_branches (definition, ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL`,
    `CREATE INDEX fermata_branches_owned ON fermata_branches (owner) WHERE owner IS NOT NULL`,
    `CREATE INDEX fermata_branches_stuck ON fermata_branches (definition) WHERE status = 'stuck'`,
    `CREATE INDEX fermata_branches_run ON fermata_branches (run_id)`,
    `CREATE INDEX fermata_branches_roots ON fermata_branches (created_at, run_id) WHERE parent IS NULL`,
    table(
      "fermata_journal",
      `branch_id TEXT NOT NULL, seq ${int} NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL,
       epoch ${int} NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (branch_id, seq)`,
      { log: true }
    ),
    `CREATE INDEX fermata_journal_keys ON fermata_journal (branch_id, key) WHERE ${isIndexedKind}`,
    table(
      "fermata_inbox",
      `branch_id TEXT NOT NULL, pos ${int} NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, delivery TEXT,
       payload TEXT NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (branch_id, pos), UNIQUE (branch_id, key), UNIQUE (branch_id, delivery)`
    ),
    table(
      "fermata_interrupts",
      `branch_id TEXT NOT NULL, interrupt_id TEXT NOT NULL, run_id TEXT NOT NULL, name TEXT NOT NULL,
       payload TEXT NOT NULL, seq ${int} NOT NULL, opened_at ${int} NOT NULL, PRIMARY KEY (branch_id, interrupt_id)`
    ),
    `CREATE INDEX fermata_interrupts_order ON fermata_interrupts (opened_at, branch_id, interrupt_id)`,
    `CREATE INDEX fermata_interrupts_run ON fermata_interrupts (run_id)`,
    table(
      "fermata_workers",
      `worker_id TEXT NOT NULL PRIMARY KEY, boot_id TEXT NOT NULL, pid_ns TEXT NOT NULL, pid ${int} NOT NULL,
       start_time TEXT NOT NULL, lease_until ${int} NOT NULL, state TEXT NOT NULL`
    ),
    `CREATE INDEX fermata_workers_alive ON fermata_workers (worker_id) WHERE state = 'alive'`,
    ...appendOnly(dialect, "fermata_runs", "OLD.run_id || '/main'"),
    ...appendOnly(dialect, "fermata_journal", "OLD.branch_id"),
    ...appendOnly(dialect, "fermata_inbox", "OLD.branch_id")
  ]
}

const chunks = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  return [
    table(
      "fermata_chunks",
      `branch_id TEXT NOT NULL, stream TEXT NOT NULL, pos ${int} NOT NULL, step TEXT NOT NULL, execution ${int} NOT NULL,
       n ${int} NOT NULL, payload TEXT NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (branch_id, stream, pos), UNIQUE (branch_id, step, execution, n)`
    ),
    ...appendOnly(dialect, "fermata_chunks", "OLD.branch_id")
  ]
}

/** Threads of LangGraph.js: their checkpoints and pending writes, and what the gate in front of them decides on. */
const threads = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  return [
    // Every transaction on a thread locks its row. It stays when the thread is deleted: its epoch refuses late runners.
    table(
      "fermata_threads",
      `thread_id TEXT NOT NULL PRIMARY KEY, epoch ${int} NOT NULL, runner TEXT, lease_until ${int} NOT NULL`
    ),
    table(
      "fermata_thread_checkpoints",
      `thread_id TEXT NOT NULL, ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, parent_id TEXT, body TEXT NOT NULL,
       channels TEXT NOT NULL, metadata TEXT NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (thread_id, ns, checkpoint_id)`
    ),
    // The compare-and-set on a branch's head looks for the children of a checkpoint.
    `CREATE INDEX fermata_thread_children ON fermata_thread_checkpoints (thread_id, ns, parent_id)`,
    table(
      "fermata_thread_values",
      `thread_id TEXT NOT NULL, value_digest TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (thread_id, value_digest)`
    ),
    // No reference to the checkpoint: a task may have written before its checkpoint is stored.
    table(
      "fermata_thread_writes",
      `thread_id TEXT NOT NULL, ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx ${int} NOT NULL,
       channel TEXT NOT NULL, path TEXT NOT NULL, value TEXT NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)`
    ),
    table(
      "fermata_thread_interrupts",
      `thread_id TEXT NOT NULL, ns TEXT NOT NULL, interrupt_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
       task_id TEXT NOT NULL, ordinal ${int} NOT NULL, question TEXT NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (thread_id, ns, interrupt_id)`
    ),
    `CREATE INDEX fermata_thread_asked ON fermata_thread_interrupts (thread_id, ns, checkpoint_id)`,
    // CO: the unique keys are the gate's second guard.
    table(
      "fermata_thread_answers",
      `thread_id TEXT NOT NULL, interrupt_id TEXT NOT NULL, delivery TEXT NOT NULL, value TEXT NOT NULL,
       value_digest TEXT NOT NULL, at ${int} NOT NULL, digest TEXT NOT NULL,
       PRIMARY KEY (thread_id, interrupt_id), UNIQUE (thread_id, delivery)`
    ),
    table(
      "fermata_thread_forks",
      `thread_id TEXT NOT NULL, fork_id TEXT NOT NULL, request_digest TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
       at ${int} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (thread_id, fork_id)`
    ),
    table(
      "fermata_thread_effects",
      `thread_id TEXT NOT NULL, task TEXT NOT NULL, position TEXT NOT NULL, try ${int} NOT NULL, effect_key TEXT NOT NULL,
       name TEXT NOT NULL, delivery TEXT NOT NULL, input TEXT NOT NULL, input_digest TEXT NOT NULL, attempt ${int} NOT NULL,
       answered ${int} NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL, runner TEXT NOT NULL, over_at ${int},
       at ${int} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (thread_id, task, position, try)`
    )
  ]
}

/** Which definitions a worker serves, as a JSON array: `null` for workers that registered before this was kept. */
const serves = (): ReadonlyArray<string> => [`ALTER TABLE fermata_workers ADD COLUMN serves TEXT`]

/** Runs that stand in queues, and dedupe keys. */
const queues = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  const text = dialect === "sqlite" ? "TEXT" : 'TEXT COLLATE "C"'
  const add = (column: string) => `ALTER TABLE fermata_branches ADD COLUMN ${column}`
  return [
    add(`queue ${text}`),
    add(`queue_key ${text}`),
    add(`priority ${int}`),
    add(`queue_rank ${int}`),
    // All of them hold rows of queued branches only: others pay nothing.
    `CREATE INDEX fermata_branches_in_line ON fermata_branches (queue, priority DESC, queue_rank, ready_at)
      WHERE queue IS NOT NULL AND owner IS NULL AND status = 'ready'`,
    `CREATE INDEX fermata_branches_of_key ON fermata_branches (queue, queue_key, priority, queue_rank)
      WHERE queue IS NOT NULL AND epoch = 0`,
    `CREATE INDEX fermata_branches_queue_later ON fermata_branches (queue, ready_at)
      WHERE queue IS NOT NULL AND owner IS NULL AND status IN ('waiting', 'stuck') AND ready_at IS NOT NULL`,
    `CREATE INDEX fermata_branches_slots ON fermata_branches (queue, queue_key) WHERE queue IS NOT NULL AND owner IS NOT NULL`,
    `CREATE INDEX fermata_branches_begun ON fermata_branches (queue, queue_key)
      WHERE queue IS NOT NULL AND epoch > 0 AND status IN ('ready', 'running', 'waiting', 'stuck')`,
    table(
      "fermata_queues",
      `queue TEXT NOT NULL PRIMARY KEY, concurrency ${int}, key_concurrency ${int}, rate_limit ${int}, rate_per ${int},
       hold TEXT NOT NULL, paused ${int} NOT NULL, full_at ${int} NOT NULL`
    ),
    table(
      "fermata_dedupe",
      `workflow TEXT NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, since ${int} NOT NULL, PRIMARY KEY (workflow, key)`
    ),
    `CREATE INDEX fermata_dedupe_run ON fermata_dedupe (run_id)`
  ]
}

/** Kinds that replies, queries and the gate of an interrupt with a deadline look up by key. */
const messageKinds = ["update.replied", "update.rejected", "view.published", "interrupt.expired"] as const

/** As {@link isIndexedKind}, for the index on what messages leave in the journal. */
export const isMessageKind = `kind IN (${messageKinds.map((kind) => `'${kind}'`).join(", ")})`

const messages = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int } = dialectOf(dialect)
  const text = dialect === "sqlite" ? "TEXT" : 'TEXT COLLATE "C"'
  return [
    // What the run's workflow takes, as it was started; and what the owner said of the branch when it let go of it.
    `ALTER TABLE fermata_branches ADD COLUMN accepts ${text}`,
    `ALTER TABLE fermata_branches ADD COLUMN standing ${text}`,
    `ALTER TABLE fermata_interrupts ADD COLUMN assignee ${text}`,
    `ALTER TABLE fermata_interrupts ADD COLUMN deadline ${int}`,
    `ALTER TABLE fermata_interrupts ADD COLUMN task ${text}`,
    `CREATE INDEX fermata_interrupts_assignee ON fermata_interrupts (assignee, opened_at, branch_id, interrupt_id) WHERE assignee IS NOT NULL`,
    `CREATE INDEX fermata_journal_messages ON fermata_journal (branch_id, key, seq) WHERE ${isMessageKind}`
  ]
}

const schedules = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  return [
    table(
      "fermata_schedules",
      `schedule_id TEXT NOT NULL PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, input TEXT NOT NULL,
       input_digest TEXT NOT NULL, accepts TEXT, spec TEXT NOT NULL, overlap TEXT NOT NULL, catch_up ${int} NOT NULL,
       jitter ${int} NOT NULL, queue TEXT, queue_key TEXT, priority ${int}, paused ${int} NOT NULL, next_at ${int},
       due_at ${int}, look_at ${int}, waited ${int} NOT NULL, last_at ${int}, last_run TEXT, fired ${int} NOT NULL,
       missed ${int} NOT NULL, overlapped ${int} NOT NULL, created_at ${int} NOT NULL`
    ),
    // LV: only due rows are looked at.
    `CREATE INDEX fermata_schedules_due ON fermata_schedules (look_at) WHERE look_at IS NOT NULL`
  ]
}

/** What runs are found by: the values of their root branches, derived from the journal. */
const tags = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { table } = dialectOf(dialect)
  return [
    table(
      "fermata_tags",
      `run_id TEXT NOT NULL, name TEXT NOT NULL, text TEXT, number ${dialect === "sqlite" ? "REAL" : "DOUBLE PRECISION"},
       PRIMARY KEY (run_id, name)`
    ),
    `CREATE INDEX fermata_tags_text ON fermata_tags (name, text, run_id) WHERE text IS NOT NULL`,
    `CREATE INDEX fermata_tags_number ON fermata_tags (name, number, run_id) WHERE number IS NOT NULL`
  ]
}

/** Documents by namespace and key. */
const items = (dialect: "sqlite" | "pg"): ReadonlyArray<string> => {
  const { int, table } = dialectOf(dialect)
  return [
    table(
      "fermata_items",
      `ns TEXT NOT NULL, item_key TEXT NOT NULL, value TEXT NOT NULL, vectors TEXT, created_at ${int} NOT NULL,
       updated_at ${int} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (ns, item_key)`
    )
  ]
}

/** Runs the statements that a migration has in the database's dialect. */
const statements = (of: (dialect: "sqlite" | "pg") => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const found = sql.onDialectOrElse({ pg: () => of("pg"), orElse: () => of("sqlite") })
    for (const statement of found) yield* sql.unsafe(statement)
  })

/** By `<number>_<name>`; numbers rise. */
export const migrations: Record<string, Effect.Effect<void, unknown, SqlClient>> = {
  "1_foundation": statements(foundation),
  "2_chunks": statements(chunks),
  "3_threads": statements(threads),
  "4_serves": statements(serves),
  "5_queues": statements(queues),
  "6_messages": statements(messages),
  "7_schedules": statements(schedules),
  "8_tags": statements(tags),
  "9_items": statements(items)
}

/** The newest migration that this code knows; a database beyond it is left alone. */
export const newestMigration = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))
