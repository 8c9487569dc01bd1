/** The real ledger, made to do what the model does: one action at a time, with an answer in the model's words. */
import { BranchId, type EntryDraft, rootBranch, RunId } from "@fermata/contract"
import { type Action, handleKey, type LedgerModel, type LedgerState, type ModelValue } from "@fermata/contract/model"
import { type BranchJournal, type DeliverRequest, type ForkRequest, jsonDigest, type Ledger } from "@fermata/ledger"
import { Effect, Either, Exit, Scope } from "effect"
import { type Answer, refusalOf } from "./Answer.js"

const valueOf = ({ json, valid }: ModelValue): DeliverRequest["value"] => {
  const digest = jsonDigest(json)
  return valid ? { _tag: "Valid", json, digest } : { _tag: "Invalid", issues: ["$: is not valid"], digest }
}

const forkAt = (at: Extract<Action, { _tag: "Fork" }>["at"]): ForkRequest["at"] => {
  switch (at._tag) {
    case "Checkpoint":
      return at
    case "Interrupt":
      return { ...at, value: valueOf(at.value) }
    case "Outcome":
      return { _tag: "Outcome", step: at.step, outcome: { _tag: at.outcome, json: at.json } }
  }
}

/** A typed refusal is an answer like any other; a defect is none. */
const answered = <A, E extends { readonly _tag: string }>(
  effect: Effect.Effect<A, E>,
  say: (result: A) => Answer
): Effect.Effect<Answer> =>
  Effect.map(Effect.either(effect), Either.match({ onLeft: (refusal) => refusalOf(refusal), onRight: say }))

/**
 * What one sequence does to a ledger. Many sequences share it, each with runs, a workflow and workers of its own: every
 * name that the model knows begins with the sequence's prefix there, and is without it in what is read.
 */
export class RealLedger {
  private readonly workers = new Map<string, { readonly id: string; readonly scope: Scope.CloseableScope }>()
  private readonly journals = new Map<string, BranchJournal>()
  /** The model's name of a worker, by the ledger's id. */
  readonly names = new Map<string, string>()
  /** When an answer was accepted. */
  private readonly acceptedAt = new Map<string, number>()

  constructor(
    readonly ledger: Ledger,
    private readonly model: LedgerModel,
    private readonly prefix: string
  ) {}

  /** The ledger's name of a run. */
  readonly run = (run: string): RunId => RunId.make(this.prefix + run)

  /** The ledger's name of a branch. */
  readonly branch = (branch: BranchId): BranchId => BranchId.make(this.prefix + branch)

  /** The ledger's name of a workflow. */
  readonly workflow = (workflow: string): string => this.prefix + workflow

  /** What is read from the ledger, in the model's names. */
  shown<A>(read: A): A {
    // The prefix is in names only, and the text stays JSON of the same shape.
    return JSON.parse(JSON.stringify(read).replaceAll(this.prefix, "")) as A
  }

  /** The ledger's form of an entry: effects are named by the branch that meant them. */
  private draft({ key, kind, payload }: EntryDraft): EntryDraft {
    const named = kind.startsWith("effect.") ? this.prefix + key : key.replace(/^settle:/, `settle:${this.prefix}`)
    return { kind, key: named, payload }
  }

  /** The handle that a worker holds on a branch. */
  journal(worker: string, branch: BranchId): BranchJournal | undefined {
    return this.journals.get(handleKey(worker, branch))
  }

  /** Does it; `state` is the model's before it. */
  perform(state: LedgerState, action: Action): Effect.Effect<Answer> {
    const { ledger, model } = this
    switch (action._tag) {
      case "Start": {
        const { input, run, workflow } = action
        return answered(
          ledger.start({
            run: this.run(run),
            workflow: this.workflow(workflow),
            version: "1",
            input,
            inputDigest: jsonDigest(input)
          }),
          ({ branch, created }) => ({ _tag: "Started", created, root: branch === rootBranch(this.run(run)) })
        )
      }
      case "Claim":
        return Effect.flatMap(this.worker(action.worker), (worker) =>
          answered(ledger.claim({ worker, definitions: [`${this.workflow("w")}@1`], limit: 1000 }), (claims) => {
            for (const claim of claims)
              this.journals.set(handleKey(action.worker, this.shown(claim.branch.branch)), ledger.open(claim))
            const branches = claims.map(({ branch: { branch, epoch } }) => ({ branch: this.shown(branch), epoch }))
            return { _tag: "Claimed", branches: branches.toSorted((a, b) => (a.branch < b.branch ? -1 : 1)) }
          })
        )
      case "Append":
      case "Move": {
        const { handle, journal } = this.owned(state, action)
        const modelled = action._tag === "Append" ? action.draft : model.nextMove(state, handle)
        if (modelled === undefined) return Effect.succeed({ _tag: "NothingToMove" })
        const draft = this.draft(modelled)
        if (action._tag === "Append" && action.conditional) {
          const { inboxSeen } = model.recoveryOf(state, handle)
          return answered(journal.appendIf([draft], { inboxSeen }), ([entry]) => ({
            _tag: "Appended",
            seq: entry?.seq
          }))
        }
        const appended = Effect.flatMap(
          Effect.sync(() => journal.append(draft)),
          (entry) =>
            Effect.async<number, Parameters<Parameters<BranchJournal["onDurable"]>[1]>[0] & {}>((resume) =>
              journal.onDurable(entry.seq, (lost) =>
                resume(lost === undefined ? Effect.succeed(entry.seq) : Effect.fail(lost))
              )
            )
        )
        return answered(appended, (seq) => ({ _tag: "Appended", seq }))
      }
      case "Release": {
        const { handle, journal } = this.owned(state, action)
        const wakeAt = action.wakes ? 0 : null
        const how =
          action.how === "Ready"
            ? ({ _tag: "Ready" } as const)
            : action.how === "Stuck"
              ? ({ _tag: "Stuck", problem: "[]", wakeAt } as const)
              : ({ _tag: "Waiting", wakeAt } as const)
        const { inboxSeen } = model.recoveryOf(state, handle)
        return answered(journal.release(how, { inboxSeen }), () => ({ _tag: "Released" }))
      }
      case "Disown": {
        const { journal } = this.owned(state, action)
        journal.close()
        return answered(ledger.disown(this.branch(action.branch), journal.epoch), () => ({ _tag: "Freed" }))
      }
      case "Lose": {
        const worker = this.workers.get(action.worker)
        const left = worker === undefined ? Effect.void : Scope.close(worker.scope, Exit.void)
        return Effect.as(left, { _tag: "Freed" })
      }
      case "Deliver": {
        const { delivery, interrupt } = action
        const branch = this.branch(action.branch)
        return answered(ledger.deliver({ ...action, branch, value: valueOf(action.value) }), (receipt) => {
          const key = `${branch} ${interrupt} ${delivery}`
          const known = this.acceptedAt.get(key)
          if (receipt.verdict === "Accepted") this.acceptedAt.set(key, receipt.at)
          return {
            _tag: receipt.verdict,
            unserved: receipt.unserved,
            // A receipt says what it is of, and a duplicate when the first was accepted (or an ancestor's was).
            same:
              receipt.branch === branch &&
              receipt.interrupt === interrupt &&
              receipt.delivery === delivery &&
              (known === undefined || receipt.at === known)
          }
        })
      }
      case "Fork": {
        const { fork, parent, run } = action
        const request = { fork, run: this.run(run), parent: this.branch(parent), at: forkAt(action.at) }
        return answered(ledger.fork(request), (receipt) => ({ _tag: "Forked", ...receipt }))
      }
      case "Cancel":
        return answered(ledger.cancel(this.branch(action.branch), action.reason), (_tag) => ({ _tag }))
      case "Settle": {
        const request = { ...action, branch: this.branch(action.branch), effect: this.prefix + action.effect }
        return answered(ledger.settle(request), (_tag) => ({ _tag }))
      }
      case "Unstick":
        return answered(ledger.unstick({ branch: this.branch(action.branch) }), (count) => ({ _tag: "Unstuck", count }))
      case "Purge":
        return answered(ledger.purge(this.run(action.run)), () => ({ _tag: "Purged" }))
    }
  }

  /** Every worker leaves. */
  readonly close = Effect.suspend(() =>
    Effect.forEach(this.workers.values(), ({ scope }) => Scope.close(scope, Exit.void), { discard: true })
  )

  private owned(state: LedgerState, { branch, worker }: { readonly branch: BranchId; readonly worker: string }) {
    const handle = state.handles[handleKey(worker, branch)]
    const journal = this.journal(worker, branch)
    if (handle === undefined || journal === undefined) throw new Error(`${worker} does not hold ${branch}`)
    return { handle, journal }
  }

  private worker(name: string): Effect.Effect<string> {
    return Effect.gen(this, function* () {
      const known = this.workers.get(name)
      if (known !== undefined) return known.id
      const scope = yield* Scope.make()
      const blind = { lease: 600_000, place: undefined, look: () => "cannot tell" as const }
      const { worker } = yield* Effect.orDie(Scope.extend(this.ledger.register(blind), scope))
      this.workers.set(name, { id: worker, scope })
      this.names.set(worker, name)
      return worker
    })
  }
}
