/**
 * A small plane that keeps the contract: in memory, in this process, built on the decision functions. With a fault
 * switched on it breaks the contract as planes in the field do, so that probes and suites can be tested.
 */
import { Effect, FiberSet } from "effect"
import { admitStart } from "../../decisions/admitStart.js"
import { judgeOwner } from "../../decisions/ownership.js"
import { payloadOf } from "../../Entry.js"
import { rootBranch, RunId } from "../../Ids.js"
import { waitUntil } from "../Outside.js"
import * as Outside from "../Outside.js"
import {
  type BranchState,
  Declined,
  type Hello,
  type Place,
  type Plane,
  protocolVersion,
  type Session
} from "../Plane.js"
import * as Deliveries from "./Deliveries.js"
import { isOver, recordedSteps } from "./Entries.js"
import { execute } from "./Execution.js"
import type { Owner } from "./Pass.js"
import type { Fault } from "./Fault.js"
import * as Store from "./Store.js"

const hello = (faults: ReadonlyArray<Fault>): Hello => ({
  protocol: protocolVersion,
  plane: ["reference", ...faults].join("+"),
  version: "1",
  capabilities: {
    deliveries: ["once", "keyed", "transactional", "repeatable"],
    features: ["gate", "parallel", "nested", "gates-in-node", "fan-out", "loop", "invalid"],
    durable: true,
    processes: "many",
    deliveryIds: true,
    fork: true,
    intents: true,
    schemas: true,
    cancel: true,
    settle: true,
    history: true,
    branches: true,
    announcesCommits: false,
    copy: true,
    takeover: true,
    damage: true,
    service: null
  },
  documentation: ["PC", "EO", "FD", "CV", "CO", "RD", "FI", "LV"].map((about) => ({
    about,
    stance: "claims",
    says: "The reference plane keeps every property of the contract.",
    source: "packages/contract/src/harness/reference"
  }))
})

/** A reference plane with stores of its own, and the given faults. */
export const make = (...switched: ReadonlyArray<Fault>): Plane => {
  const faults: ReadonlySet<Fault> = new Set(switched)
  const stores = new Map<string, Store.Store>()
  const at = (name: string): Store.Store => {
    const store = stores.get(name) ?? Store.empty()
    stores.set(name, store)
    return store
  }
  return {
    hello: hello(switched),
    open: (place) =>
      Effect.gen(function* () {
        const store = at(place.store)
        yield* Effect.acquireRelease(
          Effect.sync(() => store.alive.add(place.who)),
          // A kill: what it had in memory only is gone, and what it owned is free.
          () => Effect.sync(() => die(store, place, faults))
        )
        const fibers = yield* FiberSet.make()
        const run = yield* FiberSet.runtime(fibers)<never>()
        const owner: Owner = { store, who: place.who, outside: Outside.at(place), faults }
        if (place.role === "worker") {
          const listener = claimAll(owner, place, (effect) => void run(effect))
          yield* Effect.acquireRelease(
            Effect.sync(() => store.listeners.add(listener)),
            () => Effect.sync(() => store.listeners.delete(listener))
          )
          listener()
        }
        return session(owner, () => Effect.runSync(FiberSet.size(fibers)) > 0)
      }),
    copy: (from, to) => Effect.sync(() => void stores.set(to, Store.copyOf(at(from)))),
    drop: (name) => Effect.sync(() => void stores.delete(name))
  }
}

const die = (store: Store.Store, { who }: Place, faults: ReadonlySet<Fault>): void => {
  store.alive.delete(who)
  if (!faults.has("parkedStateLost")) return
  for (const branch of store.branches.values()) {
    if (branch.status === "waiting") branch.entries = branch.entries.filter(({ kind }) => kind !== "interrupt.opened")
  }
}

/** Claims what may be claimed, whenever something changed. */
const claimAll = (owner: Owner, place: Place, start: (effect: Effect.Effect<void>) => void): (() => void) => {
  const { store, who } = owner
  let takeover = place.takeover
  return () => {
    if (!store.alive.has(who)) return
    for (const branch of store.branches.values()) {
      const holder = branch.owner
      if (branch.status !== "ready" && branch.status !== "running") continue
      if (isOver(Store.historyOf(store, branch)) || holder === who) continue
      const dead = holder !== undefined && !store.alive.has(holder)
      if (holder !== undefined) {
        const judged = judgeOwner({ sight: dead ? "gone" : "cannot tell", leaseUntil: takeover ? 0 : 1, now: 0 })
        if (judged._tag === "Alive") continue
      }
      // One owner, one epoch: whoever had it before is fenced.
      branch.epoch += 1
      branch.owner = who
      branch.status = "running"
      const damaged = Store.damagedAt(Store.historyOf(store, branch))
      if (damaged !== undefined && !owner.faults.has("unverifiedRead")) {
        branch.status = "stuck"
        branch.owner = undefined
        branch.problem = `position ${damaged} of its history does not verify`
        continue
      }
      if (dead && owner.faults.has("rebuildFromInitial")) branch.entries = branch.entries.slice(0, 1)
      start(execute(owner, branch, holder !== undefined))
    }
    takeover = false
  }
}

const unknown = (what: string) => new Declined({ code: "unknown", message: `there is no ${what}` })

const session = (owner: Owner, busy: () => boolean): Session => {
  const { faults, outside, store } = owner
  const branchOf = (id: string) =>
    Effect.suspend(() => {
      const branch = store.branches.get(id)
      return branch === undefined ? unknown(`branch ${id}`) : Effect.succeed(branch)
    })
  const rests = (branch: Store.Branch) =>
    isOver(Store.historyOf(store, branch)) || branch.status === "waiting" || branch.status === "stuck"
  const inspect = (id: string) => Effect.map(branchOf(id), (branch) => describe(store, branch, faults))
  return {
    start: ({ run, workflow }) =>
      Effect.suspend(() => {
        const known = store.runs.get(run)
        const digest = Store.digestOf(workflow)
        const verdict = admitStart(
          known === undefined
            ? { _tag: "Absent" }
            : {
                _tag: "Present",
                workflow: known.workflow.name,
                version: "1",
                inputDigest: Store.digestOf(known.workflow)
              },
          { workflow: workflow.name, version: "1", inputDigest: digest }
        )
        const id = rootBranch(RunId.make(run))
        if (verdict._tag === "Existing") return Effect.succeed({ branch: id })
        if (verdict._tag !== "Create") return new Declined({ code: "failed", message: `${run}: ${verdict._tag}` })
        store.runs.set(run, { workflow, branches: [], committed: [] })
        const first = {
          kind: "run.started",
          key: "",
          payload: JSON.stringify({ workflow: workflow.name, version: "1", run: digest })
        } as const
        Store.addBranch(store, RunId.make(run), id, undefined, Store.chain(id, 0, undefined, [first]))
        Store.announce(store)
        return Effect.succeed({ branch: id })
      }),
    inspect: ({ branch }) => inspect(branch),
    rest: ({ branch }) =>
      Effect.flatMap(branchOf(branch), (row) =>
        Effect.zipRight(
          waitUntil(() => rests(row)),
          inspect(branch)
        )
      ),
    resume: (request) => {
      const pass = request.line === null ? Effect.void : outside.reach(request.line)
      if (request.intent === "fork" && !faults.has("forkIgnored"))
        return Effect.map(pass, () => Deliveries.fork(store, request, faults))
      if (request.intent === null && !faults.has("intentDefaulted"))
        return Effect.succeed({ outcome: "refused", reason: "IntentMissing", branch: null })
      return Effect.suspend(() => {
        // CO: looked at and claimed in one change. With the fault the look is before the start line.
        const early = faults.has("doubleConsume") ? Deliveries.look(store, request, faults) : undefined
        return Effect.map(pass, () =>
          Deliveries.deliver(store, request, early ?? Deliveries.look(store, request, faults), faults)
        )
      })
    },
    cancel: ({ branch }) => Effect.map(branchOf(branch), (row) => ({ accepted: Deliveries.cancel(store, row) })),
    settle: (request) =>
      Effect.map(branchOf(request.branch), (row) => ({ accepted: Deliveries.settle(store, row, request) })),
    history: ({ branch }) =>
      Effect.map(branchOf(branch), (row) => ({ steps: recordedSteps(Store.historyOf(store, row)) })),
    branches: ({ run }) =>
      Effect.suspend(() => {
        const known = store.runs.get(run)
        return known === undefined ? unknown(`run ${run}`) : Effect.succeed({ branches: known.branches })
      }),
    committed: ({ run }) => Effect.sync(() => ({ effects: store.runs.get(run)?.committed ?? [] })),
    damage: ({ branch }) =>
      Effect.map(branchOf(branch), (row) => {
        row.entries = row.entries.map((entry) =>
          entry.kind === "step.succeeded"
            ? { ...entry, payload: entry.payload.replace(/"value":"./, '"value":"?') }
            : entry
        )
        return {}
      }),
    idle: () =>
      Effect.as(
        waitUntil(() => !busy()),
        {}
      )
  }
}

const describe = (store: Store.Store, branch: Store.Branch, faults: ReadonlySet<Fault>): BranchState => {
  const history = Store.historyOf(store, branch)
  const { ending, recovery } = Store.viewOf(branch, history)
  const nothing = { branch: branch.id, waitingFor: [], pending: [] }
  const damaged = faults.has("unverifiedRead") ? undefined : Store.damagedAt(history)
  if (damaged !== undefined) {
    const error = `position ${damaged} of its history does not verify`
    return { ...nothing, status: "stuck", error, waitingFor: [{ kind: "operator", name: error }] }
  }
  if (ending?.kind === "run.completed") {
    const { value } = payloadOf({ kind: ending.kind, payload: ending.payload })
    return { ...nothing, status: "completed", value }
  }
  if (ending?.kind === "run.failed") {
    const { error } = payloadOf({ kind: ending.kind, payload: ending.payload })
    return { ...nothing, status: "failed", error: String(error) }
  }
  if (ending !== undefined) return { ...nothing, status: "cancelled" }
  const consumed = new Set(branch.inbox.flatMap((row) => (row.kind === "answer" ? [row.interrupt] : [])))
  const pending = [...recovery.interrupts.keys()]
    .filter((gate) => !consumed.has(gate))
    .map((gate) => ({ interrupt: gate, gate }))
  const status = branch.status === "ready" ? "running" : branch.status
  if (status === "stuck") {
    const waitingFor = faults.has("unnamedWait") ? [] : [{ kind: "operator" as const, name: branch.doubt ?? "" }]
    return { branch: branch.id, status, waitingFor, pending, error: branch.problem ?? "" }
  }
  return {
    branch: branch.id,
    status,
    pending,
    waitingFor: status === "waiting" ? pending.map(({ interrupt }) => ({ kind: "answer", name: interrupt })) : []
  }
}
