/** A worker worked by hand: claims branches and writes their journals, so that a client is tested without the engine. */
import type { EntryDraft, EntryKind, EntryPayloads } from "@fermata/contract"
import { type BranchJournal, Ledger, type Release } from "@fermata/ledger"
import { Effect, type Scope } from "effect"

/** Appends an entry and waits until it is durable. */
export const append = <K extends EntryKind>(
  journal: BranchJournal,
  kind: K,
  key: string,
  payload: EntryPayloads[K]
): Effect.Effect<number> => {
  const draft: EntryDraft = { kind, key, payload: JSON.stringify(payload) }
  return Effect.async((resume) => {
    const { seq } = journal.append(draft)
    journal.onDurable(seq, (lost) => resume(lost === undefined ? Effect.succeed(seq) : Effect.die(lost)))
  })
}

export interface HandWorker {
  /** Claims the one branch of these definitions that wants a worker. */
  readonly take: (definition: string) => Effect.Effect<BranchJournal>
  /** Ends the branch. `inboxSeen`: how much of its inbox was read. */
  readonly end: <K extends "run.completed" | "run.failed" | "run.died" | "run.cancelled">(
    journal: BranchJournal,
    kind: K,
    payload: EntryPayloads[K],
    inboxSeen?: number
  ) => Effect.Effect<void>
  readonly release: (journal: BranchJournal, how: Release, inboxSeen?: number) => Effect.Effect<void>
}

export const handWorker: Effect.Effect<HandWorker, never, Ledger | Scope.Scope> = Effect.gen(function* () {
  const ledger = yield* Ledger
  const { worker } = yield* Effect.orDie(
    ledger.register({ lease: 3_600_000, place: undefined, look: () => "cannot tell" })
  )
  return {
    take: (definition) =>
      Effect.orDie(
        Effect.flatMap(ledger.claim({ worker, definitions: [definition], limit: 1 }), ([claim]) =>
          claim === undefined
            ? Effect.dieMessage(`nothing of ${definition} wants a worker`)
            : Effect.sync(() => ledger.open(claim))
        )
      ),
    end: (journal, kind, payload, inboxSeen = 0) =>
      Effect.orDie(
        Effect.asVoid(journal.appendIf([{ kind, key: "", payload: JSON.stringify(payload) }], { inboxSeen }))
      ),
    release: (journal, how, inboxSeen = 0) => Effect.orDie(journal.release(how, { inboxSeen }))
  }
})
