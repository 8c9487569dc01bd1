/**
 * Replays a history without a database and without running any node: what does the code do with exactly this much of
 * it? The same loop as live; only the journal is a list in memory.
 */
import { Recovery, type Entry, type EntryDraft } from "@fermata/contract"
import type { BranchJournal, History, Release } from "@fermata/ledger"
import type { Runtime } from "effect"
import { Effect, type Exit } from "effect"
import type { Problem } from "../Problem.js"
import type * as Workflow from "../Workflow.js"
import { isCommandMark } from "./Timeline.js"
import { BranchRun, type BranchHost } from "./BranchRun.js"

/** What the code does with a history. */
export interface Replayed {
  /** Commands that wait, in the order in which they were issued: `kind key digest`. */
  readonly commands: ReadonlyArray<string>
  /** Marks that the code issues and the history does not have. */
  readonly issued: ReadonlyArray<EntryDraft>
  /** How the workflow ended, if it did. */
  readonly exit: Exit.Exit<unknown, unknown> | undefined
  /** The entry that the workflow's end would be recorded as. */
  readonly ending: EntryDraft | undefined
  readonly problems: ReadonlyArray<Problem>
}

/** Replays `entries` of a branch's history (a prefix of it, usually). */
export const replay = (
  workflow: Workflow.Any,
  history: History,
  entries: ReadonlyArray<Entry>,
  runtime: Runtime.Runtime<never>,
  complete = false
): Effect.Effect<Replayed> =>
  Effect.async<Replayed>((resume) => {
    const issued: Array<EntryDraft> = []
    const head = entries.at(-1)
    let problems: ReadonlyArray<Problem> = []
    const journal: BranchJournal = {
      branch: history.branch.branch,
      epoch: 0,
      head: head?.seq ?? 0,
      headDigest: "",
      durable: head?.seq ?? 0,
      lost: false,
      append: (entryDraft) => {
        issued.push(entryDraft)
        return {
          ...entryDraft,
          branch: history.branch.branch,
          seq: (head?.seq ?? 0) + issued.length,
          epoch: 0,
          at: head?.at ?? 0,
          digest: ""
        }
      },
      onDurable: (_seq, callback) => callback(undefined),
      onLost: () => undefined,
      appendIf: () => Effect.die(new Error("a replay appends no events")),
      transact: () => Effect.die(new Error("a replay fires nothing")),
      release: (how: Release) =>
        Effect.sync(() => {
          if (how._tag === "Stuck") problems = JSON.parse(how.problem) as ReadonlyArray<Problem>
        }),
      close: () => undefined
    }
    const none: Replayed = { commands: [], issued, exit: undefined, ending: undefined, problems: [] }
    const host: BranchHost = {
      ledger: {
        open: () => journal,
        unsafeNow: () => head?.at ?? 0,
        inbox: () => Effect.succeed([]),
        fate: () => Effect.succeed("unknown"),
        database: "a replay",
        maxPayload: Number.MAX_SAFE_INTEGER
      },
      worker: "replay",
      runtime,
      firing: new Set(),
      complete,
      onRest: () => resume(Effect.succeed({ ...none, problems })),
      onReplayed: (run, state) => {
        run.evict()
        resume(Effect.succeed({ ...none, ...state }))
      }
    }
    const run = new BranchRun(
      host,
      workflow,
      { run: history.run, branch: history.branch, headAt: head?.at ?? 0, first: undefined },
      entries.filter(({ kind }) => !kind.startsWith("run.") || kind === "run.started")
    )
    run.start()
  })

/** A difference between what the code does and what the history has. */
export interface ReplayDifference {
  readonly seq: number
  readonly message: string
}

const same = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((each, index) => each === b[index])

/** The history up to its end: what the code reacts to. */
const bodyOf = (history: History, recovery: Recovery): ReadonlyArray<Entry> =>
  recovery.ended === undefined ? history.entries : history.entries.slice(0, -1)

/** Replays a whole history once; the first difference, if there is one. */
export const checkWhole = (
  workflow: Workflow.Any,
  history: History,
  runtime: Runtime.Runtime<never>
): Effect.Effect<ReplayDifference | undefined> =>
  Effect.gen(function* () {
    const recovery = Recovery.of(history.branch.branch, history.entries)
    const whole = yield* replay(workflow, history, bodyOf(history, recovery), runtime, recovery.ended !== undefined)
    const [problem] = whole.problems
    if (problem !== undefined) return { seq: "seq" in problem ? problem.seq : 0, message: problem.message }
    if (recovery.ended === undefined) return undefined
    if (whole.issued.length > 0) {
      return {
        seq: recovery.head,
        message: `the code issues ${whole.issued.map(({ key, kind }) => `${kind} ${key}`).join(", ")}, which the history does not have`
      }
    }
    if (whole.ending === undefined)
      return { seq: recovery.ended.seq, message: "the history ended, the code still waits" }
    // Stacks name files and lines, which a deployment moves.
    if (
      whole.ending.kind !== recovery.ended.kind ||
      (whole.ending.kind !== "run.died" && whole.ending.payload !== recovery.ended.payload)
    ) {
      return {
        seq: recovery.ended.seq,
        message: `the history ended with ${recovery.ended.kind}, the code with ${whole.ending.kind}, or with another value`
      }
    }
    return undefined
  })

/** Replays a history from every prefix; the first difference, if there is one. */
export const checkEveryPrefix = (
  workflow: Workflow.Any,
  history: History,
  runtime: Runtime.Runtime<never>
): Effect.Effect<ReplayDifference | undefined> =>
  Effect.gen(function* () {
    const different = yield* checkWhole(workflow, history, runtime)
    if (different !== undefined) return different
    const body = bodyOf(history, Recovery.of(history.branch.branch, history.entries))
    let following: ReadonlyArray<string> | undefined
    for (let length = body.length; length > 0; length--) {
      const prefix = yield* replay(workflow, history, body.slice(0, length), runtime)
      const last = body[length - 1]
      const seq = last?.seq ?? 0
      const [found] = prefix.problems
      if (found !== undefined) return { seq, message: `from the first ${seq} entries: ${found.message}` }
      const next = body[length]
      const missing = prefix.issued[0]
      // A patch that the history does not take may be taken from here: what follows then is another story.
      const departs = prefix.issued.some(
        ({ key, kind }) => kind === "patch.taken" && !body.some((entry) => entry.kind === kind && entry.key === key)
      )
      if (departs) {
        following = undefined
        continue
      }
      // A retired patch is recorded in old histories and issued by nobody; the whole replay has matched it.
      const commandMark = next !== undefined && isCommandMark(next.kind) && next.kind !== "patch.taken"
      if (
        commandMark &&
        (missing?.kind !== next.kind || missing.key !== next.key || missing.payload !== next.payload)
      ) {
        return {
          seq: next.seq,
          message: `the history has ${next.kind} ${next.key}, the code issues ${missing === undefined ? "nothing" : `${missing.kind} ${missing.key}`}`
        }
      }
      // Within one activation every prefix leads to the same commands.
      if (commandMark && following !== undefined && !same(prefix.commands, following)) {
        return {
          seq,
          message: `from the first ${seq} entries the code waits for ${prefix.commands.join(", ")}, later for ${following.join(", ")}`
        }
      }
      following = prefix.commands
    }
    return undefined
  })
