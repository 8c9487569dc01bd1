/** Where a process meets its program: signals in, exit code out. */
import { Cause, Effect, Exit, Option } from "effect"

/**
 * Runs the program as the process. SIGINT, SIGTERM and the end of the parent interrupt it, so that what it opened is
 * closed; what it returns is the exit code.
 */
export const run = (program: Effect.Effect<number, unknown>): void => {
  const fiber = Effect.runFork(program)
  const stop = () => fiber.unsafeInterruptAsFork(fiber.id())
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop)
  process.once("disconnect", stop)
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause)) {
      process.stderr.write(`${complaint(exit.cause)}\n`)
    }
    process.exitCode = Exit.isSuccess(exit) ? exit.value : Cause.isInterruptedOnly(exit.cause) ? 130 : 2
    // The channel to the parent would keep the process alive.
    if (process.connected) process.disconnect()
  })
}

/** A failure says by its message what is wrong; a defect is a bug, and shows where. */
const complaint = (cause: Cause.Cause<unknown>): string =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => Cause.pretty(cause, { renderErrorCause: true }),
    onSome: (failure) => (failure instanceof Error ? failure.message : String(failure))
  })
