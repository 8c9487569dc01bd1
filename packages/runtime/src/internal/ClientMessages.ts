/** The client's signals, queries and updates: checked where they enter, and the workflow's word read back by its Schemas. */
import { Defect, type Entry, MessageId, payloadOf, RunId } from "@fermata/contract"
import { jsonDigest, type Ledger, type StartRequest } from "@fermata/ledger"
import { type Duration, Effect, Either, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { Client, SendError } from "../Client.js"
import type * as Query from "../Query.js"
import { InvalidValue, NotPublished, UpdateDied, UpdateRejected, UpdateUnanswered } from "../RunError.js"
import type * as Signal from "../Signal.js"
import type * as Update from "../Update.js"
import type * as Workflow from "../Workflow.js"
import { branchOf, checkedId } from "./BranchAddress.js"
import { mayHaveTold, untilFound } from "./BranchWatch.js"
import type * as Codec from "./Codec.js"
import { encoded } from "./EncodedValue.js"

const checkRun = checkedId("run id", RunId)
const checkMessage = checkedId("message id", MessageId)
const checkUpdate = checkedId("update id", MessageId)

/** What starting a run asks of the ledger. */
export const startOf = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  run: RunId,
  json: string
): StartRequest => ({ run, ...startedAs(workflow, json) })

/** What is stored of a run's definition and input, whatever its id. */
export const startedAs = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  json: string
): Pick<StartRequest, "workflow" | "version" | "input" | "inputDigest" | "accepts"> => ({
  workflow: workflow.name,
  version: workflow.version,
  input: json,
  inputDigest: jsonDigest(json),
  ...(workflow.signals.length === 0 && workflow.updates.length === 0
    ? {}
    : {
        accepts: JSON.stringify({
          signals: workflow.signals.map(({ name }) => name),
          updates: workflow.updates.map(({ name }) => name)
        })
      })
})

/** The part of the client that messages go through. */
export const clientMessages = (
  ledger: Ledger,
  poll: Duration.DurationInput
): Pick<Client, "signal" | "signalWithStart" | "query" | "update"> => {
  const message = <N extends string, A>({ codec, name }: Signal.Signal<N, A>, payload: A, id: string | undefined) =>
    Effect.gen(function* () {
      const checked = yield* checkMessage(id ?? randomUUID())
      const json = yield* encoded(codec, payload, `payload of signal ${name}`, ledger.maxPayload)
      return { kind: "signal" as const, message: checked, name, json, digest: jsonDigest(json) }
    })

  return {
    signal: Effect.fn("Client.signal")(function* (of, signal, payload, options = {}) {
      const sending = yield* message(signal, payload, options.messageId)
      return yield* ledger.send({ ...sending, branch: yield* branchOf(ledger, of) })
    }),

    signalWithStart: Effect.fn("Client.signalWithStart")(function* <N extends string, I, A, E, R, M extends string, S>(
      workflow: Workflow.Workflow<N, I, A, E, R>,
      input: I,
      signal: Signal.Signal<M, S>,
      payload: S,
      options: { readonly run: RunId | string; readonly messageId?: MessageId | string }
    ) {
      const run = yield* checkRun(options.run)
      const json = yield* encoded(workflow.codecs.input, input, `input of workflow ${workflow.name}`, ledger.maxPayload)
      const sending = yield* message(signal, payload, options.messageId)
      const { sent, started } = yield* ledger.startAndSend(startOf(workflow, run, json), sending)
      return { run: { run, branch: started.branch, created: started.created }, signal: sent }
    }),

    query: Effect.fn("Client.query")(function* <N extends string, A>(
      of: Parameters<Client["query"]>[0],
      query: Query.Query<N, A>
    ) {
      const branch = yield* branchOf(ledger, of)
      const entry = yield* ledger.view(branch, query.name)
      if (entry === undefined) return yield* new NotPublished({ branch, query: query.name })
      const { value } = payloadOf({ kind: "view.published", payload: entry.payload })
      return yield* revived(query.codec, value, `stored result of query ${query.name}`)
    }),

    update: Effect.fn("Client.update")(function* <N extends string, I, A, E>(
      of: Parameters<Client["update"]>[0],
      update: Update.Update<N, I, A, E>,
      input: I,
      options: { readonly updateId?: MessageId | string } = {}
    ) {
      const id = yield* checkUpdate(options.updateId ?? randomUUID())
      const json = yield* encoded(update.codecs.input, input, `input of update ${update.name}`, ledger.maxPayload)
      const branch = yield* branchOf(ledger, of)
      yield* ledger.send({ branch, kind: "update", message: id, name: update.name, json, digest: jsonDigest(json) })
      const unanswered = (reason: string) => new UpdateUnanswered({ branch, update: id, reason })
      const look: Effect.Effect<Option.Option<Entry>, SendError | UpdateUnanswered> = Effect.flatMap(
        ledger.reply(branch, id),
        ({ entry, over }) =>
          entry === undefined && over
            ? Effect.fail(unanswered("the run ended before it answered"))
            : Effect.succeed(Option.fromNullable(entry))
      )
      const entry = yield* untilFound(ledger, mayHaveTold(branch), poll, look)
      switch (entry.kind) {
        case "update.rejected": {
          const { reason } = payloadOf({ kind: entry.kind, payload: entry.payload })
          return yield* new UpdateRejected({ branch, update: id, reason })
        }
        case "update.replied": {
          const reply = payloadOf({ kind: entry.kind, payload: entry.payload })
          if ("defect" in reply) {
            return yield* new UpdateDied({ branch, update: id, defect: Defect.decode(reply.defect) })
          }
          if ("value" in reply) {
            return yield* revived(update.codecs.success, reply.value, `stored answer to update ${update.name}`)
          }
          const error = yield* revived(update.codecs.error, reply.error, `stored error of update ${update.name}`)
          return yield* Effect.fail(error)
        }
        default:
          return yield* unanswered("the run was over when its turn came")
      }
    })
  }
}

const revived = <A>(codec: Codec.Codec<A>, value: unknown, what: string): Effect.Effect<A, InvalidValue> =>
  Either.mapLeft(codec.revive(value), ({ issues }) => new InvalidValue({ what, issues }))
