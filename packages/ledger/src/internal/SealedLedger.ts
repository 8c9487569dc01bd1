/**
 * A ledger whose values pass payload codecs. It stands before another ledger, which never sees what they hide: every member
 * is named here, so that a new one cannot be forgotten.
 */
import { type Entry, type EntryDraft, forkBranch, rootBranch } from "@fermata/contract"
import { Effect } from "effect"
import type {
  BranchJournal,
  Claim,
  DeliverRequest,
  ForkRequest,
  History,
  Ledger,
  RunRow,
  SettleRequest
} from "../Ledger.js"
import type { StoredItem } from "../ItemStore.js"
import { type LedgerError, LedgerUnusable } from "../LedgerError.js"
import type { PayloadCodec } from "../PayloadCodec.js"
import { canonicalJson, jsonDigest } from "./Digest.js"
import { Sealing, Unopened } from "./Sealing.js"

export const sealedLedger = (ledger: Ledger, codecs: ReadonlyArray<PayloadCodec>): Ledger => {
  const sealing = new Sealing(codecs)

  const opened = <A>(open: () => A): Effect.Effect<A, LedgerError> =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(open())
      } catch (error) {
        if (!(error instanceof Unopened)) throw error
        return Effect.fail(
          new LedgerUnusable({ reason: "sealed", database: ledger.database, detail: error.why, advice: error.advice })
        )
      }
    })
  const opening = <A, B, E>(effect: Effect.Effect<A, E>, open: (value: A) => B): Effect.Effect<B, E | LedgerError> =>
    Effect.flatMap(effect, (value) => opened(() => open(value)))

  const openEntry = <E extends Entry>(entry: E): E => {
    const payload = sealing.openPayload(entry.payload)
    return payload === entry.payload ? entry : { ...entry, payload }
  }
  const openRun = (run: RunRow): RunRow => ({ ...run, input: sealing.open(run.input) })
  const openItem = (item: StoredItem): StoredItem => ({
    ...item,
    value: sealing.open(item.value),
    vectors: item.vectors === null ? null : sealing.open(item.vectors)
  })
  const openHistory = (history: History): History => ({
    ...history,
    run: openRun(history.run),
    entries: history.entries.map(openEntry)
  })
  /** A claim has been made, whether its values open or not: `claimed` says so. */
  const openClaim = (claim: Claim): Claim => {
    try {
      return { ...claim, run: openRun(claim.run), first: claim.first && openEntry(claim.first) }
    } catch (error) {
      if (!(error instanceof Unopened)) throw error
      return { ...claim, first: undefined }
    }
  }
  const sealDraft = (draft: EntryDraft): EntryDraft => ({ ...draft, payload: sealing.sealPayload(draft.payload) })

  const sealValue = (value: DeliverRequest["value"]): DeliverRequest["value"] =>
    value._tag === "Valid"
      ? { ...value, json: sealing.seal(value.json), digest: sealing.mac(value.digest) }
      : { ...value, ...(value.digest === undefined ? {} : { digest: sealing.mac(value.digest) }) }

  const sealSettlement = (settlement: SettleRequest["settlement"]): SettleRequest["settlement"] =>
    "json" in settlement ? { ...settlement, json: sealing.seal(settlement.json) } : settlement

  const sealFork = (request: ForkRequest): ForkRequest => {
    const { at } = request
    switch (at._tag) {
      case "Checkpoint":
        return request
      case "Interrupt":
        return { ...request, at: { ...at, value: sealValue(at.value) } }
      case "Outcome":
        return { ...request, at: { ...at, outcome: { ...at.outcome, json: sealing.seal(at.outcome.json) } } }
    }
  }

  /** The fork that a request asks for again, sealed under another key then. */
  const forkAgain = (request: ForkRequest) =>
    Effect.gen(function* () {
      const child = forkBranch(request.run, request.fork)
      const { branch, entries } = yield* opening(ledger.history(child), openHistory)
      const { parent } = branch
      const first = entries.find(({ seq }) => parent !== null && seq === parent.seq + 1)
      if (parent === null || parent.branch !== request.parent || first === undefined) return undefined
      const stored = JSON.parse(first.payload) as { readonly value?: unknown; readonly error?: unknown }
      const same = (json: string, value: unknown) =>
        value !== undefined && canonicalJson(json) === canonicalJson(JSON.stringify(value))
      const { at } = request
      const again =
        at._tag === "Interrupt"
          ? first.kind === "interrupt.answered" &&
            first.key === at.interrupt &&
            at.value._tag === "Valid" &&
            same(at.value.json, stored.value)
          : at._tag === "Outcome" &&
            first.key === at.step &&
            first.kind === (at.outcome._tag === "Succeeded" ? "step.succeeded" : "step.failed") &&
            same(at.outcome.json, at.outcome._tag === "Succeeded" ? stored.value : stored.error)
      return again ? { branch: child, seq: parent.seq, created: false } : undefined
    })

  const journalOf = (journal: BranchJournal): BranchJournal => ({
    branch: journal.branch,
    epoch: journal.epoch,
    get head() {
      return journal.head
    },
    get headDigest() {
      return journal.headDigest
    },
    get durable() {
      return journal.durable
    },
    get lost() {
      return journal.lost
    },
    append: (draft, notBefore) => ({ ...journal.append(sealDraft(draft), notBefore), payload: draft.payload }),
    onDurable: (seq, callback) => journal.onDurable(seq, callback),
    onLost: (callback) => journal.onLost(callback),
    appendIf: (drafts, options) =>
      Effect.map(journal.appendIf(drafts.map(sealDraft), options), (entries) =>
        entries.map((entry, index) => ({ ...entry, payload: drafts[index]?.payload ?? entry.payload }))
      ),
    transact: (body, outcome) => {
      let plain: EntryDraft | undefined
      return Effect.map(
        journal.transact(body, (exit) => {
          plain = outcome(exit)
          return sealDraft(plain)
        }),
        (entry) => ({ ...entry, payload: plain?.payload ?? entry.payload })
      )
    },
    release: (how, options) => journal.release(how, options),
    close: () => journal.close()
  })

  return {
    dialect: ledger.dialect,
    database: ledger.database,
    maxPayload: sealing.longest(ledger.maxPayload),
    now: ledger.now,
    unsafeNow: ledger.unsafeNow,
    sql: ledger.sql,
    start: (request) =>
      ledger
        .start({ ...request, input: sealing.seal(request.input), inputDigest: sealing.mac(request.inputDigest) })
        .pipe(
          // The same start, made before the codecs were what they are.
          Effect.catchTag("RunConflict", (conflict) =>
            conflict.differs !== "input"
              ? Effect.fail(conflict)
              : Effect.flatMap(
                  Effect.catchTag(opening(ledger.run(request.run), openRun), "RunNotFound", () =>
                    Effect.fail(conflict)
                  ),
                  (run) =>
                    jsonDigest(run.input) === jsonDigest(request.input)
                      ? Effect.succeed({ branch: rootBranch(request.run), created: false })
                      : Effect.fail(conflict)
                )
          )
        ),
    run: (run) => opening(ledger.run(run), openRun),
    branch: ledger.branch,
    branches: ledger.branches,
    list: ledger.list,
    count: ledger.count,
    // Tags are found by their values, so they are stored as they are; the docs say so.
    tags: ledger.tags,
    history: (branch, after) => opening(ledger.history(branch, after), openHistory),
    ending: (branch) =>
      opening(ledger.ending(branch), ({ branch, entry }) => ({ branch, entry: entry && openEntry(entry) })),
    deliver: (request) => ledger.deliver({ ...request, value: sealValue(request.value) }),
    startAndSend: (request, send) =>
      ledger.startAndSend(
        { ...request, input: sealing.seal(request.input), inputDigest: sealing.mac(request.inputDigest) },
        { ...send, json: sealing.seal(send.json), digest: sealing.mac(send.digest) }
      ),
    send: (request) =>
      ledger.send({ ...request, json: sealing.seal(request.json), digest: sealing.mac(request.digest) }),
    reply: (branch, update) =>
      opening(ledger.reply(branch, update), ({ entry, over }) => ({ entry: entry && openEntry(entry), over })),
    view: (branch, name) => opening(ledger.view(branch, name), (entry) => entry && openEntry(entry)),
    cancel: ledger.cancel,
    settle: (request) => ledger.settle({ ...request, settlement: sealSettlement(request.settlement) }),
    fork: (request) =>
      Effect.catchTag(ledger.fork(sealFork(request)), "ForkIdReused", (reused) =>
        Effect.flatMap(forkAgain(request), (receipt) =>
          receipt === undefined ? Effect.fail(reused) : Effect.succeed(receipt)
        )
      ),
    // What a schedule stores is what the runs that it starts store.
    createSchedule: (setup, options) =>
      ledger.createSchedule(
        { ...setup, input: sealing.seal(setup.input), inputDigest: sealing.mac(setup.inputDigest) },
        options
      ),
    schedule: ledger.schedule,
    schedules: ledger.schedules,
    pauseSchedule: ledger.pauseSchedule,
    deleteSchedule: ledger.deleteSchedule,
    startScheduled: ledger.startScheduled,
    fireSchedules: ledger.fireSchedules,
    nextScheduleDue: ledger.nextScheduleDue,
    setQueue: ledger.setQueue,
    pauseQueue: ledger.pauseQueue,
    queues: ledger.queues,
    pendingInterrupts: (options) =>
      opening(ledger.pendingInterrupts(options), (pending) =>
        pending.map((each) => ({ ...each, payload: sealing.open(each.payload) }))
      ),
    inbox: (branch, after) =>
      opening(ledger.inbox(branch, after), (rows) =>
        rows.map((row) => ({ ...row, payload: sealing.openPayload(row.payload) }))
      ),
    emit: (request) =>
      ledger.emit({
        ...request,
        chunks: request.chunks.map((chunk) => ({ ...chunk, payload: sealing.seal(chunk.payload) }))
      }),
    chunks: (options) =>
      opening(ledger.chunks(options), ({ chunks, over }) => ({
        chunks: chunks.map((chunk) => ({ ...chunk, payload: sealing.open(chunk.payload) })),
        over
      })),
    awaitedRuns: ledger.awaitedRuns,
    register: ledger.register,
    claim: (options) => Effect.map(ledger.claim(options), (claims) => claims.map(openClaim)),
    takeStarts: (taker) => ledger.takeStarts({ ...taker, use: (claim) => taker.use(claim && openClaim(claim)) }),
    claimed: (claim) =>
      opening(ledger.claimed(claim), (entries) => {
        // What does not open of the run itself was left as it is.
        openRun(claim.run)
        return entries.map(openEntry)
      }),
    nextWake: ledger.nextWake,
    nextLapse: ledger.nextLapse,
    open: (claim) => journalOf(ledger.open(claim)),
    ownedInboxHeads: ledger.ownedInboxHeads,
    disown: ledger.disown,
    fate: ledger.fate,
    unstick: ledger.unstick,
    // Threads of LangGraph.js are stored as they are; the docs say so.
    checkpoints: ledger.checkpoints,
    items: {
      put: (writes) =>
        ledger.items.put(
          writes.map((write) =>
            write.value === null
              ? write
              : {
                  ...write,
                  value: sealing.seal(write.value),
                  vectors: write.vectors === null ? null : sealing.seal(write.vectors)
                }
          )
        ),
      get: (addresses) => opening(ledger.items.get(addresses), (found) => found.map((item) => item && openItem(item))),
      find: (query) => opening(ledger.items.find(query), (found) => found.map(openItem)),
      namespaces: ledger.items.namespaces
    },
    subscribe: ledger.subscribe,
    health: ledger.health,
    verify: ledger.verify,
    // Runs travel as they are stored: who reads them needs the codecs.
    exportRun: ledger.exportRun,
    importRun: ledger.importRun,
    purge: ledger.purge
  }
}
