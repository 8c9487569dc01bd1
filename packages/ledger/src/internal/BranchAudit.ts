/**
 * Everything that must hold of one branch: its chain, its inbox, and the columns and rows that are derived from them.
 *
 * The audit runs beside workers. What it walks first never changes any more; what may change is caught up with and
 * compared in a short transaction under the branch's lock, so that a moving branch is not taken for a damaged one.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { type Entry, isTerminal } from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, RunRow, TagValue } from "../Ledger.js"
import { CorruptJournal, type LedgerError } from "../LedgerError.js"
import { lockBranch } from "./BranchRows.js"
import { closesInterrupt } from "./Commit.js"
import type { Database } from "./Database.js"
import { entryDigest } from "./Digest.js"
import { readTags, tagsOf } from "./Finding.js"
import { firstEventDigest } from "./Forks.js"
import { answerKey, type AnswerPayload, verifyInboxRow } from "./Gate.js"
import { type Ancestor, readLineage } from "./History.js"
import { digestAt, entriesAfter, letOthersRun, missingEntry, pageSize, payloadIf } from "./HistoryLookup.js"
import { settlementKey } from "./Settlements.js"
import { claimedAs, isOver, type RawEntry, type RawInbox, type RawInterrupt } from "./Rows.js"

/** What was found on one branch; `undefined` if it was purged meanwhile. */
export interface AuditedBranch {
  readonly entries: number
  readonly problems: ReadonlyArray<CorruptJournal>
}

/** How far the audit of a branch has come. Each page is taken in synchronously, so that a retried query repeats nothing. */
interface Progress {
  seq: number
  /** Digest that the next entry chains over; `undefined` after a gap, whose successor cannot be judged. */
  digest: string | undefined
  entries: number
  last: Entry | undefined
  /** Open interrupts by the journal: position of their `opened` entry. */
  readonly open: Map<string, number>
  /** What the run is found by, by its root's journal. */
  readonly tags: Map<string, TagValue>
  /** Highest inbox position that was moved into the journal. */
  moved: number
  inboxPos: number
  readonly problems: Array<CorruptJournal>
}

export const auditBranch = (
  db: Database,
  run: RunRow,
  branch: BranchInfo
): Effect.Effect<AuditedBranch | undefined, LedgerError> =>
  Effect.gen(function* () {
    const started = yield* Effect.either(db.query("verify: read a lineage", start(db, run, branch)))
    if (started._tag === "Left") {
      if (started.left._tag !== "CorruptJournal") return yield* started.left
      return { entries: 0, problems: [started.left] }
    }
    const progress = started.right
    yield* letOthersRun
    yield* db.query("verify: read a branch", advance(db, progress, branch))
    return yield* db.transaction("verify: compare a branch", () =>
      Effect.gen(function* () {
        const row = yield* lockBranch(db, branch.branch)
        if (row === undefined) return undefined
        yield* advance(db, progress, row)
        const derived = yield* derivedProblems(db, run, row, progress)
        return { entries: progress.entries, problems: [...progress.problems, ...derived] }
      })
    )
  })

/** As {@link auditBranch}, within a transaction that holds the branch still. */
export const auditWithin = (
  db: Database,
  run: RunRow,
  branch: BranchInfo
): Effect.Effect<ReadonlyArray<CorruptJournal>, SqlError> =>
  Effect.gen(function* () {
    const progress = yield* start(db, run, branch)
    yield* advance(db, progress, branch)
    return [...progress.problems, ...(yield* derivedProblems(db, run, branch, progress))]
  }).pipe(Effect.catchTag("CorruptJournal", (problem) => Effect.succeed([problem])))

const start = (db: Database, run: RunRow, branch: BranchInfo): Effect.Effect<Progress, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const lineage = yield* readLineage(db, branch)
    const seq = branch.parent?.seq ?? 0
    const digest = yield* digestAt(db, run, lineage, seq)
    return {
      seq,
      digest,
      entries: 0,
      last: undefined,
      open: yield* inheritedOpen(db, lineage.slice(0, -1)),
      tags: new Map(),
      moved: 0,
      inboxPos: 0,
      // The ancestor's own audit says more; here it is what the fork stands on.
      problems: digest === undefined ? [damage("journal", branch.branch, seq, `its fork point ${seq} is missing`)] : []
    }
  })

/** The interrupts that are open at a fork point, by the ancestors' journals. */
const inheritedOpen = (
  db: Database,
  ancestors: ReadonlyArray<Ancestor>
): Effect.Effect<Map<string, number>, SqlError> =>
  Effect.gen(function* () {
    const open = new Map<string, number>()
    for (const { branch, from, to } of ancestors) {
      let seq = from - 1
      while (seq < to) {
        const rows = yield* db.sql<Pick<RawEntry, "seq" | "kind" | "key">>`
          SELECT seq, kind, key FROM fermata_journal
          WHERE branch_id = ${branch.branch} AND seq > ${seq} AND seq <= ${to}
            AND kind IN ('interrupt.opened', 'interrupt.answered', 'interrupt.closed', 'interrupt.expired')
          ORDER BY seq LIMIT ${pageSize}`
        for (const row of rows) {
          seq = Number(row.seq)
          if (row.kind === "interrupt.opened") open.set(row.key, seq)
          else open.delete(row.key)
        }
        if (rows.length < pageSize) break
      }
    }
    return open
  })

/** Goes on to the row's head and inbox head. */
const advance = (db: Database, progress: Progress, row: BranchInfo): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const id = row.branch
    while (progress.inboxPos < row.inboxHead) {
      const rows = yield* db.sql<RawInbox>`
        SELECT * FROM fermata_inbox WHERE branch_id = ${id} AND pos > ${progress.inboxPos} AND pos <= ${row.inboxHead}
        ORDER BY pos LIMIT ${pageSize}`
      for (const raw of rows) yield* takeInbox(progress, id, raw)
      if (rows.length < pageSize && progress.inboxPos < row.inboxHead) {
        progress.problems.push(damage("inbox", id, progress.inboxPos + 1, `row ${progress.inboxPos + 1} is missing`))
        progress.inboxPos = row.inboxHead
      }
    }
    while (progress.seq < row.head) {
      const page = yield* entriesAfter(db, id, progress.seq, row.head)
      const moves = movesOf(page)
      const stored =
        moves.length === 0
          ? []
          : yield* db.sql<RawInbox>`
              SELECT * FROM fermata_inbox WHERE branch_id = ${id} AND ${db.sql.in(
                "pos",
                moves.map(({ pos }) => pos)
              )}`
      for (const entry of page) takeEntry(progress, row, entry)
      takeMoves(progress, id, moves, stored)
      if (page.length === pageSize) yield* letOthersRun
      if (page.length === 0) {
        // Truncated: nothing up to the head is there.
        progress.problems.push(missingEntry(id, progress.seq + 1))
        progress.seq = row.head
        progress.digest = undefined
      }
    }
  })

const takeInbox = (progress: Progress, id: string, raw: RawInbox) =>
  Effect.map(Effect.either(verifyInboxRow(raw)), (verified) => {
    const pos = Number(raw.pos)
    if (pos !== progress.inboxPos + 1) {
      progress.problems.push(damage("inbox", id, progress.inboxPos + 1, `row ${progress.inboxPos + 1} is missing`))
    }
    if (verified._tag === "Left") progress.problems.push(verified.left)
    progress.inboxPos = pos
  })

const takeEntry = (progress: Progress, { branch: id, run }: BranchInfo, entry: Entry): void => {
  if (entry.seq !== progress.seq + 1) {
    progress.problems.push(missingEntry(id, progress.seq + 1))
    progress.digest = undefined
  }
  if (progress.digest !== undefined && entryDigest(progress.digest, entry) !== entry.digest) {
    progress.problems.push(
      damage("journal", id, entry.seq, "the entry's digest does not match its columns and predecessor")
    )
  }
  if (progress.last !== undefined && isTerminal(progress.last.kind)) {
    progress.problems.push(damage("journal", id, entry.seq, `it follows the terminal entry ${progress.last.seq}`))
  }
  if (entry.kind === "interrupt.opened") progress.open.set(entry.key, entry.seq)
  if (entry.kind === "interrupt.answered" || closesInterrupt(entry)) progress.open.delete(entry.key)
  // Text that cannot be read is damaged: its digest says so.
  for (const [name, value] of Object.entries(safely(() => tagsOf(run, entry)) ?? {})) progress.tags.set(name, value)
  progress.seq = entry.seq
  progress.digest = entry.digest
  progress.entries += 1
  progress.last = entry
}

/** That an entry carries an inbox row into the journal, and what that row must be. */
interface Move {
  readonly seq: number
  readonly pos: number
  readonly key: string
  readonly answer: Pick<AnswerPayload, "delivery" | "valueDigest"> | undefined
}

const movesOf = (page: ReadonlyArray<Entry>): ReadonlyArray<Move> => page.flatMap((entry) => moveOf(entry) ?? [])

const moveOf = (entry: Entry): Move | undefined => {
  try {
    const answer = payloadIf("interrupt.answered", entry)
    const settlement =
      payloadIf("effect.succeeded", entry) ?? payloadIf("effect.failed", entry) ?? payloadIf("effect.voided", entry)
    const mark =
      payloadIf("cancel.requested", entry) ??
      payloadIf("inbox.unserved", entry) ??
      payloadIf("signal.received", entry) ??
      payloadIf("update.received", entry)
    const pos = (answer ?? settlement ?? mark)?.inbox
    if (pos === undefined) return undefined
    const key =
      answer !== undefined
        ? answerKey(entry.key)
        : settlement !== undefined
          ? settlementKey(entry.key)
          : entry.kind === "cancel.requested"
            ? "cancel"
            : entry.key
    return { seq: entry.seq, pos, key, answer }
  } catch {
    // Damaged text: its digest says so.
    return undefined
  }
}

const takeMoves = (
  progress: Progress,
  id: string,
  moves: ReadonlyArray<Move>,
  stored: ReadonlyArray<RawInbox>
): void => {
  const rows = new Map(stored.map((row) => [Number(row.pos), row]))
  for (const { seq, pos, key, answer } of moves) {
    const row = rows.get(pos)
    if (row === undefined) {
      progress.problems.push(damage("inbox", id, pos, `row ${pos}, which entry ${seq} delivered, is missing`))
    } else if (row.key !== key || (answer !== undefined && !isAnswer(row, answer))) {
      progress.problems.push(damage("inbox", id, pos, `row ${pos} is not what entry ${seq} delivered`))
    }
    if (pos <= progress.moved) {
      progress.problems.push(damage("journal", id, seq, `it delivers inbox row ${pos} after row ${progress.moved}`))
    }
    progress.moved = Math.max(progress.moved, pos)
  }
}

const isAnswer = (row: RawInbox, answer: Pick<AnswerPayload, "delivery" | "valueDigest">): boolean => {
  try {
    // Damaged text fails to parse or to match.
    const stored = JSON.parse(row.payload) as AnswerPayload
    return stored.delivery === answer.delivery && stored.valueDigest === answer.valueDigest
  } catch {
    return false
  }
}

const endings: Partial<Record<Entry["kind"], BranchInfo["status"]>> = {
  "run.completed": "completed",
  "run.failed": "failed",
  "run.died": "failed",
  "run.cancelled": "cancelled"
}

/** What the row and the derived tables say against the journal and the inbox. The caller holds the branch's lock. */
const derivedProblems = (
  db: Database,
  run: RunRow,
  row: BranchInfo,
  progress: Progress
): Effect.Effect<ReadonlyArray<CorruptJournal>, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const id = row.branch
    const problems: Array<CorruptJournal> = []
    const say = (table: CorruptJournal["table"], seq: number | null, detail: string) =>
      problems.push(damage(table, id, seq, detail))

    const beyond =
      yield* sql`SELECT 1 AS one FROM fermata_journal WHERE branch_id = ${id} AND seq > ${row.head} LIMIT 1`
    if (beyond.length > 0)
      say("journal", row.head + 1, "the journal goes on beyond the head that the branch's row names")
    const inherits = row.parent?.seq ?? 0
    const before =
      inherits === 0
        ? []
        : yield* sql`SELECT 1 AS one FROM fermata_journal WHERE branch_id = ${id} AND seq <= ${inherits} LIMIT 1`
    if (before.length > 0) say("journal", inherits, "the branch has entries of its own before its fork point")
    if (row.head < inherits) say("branches", row.head, `its head lies before its fork point ${inherits}`)
    else if (progress.digest !== undefined && progress.digest !== row.headDigest) {
      say("branches", row.head, "the last entry is not the one that the branch's row names")
    }
    const unread =
      yield* sql`SELECT 1 AS one FROM fermata_inbox WHERE branch_id = ${id} AND pos > ${row.inboxHead} LIMIT 1`
    if (unread.length > 0)
      say("inbox", row.inboxHead + 1, "the inbox goes on beyond the head that the branch's row names")

    const ending = progress.last && endings[progress.last.kind]
    if (ending !== undefined ? row.status !== ending : isOver(row.status)) {
      say(
        "branches",
        row.head,
        `its status is ${row.status}, but its last entry is ${progress.last?.kind ?? "inherited"}`
      )
    }
    if ((row.status === "running") !== (row.owner !== null)) {
      say("branches", null, `its status is ${row.status}, but its owner is ${row.owner ?? "nobody"}`)
    }
    // LV: a ready branch without a time is in no index that a claim looks at.
    if (row.status === "ready" && row.readyAt === null)
      say("branches", null, "it is ready, but no worker would find it")

    const [stored] = yield* sql<{ readonly definition: string; readonly fork_digest: string }>`
      SELECT definition, fork_digest FROM fermata_branches WHERE branch_id = ${id}`
    if (
      row.workflow !== run.workflow ||
      row.version !== run.version ||
      stored?.definition !== claimedAs(`${row.workflow}@${row.version}`, row.queue)
    ) {
      say("branches", null, "its definition is not its run's")
    }
    if (stored !== undefined && stored.fork_digest !== "") {
      const [first] = row.head > inherits ? yield* entriesAfter(db, id, inherits, inherits + 1) : []
      if (first === undefined || safely(() => firstEventDigest(first)) !== stored.fork_digest) {
        say("branches", inherits + 1, "its first event is not the one that it was forked with")
      }
    }
    if (row.parent === null) {
      const tags = yield* readTags(db, row.run)
      const names = new Set([...Object.keys(tags), ...progress.tags.keys()])
      for (const name of names) {
        if (tags[name] !== progress.tags.get(name)) say("branches", null, `tag ${name} is not what the journal says`)
      }
    }
    for (const detail of yield* interruptProblems(db, row, progress)) say("branches", null, detail)
    return problems
  })

/** Open by the journal and not answered by the inbox, against the table of open interrupts. */
const interruptProblems = (
  db: Database,
  row: BranchInfo,
  progress: Progress
): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const open = isOver(row.status) ? new Map<string, number>() : new Map(progress.open)
    const ids = [...open.keys()]
    for (let from = 0; from < ids.length; from += pageSize) {
      const keys = ids.slice(from, from + pageSize).map(answerKey)
      const answered = yield* sql<{ readonly key: string }>`
        SELECT key FROM fermata_inbox WHERE branch_id = ${row.branch} AND ${sql.in("key", keys)}`
      for (const { key } of answered) open.delete(key.slice(answerKey("").length))
    }
    const listed = yield* sql<RawInterrupt>`SELECT * FROM fermata_interrupts WHERE branch_id = ${row.branch}`
    const problems = listed.flatMap((interrupt) => {
      const seq = open.get(interrupt.interrupt_id)
      open.delete(interrupt.interrupt_id)
      return seq === undefined
        ? [`interrupt ${interrupt.interrupt_id} is among the open ones, but the journal does not have it open`]
        : seq !== Number(interrupt.seq) || interrupt.run_id !== row.run
          ? [`the open interrupt ${interrupt.interrupt_id} is not the one that entry ${seq} opened`]
          : []
    })
    return [...problems, ...[...open.keys()].map((id) => `interrupt ${id} is open, but not among the open ones`)]
  })

const safely = <A>(thunk: () => A): A | undefined => {
  try {
    return thunk()
  } catch {
    return undefined
  }
}

const damage = (table: CorruptJournal["table"], id: string, seq: number | null, detail: string): CorruptJournal =>
  new CorruptJournal({ table, id, seq, detail })
