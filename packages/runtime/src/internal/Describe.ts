/** A branch's row and its open interrupts, as `Client.describe` tells them (LV: what is waited for has a name). */
import { StrictJson } from "@fermata/contract"
import type { BranchId, RunId, TaskFacts } from "@fermata/contract"
import {
  type BranchInfo,
  CorruptJournal,
  type Ledger,
  type LedgerError,
  type PendingInterrupt,
  type RunNotFound,
  type RunPurged
} from "@fermata/ledger"
import { Effect, Either, Option, Schema } from "effect"
import type { Description, Pending, WaitingFor } from "../Client.js"
import { Problem } from "../Problem.js"

/** The branch as it stands now. */
export const describe = (
  ledger: Ledger,
  branch: BranchId
): Effect.Effect<Description, RunNotFound | RunPurged | CorruptJournal | LedgerError> =>
  Effect.flatMap(ledger.branch(branch), (row) => describeRow(ledger, row))

/** As {@link describe}, for rows that were just read. */
export const describeRow = (
  ledger: Ledger,
  row: BranchInfo
): Effect.Effect<Description, RunNotFound | RunPurged | CorruptJournal | LedgerError> =>
  Effect.gen(function* () {
    // An answer between reading the row and its interrupts would leave a waiting branch that waits for nothing: look again.
    // Each turn means that the branch went on meanwhile, so this ends.
    for (;;) {
      const asked = row.status === "waiting" ? yield* openInterrupts(ledger, row.run) : []
      const description = yield* describing(row, asked)
      if (row.status !== "waiting" || description.waitingFor.length > 0) return description
      const now = yield* ledger.branch(row.branch)
      if (now.epoch === row.epoch && now.inboxHead === row.inboxHead && now.status === row.status) return description
      row = now
    }
  })

/** As {@link describeRow} for many rows, with one query of interrupts per waiting run. */
export const describeRows = (
  ledger: Ledger,
  rows: ReadonlyArray<BranchInfo>
): Effect.Effect<ReadonlyArray<Description>, RunNotFound | RunPurged | CorruptJournal | LedgerError> =>
  Effect.gen(function* () {
    const asked = new Map<RunId, ReadonlyArray<PendingInterrupt>>()
    const descriptions: Array<Description> = []
    for (const row of rows) {
      if (row.status !== "waiting") {
        descriptions.push(yield* describing(row, []))
        continue
      }
      const interrupts = asked.get(row.run) ?? (yield* openInterrupts(ledger, row.run))
      asked.set(row.run, interrupts)
      const description = yield* describing(row, interrupts)
      descriptions.push(description.waitingFor.length > 0 ? description : yield* describeRow(ledger, row))
    }
    return descriptions
  })

const pageSize = 500

const openInterrupts = (ledger: Ledger, run: RunId): Effect.Effect<ReadonlyArray<PendingInterrupt>, LedgerError> =>
  Effect.gen(function* () {
    const all: Array<PendingInterrupt> = []
    for (;;) {
      const after = all.at(-1)
      const page = yield* ledger.pendingInterrupts({ run, limit: pageSize, ...(after === undefined ? {} : { after }) })
      all.push(...page)
      if (page.length < pageSize) return all
    }
  })

const describing = (
  row: BranchInfo,
  interrupts: ReadonlyArray<PendingInterrupt>
): Effect.Effect<Description, CorruptJournal> =>
  Effect.map(problemsOf(row), (problems) => ({
    run: row.run,
    branch: row.branch,
    workflow: row.workflow,
    version: row.version,
    status: row.status,
    parent: row.parent,
    head: row.head,
    createdAt: row.createdAt,
    waitingFor: waitingFor(row, interrupts, problems),
    problems,
    unread: standingOf(row).unread
  }))

const noStanding = { awaits: [] as ReadonlyArray<string>, unread: {} as Readonly<Record<string, number>> }
const decodeStanding = Schema.decodeUnknownOption(
  Schema.parseJson(
    Schema.Struct({
      awaits: Schema.Array(Schema.String),
      unread: Schema.Record({ key: Schema.String, value: Schema.Number })
    })
  )
)

/** What the owner said when it let go of the branch. It informs and decides nothing: what cannot be read says nothing. */
const standingOf = (row: BranchInfo): typeof noStanding =>
  row.standing === null ? noStanding : Option.getOrElse(decodeStanding(row.standing), () => noStanding)

/** A channel that is waited for, `signal:<name>` or `update:<name>`. */
const awaited = (channel: string): WaitingFor => {
  const name = channel.slice(channel.indexOf(":") + 1)
  return channel.startsWith("update:") ? { _tag: "Update", name } : { _tag: "Signal", name }
}

const waitingFor = (
  row: BranchInfo,
  interrupts: ReadonlyArray<PendingInterrupt>,
  problems: ReadonlyArray<Problem>
): ReadonlyArray<WaitingFor> => {
  switch (row.status) {
    case "ready":
      return [{ _tag: "Worker", definition: `${row.workflow}@${row.version}` }]
    case "waiting": {
      const answers = interrupts
        .filter((interrupt) => interrupt.branch === row.branch)
        .map(({ interrupt, name }): WaitingFor => ({ _tag: "Answer", interrupt, name }))
      const messages = standingOf(row).awaits.map(awaited)
      const times: ReadonlyArray<WaitingFor> = row.readyAt === null ? [] : [{ _tag: "Time", at: row.readyAt }]
      return [...answers, ...messages, ...times]
    }
    case "stuck":
      return problems.map((problem) => ({ _tag: "Operator", problem }))
    case "running":
    case "completed":
    case "failed":
    case "cancelled":
      return []
  }
}

const decodeProblems = Schema.decodeUnknownEither(
  Schema.parseJson(
    Schema.Array(
      Schema.Struct({ message: Schema.String }, Schema.Record({ key: Schema.String, value: Schema.Unknown }))
    )
  )
)
const decodeProblem = Schema.decodeUnknownOption(Problem)

const problemsOf = (row: BranchInfo): Effect.Effect<ReadonlyArray<Problem>, CorruptJournal> => {
  if (row.problem === null) return Effect.succeed([])
  return Either.mapBoth(decodeProblems(row.problem), {
    onLeft: () =>
      new CorruptJournal({ table: "branches", id: row.branch, seq: null, detail: "why it is stuck cannot be read" }),
    // While versions change, a worker may be newer than whoever asks.
    onRight: (stored) =>
      stored.map((one) =>
        Option.getOrElse(decodeProblem(one), (): Problem => ({
          _tag: "OtherProblem",
          message: one.message,
          stored: one
        }))
      )
  })
}

/** An open interrupt, its question parsed. */
export const pendingOf = (row: PendingInterrupt): Effect.Effect<Pending, CorruptJournal> =>
  Effect.try({
    try: () => ({
      run: row.run,
      branch: row.branch,
      interrupt: row.interrupt,
      name: row.name,
      payload: StrictJson.decode(row.payload),
      checkpoint: { branch: row.branch, seq: row.seq },
      openedAt: row.openedAt,
      // The owner wrote it with the entry that opened the interrupt.
      task: row.task === null ? null : (JSON.parse(row.task) as TaskFacts)
    }),
    catch: (error) =>
      new CorruptJournal({
        table: "journal",
        id: row.branch,
        seq: row.seq,
        detail: `its question cannot be read: ${String(error)}`
      })
  })
