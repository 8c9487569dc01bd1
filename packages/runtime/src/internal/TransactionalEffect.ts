/**
 * A `transactional` effect: its handler's SQL and the entry of its outcome are one transaction of the ledger's database,
 * so it can never be in doubt (EO).
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { EffectIdentity, EffectKey, RecordedTry } from "@fermata/contract"
import { Cause, Duration, Effect, Either, Exit, Option } from "effect"
import { InvalidValue } from "../RunError.js"
import type * as SideEffect from "../SideEffect.js"
import type { Codec } from "./Codec.js"
import * as CrashPoint from "./CrashPoint.js"
import { handlerOf, KeyedFiring, withoutHandler } from "./EffectHandler.js"
import { draft } from "./Payload.js"
import { type Step, stopped } from "./Step.js"

/** Fires a `transactional` effect; `serve` gives the outcome that was recorded. */
export const fireTransactional = (
  step: Step,
  effect: SideEffect.Any,
  key: EffectKey,
  id: EffectIdentity,
  input: string,
  serve: (recorded: RecordedTry) => Effect.Effect<unknown, unknown>
): Effect.Effect<unknown, unknown> => {
  const { branch } = step
  const { runtime } = branch.host
  const { sql } = branch.host.ledger
  const handler = handlerOf(step, effect)
  const value = (effect.codecs.input as Codec<unknown>).decode(input)
  if (handler === undefined || sql === undefined || Either.isLeft(value)) return withoutHandler(step, effect)
  const success = effect.codecs.success as Codec<unknown>
  const failure = effect.codecs.error as Codec<unknown>
  const encodeOr = (codec: Codec<unknown>, of: unknown): string => {
    const text = branch.writer.fitting(codec.encode(of))
    // Thrown inside the transaction: what its Schema refuses is rolled back, so it did not happen.
    if (Either.isLeft(text))
      throw new InvalidValue({ what: `outcome of side effect ${effect.name}`, issues: text.left.issues })
    return text.right
  }
  const body = Effect.provideService(
    handler.handle(value.right, new KeyedFiring(key, false)),
    // The handler's SQL runs in the transaction that commits its outcome.
    SqlClient,
    sql
  ).pipe(
    // Beyond its limit it is rolled back: the database is everybody's.
    Effect.timeoutOption(Duration.millis(effect.delivery.timeLimit)),
    Effect.flatMap(
      Option.match({
        onNone: () =>
          Effect.die(new Error(`The handler of ${effect.name} took longer than ${effect.delivery.timeLimit} ms`)),
        onSome: Effect.succeed
      })
    )
  )
  return Effect.uninterruptible(
    CrashPoint.reach("before-intent", key).pipe(
      Effect.zipRight(
        step.wait<Exit.Exit<unknown, unknown> | undefined>((resume) =>
          branch.writer.transact(
            Effect.provide(Effect.provide(body, handler.context), runtime),
            (exit) =>
              exit._tag === "Success"
                ? draft.effectSucceeded(key, id, encodeOr(success, exit.value), "transaction")
                : draft.effectFailed(key, id, encodeOr(failure, exit.error), "transaction"),
            resume,
            () => step.isStopped
          )
        )
      ),
      Effect.flatMap((exit): Effect.Effect<unknown, unknown> => {
        if (exit === undefined) return Effect.die(stopped)
        if (Exit.isFailure(exit)) return Effect.failCause(Cause.die(Cause.squash(exit.cause)))
        const recorded = branch.recovery.effects.get(key)
        return recorded === undefined ? Effect.die(stopped) : serve(recorded)
      }),
      Effect.tap(CrashPoint.reach("after-outcome", key))
    )
  )
}
