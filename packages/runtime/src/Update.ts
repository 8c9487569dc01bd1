/**
 * An update: a typed request to a running workflow, which validates it, handles it and answers it. The caller gets the
 * answer once it is durable; the same update id again gets the same answer. A workflow lists the updates that it takes.
 *
 * @example
 * const Add = Update.make("add", { input: Schema.Number, success: Schema.Number })
 * // in a workflow that lists it in `updates`:
 * yield* Update.handle(Add, {
 *   validate: (n) => (n > 0 ? undefined : "must be positive"),
 *   handler: (n) => Ref.updateAndGet(total, (sum) => sum + n)
 * })
 * // anywhere:
 * const sum = yield* client.update(run, Add, 3, { updateId: "request-8" })
 */
import { Cause, Effect, Either, Exit, Option, Schema, type Scope } from "effect"
import type { EntryDraft } from "@fermata/contract"
import * as Codec from "./internal/Codec.js"
import { definitionName } from "./internal/DefinitionName.js"
import { draft } from "./internal/Payload.js"
import { scoped, type WorkflowScope } from "./internal/WorkflowScope.js"
import { InvalidValue } from "./RunError.js"

/** A declared update. `I`: what is asked. `A`: the answer. `E`: the typed error that it may be answered with. */
export interface Update<N extends string, I, A, E> {
  readonly name: N
  readonly input: Schema.Schema<I, unknown>
  readonly success: Schema.Schema<A, unknown>
  readonly error: Schema.Schema<E, unknown>
  readonly codecs: { readonly input: Codec.Codec<I>; readonly success: Codec.Codec<A>; readonly error: Codec.Codec<E> }
}

/** Any update, as the runtime sees it. */
export interface Any {
  readonly name: string
}

/** An update that came in. Answer it once: what comes after the first answer dies. */
export interface Request<I, A, E> {
  /** The caller's update id. */
  readonly id: string
  readonly input: I
  readonly succeed: (value: A) => Effect.Effect<void, never, WorkflowScope>
  readonly fail: (error: E) => Effect.Effect<void, never, WorkflowScope>
  /** Refuses it: the caller gets `UpdateRejected`, and knows that nothing was done. */
  readonly reject: (reason: string) => Effect.Effect<void, never, WorkflowScope>
  /** Answers it with how an effect ended; an interruption answers nothing. */
  readonly end: (exit: Exit.Exit<A, E>) => Effect.Effect<void, never, WorkflowScope>
}

/** Declares an update. `input` and `success` default to void, `error` to never. */
export const make = <const N extends string, I = void, IE = void, A = void, AE = void, E = never, EE = never>(
  name: N,
  options: {
    readonly input?: Schema.Schema<I, IE>
    readonly success?: Schema.Schema<A, AE>
    readonly error?: Schema.Schema<E, EE>
  } = {}
): Update<N, I, A, E> => {
  definitionName("update", name)
  // Schemas that are left out are the defaults that the type parameters name.
  const input = (options.input ?? Schema.Void) as Schema.Schema<I, unknown>
  const success = (options.success ?? Schema.Void) as Schema.Schema<A, unknown>
  const error = (options.error ?? Schema.Never) as Schema.Schema<E, unknown>
  return {
    name,
    input,
    success,
    error,
    codecs: { input: Codec.make(input), success: Codec.make(success), error: Codec.make(error) }
  }
}

/** Takes the oldest update that was not taken, or waits for the next. */
export const next = <N extends string, I, A, E>(
  update: Update<N, I, A, E>
): Effect.Effect<Request<I, A, E>, never, WorkflowScope> =>
  scoped((scope, fiber) =>
    Effect.map(
      scope.receive({ kind: "update", name: update.name, codec: update.codecs.input }, fiber),
      // The channel's codec reads the declared type.
      ({ id, value }) => requestOf(update, id, value as I)
    )
  )

const requestOf = <N extends string, I, A, E>(
  { codecs, name }: Update<N, I, A, E>,
  id: string,
  input: I
): Request<I, A, E> => {
  const key = `update:${id}`
  let answered = false
  const answer = (entry: () => Either.Either<EntryDraft, InvalidValue>) =>
    scoped((scope, fiber) => {
      if (answered) return Effect.die(new Error(`The update ${id} was answered before`))
      const made = entry()
      // What no Schema lets pass is no answer yet.
      answered = Either.isRight(made)
      return scope.tell(made, fiber)
    })
  const encoded = <T>(codec: Codec.Codec<T>, outcome: "value" | "error", what: string, value: T) =>
    answer(() =>
      Either.mapBoth(codec.encode(value), {
        onLeft: ({ issues }) => new InvalidValue({ what: `${what} of update ${name}`, issues }),
        onRight: (text) => draft.updateReplied(key, name, outcome, text)
      })
    )
  const succeed = (value: A) => encoded(codecs.success, "value", "success", value)
  const fail = (error: E) => encoded(codecs.error, "error", "error", error)
  return {
    id,
    input,
    succeed,
    fail,
    reject: (reason) => answer(() => Either.right(draft.updateRejected(key, name, reason))),
    end: (exit) => {
      if (Exit.isSuccess(exit)) return succeed(exit.value)
      const failure = Cause.failureOption(exit.cause)
      if (Option.isSome(failure)) return fail(failure.value)
      if (Cause.isInterruptedOnly(exit.cause)) return Effect.void
      return answer(() => Either.right(draft.updateDied(key, name, Cause.squash(exit.cause))))
    }
  }
}

/**
 * Handles updates from now on until the scope closes (the workflow's own, say), one after another, in the order in which
 * they were accepted. `validate` is pure; the reason that it returns refuses the update. A handler that dies answers that
 * update with `UpdateDied`, and the next is handled.
 */
export const handle = <N extends string, I, A, E, R>(
  update: Update<N, I, A, E>,
  options: {
    readonly validate?: (input: I) => string | undefined
    readonly handler: (input: I) => Effect.Effect<A, E, R>
  }
): Effect.Effect<void, never, R | WorkflowScope | Scope.Scope> =>
  next(update).pipe(
    Effect.flatMap((request) => {
      const reason = options.validate?.(request.input)
      if (reason !== undefined) return request.reject(reason)
      return Effect.flatMap(Effect.exit(Effect.suspend(() => options.handler(request.input))), request.end)
    }),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
