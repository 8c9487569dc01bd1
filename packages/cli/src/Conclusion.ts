/** How a command ends: what is said of a failure, and the process's exit code. */
import { ValidationError } from "@effect/cli"
import { Cause, Console, Effect, Option } from "effect"
import { exitCodeOf, exitCodes, withoutCredentials } from "./CliError.js"

const isTagged = (error: unknown): error is { readonly _tag: string; readonly message?: unknown } =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"

/** Nothing that this program prints about a failure may contain a password, whoever wrote the message. */
export const masked = (inner: Console.Console): Console.Console => ({
  ...inner,
  error: (...parts: ReadonlyArray<unknown>) =>
    inner.error(...parts.map((part) => (typeof part === "string" ? withoutCredentials(part) : part))),
  unsafe: {
    ...inner.unsafe,
    error: (...parts: ReadonlyArray<unknown>) =>
      inner.unsafe.error(...parts.map((part) => (typeof part === "string" ? withoutCredentials(part) : part)))
  }
})

/** Says the failure on standard error, as JSON where that was asked for; returns the exit code. */
export const conclude = (cause: Cause.Cause<unknown>, json: boolean): Effect.Effect<number> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(exitCodes.interrupted)
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  // What is wrong with the command was printed with its usage.
  if (ValidationError.isValidationError(error)) return Effect.succeed(exitCodes.usage)
  if (!isTagged(error)) {
    return Effect.as(Console.error(`This is a defect of fermata.\n${Cause.pretty(cause)}`), exitCodes.defect)
  }
  const code = exitCodeOf(error)
  const message = error.message === undefined ? error._tag : String(error.message)
  const text = json ? JSON.stringify({ error: { ...error, message, exitCode: code } }) : message
  return Effect.as(Console.error(text), code)
}
