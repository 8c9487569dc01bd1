/** This plane under the contract's harness: what a driver of it needs, on either database. */
import { BranchId, type EntryPayloads, runOf } from "@fermata/contract"
import {
  type AnswerType,
  type BranchState,
  CanonicalWorkflow,
  Declined,
  type Hello,
  Outside,
  type Plane,
  protocolVersion,
  type Receipt,
  type Session,
  type Step
} from "@fermata/contract/harness"
import { Ledger } from "@fermata/ledger"
import { Client, Worker } from "@fermata/runtime"
import { Effect, Layer, ManagedRuntime, Schema } from "effect"
import * as CommitPoints from "../CommitPoints.js"
import * as PlaneAddress from "../PlaneAddress.js"
import * as Canonical from "./Canonical.js"
import type { Stores } from "./Stores.js"

const documentation: Hello["documentation"] = (
  [
    ["PC", "A resumed run executes what has no durable outcome, and nothing else."],
    ["EO", "Each side effect declares its delivery, and recovery does no more than it permits."],
    ["FD", "A fork starts from a checkpoint, leaves the first branch as it is, and its effects are real."],
    ["CV", "What does not satisfy its Schema is refused, with a path, before it is written."],
    ["CO", "An interrupt is answered at most once per branch, however many answers come, from however many processes."],
    ["RD", "A race has the same winner on replay, parallel steps the same names, Clock and Random the same values."],
    ["FI", '"Answer this" and "another branch, please" are different requests, and neither is a default.'],
    ["LV", "No wake-up is lost, and a run that does not go on says what it waits for."]
  ] as const
).map(([about, says]) => ({ about, says, stance: "claims", source: "README.md, What is guaranteed" }))

const failed = (cause: unknown): Declined =>
  new Declined({
    code:
      typeof cause === "object" && cause !== null && "_tag" in cause && cause._tag === "RunNotFound"
        ? "unknown"
        : "failed",
    message: cause instanceof Error ? cause.message : String(cause)
  })

/** The plane on a kind of stores. */
export const make = (stores: Stores): Plane => ({
  hello: {
    protocol: protocolVersion,
    plane: `Fermata on ${stores.name}`,
    version: "0.1.0",
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
      announcesCommits: true,
      copy: true,
      takeover: true,
      damage: true,
      service: stores.service
    },
    documentation
  },
  open: (place) =>
    Effect.gen(function* () {
      const address = yield* Effect.tryPromise({ try: () => stores.address(place), catch: failed })
      const outside = Outside.at(place)
      const { effects, handlers, workflow } = Canonical.make(outside, place)
      // Before the database is opened, which prepares its statements.
      const opened = place.role === "worker" ? announceCommits(address, outside) : () => {}
      const plane = PlaneAddress.layer(address)
      const worker = Worker.layer({
        workflows: [workflow],
        ...(place.brief ? { lease: "1 second", poll: "200 millis" } : {})
      })
      const idle = Layer.succeed(Worker.Worker, { name: Effect.succeed("none"), running: Effect.succeed(0) })
      const runtime = yield* Effect.acquireRelease(
        Effect.sync(() =>
          ManagedRuntime.make(
            Layer.provideMerge(place.role === "worker" ? Layer.provide(worker, handlers) : idle, plane)
          )
        ),
        (runtime) => runtime.disposeEffect
      )
      const services = yield* Effect.mapError(runtime.runtimeEffect, failed)
      if (place.create) {
        yield* Effect.provide(
          Effect.flatMap(Ledger, ({ sql }) => sql.unsafe(Canonical.bookTable)),
          services
        ).pipe(Effect.mapError(failed))
      }
      opened()
      return session(outside, workflow, effects, (effect) => Effect.mapError(Effect.provide(effect, services), failed))
    }),
  copy: (store, to) => Effect.tryPromise({ try: () => stores.copy(store, to), catch: failed }),
  drop: (store) => Effect.tryPromise({ try: () => stores.drop(store), catch: failed })
})

/** Numbers commits from when what it gives is called. */
const announceCommits = (address: PlaneAddress.PlaneAddress, outside: Outside.Outside): (() => void) => {
  const passed = { "before-commit": 0, "after-commit": 0 }
  let counting = false
  CommitPoints.watch(address, (point) => {
    if (!counting) return
    passed[point] += 1
    outside.reachSync(`commit.${passed[point]}.${point === "before-commit" ? "before" : "after"}`)
  })
  return () => (counting = true)
}

type Services = Client.Client | Ledger | Worker.Worker

const session = (
  outside: Outside.Outside,
  workflow: ReturnType<typeof Canonical.make>["workflow"],
  effects: ReturnType<typeof Canonical.make>["effects"],
  run: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, Declined>
): Session => {
  const state = (description: Client.Description) =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const { branch, problems, status, waitingFor } = description
      const pending = (yield* client.pendingInterrupts({ run: description.run }))
        .filter((one) => one.branch === branch)
        .map(({ interrupt, name }) => ({ interrupt, gate: name }))
      const error = problems.map(({ message }) => message).join("; ")
      const found: BranchState = {
        branch,
        pending,
        status: status === "ready" ? "running" : status,
        waitingFor: waitingFor.map((one) => {
          switch (one._tag) {
            case "Answer":
              return { kind: "answer", name: one.interrupt }
            case "Signal":
            case "Update":
              return { kind: "signal", name: one.name }
            case "Time":
              return { kind: "time", name: String(one.at) }
            case "Worker":
              return { kind: "worker", name: one.definition }
            case "Operator":
              return { kind: "operator", name: "key" in one.problem ? one.problem.key : one.problem.message }
          }
        }),
        ...(error === "" ? {} : { error })
      }
      if (status === "completed") return { ...found, value: yield* client.result(workflow, branch) }
      if (status !== "failed") return found
      return { ...found, error: String(yield* Effect.flip(client.result(workflow, branch))) }
    })
  /** It does not go on by itself: not even when a time comes. */
  const rests = ({ status, waitingFor }: Client.Description) =>
    ["completed", "failed", "cancelled"].includes(status) ||
    ((status === "waiting" || status === "stuck") && waitingFor.every(({ _tag }) => _tag !== "Time"))
  const client = <A, E>(use: (client: Client.Client) => Effect.Effect<A, E, Services>) =>
    run(Effect.flatMap(Client.Client, use))
  return {
    start: ({ run, workflow: canonical }) =>
      Effect.map(
        client(({ start }) => start(workflow, canonical, { run })),
        ({ branch }) => ({ branch })
      ),
    inspect: ({ branch }) => client(({ describe }) => Effect.flatMap(describe(branch), state)),
    rest: ({ branch }) => client(({ awaitStatus }) => Effect.flatMap(awaitStatus(branch, rests), state)),
    // Refusals are replies; what is left are the driver's own failures.
    resume: ({ branch, deliveryId, forkId, intent, interrupt, line, value }) =>
      client(({ resume }) =>
        Effect.gen(function* () {
          const type = yield* answerType(branch, interrupt)
          if (line !== null) yield* outside.reach(line)
          // As it comes from the wire: whether there is an intent is for the plane to see.
          const meant = {
            branch,
            interrupt,
            value,
            deliveryId,
            ...(intent === null ? {} : { intent }),
            ...(forkId === null ? {} : { forkId })
          }
          const receipt = yield* resume(
            Canonical.interruptOf(gateOf(interrupt), type),
            meant as Parameters<typeof resume>[1]
          )
          return receipt._tag === "Forked"
            ? { outcome: "forked", reason: "Forked", branch: receipt.branch }
            : {
                outcome: receipt.verdict === "Accepted" ? "accepted" : "duplicate",
                reason: receipt.verdict,
                branch: null
              }
        }).pipe(
          Effect.catchAll((refusal): Effect.Effect<Receipt, unknown> =>
            refusal._tag === "LedgerUnavailable" || refusal._tag === "LedgerUnusable"
              ? Effect.fail(refusal)
              : Effect.succeed({ outcome: "refused", reason: refusal._tag, branch: null })
          )
        )
      ) as ReturnType<Session["resume"]>,
    cancel: ({ branch }) =>
      Effect.map(
        client(({ cancel }) => cancel(branch)),
        (verdict) => ({ accepted: verdict !== "TooLate" })
      ),
    settle: ({ branch, happened, key, value }) =>
      Effect.map(
        client(({ settle }) =>
          settle(effects.once, {
            branch,
            key,
            settlement: happened ? { _tag: "Happened", value: String(value) } : { _tag: "DidNotHappen" }
          })
        ),
        () => ({ accepted: true })
      ),
    history: ({ branch }) =>
      Effect.map(
        client(({ history }) => history(branch)),
        (entries) => ({
          steps: entries
            .filter(({ kind }) => kind === "step.succeeded")
            .map(({ key, payload }) => {
              // The kind says what the payload is.
              const { value } = JSON.parse(payload) as EntryPayloads["step.succeeded"]
              return { step: gateOf(key), value }
            })
        })
      ),
    branches: ({ run: name }) =>
      Effect.map(
        client(({ branches }) => branches(name)),
        (rows) => ({ branches: rows.map(({ branch }) => branch) })
      ),
    committed: ({ run: name }) =>
      run(
        Effect.gen(function* () {
          const { sql } = yield* Ledger
          const rows = yield* sql<{ step: string; effect: string; input: string; value: string }>`
            SELECT step, effect, input, value FROM conformance_book WHERE run = ${name}`
          return { effects: rows.map((row) => ({ ...row, input: JSON.parse(row.input) as unknown })) }
        })
      ),
    damage: ({ branch }) =>
      run(
        Effect.gen(function* () {
          const { dialect, sql } = yield* Ledger
          yield* dialect === "pg"
            ? sql`ALTER TABLE fermata_journal DISABLE TRIGGER ALL`
            : sql`DROP TRIGGER fermata_journal_no_update`
          yield* sql`UPDATE fermata_journal SET payload = replace(payload, 'fx:', 'fx;')
            WHERE branch_id = ${branch} AND kind = 'step.succeeded'`
          return {}
        })
      ),
    idle: () =>
      run(
        Effect.gen(function* () {
          const { running } = yield* Worker.Worker
          return yield* Effect.as(
            Effect.repeat(Effect.delay(running, "20 millis"), { until: (count) => count === 0 }),
            {}
          )
        })
      )
  }
}

/** What the gate's interrupt takes; any, where there is no such gate: the plane says so. */
const answerType = (branch: string, interrupt: string): Effect.Effect<AnswerType, never, Ledger> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const { input } = yield* ledger.run(runOf(BranchId.make(branch)))
    const { steps } = yield* Schema.decodeUnknown(Schema.parseJson(CanonicalWorkflow))(input)
    return typeIn(steps, gateOf(interrupt).split("@")[0] ?? "") ?? "any"
  }).pipe(Effect.catchAll(() => Effect.succeed("any" as const)))

const typeIn = (steps: ReadonlyArray<Step>, gate: string): AnswerType | undefined => {
  for (const step of steps) {
    if (step.do === "gate" && step.name === gate) return step.answer
    const within =
      step.do === "parallel" ? step.lanes.flat() : step.do === "nested" || step.do === "loop" ? step.steps : []
    const found = typeIn(within, gate)
    if (found !== undefined) return found
  }
  return undefined
}

/** The name in a key: `ask#1` is of the gate `ask`. */
const gateOf = (key: string): string => key.slice(0, key.lastIndexOf("#"))
