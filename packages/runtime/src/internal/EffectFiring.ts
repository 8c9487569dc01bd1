/**
 * Side effects of one attempt of a step: what each may do is decided by `admitFiring` and `recoverEffect` from the
 * history, and carried out here (EO).
 */
import {
  admitFiring,
  afterKeyedDefect,
  type EffectIdentity,
  effectKey,
  type EffectKey,
  type EntryDraft,
  idProblem,
  mayStillFire,
  needsDurablePrefix,
  type RecordedTry,
  StepKey
} from "@fermata/contract"
import { Cause, Duration, Effect, Either, Exit, FiberId, Option } from "effect"
import { InvalidValue } from "../RunError.js"
import type * as SideEffect from "../SideEffect.js"
import type { Codec } from "./Codec.js"
import * as CrashPoint from "./CrashPoint.js"
import { handlerOf, KeyedFiring, withoutHandler } from "./EffectHandler.js"
import { EffectRecovery, type FiringAgain, inDoubt } from "./EffectRecovery.js"
import { digest, draft, identity } from "./Payload.js"
import {
  badFiringKey,
  concurrentFirings,
  effectInputChanged,
  effectUnreadable,
  effectValueRefused,
  effectValueRefusedEarlier,
  firingKeyReused,
  undeclaredEffect
} from "./Problems.js"
import { type Step, stopped } from "./Step.js"
import { StepOutput } from "./StepOutput.js"
import type { StepScope } from "./StepScope.js"
import { type Entered, limited } from "./TimeLimit.js"
import { fireTransactional } from "./TransactionalEffect.js"

type Outcome = Effect.Effect<unknown, unknown>

export class EffectFiring implements StepScope, FiringAgain {
  private position = 0
  private unkeyed = 0
  private readonly keys = new Set<string>()

  /** Resolves what earlier firings of the step left in doubt. */
  readonly recovery: EffectRecovery

  /** What the body says; `undefined` if it said nothing. */
  output: StepOutput | undefined

  constructor(private readonly step: Step) {
    this.recovery = new EffectRecovery(step, this)
  }

  readonly emit: StepScope["emit"] = (stream, value, how) => {
    this.output ??= new StepOutput(this.step)
    return this.output.emit(stream, value, how)
  }

  /** Performs a declared effect at the next position of the body, or at the one that `key` names. */
  readonly perform = (effect: SideEffect.Any, input: unknown, key: string | undefined): Outcome =>
    Effect.suspend(() => {
      const { step } = this
      if (step.isBlocked) return Effect.die(stopped)
      const declared = step.command.node.effects.get(effect.name)
      if (declared === undefined) {
        return step.block(undeclaredEffect(step.key, step.command.node.name, effect.name))
      }
      if (key === undefined ? this.unkeyed > 0 : this.keys.has(key)) {
        return step.block(
          key === undefined ? concurrentFirings(step.key, effect.name) : firingKeyReused(step.key, effect.name, key)
        )
      }
      const problem = key === undefined ? undefined : idProblem(key)
      if (problem !== undefined) {
        return step.block(badFiringKey(step.key, effect.name, problem))
      }
      const position = key === undefined ? String(++this.position) : `k:${key}`
      // Codecs of a declared effect fit its values: the call's type said so.
      const encoded = step.branch.writer.fitting((effect.codecs.input as Codec<unknown>).encode(input))
      if (Either.isLeft(encoded)) {
        return Effect.die(
          new InvalidValue({ what: `input of side effect ${effect.name} (${step.key})`, issues: encoded.left.issues })
        )
      }
      if (key === undefined) this.unkeyed++
      else this.keys.add(key)
      const outcome = this.decide(effect, position, encoded.right, digest(encoded.right))
      return Effect.ensuring(
        outcome,
        Effect.sync(() => {
          if (key === undefined) this.unkeyed--
        })
      )
    })

  private decide(effect: SideEffect.Any, position: string, input: string, inputDigest: string): Outcome {
    return Effect.suspend((): Outcome => {
      const { step } = this
      const tries = step.branch.recovery.steps.get(step.key)?.effects.get(position) ?? []
      const verdict = admitFiring(tries, {
        effect: effect.name,
        delivery: effect.delivery.policy,
        input: inputDigest,
        attempt: step.attempt
      })
      const find = (key: string) => tries.find((recorded) => recorded.key === key)
      switch (verdict._tag) {
        case "Serve": {
          const recorded = find(verdict.key)
          return recorded === undefined ? Effect.die(stopped) : this.serve(effect, recorded)
        }
        case "InputChanged":
          return step.block(effectInputChanged(step.key, effect.name, verdict.key, verdict.differs))
        case "Refused":
          return step.block(effectValueRefusedEarlier(step.key, effect.name, verdict.key))
        case "InDoubt": {
          const recorded = find(verdict.key)
          return recorded === undefined
            ? Effect.die(stopped)
            : Effect.flatMap(this.recovery.recover(effect, recorded), (resolved) =>
                resolved ? this.decide(effect, position, input, inputDigest) : Effect.die(stopped)
              )
        }
        case "Fire": {
          const key = effectKey(step.branch.branch, StepKey.make(step.key), position, verdict.try)
          const id = identity(
            step.key,
            position,
            verdict.try,
            step.attempt,
            effect.name,
            effect.delivery.policy,
            inputDigest
          )
          return this.fire(effect, key, id, input, () => this.decide(effect, position, input, inputDigest))
        }
      }
    })
  }

  private serve(effect: SideEffect.Any, recorded: RecordedTry): Outcome {
    const failed = recorded.state === "failed"
    const codec = (failed ? effect.codecs.error : effect.codecs.success) as Codec<unknown>
    const value = codec.revive(recorded.outcome)
    if (Either.isLeft(value)) {
      return this.step.block(effectUnreadable(recorded.key, recorded.outcomeSeq ?? 0, value.left.issues))
    }
    return failed ? Effect.fail(value.right) : Effect.succeed(value.right)
  }

  // ── Firing ──────────────────────────────────────────────────────────────────────────────────────────────

  private fire(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    again: () => Outcome
  ): Outcome {
    switch (effect.delivery.policy) {
      case "repeatable":
        return Effect.flatMap(this.handle(effect, key, input, false), (exit) =>
          this.outcome(effect, key, id, exit, () => Effect.failCause(defectOf(exit)))
        )
      case "keyed":
        return Effect.zipRight(this.intend(key, id, input, undefined), this.fireKeyed(effect, key, id, input, 1))
      case "once":
        return this.fireOnce(effect, key, id, input, again)
      case "transactional":
        return fireTransactional(this.step, effect, key, id, input, (recorded) => this.serve(effect, recorded))
    }
  }

  /** Writes the intent and waits until it, and all before it, is durable (output commit). */
  private intend(
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    limits: { readonly fireBefore: number; readonly timeLimit: number } | undefined
  ): Effect.Effect<void> {
    const { branch } = this.step
    return CrashPoint.reach("before-intent", key).pipe(
      Effect.zipRight(this.intent(draft.effectIntended(key, id, input, branch.host.worker, limits))),
      Effect.flatMap((seq) => this.step.wait<void>((resume) => branch.writer.whenDurable(seq, () => resume()))),
      Effect.zipRight(CrashPoint.reach("after-intent", key))
    )
  }

  fireKeyed(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    tries: number,
    again = false
  ): Outcome {
    return Effect.flatMap(this.handle(effect, key, input, again), (exit) =>
      this.outcome(effect, key, id, exit, () => {
        const verdict = afterKeyedDefect(tries)
        return verdict._tag === "AwaitSettlement"
          ? inDoubt(this.step, effect, key, `its handler died ${tries} times, last of: ${messageOf(exit)}`)
          : Effect.zipRight(
              Effect.sleep(Duration.millis(verdict.after)),
              this.fireKeyed(effect, key, id, input, tries + 1, true)
            )
      })
    )
  }

  private fireOnce(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    again: () => Outcome
  ): Outcome {
    const { branch } = this.step
    const { fireWithin, timeLimit } = effect.delivery
    const { firing, ledger } = branch.host
    // Interruption waits for the outcome from the intent on: a recorded intent is a firing to everyone who reads it.
    return Effect.uninterruptible(
      Effect.suspend(() => {
        const begun = performance.now()
        const fireBefore = Math.floor(ledger.unsafeNow() + fireWithin)
        // From here on this process may fire it: whoever recovers the branch here must not take it for over.
        firing.add(key)
        const entered: Entered = { onEnd: () => firing.delete(key) }
        return this.intend(key, id, input, { fireBefore, timeLimit }).pipe(
          Effect.flatMap((): Outcome => {
            if (this.step.isAbandoned) return Effect.die(stopped)
            // Checked on a monotonic clock immediately before the handler: a worker that was paused past it has not
            // fired, and says so if it still may write.
            if (!mayStillFire(performance.now() - begun, fireWithin)) {
              return Effect.flatMap(this.close(draft.effectVoided(key, id, "owner")), again)
            }
            return this.handle(effect, key, input, false, entered).pipe(
              Effect.flatMap((exit) =>
                this.outcome(effect, key, id, exit, () => {
                  const recorded = branch.recovery.effects.get(key)
                  return recorded === undefined
                    ? Effect.die(stopped)
                    : Effect.flatMap(this.recovery.recover(effect, recorded), (resolved) =>
                        resolved ? again() : Effect.die(stopped)
                      )
                })
              )
            )
          }),
          Effect.ensuring(
            Effect.sync(() => {
              // A handler that runs on past its limit is under way until its fiber ends.
              if (entered.running !== true) firing.delete(key)
            })
          )
        )
      })
    )
  }

  /** Runs the handler within its time limit. Its exit is a success, a typed failure, or a defect: in doubt. */
  private handle(
    effect: SideEffect.Any,
    key: EffectKey,
    input: string,
    again: boolean,
    entered: Entered = {}
  ): Effect.Effect<Exit.Exit<unknown, unknown>> {
    return Effect.suspend(() => {
      const handler = handlerOf(this.step, effect)
      const value = (effect.codecs.input as Codec<unknown>).decode(input)
      if (handler === undefined || Either.isLeft(value)) return withoutHandler(this.step, effect)
      const run = limited(
        handler,
        Effect.suspend(() => handler.handle(value.right, new KeyedFiring(key, again))),
        effect,
        entered
      )
      return CrashPoint.armed()
        ? CrashPoint.reach("before-handler", key).pipe(
            Effect.zipRight(run),
            Effect.tap(() => CrashPoint.reach("after-handler", key))
          )
        : run
    })
  }

  /** Records what became of a firing; `doubt` says what to do if that is not known. */
  outcome(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    exit: Exit.Exit<unknown, unknown>,
    doubt: () => Outcome,
    by: "handler" | "reconcile" = "handler"
  ): Outcome {
    const failure = Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : Option.none()
    if (Exit.isFailure(exit) && Option.isNone(failure)) return doubt()
    const succeeded = Exit.isSuccess(exit)
    const codec = (succeeded ? effect.codecs.success : effect.codecs.error) as Codec<unknown>
    const encoded = this.step.branch.writer.fitting(
      codec.encode(succeeded ? exit.value : Option.getOrUndefined(failure))
    )
    // What the body sees is what a replay would see; what cannot be read back is refused like what cannot be written.
    const value = Either.flatMap(encoded, codec.decode)
    if (Either.isLeft(encoded) || Either.isLeft(value)) {
      const issues = Either.isLeft(encoded) ? encoded.left.issues : Either.isLeft(value) ? value.left.issues : []
      const issue = issues.join("; ")
      if (!needsDurablePrefix(effect.delivery.policy)) {
        return Effect.die(
          new InvalidValue({ what: `outcome of side effect ${effect.name} (${this.step.key})`, issues })
        )
      }
      return Effect.zipRight(
        this.close(draft.effectRefused(key, id, issue)),
        this.step.block(effectValueRefused(this.step.key, effect.name, key, issue))
      )
    }
    const recorded = this.close(
      succeeded ? draft.effectSucceeded(key, id, encoded.right, by) : draft.effectFailed(key, id, encoded.right, by)
    )
    const result: Outcome = succeeded ? Effect.succeed(value.right) : Effect.fail(value.right)
    return Effect.flatMap(recorded, (seq) => {
      if (seq === undefined) {
        const closed = this.step.branch.recovery.effects.get(key)
        return closed?.state === "succeeded" || closed?.state === "failed"
          ? this.serve(effect, closed)
          : Effect.die(stopped)
      }
      return CrashPoint.armed()
        ? this.step
            .wait<void>((resume) => this.step.branch.writer.whenDurable(seq, () => resume()))
            .pipe(Effect.zipRight(CrashPoint.reach("after-outcome", key)), Effect.zipRight(result))
        : result
    })
  }

  /** An intent is refused once its step was stopped: nothing may begin to fire that nobody waits for. */
  private intent(entryDraft: EntryDraft): Effect.Effect<number> {
    return Effect.flatMap(
      this.mark(entryDraft, () => this.step.isStopped),
      (seq) => (seq === undefined ? Effect.die(stopped) : Effect.succeed(seq))
    )
  }

  /** Settlement, reconcile and a late outcome claim one key: whoever comes first has it. `undefined` if it is closed. */
  close(entryDraft: EntryDraft): Effect.Effect<number | undefined> {
    return this.mark(entryDraft, () => {
      // Nobody waits for the outcome of a stopped step whose effects left no intent, or whose record was dropped.
      if (this.step.isStopped && !this.step.branch.recovery.effects.has(entryDraft.key)) return true
      const state = this.step.branch.recovery.effects.get(entryDraft.key)?.state
      return state !== undefined && state !== "intended"
    })
  }

  private mark(entryDraft: EntryDraft, refused: () => boolean): Effect.Effect<number | undefined> {
    return this.step.wait<number | undefined>((resume) => this.step.branch.writer.mark(entryDraft, resume, refused))
  }
}

const defectOf = (exit: Exit.Exit<unknown, unknown>): Cause.Cause<never> =>
  Exit.isFailure(exit)
    ? Cause.isInterruptedOnly(exit.cause)
      ? Cause.interrupt(FiberId.none)
      : Cause.die(Cause.squash(exit.cause))
    : Cause.empty

const messageOf = (exit: Exit.Exit<unknown, unknown>): string => {
  const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  return defect instanceof Error ? defect.message : "an unknown defect"
}
