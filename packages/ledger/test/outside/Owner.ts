/** A worker for tests: it owns the branches that it is asked for, and appends what it is told. */
import {
  BranchId,
  DeliveryId,
  type EffectIdentity,
  type EntryDraft,
  ForkId,
  InterruptId,
  rootBranch,
  RunId
} from "@fermata/contract"
import { type BranchJournal, type Claim, type DeliverRequest, jsonDigest, type Ledger } from "@fermata/ledger"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"

export const workflow = "refund"
export const version = "1"
const definition = `${workflow}@${version}`

/** A run id that no other test uses. */
export const anyRun = (): RunId => RunId.make(`run-${randomUUID()}`)
export const delivery = (text: string) => DeliveryId.make(text)
export const interruptId = (text: string) => InterruptId.make(text)
export const forkId = (text: string) => ForkId.make(text)
export const branchId = (text: string) => BranchId.make(text)

export const startRun = (ledger: Ledger, run: RunId, input = `{"order":1}`) =>
  ledger.start({ run, workflow, version, input, inputDigest: jsonDigest(input) })

export interface Owned {
  readonly ledger: Ledger
  readonly claim: Claim
  readonly journal: BranchJournal
  /** Appends and waits until all of it is durable. */
  readonly write: (...drafts: ReadonlyArray<EntryDraft>) => Effect.Effect<number>
  /** Lets go as waiting for an answer. */
  readonly park: Effect.Effect<void>
}

export interface Owner {
  readonly ledger: Ledger
  /** Claims until it has this branch. Others that come along are kept for later. */
  readonly own: (branch: BranchId) => Effect.Effect<Owned>
  /** Starts a run and owns its root. */
  readonly started: (run?: RunId) => Effect.Effect<Owned>
}

/** Registers a worker until the scope closes. Refusals are defects here: tests that expect one call the ledger itself. */
export const makeOwner = (ledger: Ledger) =>
  Effect.map(
    Effect.orDie(ledger.register({ lease: 600_000, place: undefined, look: () => "cannot tell" })),
    ({ worker }): Owner => {
      const claimed = new Map<string, Claim>()
      const own = (branch: BranchId) =>
        Effect.gen(function* () {
          for (const claim of yield* ledger.claim({ worker, definitions: [definition], limit: 1000 })) {
            claimed.set(claim.branch.branch, claim)
          }
          const claim = claimed.get(branch)
          if (claim === undefined) return yield* Effect.dieMessage(`${branch} is not claimable`)
          claimed.delete(branch)
          return owned(ledger, claim)
        }).pipe(Effect.orDie)
      return {
        ledger,
        own,
        started: (run = anyRun()) => Effect.zipRight(Effect.orDie(startRun(ledger, run)), own(rootBranch(run)))
      }
    }
  )

const owned = (ledger: Ledger, claim: Claim): Owned => {
  const journal = ledger.open(claim)
  return {
    ledger,
    claim,
    journal,
    write: (...drafts) =>
      Effect.async<number>((resume) => {
        for (const draft of drafts) journal.append(draft)
        const { head } = journal
        journal.onDurable(head, (lost) => resume(lost === undefined ? Effect.succeed(head) : Effect.die(lost)))
      }),
    park: Effect.orDie(
      Effect.flatMap(ledger.branch(journal.branch), ({ inboxHead }) =>
        journal.release({ _tag: "Waiting", wakeAt: null }, { inboxSeen: inboxHead })
      )
    )
  }
}

const draft = (kind: EntryDraft["kind"], key: string, payload: unknown): EntryDraft => ({
  kind,
  key,
  payload: JSON.stringify(payload)
})

export const opened = (key: string, payload: unknown = { cents: 100 }, name = "approve") =>
  draft("interrupt.opened", key, { name, payload })
export const closed = (key: string, reason: "withdrawn" | "ended" = "withdrawn") =>
  draft("interrupt.closed", key, { reason })
export const answered = (key: string, value: unknown, by: string, inbox: number) =>
  draft("interrupt.answered", key, { value, delivery: by, valueDigest: jsonDigest(JSON.stringify(value)), inbox })
export const unserved = (key: string, inbox: number, reason: string) => draft("inbox.unserved", key, { inbox, reason })
export const cancelled = (inbox: number) => draft("cancel.requested", "cancel", { reason: null, inbox })
export const stepDone = (key: string, value: unknown = 1) =>
  draft("step.succeeded", key, { node: key.split("#")[0], input: `in-${key}`, value })
export const completed = draft("run.completed", "", { value: "done" })
export const failed = draft("run.failed", "", { error: "no" })

const identity = (step: string, delivery: EffectIdentity["delivery"]): EffectIdentity => ({
  step,
  position: "0",
  try: 0,
  attempt: 1,
  effect: "pay",
  delivery,
  input: "in"
})
export const intended = (key: string, step: string, delivery: EffectIdentity["delivery"] = "once") =>
  draft("effect.intended", key, { ...identity(step, delivery), value: 1, worker: "w" })
export const happened = (key: string, step: string, delivery: EffectIdentity["delivery"] = "once", inbox?: number) =>
  draft("effect.succeeded", key, {
    ...identity(step, delivery),
    value: 1,
    by: inbox === undefined ? "handler" : "operator",
    ...(inbox === undefined ? {} : { inbox })
  })
export const refused = (key: string, step: string) =>
  draft("effect.refused", key, { ...identity(step, "once"), issue: "not a receipt" })

/** A valid value of an answer. */
export const valid = (value: unknown): DeliverRequest["value"] => {
  const json = JSON.stringify(value)
  return { _tag: "Valid", json, digest: jsonDigest(json) }
}

/** A delivery of `value` to an interrupt. */
export const answer = (
  branch: BranchId,
  key: string,
  by: string,
  value: unknown,
  name = "approve"
): DeliverRequest => ({
  branch,
  interrupt: interruptId(key),
  delivery: delivery(by),
  name,
  value: valid(value)
})
