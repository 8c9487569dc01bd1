/**
 * Whether the ledger holds what the model says. Nothing is ignored: times and digests, which the model leaves open, must
 * correspond one to one, and times must not run backwards.
 *
 * After every action all rows of branches and all pending interrupts are read. A branch's journal and inbox are read
 * when its row says that they changed (the digest at the head covers the whole history), and once more at the end.
 */
import type { BranchId, Entry, RunId } from "@fermata/contract"
import { historyOf, type LedgerState, type ModelBranch } from "@fermata/contract/model"
import type { BranchInfo, InboxRow, PendingInterrupt } from "@fermata/ledger"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { RealLedger } from "./RealLedger.js"

/** Compares one sequence's ledger with its model. */
export class Comparison {
  /** The ledger's digest by the model's, and the other way. */
  private readonly digests = new Map<string, string>()
  private readonly writes = new Map<string, string>()
  /** What was compared last: the digest at the head and the inbox's head, by branch. */
  private readonly seen = new Map<string, { readonly digest: string; readonly inboxHead: number }>()
  /** The digests of the runs' rows, by run. */
  private readonly runs = new Map<string, string>()

  constructor(
    private readonly real: RealLedger,
    private readonly where: () => string
  ) {}

  /** Compares all of the sequence's runs; `all`: journals and inboxes too, changed or not. */
  look(state: LedgerState, all: boolean): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      for (const run of Object.values(state.runs)) yield* this.run(state, run.run, all)
      for (const run of state.purged) {
        const gone = yield* Effect.either(this.real.ledger.branches(this.real.run(run)))
        this.same(gone._tag === "Left" ? gone.left._tag : "there", "RunPurged", `run ${run}`)
      }
      this.handles(state)
    }).pipe(Effect.orDie)
  }

  /** What is asked by workflow and by worker. */
  lists(state: LedgerState): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { ledger, names } = this.real
      const workflow = this.real.workflow("w")
      const branches = Object.values(state.branches)
      const roots = branches.filter(({ parent }) => parent === null).map(({ branch }) => branch)
      const listed = yield* ledger.list({ workflow })
      this.same(
        this.real.shown(listed.map(({ branch }) => branch).toSorted()),
        roots.toSorted(),
        "the list of the workflow's runs"
      )
      const wake = yield* ledger.nextWake([`${workflow}@1`])
      const due = branches.some((branch) => branch.due && branch.owner === null)
      this.same(wake !== undefined, due, "whether a branch wants a worker")
      for (const [id, name] of names) {
        const heads = branches
          .filter(({ owner }) => owner === name)
          .map(({ branch, epoch, inbox }) => ({ branch, inboxHead: inbox.length, epoch }))
        const owned = this.real.shown(yield* ledger.ownedInboxHeads(id))
        this.same(owned.toSorted(byBranch), heads.toSorted(byBranch), `what ${name} owns`)
      }
    }).pipe(Effect.orDie)
  }

  private run(state: LedgerState, run: RunId, all: boolean) {
    return Effect.gen(this, function* () {
      const { ledger } = this.real
      if (!this.runs.has(run)) yield* this.runRow(state, run)
      const branches = Object.values(state.branches).filter((branch) => branch.run === run)
      const rows = this.real.shown(yield* ledger.branches(this.real.run(run)))
      this.same(
        rows.map((row) => this.rowOf(row)).toSorted(byBranch),
        branches.map(rowOfModel).toSorted(byBranch),
        `the branches of ${run}`
      )
      const pending = this.real.shown(yield* ledger.pendingInterrupts({ run: this.real.run(run) }))
      this.same(
        pending.map(question).toSorted(),
        branches.flatMap((branch) => questions(state, branch)).toSorted(),
        `the pending interrupts of ${run}`
      )
      for (const row of rows) {
        const branch = state.branches[row.branch]
        if (branch === undefined) continue
        const seen = this.seen.get(row.branch)
        if (all || seen?.digest !== row.headDigest) yield* this.journal(state, branch)
        if (all || seen?.inboxHead !== row.inboxHead) {
          const inbox = this.real.shown(yield* ledger.inbox(this.real.branch(row.branch), 0))
          this.same(inbox.map(accepted), branch.inbox.map(accepted), `the inbox of ${row.branch}`)
          this.inOrder(inbox, `the inbox of ${row.branch}`)
        }
        this.seen.set(row.branch, { digest: row.headDigest, inboxHead: row.inboxHead })
      }
    })
  }

  private runRow(state: LedgerState, run: RunId) {
    return Effect.map(this.real.ledger.run(this.real.run(run)), (read) => {
      const row = this.real.shown(read)
      const { input, inputDigest, version, workflow } = row
      const known = state.runs[run]
      const asked = known && { workflow, version, input: known.input, inputDigest: known.inputDigest }
      this.same({ workflow, version, input, inputDigest }, asked, `run ${run}`)
      this.runs.set(run, row.digest)
    })
  }

  private journal(state: LedgerState, branch: ModelBranch) {
    return Effect.map(this.real.ledger.history(this.real.branch(branch.branch)), (read) => {
      const { branch: row, entries } = this.real.shown({ branch: read.branch, entries: read.entries })
      const history = historyOf(state, branch)
      const what = `the history of ${branch.branch}`
      this.same(
        entries.map((entry) => this.entryOf(entry, branch.run)),
        history.map((entry) => this.entryOf(entry, undefined)),
        what
      )
      this.inOrder(entries, what)
      entries.forEach(({ digest }, n) => this.correspond(history[n]?.digest, digest, what))
      this.same(row.headDigest, entries.at(-1)?.digest, `the digest at the head of ${branch.branch}`)
    })
  }

  /** What a worker's handles say. */
  private handles(state: LedgerState): void {
    for (const { branch, epoch, head, headDigest, lost, worker } of Object.values(state.handles)) {
      const journal = this.real.journal(worker, branch)
      if (journal === undefined) continue
      const what = `the handle of ${worker} on ${branch}`
      // A write that was refused is not taken back from the buffer: the handle is of no use any more.
      if (lost) this.same(journal.lost, true, what)
      else this.same([journal.epoch, journal.head, journal.lost], [epoch, head, false], what)
      if (!lost) this.correspond(headDigest, journal.headDigest, what)
    }
  }

  /** One digest of the model's is one of the ledger's, and the other way. */
  private correspond(modelled: string | undefined, real: string, what: string): void {
    if (modelled === undefined) return
    const [known, write] = [this.digests.get(modelled), this.writes.get(real)]
    if (known === undefined && write === undefined) {
      this.digests.set(modelled, real)
      this.writes.set(real, modelled)
    } else this.same([known, write], [real, modelled], `digests in ${what}`)
  }

  private inOrder(list: ReadonlyArray<{ readonly at: number }>, what: string): void {
    for (let n = 1; n < list.length; n++) {
      if ((list[n]?.at ?? 0) < (list[n - 1]?.at ?? 0)) assert.fail(`times run backwards in ${what}\n${this.where()}`)
    }
  }

  private rowOf(row: BranchInfo) {
    const { branch, epoch, head, inboxHead, owner, parent, readyAt, status } = row
    const name = owner === null ? null : (this.real.names.get(owner) ?? "a stranger")
    if (status === "stuck" && row.problem === null) assert.fail(`${branch} is stuck and does not say why`)
    return { branch, parent, status, owner: name, epoch, head, inboxHead, due: readyAt !== null }
  }

  /** An entry without times and digests; the digest in a run's first entry is that of the run's row. */
  private entryOf(entry: Entry, run: RunId | undefined) {
    const { branch, epoch, key, kind, payload, seq } = entry
    if (kind !== "run.started") return [branch, seq, kind, key, payload, epoch]
    const own = run === undefined ? "" : (this.runs.get(run) ?? "unknown")
    return [branch, seq, kind, key, payload.replace(`"run":"${own}"`, `"run":""`), epoch]
  }

  /** Fails, with the sequence so far, unless these are the same. */
  same(actual: unknown, expected: unknown, what: string): void {
    // Most are the same, and this is how to see it soonest.
    if (JSON.stringify(actual) === JSON.stringify(expected)) return
    assert.deepStrictEqual(actual, expected, `${what}, after\n${this.where()}`)
    assert.fail(`${what}: ${JSON.stringify(actual)} is not ${JSON.stringify(expected)}, after\n${this.where()}`)
  }
}

const byBranch = (a: { readonly branch: BranchId }, b: { readonly branch: BranchId }): number =>
  a.branch < b.branch ? -1 : 1

const rowOfModel = ({ branch, due, epoch, head, inbox, owner, parent, status }: ModelBranch) => ({
  branch,
  parent,
  status,
  owner,
  epoch,
  head,
  inboxHead: inbox.length,
  due
})

const accepted = ({ key, kind, payload, pos }: Pick<InboxRow, "key" | "kind" | "payload" | "pos">) => [
  pos,
  kind,
  key,
  payload
]

const question = ({ branch, interrupt, name, payload, seq }: Omit<PendingInterrupt, "run" | "openedAt">): string =>
  JSON.stringify([branch, interrupt, name, payload, seq])

/** The questions that a branch of the model asks, as the ledger lists them; the same until the branch changes. */
const questions = (state: LedgerState, branch: ModelBranch): ReadonlyArray<string> => {
  const known = asked.get(branch)
  if (known !== undefined) return known
  const history = branch.open.length === 0 ? [] : historyOf(state, branch)
  const list = branch.open.map((interrupt) => {
    const entry = history.find(({ key, kind }) => kind === "interrupt.opened" && key === interrupt)
    // Every payload of this kind names the question.
    const { name, payload } = JSON.parse(entry?.payload ?? "{}") as { readonly name: string; readonly payload: unknown }
    return JSON.stringify([branch.branch, interrupt, name, JSON.stringify(payload), entry?.seq])
  })
  asked.set(branch, list)
  return list
}

const asked = new WeakMap<ModelBranch, ReadonlyArray<string>>()
