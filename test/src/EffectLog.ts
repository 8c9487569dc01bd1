/**
 * The oracle outside the plane: what side effects really happened, as the outside world saw them.
 *
 * A SQLite file of its own, appended to by any number of processes; each write is its own transaction, on disk when it
 * returns. It also plays the receiver that keeps a promise: `rule` decides, for good, whether a key has happened or
 * never will.
 */
import Database from "better-sqlite3"

/** One firing that reached the outside. */
export interface Firing {
  /** Where it came from, as the writer names it: a step key, a position. */
  readonly at: string
  readonly effect: string
  readonly idempotencyKey: string
  readonly inputDigest: string
}

/** `n` is the order in which they happened; `pid` is the writer's own view of its process id. */
export interface Recorded extends Firing {
  readonly n: number
  readonly pid: number
}

export interface EffectLog {
  /** Records the firing, whether or not its key was there before; `"refused"` if the key was ruled never to happen. */
  readonly write: (firing: Firing) => "recorded" | "refused"
  /** All firings, in order. */
  readonly rows: () => ReadonlyArray<Recorded>
  /** The firings of a key. */
  readonly of: (idempotencyKey: string) => ReadonlyArray<Recorded>
  /** Whether the key has happened; if not, it never will: from now on `write` refuses it. */
  readonly rule: (idempotencyKey: string) => "happened" | "neverWill"
  readonly close: () => void
}

/**
 * Opens the log, which is created if the file does not exist. Synchronous, as are its operations: a kill falls before
 * or after.
 */
export const open = (file: string): EffectLog => {
  // Other processes write, too; none holds the lock for longer than one row takes.
  const database = new Database(file, { timeout: 60_000 })
  useWriteAheadLog(database)
  database.pragma("synchronous = FULL")
  database.exec(`
    CREATE TABLE IF NOT EXISTS firings (
      n INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, effect TEXT NOT NULL, idempotencyKey TEXT NOT NULL,
      inputDigest TEXT NOT NULL, pid INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS ruledOut (idempotencyKey TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  `)
  const insert = database.prepare<[string, string, string, string, number, string]>(
    `INSERT INTO firings (at, effect, idempotencyKey, inputDigest, pid)
     SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM ruledOut WHERE idempotencyKey = ?)`
  )
  const ruleOut = database.prepare<[string, string]>(
    `INSERT OR IGNORE INTO ruledOut (idempotencyKey)
     SELECT ? WHERE NOT EXISTS (SELECT 1 FROM firings WHERE idempotencyKey = ?)`
  )
  const all = database.prepare<[], Recorded>("SELECT * FROM firings ORDER BY n")
  const some = database.prepare<[string], Recorded>("SELECT * FROM firings WHERE idempotencyKey = ? ORDER BY n")
  return {
    write: ({ at, effect, idempotencyKey, inputDigest }) =>
      insert.run(at, effect, idempotencyKey, inputDigest, process.pid, idempotencyKey).changes === 1
        ? "recorded"
        : "refused",
    rows: () => all.all(),
    of: (key) => some.all(key),
    rule: (key) => {
      // One statement, so that no firing slips in between the look and the promise.
      ruleOut.run(key, key)
      return some.all(key).length > 0 ? "happened" : "neverWill"
    },
    close: () => database.close()
  }
}

/** The first process that opens a new file switches it; SQLite does not wait for the lock that this takes. */
const useWriteAheadLog = (database: Database.Database): void => {
  for (let attempts = 1; ; attempts++) {
    try {
      database.pragma("journal_mode = WAL")
      return
    } catch (cause) {
      if (!(cause instanceof Database.SqliteError) || !cause.code.startsWith("SQLITE_BUSY") || attempts === 1000)
        throw cause
    }
  }
}
