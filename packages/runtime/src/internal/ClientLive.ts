/** The client over a ledger: checks ids and values where they enter, and says the ledger's answers in the workflow's types. */
import { BranchId, DeliveryId, ForkId, idProblem, InterruptId, RunId, runOf } from "@fermata/contract"
import { type DeliverRequest, jsonDigest, type Ledger, type SettleRequest, UnknownEffect } from "@fermata/ledger"
import { Array as Arr, Duration, Effect, Either, Option, Schema, Stream } from "effect"
import { randomUUID } from "node:crypto"
import type { Client, Settlement, StartOptions } from "../Client.js"
import type * as Node from "../Node.js"
import { InvalidId, type InvalidValue, WrongWorkflow } from "../RunError.js"
import type * as Tag from "../Tag.js"
import type * as SideEffect from "../SideEffect.js"
import type * as Workflow from "../Workflow.js"
import { branchOf, checkedId, runNamed } from "./BranchAddress.js"
import { mayHaveChanged, mayHaveEnded, untilFound } from "./BranchWatch.js"
import type * as Codec from "./Codec.js"
import { clientMessages, startOf } from "./ClientMessages.js"
import { describe, describeRows, pendingOf } from "./Describe.js"
import { checkedFilter, startTags } from "./FindingRuns.js"
import { listen } from "./Listen.js"
import { outcomeOf } from "./Ending.js"
import { encoded } from "./EncodedValue.js"
import { schedules } from "./Scheduling.js"
import { checkedStart, queues } from "./Starting.js"

const checkRun = checkedId("run id", RunId)
const checkBranch = checkedId("branch id", BranchId)
const checkInterrupt = checkedId("interrupt id", InterruptId)
const checkDelivery = checkedId("delivery id", DeliveryId)
const checkFork = checkedId("fork id", ForkId)
const isBranch = Schema.is(BranchId)

/** Waiting operations look again this often, even if they hear nothing. */
const defaultPoll = Duration.seconds(5)

/** Builds a client over `ledger`. */
export const make = (ledger: Ledger, options: { readonly poll?: Duration.DurationInput } = {}): Client => {
  const poll = options.poll ?? defaultPoll
  return {
    start: Effect.fn("Client.start")(function* <N extends string, I, A, E, R, T extends Tag.Schemas>(
      workflow: Workflow.Workflow<N, I, A, E, R, T>,
      input: I,
      options: StartOptions<T> = {}
    ) {
      const run = yield* options.run === undefined ? Effect.succeed(RunId.make(randomUUID())) : checkRun(options.run)
      const how = yield* checkedStart(options, ledger.unsafeNow())
      const tags = yield* startTags(workflow, options.tags)
      const json = yield* encoded(workflow.codecs.input, input, `input of workflow ${workflow.name}`, ledger.maxPayload)
      const { branch, created } = yield* ledger.start({ ...startOf(workflow, run, json), ...how, ...tags })
      return { run: runOf(branch), branch, created }
    }),

    result: Effect.fn("Client.result")(function* <N extends string, I, A, E, R>(
      workflow: Workflow.Workflow<N, I, A, E, R>,
      of: Parameters<Client["result"]>[1]
    ) {
      const branch = yield* branchOf(ledger, of)
      const look = Effect.flatMap(ledger.ending(branch), ({ branch: row, entry }) =>
        row.workflow === workflow.name
          ? Effect.succeed(Option.fromNullable(entry))
          : Effect.fail(new WrongWorkflow({ run: row.run, asked: workflow.name, stored: row.workflow }))
      )
      return yield* outcomeOf(workflow, yield* untilFound(ledger, mayHaveEnded(branch), poll, look))
    }),

    describe: Effect.fn("Client.describe")(function* (of) {
      return yield* describe(ledger, yield* branchOf(ledger, of))
    }),

    awaitStatus: Effect.fn("Client.awaitStatus")(function* (of, until) {
      const branch = yield* branchOf(ledger, of)
      return yield* untilFound(
        ledger,
        mayHaveChanged(branch),
        poll,
        Effect.map(describe(ledger, branch), Option.liftPredicate(until))
      )
    }),

    branches: Effect.fn("Client.branches")(function* (run) {
      const rows = yield* ledger.branches(yield* runNamed(run))
      // Branches that were made in one millisecond have no order of their own.
      const [roots, forks] = Arr.partition(rows, ({ parent }) => parent !== null)
      return yield* describeRows(ledger, [...roots, ...forks])
    }),

    list: Effect.fn("Client.list")(function* (options = {}) {
      // No workflow has such a name, and not every database could be asked for it.
      if (options.workflow !== undefined && idProblem(options.workflow) !== undefined) return []
      const filter = yield* checkedFilter(options)
      const { after, limit } = options
      return yield* describeRows(
        ledger,
        yield* ledger.list({ ...filter, limit: pageSize(limit), ...(after === undefined ? {} : { after }) })
      )
    }),

    count: Effect.fn("Client.count")(function* (options = {}) {
      if (options.workflow !== undefined && idProblem(options.workflow) !== undefined) return 0
      return yield* ledger.count(yield* checkedFilter(options))
    }),

    tags: Effect.fn("Client.tags")(function* (run) {
      return yield* ledger.tags(yield* runNamed(run))
    }),

    pendingInterrupts: Effect.fn("Client.pendingInterrupts")(function* (options = {}) {
      const { after, assignee, limit, name, run } = options
      // Nothing has such a name, and not every database could be asked for it.
      if ([assignee, name].some((text) => text !== undefined && idProblem(text) !== undefined)) return []
      const rows = yield* ledger.pendingInterrupts({
        limit: pageSize(limit),
        people: run === undefined && assignee === undefined,
        ...(run === undefined ? {} : { run: yield* runNamed(run) }),
        ...(after === undefined ? {} : { after }),
        ...(assignee === undefined ? {} : { assignee }),
        ...(name === undefined ? {} : { name })
      })
      return yield* Effect.forEach(rows, pendingOf)
    }),

    resume: Effect.fn("Client.resume")(function* (interrupt, delivery) {
      const branch = yield* checkBranch(delivery.branch)
      const id = yield* checkInterrupt(delivery.interrupt)
      const deliveryId = yield* checkDelivery(delivery.deliveryId)
      // An invalid value is refused by the ledger: whether it is the first thing that is wrong is decided there.
      const value = checkedValue(interrupt.codecs.answer, delivery.value)
      if (delivery.intent === "retry") {
        const receipt = yield* ledger.deliver({
          branch,
          interrupt: id,
          delivery: deliveryId,
          name: interrupt.name,
          value
        })
        return { _tag: "Answered" as const, ...receipt }
      }
      // FI: neither intent is a default, whatever else the caller gave; the types do not bind callers in JavaScript.
      const intent: unknown = delivery.intent
      if (intent !== "fork") {
        return yield* new InvalidId({ what: "intent", problem: 'is neither "retry" nor "fork"' })
      }
      const fork = yield* checkFork(delivery.forkId)
      const receipt = yield* ledger.fork({
        run: runOf(branch),
        fork,
        parent: branch,
        at: { _tag: "Interrupt", interrupt: id, name: interrupt.name, delivery: deliveryId, value }
      })
      return { _tag: "Forked" as const, ...receipt }
    }),

    ...clientMessages(ledger, poll),

    listen: (stream, of, options) => listen(ledger, poll, stream, of, options),

    fork: Effect.fn("Client.fork")(function* ({ forkId, from }) {
      const parent = yield* checkBranch(from.branch)
      const fork = yield* checkFork(forkId)
      return yield* ledger.fork({ run: runOf(parent), fork, parent, at: { _tag: "Checkpoint", seq: from.seq } })
    }),

    forkWithOutcome: Effect.fn("Client.forkWithOutcome")(function* <N extends string, I, A, E, H extends string, S>(
      node: Node.Node<N, I, A, E, H, S>,
      options: {
        readonly branch: BranchId | string
        readonly step: string
        readonly forkId: ForkId | string
        readonly outcome:
          { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }
      }
    ) {
      const parent = yield* checkBranch(options.branch)
      const fork = yield* checkFork(options.forkId)
      const step = yield* checkStep(node.name, options.step)
      const { outcome } = options
      const json =
        outcome._tag === "Success"
          ? yield* encoded(node.codecs.success, outcome.value, `success of node ${node.name}`, ledger.maxPayload)
          : yield* encoded(node.codecs.error, outcome.error, `error of node ${node.name}`, ledger.maxPayload)
      return yield* ledger.fork({
        run: runOf(parent),
        fork,
        parent,
        at: { _tag: "Outcome", step, outcome: { _tag: outcome._tag === "Success" ? "Succeeded" : "Failed", json } }
      })
    }),

    cancel: Effect.fn("Client.cancel")(function* (of, options = {}) {
      return yield* ledger.cancel(yield* branchOf(ledger, of), options.reason ?? null)
    }),

    settle: Effect.fn("Client.settle")(function* <
      N extends string,
      I,
      A,
      E,
      P extends "keyed" | "once" | "transactional" | "repeatable"
    >(
      effect: SideEffect.SideEffect<N, I, A, E, P>,
      options: { readonly branch: BranchId | string; readonly key: string; readonly settlement: Settlement<A, E> }
    ) {
      const { branch, key, settlement } = options
      // No effect has a key with such characters, and not every database could be asked for it.
      if (!isBranch(branch) || key.includes("\0") || !key.isWellFormed()) {
        return yield* new UnknownEffect({ branch, effect: key })
      }
      return yield* ledger.settle({
        branch,
        effect: key,
        settlement: yield* encodedSettlement(effect, settlement, ledger.maxPayload)
      })
    }),

    unstick: Effect.fn("Client.unstick")(function* (branch) {
      return isBranch(branch) && (yield* ledger.unstick({ branch })) > 0
    }),

    history: Effect.fn("Client.history")(function* (of, options = {}) {
      const { entries } = yield* ledger.history(yield* branchOf(ledger, of), options.after)
      return entries
    }),

    queues: queues(ledger),
    schedules: schedules(ledger),

    export: (run) =>
      Stream.unwrap(Effect.map(Effect.flatMap(runNamed(run), ledger.exportRun), (lines) => Stream.fromIterable(lines))),

    import: (lines) =>
      Effect.flatMap(Stream.runCollect(lines), (all) => ledger.importRun([...all])).pipe(
        Effect.withSpan("Client.import")
      ),

    purge: Effect.fn("Client.purge")(function* (run) {
      return yield* ledger.purge(yield* runNamed(run))
    })
  }
}

/** Rows of a page: 100 unless asked otherwise, 1 at least. */
const pageSize = (limit = 100): number => (limit >= 1 ? Math.min(Math.floor(limit), 10_000) : 1)

const checkedValue = <A>(codec: Codec.Codec<A>, value: A): DeliverRequest["value"] =>
  Either.match(codec.encode(value), {
    onLeft: ({ issues }) => ({ _tag: "Invalid", issues }),
    onRight: (json) => ({ _tag: "Valid", json, digest: jsonDigest(json) })
  })

const encodedSettlement = <N extends string, I, A, E, P extends "keyed" | "once" | "transactional" | "repeatable">(
  { codecs, name }: SideEffect.SideEffect<N, I, A, E, P>,
  settlement: Settlement<A, E>,
  maxLength: number
): Effect.Effect<SettleRequest["settlement"], InvalidValue> => {
  switch (settlement._tag) {
    case "Happened":
      return Effect.map(
        encoded(codecs.success, settlement.value, `success of side effect ${name}`, maxLength),
        (json) => ({ _tag: "Succeeded", json })
      )
    case "Declined":
      return Effect.map(encoded(codecs.error, settlement.error, `error of side effect ${name}`, maxLength), (json) => ({
        _tag: "Failed",
        json
      }))
    case "DidNotHappen":
      return Effect.succeed({ _tag: "DidNotHappen" })
  }
}

/** A step key of that node: its name and an ordinal, behind the scope that it is in, if any. */
const checkStep = (node: string, step: string): Effect.Effect<string, InvalidId> => {
  const hash = step.lastIndexOf("#")
  const name = step.slice(0, Math.max(0, hash))
  const ofNode = (name === node || name.endsWith(`/${node}`)) && /^[1-9][0-9]*$/.test(step.slice(hash + 1))
  const problem = idProblem(step) ?? (ofNode ? undefined : `is not a step of node ${node}, which reads ${node}#1, say`)
  return problem === undefined ? Effect.succeed(step) : Effect.fail(new InvalidId({ what: "step", problem }))
}
