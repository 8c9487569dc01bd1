/** Starting runs, and reading runs, branches and histories. */
import { admitStart, type Entry, isTerminal, rootBranch, type StoredRun, type TerminalKind } from "@fermata/contract"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Exit } from "effect"
import type { BranchInfo, Claim, Ledger, RunRow, SendRequest, StartReceipt, StartRequest, Tags } from "../Ledger.js"
import { CorruptJournal, RunConflict, RunPurged } from "../LedgerError.js"
import { branchNotFound, notFound, readBranch, readRun, runState } from "./BranchRows.js"
import type { Claims } from "./Claims.js"
import type { Database, Transaction } from "./Database.js"
import { dedupe } from "./Dedupe.js"
import { entryDigest, runDigest } from "./Digest.js"
import { readEntries, readHistory } from "./History.js"
import { acceptMessage } from "./Messages.js"
import type { Queues } from "./Queues.js"
import type { StartTakers } from "./StartTakers.js"
import { insertTags } from "./Finding.js"
import { branchOfRow, claimedAs, entryOfRow, isOver, type RawBranch, type RawEntry } from "./Rows.js"

/** Its operations, and starting a run as part of a larger transaction. */
export interface Runs extends Pick<
  Ledger,
  "start" | "startAndSend" | "run" | "branch" | "branches" | "history" | "claimed" | "ending"
> {
  readonly startWithin: (
    transaction: Transaction,
    request: StartRequest,
    worker: string | undefined
  ) => Effect.Effect<Begun, RunConflict | RunPurged | CorruptJournal | SqlError>
}

/** What starting a run within a transaction gives: a `claim` if the worker that it was started for has it. */
interface Begun {
  readonly receipt: StartReceipt
  readonly claim: (Claim & { readonly first: Entry }) | undefined
}

/** The ledger's operations on runs. */
export const makeRuns = (
  db: Database,
  takers: StartTakers,
  claims: Pick<Claims, "forget" | "hold">,
  queues: Pick<Queues, "rank">
): Runs => {
  const { sql } = db

  const start: Runs["start"] = Effect.fn("Ledger.start")((request) =>
    Effect.map(taken(request, undefined), ({ receipt }) => receipt).pipe(
      // Only what is sent along is refused so.
      Effect.catchTags({ MessageIdReused: Effect.die, UnknownMessage: Effect.die, RunOver: Effect.die })
    )
  )

  const startAndSend: Runs["startAndSend"] = Effect.fn("Ledger.startAndSend")((request, send) =>
    Effect.flatMap(taken(request, send), ({ receipt, sent }) =>
      sent === undefined ? Effect.dieMessage("what was to be sent was not") : Effect.succeed({ started: receipt, sent })
    )
  )

  /** Starts, with a worker of this process that has room for it. */
  const taken = (request: StartRequest, send: Omit<SendRequest, "branch"> | undefined) =>
    Effect.suspend(() => {
      // What may have to wait, or not be the run that is meant, is for a claim.
      const plain = request.queue === undefined && request.startAt === undefined && request.dedupe === undefined
      const taker = plain ? takers.reserve(`${request.workflow}@${request.version}`) : undefined
      const begun = begin(request, taker?.worker, send)
      if (taker === undefined) return begun
      return Effect.onExit(begun, (exit) =>
        Effect.sync(() => {
          const claim = Exit.isSuccess(exit) ? exit.value.claim : undefined
          if (claim === undefined) claims.forget(rootBranch(request.run), firstEpoch)
          taker.use(claim)
        })
      )
    })

  /** Starts a run, and accepts what is sent along. A `worker` has claimed it then, unless the run existed. */
  const begin = (request: StartRequest, worker: string | undefined, send: Omit<SendRequest, "branch"> | undefined) =>
    db.transaction("start a run", (transaction) =>
      Effect.gen(function* () {
        const { claim, receipt } = yield* startWithin(transaction, request, worker)
        if (send === undefined) return { claim, receipt, sent: undefined }
        const sent = yield* acceptMessage(db, transaction, { ...send, branch: receipt.branch }).pipe(
          Effect.catchTag("RunNotFound", Effect.die)
        )
        return {
          receipt,
          sent: sent.receipt,
          // What was sent along is in its inbox.
          claim: claim && { ...claim, branch: { ...claim.branch, inboxHead: 1 } }
        }
      })
    )

  const startWithin = (
    transaction: Transaction,
    request: StartRequest,
    worker: string | undefined
  ): Effect.Effect<Begun, RunConflict | RunPurged | CorruptJournal | SqlError> =>
    Effect.gen(function* () {
      const branch = rootBranch(request.run)
      const createdAt = db.unsafeNow()
      let readyAt = Math.max(createdAt, request.startAt ?? createdAt)
      if (request.dedupe !== undefined) {
        const known = yield* readRun(db, request.run)
        if (known === undefined && (yield* runState(db, request.run)) === "unknown") {
          const deduped = yield* dedupe(db, transaction, request, request.dedupe, readyAt)
          if (deduped._tag === "Existing") {
            return { receipt: { branch: deduped.branch, created: false }, claim: undefined }
          }
          readyAt = deduped.startAt
        }
      }
      const fields: Omit<RunRow, "digest"> = {
        run: request.run,
        workflow: request.workflow,
        version: request.version,
        input: request.input,
        inputDigest: request.inputDigest,
        createdAt
      }
      const digest = runDigest(fields)
      // The insert comes first: it is the lock under which two starts of one id find out who created it.
      const inserted = yield* sql`INSERT INTO fermata_runs
          (run_id, workflow, version, input, input_digest, created_at, digest)
          SELECT ${request.run}, ${request.workflow}, ${request.version}, ${request.input}, ${request.inputDigest},
            ${createdAt}, ${digest}
          WHERE NOT EXISTS (SELECT 1 FROM fermata_purged WHERE run_id = ${request.run})
          ON CONFLICT (run_id) DO NOTHING RETURNING run_id`
      let stored: StoredRun = { _tag: "Absent" }
      if (inserted.length === 0) {
        const run = yield* readRun(db, request.run)
        stored =
          run !== undefined
            ? { _tag: "Present", workflow: run.workflow, version: run.version, inputDigest: run.inputDigest }
            : { _tag: "Purged" }
      }
      const verdict = admitStart(stored, request)
      switch (verdict._tag) {
        case "Existing":
          return { receipt: { branch, created: false } satisfies StartReceipt, claim: undefined }
        case "Purged":
          return yield* new RunPurged({ run: request.run })
        case "Conflict":
          return yield* new RunConflict({
            run: request.run,
            differs: verdict.differs,
            stored: stored._tag === "Present" ? `${stored.workflow} ${stored.version}` : ""
          })
        case "Create":
      }
      // A purge that committed while the insert waited for it was not seen by it (PostgreSQL).
      if (db.dialect === "pg" && (yield* runState(db, request.run)) === "purged") {
        return yield* new RunPurged({ run: request.run })
      }
      const claim = freshClaim(
        { ...fields, digest },
        worker ?? null,
        readyAt,
        request.queue?.name ?? null,
        request.accepts ?? null,
        request.tags
      )
      const { branch: row, first } = claim
      const definition = claimedAs(`${row.workflow}@${row.version}`, row.queue)
      if (request.queue === undefined) {
        yield* sql`INSERT INTO fermata_branches (branch_id, run_id, workflow, version, definition, status, head,
              head_digest, epoch, owner, ready_at, created_at, accepts)
            VALUES (${branch}, ${row.run}, ${row.workflow}, ${row.version}, ${definition},
              ${row.status}, 1, ${row.headDigest}, ${row.epoch}, ${row.owner}, ${row.readyAt}, ${createdAt}, ${row.accepts})`
      } else {
        const { key, name, priority } = request.queue
        const rank = yield* queues.rank(request.queue)
        yield* sql`INSERT INTO fermata_branches (branch_id, run_id, workflow, version, definition, status, head,
              head_digest, epoch, owner, ready_at, created_at, accepts, queue, queue_key, priority, queue_rank)
            VALUES (${branch}, ${row.run}, ${row.workflow}, ${row.version}, ${definition},
              ${row.status}, 1, ${row.headDigest}, ${row.epoch}, ${row.owner}, ${row.readyAt}, ${createdAt}, ${row.accepts},
              ${name}, ${key}, ${priority}, ${rank})`
      }
      yield* sql`INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
          VALUES (${branch}, 1, ${first.kind}, ${first.key}, ${first.payload}, 0, ${createdAt}, ${first.digest})`
      if (request.tags !== undefined) yield* insertTags(db, row.run, request.tags)
      // Before the commit: from then on its owner's next claim could find it.
      if (worker === undefined) transaction.announce({ _tag: "Ready" })
      else claims.hold(branch, firstEpoch)
      return {
        receipt: { branch, created: true } satisfies StartReceipt,
        claim: worker === undefined ? undefined : claim
      }
    })

  const run: Runs["run"] = Effect.fn("Ledger.run")((id) =>
    db.query(
      "read a run",
      Effect.flatMap(readRun(db, id), (row) => (row === undefined ? notFound(db, id, id) : Effect.succeed(row)))
    )
  )

  const knownBranch = (id: string) =>
    Effect.flatMap(readBranch(db, id), (row) => (row === undefined ? branchNotFound(db, id) : Effect.succeed(row)))

  const branch: Runs["branch"] = Effect.fn("Ledger.branch")((id) => db.query("read a branch", knownBranch(id)))

  const branches: Runs["branches"] = Effect.fn("Ledger.branches")((id) =>
    db.query(
      "read a run's branches",
      Effect.gen(function* () {
        const rows =
          yield* sql<RawBranch>`SELECT * FROM fermata_branches WHERE run_id = ${id} ORDER BY created_at, branch_id`
        return rows.length === 0 ? yield* notFound(db, id, id) : rows.map(branchOfRow)
      })
    )
  )

  /** Damage is reported only of what is there: a purge that came in between answers as a purge. */
  const unlessPurged =
    (id: string) =>
    (
      damage: CorruptJournal
    ): Effect.Effect<never, CorruptJournal | Effect.Effect.Error<ReturnType<typeof knownBranch>>> =>
      Effect.zipRight(knownBranch(id), Effect.fail(damage))

  const history: Runs["history"] = Effect.fn("Ledger.history")((id, after) =>
    db.query(
      "read a history",
      Effect.gen(function* () {
        const row = yield* knownBranch(id)
        const { run, entries } = yield* Effect.catchTag(readHistory(db, row, after), "CorruptJournal", unlessPurged(id))
        return { run, branch: row, entries }
      })
    )
  )

  const claimed: Runs["claimed"] = ({ branch, first, run }) =>
    // Most branches are claimed when they have just begun.
    first?.digest === branch.headDigest && entryDigest(run.digest, first) === first.digest
      ? Effect.succeed([first])
      : db.query(
          "read a claimed branch",
          Effect.catchTag(readEntries(db, run, branch), "CorruptJournal", unlessPurged(branch.branch))
        )

  const ending: Runs["ending"] = Effect.fn("Ledger.ending")((id) =>
    db.query(
      "read how a branch ended",
      Effect.gen(function* () {
        const row = yield* knownBranch(id)
        if (!isOver(row.status)) return { branch: row, entry: undefined }
        const last = yield* Effect.catchTag(lastEntry(row), "CorruptJournal", unlessPurged(id))
        if (isTerminalEntry(last)) return { branch: row, entry: last }
        return yield* new CorruptJournal({
          table: "branches",
          id,
          seq: row.head,
          detail: `its status is ${row.status}, but its last entry is ${last?.kind ?? "missing"}`
        })
      })
    )
  )

  const lastEntry = (row: BranchInfo) =>
    Effect.gen(function* () {
      const entries = (yield* sql<RawEntry>`SELECT * FROM fermata_journal
        WHERE branch_id = ${row.branch} AND seq >= ${row.head - 1} ORDER BY seq`).map(entryOfRow)
      const [previous, last] = entries
      // A fork that ended with its first entry chains over its parent's: verify the long way.
      if (previous === undefined || last === undefined) return (yield* readHistory(db, row)).entries.at(-1)
      if (last.digest !== row.headDigest || entryDigest(previous.digest, last) !== last.digest) {
        return yield* new CorruptJournal({
          table: "journal",
          id: row.branch,
          seq: row.head,
          detail: "the last entry is not the one that the branch's row names"
        })
      }
      return last
    })

  return { start, startAndSend, startWithin, run, branch, branches, history, claimed, ending }
}

/** Epoch of a branch's first owner. */
const firstEpoch = 1

/** What is stored of a run that begins: its root branch, owned by `owner` or ready for a worker, and its first entry. */
const freshClaim = (
  run: RunRow,
  owner: string | null,
  readyAt: number,
  queue: string | null,
  accepts: string | null,
  tags: Tags | undefined
): Claim & { readonly first: Entry } => {
  const branch = rootBranch(run.run)
  const { createdAt, version, workflow } = run
  const payload = JSON.stringify({ workflow, version, run: run.digest, ...(tags === undefined ? {} : { tags }) })
  const fields = { branch, seq: 1, kind: "run.started", key: "", payload, epoch: 0, at: createdAt } as const
  const first = { ...fields, digest: entryDigest(run.digest, fields) }
  return {
    run,
    branch: {
      branch,
      run: run.run,
      workflow,
      version,
      status: owner !== null ? "running" : readyAt > createdAt ? "waiting" : "ready",
      parent: null,
      head: 1,
      headDigest: first.digest,
      epoch: owner === null ? 0 : firstEpoch,
      owner,
      queue,
      inboxHead: 0,
      readyAt: owner === null ? readyAt : null,
      problem: null,
      createdAt,
      accepts,
      standing: null
    },
    headAt: createdAt,
    first
  }
}

const isTerminalEntry = (entry: Entry | undefined): entry is Entry & { readonly kind: TerminalKind } =>
  entry !== undefined && isTerminal(entry.kind)
