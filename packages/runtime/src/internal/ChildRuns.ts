/**
 * Child runs as the runtime sees them. A child is started by a `keyed` effect, whose key is its run id, so that a start that is
 * repeated after a crash is the same start. Its parent waits for it by an interrupt that is assigned to the child's run:
 * whoever runs the child to its end answers it, through the gate that every answer goes through (CO). So waiting costs
 * nothing, an end is heard once, and a fork of the parent hears it too.
 */
import { type Entry, idProblem, payloadOf, rootBranch, RunId } from "@fermata/contract"
import { type AwaitedRun, jsonDigest, type Ledger, type LedgerError } from "@fermata/ledger"
import { Context, Effect, Schema } from "effect"
import * as Delivery from "../Delivery.js"
import * as Node from "../Node.js"
import * as SideEffect from "../SideEffect.js"
import { digest } from "./Payload.js"
import type { WorkflowScope } from "./WorkflowScope.js"

/** The id is in use for another workflow or input, or was purged. Nothing was started. */
export class ChildConflict extends Schema.TaggedError<ChildConflict>("fermata/ChildConflict")("ChildConflict", {
  run: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `Child ${this.run} was not started: ${this.detail}`
  }
}

const StartRequest = Schema.Struct({
  /** The child's run id; `null`: one that is derived from the parent's and from the effect's key. */
  run: Schema.NullOr(RunId),
  parent: RunId,
  workflow: Schema.String,
  version: Schema.String,
  /** The encoded input, as JSON text. */
  input: Schema.String,
  accepts: Schema.NullOr(Schema.String)
})

const CancelRequest = Schema.Struct({ run: RunId, reason: Schema.NullOr(Schema.String) })

const Start = SideEffect.make("fermata/start-child", {
  delivery: Delivery.keyed,
  input: StartRequest,
  success: RunId,
  error: ChildConflict
})
const Cancel = SideEffect.make("fermata/cancel-child", { delivery: Delivery.keyed, input: CancelRequest })

const start = Node.make(
  "fermata/start-child",
  { input: StartRequest, success: RunId, error: ChildConflict, effects: [Start] },
  (request) => Start(request)
)
const cancel = Node.make("fermata/cancel-child", { input: CancelRequest, effects: [Cancel] }, (request) =>
  Cancel(request)
)

// Steps of the parent's. Their handlers come with every worker: nobody needs to provide them.

export const startChild = (request: typeof StartRequest.Type): Effect.Effect<RunId, ChildConflict, WorkflowScope> =>
  start(request) as Effect.Effect<RunId, ChildConflict, WorkflowScope>
export const cancelChild = (request: typeof CancelRequest.Type): Effect.Effect<void, never, WorkflowScope> =>
  cancel(request) as Effect.Effect<void, never, WorkflowScope>

/** The services of a worker, with the handlers that children need. */
export const withHandlers = (context: Context.Context<never>, ledger: Ledger): Context.Context<never> => {
  const handler = (handle: SideEffect.Handler["handle"]): SideEffect.Handler => ({
    context: Context.empty(),
    handle,
    reconcile: undefined
  })
  // The effects' codecs give what they take.
  const starting = (request: typeof StartRequest.Type, firing: SideEffect.Firing) => {
    const run = request.run ?? derivedRun(request.parent, firing)
    return ledger
      .start({
        run,
        workflow: request.workflow,
        version: request.version,
        input: request.input,
        inputDigest: jsonDigest(request.input),
        ...(request.accepts === null ? {} : { accepts: request.accepts })
      })
      .pipe(
        Effect.catchTags({
          RunConflict: ({ message, run }) => new ChildConflict({ run, detail: message }),
          RunPurged: ({ message, run }) => new ChildConflict({ run, detail: message })
        }),
        Effect.as(run)
      )
  }
  const cancelling = ({ reason, run }: typeof CancelRequest.Type) =>
    // Gone is as good as cancelled.
    Effect.asVoid(
      Effect.catchTags(ledger.cancel(rootBranch(run), reason), {
        RunNotFound: () => Effect.void,
        RunPurged: () => Effect.void
      })
    )
  return context.pipe(
    Context.add(
      SideEffect.handlerTag(Start.name),
      handler((input, firing) => orDefect(starting(input as typeof StartRequest.Type, firing)))
    ),
    Context.add(
      SideEffect.handlerTag(Cancel.name),
      handler((input) => orDefect(cancelling(input as typeof CancelRequest.Type)))
    )
  ) as Context.Context<never>
}

/** The same on every replay, and for every branch that inherits the firing; another for each branch that fires. */
const derivedRun = (parent: RunId, { idempotencyKey }: SideEffect.Firing): RunId => {
  const run = `${parent}.${idempotencyKey.slice(0, 16)}`
  return RunId.make(idProblem(run) === undefined ? run : `child.${idempotencyKey}`)
}

/** A database that is away says nothing of what became of the request: it is repeated. */
const orDefect = <A, E extends { readonly _tag: string }>(
  effect: Effect.Effect<A, E>
): Effect.Effect<A, Extract<E, ChildConflict>> =>
  Effect.catchAll(effect, (error) =>
    error._tag === "ChildConflict" ? Effect.fail(error as Extract<E, ChildConflict>) : Effect.die(error)
  )

/** How many answers are given before others have their turn. */
const mostAnswers = 10_000

/** Answers interrupts whose run is over. */
export const answerAwaited = (
  ledger: Ledger,
  which: Omit<Parameters<Ledger["awaitedRuns"]>[0], "limit">
): Effect.Effect<void, LedgerError> =>
  Effect.flatMap(
    ledger.awaitedRuns({ ...which, limit: mostAnswers }),
    Effect.forEach((one) => answer(ledger, one), { discard: true })
  )

const answer = (ledger: Ledger, awaited: AwaitedRun): Effect.Effect<void, LedgerError> =>
  Effect.gen(function* () {
    const { run } = awaited
    const outcome = yield* Effect.catchTags(
      Effect.map(ledger.ending(rootBranch(run)), ({ entry }) => entry && outcomeOf(entry)),
      {
        RunNotFound: () => Effect.succeed({ _tag: "Purged" }),
        RunPurged: () => Effect.succeed({ _tag: "Purged" }),
        // Its end is not known then: whoever restores it lets the parent go on.
        CorruptJournal: (error) => Effect.as(Effect.logWarning(`The end of ${run} cannot be told`, error), undefined)
      }
    )
    if (outcome === undefined) return
    yield* Effect.catchTag(deliver(ledger, awaited, outcome), "ResumeValueInvalid", ({ issues }) =>
      // LV: what does not fit into an answer must not let the parent wait for ever.
      Effect.ignoreLogged(
        deliver(ledger, awaited, { _tag: "Died", message: `its end is no answer: ${issues.join("; ")}` })
      )
    )
  })

/** An outcome as the parent's Schema reads it. */
interface Told {
  readonly _tag: string
  readonly [field: string]: unknown
}

const deliver = (ledger: Ledger, { branch, interrupt, name, run }: AwaitedRun, outcome: Told) => {
  const json = JSON.stringify(outcome)
  return ledger
    .deliver({
      branch,
      interrupt,
      name,
      // One for each question and answer: the same run may answer several.
      delivery: deliveryOf(run, `${interrupt}\n${outcome._tag}`),
      value: { _tag: "Valid", json, digest: jsonDigest(json) }
    })
    .pipe(
      Effect.asVoid,
      Effect.catchTags({
        // Somebody was faster, or nobody waits any more.
        AlreadyConsumed: () => Effect.void,
        DeliveryIdReused: () => Effect.void,
        InterruptClosed: () => Effect.void,
        RunPurged: () => Effect.void,
        UnknownInterrupt: () => Effect.void,
        CorruptJournal: (error) => Effect.logWarning(`The end of ${run} could not be told to ${branch}`, error)
      })
    )
}

const deliveryOf = (run: RunId, what: string) =>
  // Of characters that every id may have.
  `run-${digest(`${run}\n${what}`)}` as Parameters<Ledger["deliver"]>[0]["delivery"]

/** What a run's last entry says, its values as they were stored: as the parent's Schema of an outcome reads them. */
const outcomeOf = (entry: Entry): Told => {
  switch (entry.kind) {
    case "run.completed":
      return { _tag: "Succeeded", value: payloadOf({ kind: entry.kind, payload: entry.payload }).value }
    case "run.failed":
      return { _tag: "Failed", error: payloadOf({ kind: entry.kind, payload: entry.payload }).error }
    case "run.cancelled":
      return { _tag: "Cancelled", reason: payloadOf({ kind: entry.kind, payload: entry.payload }).reason }
    default:
      return { _tag: "Died", message: `${entry.branch} died: see its own history` }
  }
}
