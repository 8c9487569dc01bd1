/**
 * Forks: a child branch that continues a history from a durable position, with a first event of its own if asked for.
 *
 * Copy-on-write: the child's row names its parent and the position; nothing of the history is copied. The position's
 * facts are folded from the history before the transaction, which is no race: entries at or before a durable position
 * never change. What can change, the run and the fork id, is looked at under the run row's lock.
 */
import type { SqlError } from "@effect/sql/SqlError"
import {
  admitFork,
  type Entry,
  forkBranch,
  isEvent,
  isTerminal,
  Recovery,
  runOf,
  type StoredFork
} from "@fermata/contract"
import { Effect } from "effect"
import type { BranchInfo, ForkReceipt, ForkRequest, Ledger, RunRow } from "../Ledger.js"
import {
  type CorruptJournal,
  EffectInFlight,
  ForkIdReused,
  InterruptClosed,
  ResumeValueInvalid,
  RunNotFound,
  RunPurged,
  UnknownCheckpoint,
  UnknownInterrupt
} from "../LedgerError.js"
import { persistProblems } from "./Acceptance.js"
import { lockRun, readBranch, readRun, runState } from "./BranchRows.js"
import type { Database } from "./Database.js"
import { entryDigest, forkDigest } from "./Digest.js"
import { interruptOf } from "./Commit.js"
import { openedIn } from "./Gate.js"
import { readLineage } from "./History.js"
import { entriesByKey, payloadIf, walkHistory } from "./HistoryLookup.js"
import { openInterrupts } from "./Inbox.js"
import { isOver, type RawBranch } from "./Rows.js"

/** An interrupt that is open at a position. */
interface OpenInterrupt extends ReturnType<typeof interruptOf> {
  readonly id: string
  readonly seq: number
  readonly openedAt: number
}

/** The event that the forking transaction writes on the child. */
interface FirstEvent {
  readonly kind: "interrupt.answered" | "step.succeeded" | "step.failed"
  readonly key: string
  readonly payload: string
}

/** What the parent's history says of the addressed position. */
interface Position {
  readonly seq: number
  /** Digest and time of the entry there; `undefined` if there is no such entry. */
  readonly entry: Pick<Entry, "digest" | "at"> | undefined
  readonly inFlight: ReadonlyArray<{ readonly key: string; readonly step: string }>
  readonly nearest: { readonly below: number | undefined; readonly above: number | undefined }
  readonly open: ReadonlyArray<OpenInterrupt>
  readonly first: FirstEvent | undefined
}

export const makeForks = (db: Database): Pick<Ledger, "fork"> => ({
  fork: Effect.fn("Ledger.fork")((request) =>
    Effect.gen(function* () {
      const surveyed = yield* db.query("fork: read the history", survey(db, request))
      return yield* db.transaction("fork", (transaction) =>
        Effect.gen(function* () {
          const run = yield* lockRun(db, request.run)
          const parent = run && surveyed && (yield* readBranch(db, request.parent))
          const child = forkBranch(request.run, request.fork)
          const position = surveyed?.position ?? nowhere
          const { first } = position
          const issues = valueIssues(db, request)
          // What may not persist is the first event of no stored fork.
          const firstDigest = first === undefined ? "" : issues.length > 0 ? "invalid" : firstEventDigest(first)
          const verdict = admitFork(
            {
              run: run === undefined ? yield* runState(db, request.run) : "known",
              existing: yield* storedFork(db, child),
              // A terminal entry is durable, but nothing can go on from it.
              head: parent && (isOver(parent.status) ? parent.head - 1 : parent.head),
              // Nothing of a journal is removed while its run exists.
              anchor: 0,
              inFlight: position.inFlight,
              nearest: position.nearest,
              interruptOpen:
                request.at._tag === "Interrupt"
                  ? first !== undefined && position.open.some(({ id }) => id === first.key)
                  : undefined
            },
            {
              parent: request.parent,
              seq: position.seq,
              firstDigest,
              settlesStep: request.at._tag === "Outcome" ? request.at.step : undefined,
              valueValid: issues.length === 0
            }
          )
          switch (verdict._tag) {
            case "Fork": {
              // `admitFork` lets only positions of a known branch's history through.
              if (parent === undefined || position.entry === undefined) {
                return yield* Effect.dieMessage(`fork ${child} from nowhere`)
              }
              yield* writeChild(db, parent, child, position, position.entry, firstDigest)
              transaction.announce({ _tag: "Ready" })
              return { branch: child, seq: position.seq, created: true } satisfies ForkReceipt
            }
            case "Existing":
              return { branch: child, seq: position.seq, created: false } satisfies ForkReceipt
            case "RunPurged":
              return yield* new RunPurged({ run: request.run })
            case "UnknownCheckpoint":
              return verdict.head === undefined
                ? yield* new RunNotFound({ id: run === undefined ? request.run : request.parent })
                : yield* new UnknownCheckpoint({
                    branch: request.parent,
                    seq: position.seq,
                    head: verdict.head,
                    ...(request.at._tag === "Outcome" ? { step: request.at.step } : {})
                  })
            case "CheckpointPruned":
              return yield* new UnknownCheckpoint({ branch: request.parent, seq: position.seq, head: null })
            case "ForkIdReused":
              return yield* new ForkIdReused({ run: request.run, fork: request.fork })
            case "InterruptNotOpen":
              return yield* interruptRefusal(db, request, first)
            case "ResumeValueInvalid":
              return yield* new ResumeValueInvalid({ branch: request.parent, interrupt: addressed(request), issues })
            case "EffectInFlight":
              return yield* new EffectInFlight({
                branch: request.parent,
                seq: position.seq,
                effects: verdict.keys,
                below: verdict.below ?? null,
                above: verdict.above ?? null
              })
          }
        })
      )
    })
  )
})

const nowhere: Position = {
  seq: 0,
  entry: undefined,
  inFlight: [],
  nearest: { below: undefined, above: undefined },
  open: [],
  first: undefined
}

/** What the request's first event is about, for messages. */
const addressed = ({ at, parent }: ForkRequest): string =>
  at._tag === "Interrupt" ? at.interrupt : at._tag === "Outcome" ? at.step : parent

/** Why the first event may not persist; empty if it may. */
const valueIssues = (db: Database, { at }: ForkRequest): ReadonlyArray<string> => {
  switch (at._tag) {
    case "Checkpoint":
      return []
    case "Interrupt":
      return at.value._tag === "Invalid"
        ? at.value.issues.length === 0
          ? ["the value is invalid"]
          : at.value.issues
        : persistProblems(db, { kind: "interrupt.answered", key: at.interrupt, json: at.value.json })
    case "Outcome":
      return persistProblems(db, { kind: "step.succeeded", key: at.step, json: at.outcome.json })
  }
}

const interruptRefusal = (
  db: Database,
  request: ForkRequest,
  first: FirstEvent | undefined
): Effect.Effect<never, UnknownInterrupt | InterruptClosed | SqlError> =>
  Effect.gen(function* () {
    const fields = { branch: request.parent, interrupt: addressed(request) }
    return first === undefined
      ? yield* new UnknownInterrupt({ ...fields, open: yield* openInterrupts(db, request.parent) })
      : yield* new InterruptClosed({ ...fields, reason: "it is not open at its checkpoint" })
  })

/**
 * Digest of a fork's first event. A fork's identity is its checkpoint and value: the same request under another delivery
 * id is the same fork (FI).
 */
export const firstEventDigest = (first: Pick<Entry, "kind" | "key" | "payload">): string => {
  if (first.kind !== "interrupt.answered") return forkDigest(first)
  // Only this module and the owner's journal write entries of this kind.
  const { value } = JSON.parse(first.payload) as { readonly value: unknown }
  return forkDigest({ kind: first.kind, key: first.key, payload: JSON.stringify({ value }) })
}

const storedFork = (db: Database, child: string): Effect.Effect<StoredFork | undefined, SqlError> =>
  Effect.map(
    db.sql<Pick<RawBranch, "parent" | "fork_seq" | "fork_digest">>`
      SELECT parent, fork_seq, fork_digest FROM fermata_branches WHERE branch_id = ${child}`,
    ([row]) => row && { parent: row.parent ?? "", seq: Number(row.fork_seq), firstDigest: row.fork_digest }
  )

/** Folds the parent's history up to the addressed position, and beyond only to name a forkable one. */
const survey = (
  db: Database,
  request: ForkRequest
): Effect.Effect<{ readonly position: Position } | undefined, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const parent = yield* readBranch(db, request.parent)
    if (parent === undefined || runOf(request.parent) !== request.run) return undefined
    const run = yield* readRun(db, parent.run)
    // Purged in between: the transaction says so.
    if (run === undefined) return undefined
    const found = yield* Effect.either(surveyBranch(db, request, run, parent))
    if (found._tag === "Right") return { position: found.right }
    // Damage is reported only of what is there.
    const purged = found.left._tag === "CorruptJournal" && (yield* readBranch(db, request.parent)) === undefined
    return purged ? undefined : yield* found.left
  })

const surveyBranch = (
  db: Database,
  { at }: ForkRequest,
  run: RunRow,
  parent: BranchInfo
): Effect.Effect<Position, CorruptJournal | SqlError> =>
  Effect.gen(function* () {
    const lineage = yield* readLineage(db, parent)
    let seq = at._tag === "Checkpoint" ? at.seq : undefined
    // Position 0 is before the start was recorded: refused, as is what is no position at all.
    if (seq !== undefined && !(Number.isInteger(seq) && seq >= 1 && seq <= parent.head)) {
      return { ...nowhere, seq: Number.isInteger(seq) ? seq : 0 }
    }
    let first: FirstEvent | undefined
    if (at._tag === "Interrupt") {
      const opened = openedIn(yield* entriesByKey(db, run, lineage, [at.interrupt]), at.interrupt)
      if (opened === undefined || opened.name !== at.name) return { ...nowhere, seq: parent.head }
      seq = opened.seq
      first = answerEvent(at)
    }
    const recovery = new Recovery(parent.branch)
    const opened = new Map<string, OpenInterrupt>()
    let before: Pick<Entry, "digest" | "at"> | undefined
    let found: Omit<Position, "first" | "nearest"> | undefined
    let below: number | undefined
    let above: number | undefined
    /** The activation that opened the interrupt goes on: it may withdraw its question itself. */
    let asking = false
    const look = (): Omit<Position, "first" | "nearest"> => ({
      seq: recovery.head,
      entry: before,
      inFlight: onceInFlight(recovery),
      open: [...opened.values()]
    })
    yield* walkHistory(db, run, lineage, (entry) => {
      if (at._tag === "Outcome" && found === undefined && entry.key === at.step) {
        const replaced = outcomeIn(entry)
        if (replaced !== undefined) {
          first = editedOutcome(at, replaced)
          found = look()
        }
      }
      recovery.apply(entry)
      before = entry
      if (entry.kind === "interrupt.opened") {
        opened.set(entry.key, {
          id: entry.key,
          ...interruptOf(entry),
          seq: entry.seq,
          openedAt: entry.at
        })
      } else if (!recovery.interrupts.has(entry.key)) opened.delete(entry.key)
      if (found !== undefined && asking) {
        // FI: the fork repeats the whole activation. What is withdrawn in it is not open to be answered.
        if ((entry.kind === "interrupt.closed" && entry.key === first?.key) || isTerminal(entry.kind)) {
          found = { ...found, open: found.open.filter(({ id }) => id !== first?.key) }
          asking = false
        } else if (isEvent(entry.kind)) asking = false
      }
      if (entry.seq === seq) {
        found = look()
        asking = at._tag === "Interrupt"
      }
      if (recovery.ended !== undefined || onceInFlight(recovery).length > 0) return true
      if (found === undefined) below = entry.seq
      else if (entry.seq > found.seq) above ??= entry.seq
      // Beyond the position only the nearest forkable one is of interest, and only if this one is not.
      return found === undefined || asking || (found.inFlight.length > 0 && above === undefined)
    })
    // No such position, or no recorded outcome of the step: beyond the head, which is refused.
    if (found === undefined) return { ...nowhere, seq: seq ?? parent.head + 1, first }
    return { ...found, first, nearest: { below, above } }
  })

const onceInFlight = (recovery: Recovery): ReadonlyArray<{ readonly key: string; readonly step: string }> =>
  recovery.effects.size === 0
    ? []
    : [...recovery.effects.values()].filter(({ delivery, state }) => delivery === "once" && state === "intended")

const answerEvent = (at: Extract<ForkRequest["at"], { readonly _tag: "Interrupt" }>): FirstEvent => ({
  kind: "interrupt.answered",
  key: at.interrupt,
  // An invalid value gives an event for identity's sake; it is refused before it is written.
  payload:
    at.value._tag === "Valid"
      ? `{"value":${at.value.json},"delivery":${JSON.stringify(at.delivery)},"valueDigest":${JSON.stringify(at.value.digest)}}`
      : JSON.stringify({ value: null, delivery: at.delivery, valueDigest: "" })
})

/** The node and input digest of a step's outcome. */
const outcomeIn = (entry: Entry): { readonly node: string; readonly input: string } | undefined =>
  payloadIf("step.succeeded", entry) ??
  payloadIf("step.failed", entry) ??
  payloadIf("step.died", entry) ??
  payloadIf("step.interrupted", entry)

const editedOutcome = (
  at: Extract<ForkRequest["at"], { readonly _tag: "Outcome" }>,
  { node, input }: { readonly node: string; readonly input: string }
): FirstEvent => ({
  kind: at.outcome._tag === "Succeeded" ? "step.succeeded" : "step.failed",
  key: at.step,
  payload:
    `{"node":${JSON.stringify(node)},"input":${JSON.stringify(input)},` +
    `"${at.outcome._tag === "Succeeded" ? "value" : "error"}":${at.outcome.json},"edited":true}`
})

/** Writes the child's row, its first event and the open interrupts that it inherits. */
const writeChild = (
  db: Database,
  parent: BranchInfo,
  child: string,
  position: Position,
  at: Pick<Entry, "digest" | "at">,
  firstDigest: string
): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const { sql } = db
    const now = db.unsafeNow()
    let head = position.seq
    let headDigest = at.digest
    if (position.first !== undefined) {
      head += 1
      const first = { branch: child, seq: head, epoch: 0, at: Math.max(at.at, now), ...position.first }
      headDigest = entryDigest(at.digest, first)
      yield* sql`
        INSERT INTO fermata_journal (branch_id, seq, kind, key, payload, epoch, at, digest)
        VALUES (${child}, ${head}, ${first.kind}, ${first.key}, ${first.payload}, 0, ${first.at}, ${headDigest})`
    }
    yield* sql`
      INSERT INTO fermata_branches
        (branch_id, run_id, workflow, version, definition, parent, fork_seq, fork_digest, status, head, head_digest, epoch,
          ready_at, created_at, accepts, queue, queue_key, priority, queue_rank)
      SELECT ${child}, run_id, workflow, version, definition, branch_id, ${position.seq}, ${firstDigest}, 'ready', ${head},
        ${headDigest}, 0, ${now}, ${now}, accepts, queue, queue_key, priority, queue_rank
      FROM fermata_branches WHERE branch_id = ${parent.branch}`
    // What the parent accepted and had not journaled is not inherited: it is open on the child.
    const open = position.open.filter(({ id }) => id !== position.first?.key)
    for (const { assignee, deadline, id, name, openedAt, payload, seq, task } of open) {
      yield* sql`
        INSERT INTO fermata_interrupts (branch_id, interrupt_id, run_id, name, payload, seq, opened_at, assignee, deadline, task)
        VALUES (${child}, ${id}, ${parent.run}, ${name}, ${payload}, ${seq}, ${openedAt}, ${assignee}, ${deadline}, ${task})`
    }
  })
