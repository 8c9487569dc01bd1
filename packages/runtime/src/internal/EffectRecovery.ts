/** What becomes of an effect in doubt: one with an intent and without an outcome. `recoverEffect` decides (EO, RD). */
import {
  type EffectIdentity,
  type EffectKey,
  type EntryDraft,
  recoverEffect,
  type RecordedTry
} from "@fermata/contract"
import { Duration, Effect, Either, Exit } from "effect"
import * as SideEffect from "../SideEffect.js"
import type { Codec } from "./Codec.js"
import { handlerOf, KeyedFiring } from "./EffectHandler.js"
import { draft, identity } from "./Payload.js"
import { effectInDoubt, undeclaredIntent } from "./Problems.js"
import { type Step, stopped } from "./Step.js"

type Outcome = Effect.Effect<unknown, unknown>

/** What recovery needs of firing. */
export interface FiringAgain {
  fireKeyed(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    tries: number,
    again: boolean
  ): Outcome
  outcome(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    exit: Exit.Exit<unknown, unknown>,
    doubt: () => Outcome,
    by: "reconcile"
  ): Outcome
  close(entryDraft: EntryDraft): Effect.Effect<number | undefined>
}

/** Stops the step until somebody says what became of the effect. */
export const inDoubt = (step: Step, effect: SideEffect.Any, key: EffectKey, why: string): Effect.Effect<never> =>
  step.block(effectInDoubt(step.key, effect.name, key, why))

export class EffectRecovery {
  constructor(
    private readonly step: Step,
    private readonly firing: FiringAgain
  ) {}

  /** Resolves what is in doubt of an interrupted step; fires nothing. */
  resolveAll(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(
        this.step.branch.recovery.firing(this.step.key),
        (recorded) => {
          const effect = this.step.command.node.effects.get(recorded.effect)
          return effect === undefined
            ? this.step.block(undeclaredIntent(this.step.key, recorded.effect))
            : Effect.ignore(this.recover(effect, recorded))
        },
        { discard: true }
      )
    )
  }

  /** Resolves an intent without an outcome. True if the history now says more; a keyed one is fired again. */
  recover(effect: SideEffect.Any, recorded: RecordedTry): Effect.Effect<boolean> {
    const { branch } = this.step
    const { firing, ledger, worker } = branch.host
    const id = identityOf(recorded)
    // The key's text is what the intent recorded.
    const key = recorded.key as EffectKey
    const input = JSON.stringify(recorded.value)
    const overAt = (recorded.fireBefore ?? Number.POSITIVE_INFINITY) + (recorded.timeLimit ?? Number.POSITIVE_INFINITY)
    const ask = (
      reconciled: "unavailable" | "notAsked" | "Happened" | "NeverWill" | "Unknown"
    ): Effect.Effect<boolean> =>
      Effect.gen(this, function* () {
        // A firing of this very process is over when its handler is: it removes itself from `firing` then.
        const fate =
          recorded.worker === worker
            ? firing.has(key)
              ? ("unknown" as const)
              : ("dead" as const)
            : yield* Effect.orElseSucceed(ledger.fate(recorded.worker ?? ""), () => "unknown" as const)
        const verdict = recoverEffect({
          delivery: recorded.delivery,
          firedBy: fate,
          overAt,
          now: ledger.unsafeNow(),
          reconciled
        })
        switch (verdict._tag) {
          case "FireAgain": {
            yield* Effect.exit(this.firing.fireKeyed(effect, key, id, input, 1, true))
            return !this.step.isBlocked
          }
          case "WaitUntil": {
            const left = Math.max(1, verdict.at - ledger.unsafeNow())
            // The owner may be found dead, or end its firing, before the time is up: look again now and then.
            yield* Effect.sleep(Duration.millis(Math.min(left, 1000)))
            return yield* ask("notAsked")
          }
          case "AskOutside": {
            const reconcile = handlerOf(this.step, effect)?.reconcile
            const value = (effect.codecs.input as Codec<unknown>).decode(input)
            if (reconcile === undefined || Either.isLeft(value)) return yield* ask("unavailable")
            const answer = yield* Effect.catchAllCause(
              Effect.suspend(() => reconcile(new KeyedFiring(key, true), value.right)).pipe(
                Effect.timeoutTo({
                  duration: Duration.millis(effect.delivery.timeLimit),
                  onSuccess: (answered) => answered,
                  onTimeout: (): SideEffect.Reconciled<unknown, unknown> => SideEffect.Unknown
                }),
                Effect.interruptible
              ),
              (cause) =>
                Effect.as(
                  Effect.logWarning(`reconcile of ${effect.name} for ${key} failed`, cause),
                  SideEffect.Unknown as SideEffect.Reconciled<unknown, unknown>
                )
            )
            switch (answer._tag) {
              case "Happened":
                yield* Effect.exit(
                  this.firing.outcome(
                    effect,
                    key,
                    id,
                    Exit.succeed(answer.value),
                    () => Effect.die(stopped),
                    "reconcile"
                  )
                )
                return !this.step.isBlocked
              case "Declined":
                yield* Effect.exit(
                  this.firing.outcome(effect, key, id, Exit.fail(answer.error), () => Effect.die(stopped), "reconcile")
                )
                return !this.step.isBlocked
              case "NeverWill":
                yield* this.firing.close(draft.effectVoided(key, id, "reconcile"))
                return true
              case "Unknown":
                return yield* ask("Unknown")
            }
          }
          // A reported outcome was recorded above; what is left is an answer that says nothing.
          case "Adopt":
          case "Void":
          case "AwaitSettlement":
            return yield* inDoubt(this.step, effect, key, "nobody can say what became of it")
        }
      })
    return Effect.suspend(() => ask("notAsked"))
  }
}

const identityOf = (recorded: RecordedTry): EffectIdentity =>
  identity(
    recorded.step,
    recorded.position,
    recorded.try,
    recorded.attempt,
    recorded.effect,
    recorded.delivery,
    recorded.input
  )
