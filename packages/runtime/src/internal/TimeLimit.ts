/** Handlers of side effects run within a time limit: afterwards it is known that nothing of them is under way. */
import { Context, Duration, Effect, Exit, FiberId, Runtime, RuntimeFlags } from "effect"
import type * as SideEffect from "../SideEffect.js"

/** Whether a handler's fiber is under way. */
export interface Entered {
  running?: boolean
  onEnd?: () => void
}

/**
 * The exit of an effect within a time limit (milliseconds). It runs on a fiber of its own, so that the limit holds also
 * where the caller may not be interrupted; it has the caller's spans and annotations. One that ends at once costs no
 * timer.
 */
export const limited = (
  handler: SideEffect.Handler,
  run: Effect.Effect<unknown, unknown>,
  { delivery: { timeLimit }, name }: SideEffect.Any,
  entered: Entered
): Effect.Effect<Exit.Exit<unknown, unknown>> =>
  Effect.flatMap(Effect.runtime<never>(), (caller) =>
    Effect.async<Exit.Exit<unknown, unknown>>((resume) => {
      const runtime = Runtime.make({
        context: Context.merge(handler.context, caller.context),
        fiberRefs: caller.fiberRefs,
        // Its interruption is the time limit's: where the caller may not be interrupted, it may.
        runtimeFlags: RuntimeFlags.enable(caller.runtimeFlags, RuntimeFlags.Interruption)
      })
      entered.running = true
      const fiber = Runtime.runFork(runtime)(run)
      fiber.addObserver(() => {
        entered.running = false
        entered.onEnd?.()
      })
      const exit = fiber.unsafePoll()
      if (exit !== null) {
        resume(Effect.succeed(exit))
        return
      }
      const timer = Runtime.runFork(runtime)(Effect.sleep(Duration.millis(timeLimit)))
      timer.addObserver((slept) => {
        if (Exit.isFailure(slept)) return
        fiber.unsafeInterruptAsFork(FiberId.none)
        resume(Effect.succeed(Exit.die(new Error(`The handler of ${name} took longer than ${timeLimit} ms`))))
      })
      fiber.addObserver((ended) => {
        timer.unsafeInterruptAsFork(FiberId.none)
        resume(Effect.succeed(ended))
      })
      return Effect.sync(() => {
        timer.unsafeInterruptAsFork(FiberId.none)
        fiber.unsafeInterruptAsFork(FiberId.none)
      })
    })
  )
