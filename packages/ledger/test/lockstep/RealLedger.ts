/** The real ledger, made to do what the model does: one action at a time, with an answer in the model's words. */
import { type BranchId, runOf } from "@fermata/contract"
import {
  type Action,
  handleKey,
  historyOf,
  type LedgerModel,
  type LedgerState,
  type ModelBranch,
  type ModelValue
} from "@fermata/contract/model"
import { type BranchJournal, type DeliverRequest, type ForkRequest, jsonDigest, type Ledger } from "@fermata/ledger"
import { Effect, Either, Exit, Scope } from "effect"

/** An answer: the tag of a receipt or of a typed refusal, and what a receipt says besides. */
export type Answer = { readonly _tag: string } & Readonly<Record<string, unknown>>

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
  Effect.map(Effect.either(effect), Either.match({ onLeft: ({ _tag }): Answer => ({ _tag }), onRight: say }))

export class RealLedger {
  private readonly workers = new Map<string, { readonly id: string; readonly scope: Scope.CloseableScope }>()
  private readonly journals = new Map<string, BranchJournal>()

  constructor(
    private readonly ledger: Ledger,
    private readonly model: LedgerModel
  ) {}

  /** Does it; `state` is the model's before it. */
  perform(state: LedgerState, action: Action): Effect.Effect<Answer> {
    const { ledger, model } = this
    switch (action._tag) {
      case "Start": {
        const { input, run, workflow } = action
        return answered(
          ledger.start({ run, workflow, version: "1", input, inputDigest: jsonDigest(input) }),
          ({ created }) => ({ _tag: "Started", created })
        )
      }
      case "Claim":
        return Effect.flatMap(this.worker(action.worker), (worker) =>
          answered(ledger.claim({ worker, definitions: ["w@1"], limit: 1000 }), (claims) => {
            for (const claim of claims)
              this.journals.set(handleKey(action.worker, claim.branch.branch), ledger.open(claim))
            const branches = claims.map(({ branch: { branch, epoch } }) => ({ branch, epoch }))
            return { _tag: "Claimed", branches: branches.toSorted((a, b) => (a.branch < b.branch ? -1 : 1)) }
          })
        )
      case "Append":
      case "Move": {
        const { handle, journal } = this.owned(state, action)
        const draft = action._tag === "Append" ? action.draft : model.nextMove(state, handle)
        if (draft === undefined) return Effect.succeed({ _tag: "NothingToMove" })
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
            Effect.async<number, { readonly _tag: string }>((resume) =>
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
        return answered(ledger.disown(action.branch, journal.epoch), () => ({ _tag: "Freed" }))
      }
      case "Lose": {
        const worker = this.workers.get(action.worker)
        const left = worker === undefined ? Effect.void : Scope.close(worker.scope, Exit.void)
        return Effect.as(left, { _tag: "Freed" })
      }
      case "Deliver":
        return answered(ledger.deliver({ ...action, value: valueOf(action.value) }), ({ verdict }) => ({
          _tag: verdict
        }))
      case "Fork":
        return answered(ledger.fork({ ...action, at: forkAt(action.at) }), (receipt) => ({
          _tag: "Forked",
          ...receipt
        }))
      case "Cancel":
        return answered(ledger.cancel(action.branch, action.reason), (_tag) => ({ _tag }))
      case "Settle":
        return answered(ledger.settle(action), (_tag) => ({ _tag }))
      case "Unstick":
        return answered(ledger.unstick({ branch: action.branch }), (count) => ({ _tag: "Unstuck", count }))
      case "Purge":
        return answered(ledger.purge(action.run), () => ({ _tag: "Purged" }))
    }
  }

  /** What there is of a branch. */
  readonly look = (branch: BranchId) =>
    Effect.gen(this, function* () {
      const { branch: info, entries } = yield* this.ledger.history(branch)
      const inbox = yield* this.ledger.inbox(branch, 0)
      const open = yield* this.ledger.pendingInterrupts({ run: runOf(branch) })
      return {
        status: info.status,
        owned: info.owner !== null,
        epoch: info.epoch,
        head: info.head,
        due: info.readyAt !== null,
        inbox: inbox.map(({ key, kind, payload, pos }) => [pos, kind, key, payload]),
        open: open
          .filter((pending) => pending.branch === branch)
          .map(({ interrupt }) => interrupt)
          .toSorted(),
        entries: entries.map(comparable)
      }
    })

  /** Every worker leaves. */
  readonly close = Effect.suspend(() =>
    Effect.forEach(this.workers.values(), ({ scope }) => Scope.close(scope, Exit.void), { discard: true })
  )

  private owned(state: LedgerState, { branch, worker }: { readonly branch: BranchId; readonly worker: string }) {
    const key = handleKey(worker, branch)
    const [handle, journal] = [state.handles[key], this.journals.get(key)]
    if (handle === undefined || journal === undefined) throw new Error(`${key} is owned by nobody`)
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
      return worker
    })
  }
}

/** What of an entry the model has too; the digest in a run's first entry is the ledger's own. */
const comparable = ({ branch, epoch, key, kind, payload, seq }: ReturnType<typeof historyOf>[number]) => [
  branch,
  seq,
  kind,
  key,
  kind === "run.started" ? "" : payload,
  epoch
]

/** The same of the model's branch. */
export const modelled = (state: LedgerState, branch: ModelBranch) => ({
  status: branch.status,
  owned: branch.owner !== null,
  epoch: branch.epoch,
  head: branch.head,
  due: branch.due,
  inbox: branch.inbox.map(({ key, kind, payload, pos }) => [pos, kind, key, payload]),
  open: [...branch.open].toSorted(),
  entries: historyOf(state, branch).map(comparable)
})
