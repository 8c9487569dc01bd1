/**
 * Sagas: steps that are undone by other steps when what comes after them fails, or is cancelled. What undoes a step is known
 * once the step has succeeded; it runs when the saga does not, last one first, and cannot be interrupted. It is made of
 * ordinary steps, so it survives crashes: a saga that was undoing when its worker died goes on undoing.
 *
 * @example
 * const order = Saga.run(Effect.gen(function* () {
 *   const hold = yield* Saga.compensate(reserve(items), (hold) => release(hold))
 *   yield* Saga.compensate(charge(card), (receipt) => refund(receipt))
 *   return yield* ship(hold)
 * }))
 */
import { Cause, Context, Effect, Exit, Schema } from "effect"
import { WorkflowScope } from "./internal/WorkflowScope.js"

/** Required by what registers compensations; provided by {@link run}. */
export interface Saga {
  readonly _: unique symbol
}

interface Log {
  /** Whose commands the saga's steps are. */
  readonly scope: unknown
  readonly undo: Array<{ readonly name: string; readonly effect: Effect.Effect<unknown, unknown> }>
}

const Saga = Context.GenericTag<Saga, Log>("fermata/Saga")

/**
 * A saga did not succeed, and some of its compensations failed: what they were to undo is not undone. All others ran. It has a
 * Schema, so that a workflow can declare it as its error.
 */
export class CompensationFailed extends Schema.TaggedError<CompensationFailed>("fermata/CompensationFailed")(
  "CompensationFailed",
  {
    /** Why the saga did not succeed. */
    reason: Schema.String,
    /** In the order in which they ran. */
    failures: Schema.Array(Schema.Struct({ compensation: Schema.String, error: Schema.String }))
  }
) {
  override get message() {
    const failed = this.failures.map(({ compensation, error }) => `${compensation}: ${error}`).join("; ")
    return `The saga did not succeed (${this.reason}), and ${this.failures.length} of its compensations failed: ${failed}`
  }
}

/**
 * Runs a saga. If it succeeds, nothing is undone. If it fails, dies or is interrupted, the compensations of its steps run in
 * reverse order of the steps' ends, one after the other, each whatever became of the one before; then the saga ends as it would
 * have, or, if compensations failed, with `CompensationFailed`. So does a run that was cancelled: that something is not undone
 * is what whoever cancelled it must hear.
 */
export const run = <A, E, R>(
  body: Effect.Effect<A, E, R>
): Effect.Effect<A, E | CompensationFailed, Exclude<R, Saga> | WorkflowScope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const log: Log = { scope: yield* WorkflowScope, undo: [] }
      const exit = yield* Effect.exit(restore(Effect.provideService(body, Saga, log)))
      if (Exit.isSuccess(exit)) return exit.value
      const failures: Array<{ readonly compensation: string; readonly error: string }> = []
      for (const { effect, name } of log.undo.toReversed()) {
        const undone = yield* Effect.exit(effect)
        if (Exit.isFailure(undone)) failures.push({ compensation: name, error: said(undone.cause) })
      }
      if (failures.length === 0) return yield* exit
      const failed = new CompensationFailed({ reason: said(exit.cause), failures })
      return yield* failed
    })
  )

export interface Options {
  /** What {@link CompensationFailed} calls it; by default `compensation n`, counted from 1. */
  readonly name?: string
}

/**
 * Runs a step of a saga, and remembers how to undo it once it succeeded. A step that has begun is waited for, also by a
 * cancellation: nobody could know otherwise whether there is something to undo.
 */
export const compensate = <A, E, R, E2, R2>(
  step: Effect.Effect<A, E, R>,
  undo: (value: A) => Effect.Effect<unknown, E2, R2>,
  options: Options = {}
): Effect.Effect<A, E, R | R2 | Saga | WorkflowScope> =>
  Effect.uninterruptible(Effect.tap(step, (value) => remember(() => undo(value), options)))

/**
 * As {@link compensate}, for a step that may have done something although it failed: the compensation is remembered before the
 * step begins, so it must be right also where nothing was done.
 */
export const compensateAttempt = <A, E, R, E2, R2>(
  step: Effect.Effect<A, E, R>,
  undo: () => Effect.Effect<unknown, E2, R2>,
  options: Options = {}
): Effect.Effect<A, E, R | R2 | Saga | WorkflowScope> =>
  Effect.uninterruptible(Effect.zipRight(remember(undo, options), step))

const remember = <E2, R2>(
  undo: () => Effect.Effect<unknown, E2, R2>,
  { name }: Options
): Effect.Effect<void, never, R2 | Saga | WorkflowScope> =>
  Effect.gen(function* () {
    const log = yield* Saga
    const context = yield* Effect.context<R2 | WorkflowScope>()
    if (log.scope !== (yield* WorkflowScope)) {
      // A replay skips iterations, and with them what they would remember.
      return yield* Effect.dieMessage(
        "A step of a saga was compensated in an iteration of a loop that the saga is around. Run the saga inside of the iteration, or hand on in the loop's state what is to be undone"
      )
    }
    log.undo.push({
      name: name ?? `compensation ${log.undo.length + 1}`,
      effect: Effect.provide(Effect.suspend(undo), context)
    })
  })

/** The first thing that went wrong, in words. */
const said = (cause: Cause.Cause<unknown>): string => {
  if (Cause.isInterruptedOnly(cause)) return "it was interrupted"
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}
