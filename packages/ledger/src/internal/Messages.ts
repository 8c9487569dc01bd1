/**
 * Signals, updates and queries: accepting what is sent, and reading what the workflow said to it. A message is a row of the
 * branch's inbox under its own id, so it is delivered once however often it is sent; what was accepted by an ancestor counts
 * for a fork if the fork inherited it.
 */
import type { SqlError } from "@effect/sql/SqlError"
import { admitMessage, type Entry } from "@fermata/contract"
import { Effect, Either, Schema } from "effect"
import type { BranchInfo, Ledger, RunRow, SendReceipt, SendRequest } from "../Ledger.js"
import { CorruptJournal, MessageIdReused, RunNotFound, RunOver, RunPurged, UnknownMessage } from "../LedgerError.js"
import { accept, lockAndFind, runIdOf } from "./Acceptance.js"
import { branchNotFound, readBranch, readRun } from "./BranchRows.js"
import type { Database, Transaction } from "./Database.js"
import { verifyInboxRow } from "./Gate.js"
import { type Ancestor, readLineage } from "./History.js"
import { entriesByKey } from "./HistoryLookup.js"
import { isMessageKind } from "./migrations.js"
import { isOver, type RawInbox } from "./Rows.js"

/** The inbox key of a message, and the journal's key of what becomes of it. */
const messageKey = (kind: SendRequest["kind"], message: string): string => `${kind}:${message}`

const decodeAccepts = Schema.decodeUnknownEither(
  Schema.parseJson(Schema.Struct({ signals: Schema.Array(Schema.String), updates: Schema.Array(Schema.String) }))
)

/** Names that the branch's workflow declares of a kind. */
const declaredOf = (
  branch: BranchInfo,
  kind: SendRequest["kind"]
): Effect.Effect<ReadonlyArray<string>, CorruptJournal> => {
  if (branch.accepts === null) return Effect.succeed([])
  return Either.mapBoth(decodeAccepts(branch.accepts), {
    onLeft: () =>
      new CorruptJournal({ table: "branches", id: branch.branch, seq: null, detail: "what it accepts cannot be read" }),
    onRight: ({ signals, updates }) => (kind === "signal" ? signals : updates)
  })
}

/** The row under which the history knows the message. The caller holds the branch's lock. */
const earlierRow = (
  db: Database,
  branch: BranchInfo,
  lineage: ReadonlyArray<Ancestor>,
  request: SendRequest
): Effect.Effect<RawInbox | undefined, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const key = messageKey(request.kind, request.message)
    for (const { branch: ancestor, to } of lineage) {
      const [raw] = yield* db.sql<RawInbox>`
        SELECT * FROM fermata_inbox WHERE branch_id = ${ancestor.branch} AND key = ${key}`
      if (raw === undefined) continue
      const row = yield* verifyInboxRow(raw)
      if (ancestor.branch === branch.branch) return row
      // Inherited only if it was journaled at or before the fork point.
      const inherited = yield* db.sql`
        SELECT 1 AS one FROM fermata_journal
        WHERE branch_id = ${ancestor.branch} AND key = ${key} AND kind = ${`${request.kind}.received`} AND seq <= ${to} LIMIT 1`
      if (inherited.length > 0) return row
    }
    return undefined
  })

/** Accepts a message within a transaction. `row` is the digest of the row that was written; `undefined` for a duplicate. */
export const acceptMessage = (
  db: Database,
  transaction: Transaction,
  request: SendRequest,
  /** Digest of the row that an earlier try of the same transaction wrote, whose commit may have happened. */
  mine?: string
): Effect.Effect<
  { readonly receipt: SendReceipt; readonly row: string | undefined },
  RunNotFound | RunPurged | UnknownMessage | MessageIdReused | RunOver | CorruptJournal | SqlError
> =>
  Effect.gen(function* () {
    const { branch: id, digest, json, kind, message, name } = request
    const found = yield* lockAndFind(db, id)
    if (typeof found === "string") {
      return found === "purged" ? yield* new RunPurged({ run: runIdOf(id) }) : yield* new RunNotFound({ id })
    }
    const { branch, lineage } = found
    const earlier = yield* earlierRow(db, branch, lineage, request)
    const declared = yield* declaredOf(branch, kind)
    // The digest vouches for the text, and only this function writes rows of these kinds.
    const known = earlier && (JSON.parse(earlier.payload) as { readonly name: string; readonly valueDigest: string })
    const verdict = admitMessage(
      {
        run: "known",
        over: isOver(branch.status),
        declared: declared.includes(name),
        earlier: known && { name: known.name, digest: known.valueDigest }
      },
      { name, digest }
    )
    switch (verdict._tag) {
      case "Accepted": {
        const at = db.unsafeNow()
        const payload = `{"name":${JSON.stringify(name)},"message":${JSON.stringify(message)},"value":${json},"valueDigest":${JSON.stringify(digest)}}`
        const row = yield* accept(
          db,
          transaction,
          branch,
          { kind, key: messageKey(kind, message), delivery: null, payload },
          at
        )
        return { receipt: { verdict: "Accepted" as const, branch: id, message, at }, row }
      }
      case "Duplicate": {
        if (earlier === undefined) return yield* Effect.dieMessage("a duplicate of nothing")
        const first = mine !== undefined && earlier.digest === mine
        const receipt: SendReceipt = {
          verdict: first ? "Accepted" : "Duplicate",
          branch: id,
          message,
          at: Number(earlier.at)
        }
        return { receipt, row: undefined }
      }
      case "MessageIdReused":
        return yield* new MessageIdReused({ branch: id, kind, id: message })
      case "UnknownMessage":
        return yield* new UnknownMessage({ branch: id, kind, name, declared })
      case "RunOver":
        return yield* new RunOver({ branch: id, status: branch.status })
      case "RunPurged":
        return yield* new RunPurged({ run: branch.run })
      case "UnknownRun":
        return yield* new RunNotFound({ id })
    }
  })

/** The branch with its run and lineage, read without a lock: what is looked up is append-only. */
const reading = (
  db: Database,
  id: string
): Effect.Effect<
  { readonly row: BranchInfo; readonly run: RunRow; readonly lineage: ReadonlyArray<Ancestor> },
  RunNotFound | RunPurged | CorruptJournal | SqlError
> =>
  Effect.gen(function* () {
    const row = yield* readBranch(db, id)
    if (row === undefined) return yield* branchNotFound(db, id)
    const run = yield* readRun(db, row.run)
    if (run === undefined) return yield* branchNotFound(db, id)
    return { row, run, lineage: yield* readLineage(db, row) }
  })

/** The part of the ledger that messages go through. */
export const makeMessages = (db: Database): Pick<Ledger, "send" | "reply" | "view"> => ({
  send: Effect.fn("Ledger.send")((request) =>
    Effect.suspend(() => {
      // If the reply to a commit is lost the transaction runs again and finds its own row: that is still "Accepted".
      let mine: string | undefined
      return db.transaction("send", (transaction) =>
        Effect.map(acceptMessage(db, transaction, request, mine), ({ receipt, row }) => {
          mine = row ?? mine
          return receipt
        })
      )
    })
  ),

  reply: Effect.fn("Ledger.reply")((branch, update) =>
    db.query(
      "read an update's reply",
      Effect.gen(function* () {
        const { lineage, row, run } = yield* reading(db, branch)
        const keys = [messageKey("update", update)]
        const replies = yield* entriesByKey(db, run, lineage, keys, "message")
        const entry: Entry | undefined = replies.at(-1) ?? (yield* entriesByKey(db, run, lineage, keys)).at(-1)
        return { entry, over: isOver(row.status) }
      })
    )
  ),

  view: Effect.fn("Ledger.view")((branch, name) =>
    db.query(
      "read a view",
      Effect.gen(function* () {
        const { lineage, run } = yield* reading(db, branch)
        return yield* lastByKey(db, run, lineage, `view:${name}`)
      })
    )
  )
})

/** The last of the entries under a key: of the youngest branch of the lineage that has one. */
const lastByKey = (
  db: Database,
  run: RunRow,
  lineage: ReadonlyArray<Ancestor>,
  key: string
): Effect.Effect<Entry | undefined, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    for (const ancestor of lineage.toReversed()) {
      const [last] = yield* db.sql<{ readonly seq: number | string | null }>`
        SELECT MAX(seq) AS seq FROM fermata_journal
        WHERE branch_id = ${ancestor.branch.branch} AND key = ${key} AND ${db.sql.literal(isMessageKind)} AND seq <= ${ancestor.to}`
      if (last?.seq === null || last === undefined) continue
      return (yield* entriesByKey(db, run, lineage, [key], "message", Number(last.seq))).at(-1)
    }
    return undefined
  })
