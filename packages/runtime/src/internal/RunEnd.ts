/** The entry that a run ends with. */
import type { EntryDraft } from "@fermata/contract"
import { Cause, Either, Exit, Option } from "effect"
import { InvalidValue } from "../RunError.js"
import type * as Workflow from "../Workflow.js"
import type { Refusal } from "./Codec.js"
import { draft } from "./Payload.js"

/** What the exit of the workflow's root is recorded as. A value that its Schema refuses is a defect of the workflow. */
export const runEnd = (
  workflow: Workflow.Any,
  exit: Exit.Exit<unknown, unknown>,
  options: {
    /** The cancel that was delivered, if one was. */
    readonly cancelled: { readonly reason: string | null } | undefined
    readonly fitting: (encoded: Either.Either<string, Refusal>) => Either.Either<string, Refusal>
  }
): EntryDraft => {
  if (Exit.isSuccess(exit)) {
    const value = options.fitting(workflow.codecs.success.encode(exit.value))
    return Either.isRight(value)
      ? draft.completed(value.right)
      : draft.died(new InvalidValue({ what: `result of workflow ${workflow.name}`, issues: value.left.issues }))
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isSome(failure)) {
    const error = options.fitting(workflow.codecs.error.encode(failure.value))
    return Either.isRight(error)
      ? draft.failed(error.right)
      : draft.died(new InvalidValue({ what: `error of workflow ${workflow.name}`, issues: error.left.issues }))
  }
  if (Cause.isInterruptedOnly(exit.cause)) {
    return options.cancelled !== undefined
      ? draft.cancelled(options.cancelled.reason)
      : draft.died(new Error("The workflow interrupted itself"))
  }
  return draft.died(Cause.squash(exit.cause))
}
