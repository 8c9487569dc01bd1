/** How the body of a transactional effect ended, as far as it may be recorded. */
import { SqlError } from "@effect/sql/SqlError"
import { Cause, Chunk, Effect, Either, Exit } from "effect"
import { causeOf, failureKind } from "./SqlFailure.js"

/** A body's success, or its typed failure. */
export type BodyExit<A, E> =
  { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }

/** The exit of a transaction's body as it may be recorded: what trying again may mend is not the body's failure. */
export const typedExit = <A, E>(exit: Exit.Exit<A, E | SqlError>): Effect.Effect<BodyExit<A, E>, SqlError> => {
  if (Exit.isSuccess(exit)) return Effect.succeed({ _tag: "Success", value: exit.value })
  const failure = Cause.failureOrCause(exit.cause)
  if (Either.isRight(failure)) {
    // The savepoint of a lost connection cannot be rolled back, which the client says as a defect.
    const lost = Chunk.findFirst(Cause.defects(failure.right), mayPass)
    return lost._tag === "Some" ? Effect.fail(lost.value) : Effect.failCause(failure.right)
  }
  const error = failure.left
  if (mayPass(error)) return Effect.fail(error)
  // An SqlError that is not the body's own can only come from the savepoint, which then is the body's failure too.
  return Effect.succeed({ _tag: "Failure", error: error as E })
}

/** True of a driver's failure that trying the whole transaction again may mend. */
const mayPass = (error: unknown): error is SqlError =>
  error instanceof SqlError && /^(busy|conflict|disconnected)$/.test(failureKind(causeOf(error)))
