/**
 * Side effects of one attempt of a step: what each may do is decided by `admitFiring` and `recoverEffect` from the
 * history, and carried out here (EO).
 */
import {
  admitFiring,
  type EffectIdentity,
  effectKey,
  type EffectKey,
  type EntryDraft,
  idProblem,
  needsDurablePrefix,
  recoverEffect,
  type RecordedTry,
  StepKey
} from "@fermata/contract"
import { Cause, Context, Duration, Effect, Either, Exit, FiberId, Option, Runtime, RuntimeFlags } from "effect"
import { SqlClient } from "@effect/sql/SqlClient"
import { InvalidValue } from "../RunError.js"
import * as SideEffect from "../SideEffect.js"
import type { Codec } from "./Codec.js"
import * as CrashPoint from "./CrashPoint.js"
import { digest, draft, identity } from "./Payload.js"
import { type Step, stopped } from "./Step.js"
import type { StepScope } from "./StepScope.js"

/** How often a `keyed` handler that dies is fired again before an operator is asked. */
const keyedTries = 5

type Outcome = Effect.Effect<unknown, unknown>

export class EffectFiring implements StepScope {
  private position = 0
  private unkeyed = 0
  private readonly keys = new Set<string>()

  constructor(private readonly step: Step) {}

  /** Performs a declared effect at the next position of the body, or at the one that `key` names. */
  readonly perform = (effect: SideEffect.Any, input: unknown, key: string | undefined): Outcome =>
    Effect.suspend(() => {
      const { step } = this
      if (step.isBlocked) return Effect.die(stopped)
      const declared = step.command.node.effects.get(effect.name)
      if (declared === undefined) {
        return step.block({
          _tag: "BadEffect",
          step: step.key,
          effect: effect.name,
          message: `Node ${step.command.node.name} performs "${effect.name}" without declaring it: add it to its "effects".`
        })
      }
      if (key === undefined ? this.unkeyed > 0 : this.keys.has(key)) {
        return step.block({
          _tag: "BadEffect",
          step: step.key,
          effect: effect.name,
          message:
            key === undefined
              ? `${step.key} performs "${effect.name}" while another firing without a key is under way: give concurrent firings keys of their own.`
              : `${step.key} performs "${effect.name}" with the key "${key}", which was used: give each firing a key of its own.`
        })
      }
      const problem = key === undefined ? undefined : idProblem(key)
      if (problem !== undefined) {
        return step.block({
          _tag: "BadEffect",
          step: step.key,
          effect: effect.name,
          message: `${step.key} performs "${effect.name}" with a key that ${problem}.`
        })
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

  /** Resolves what is in doubt of an interrupted step; fires nothing. */
  resolveAll(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(
        this.step.branch.recovery.firing(this.step.key),
        (recorded) => {
          const effect = this.step.command.node.effects.get(recorded.effect)
          return effect === undefined
            ? this.step.block({
                _tag: "BadEffect",
                step: this.step.key,
                effect: recorded.effect,
                message: `${this.step.key} recorded an intent of "${recorded.effect}", which its node does not declare any more.`
              })
            : Effect.ignore(this.recover(effect, recorded))
        },
        { discard: true }
      )
    )
  }

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
          return step.block({
            _tag: "EffectInputChanged",
            step: step.key,
            effect: effect.name,
            key: verdict.key,
            differs: verdict.differs,
            message: `${step.key} ran again and asks for "${effect.name}" with another ${verdict.differs} than its history recorded under ${verdict.key}. The body depends on something that is not journaled, or its code changed.`
          })
        case "Refused":
          return step.block({
            _tag: "EffectValueRefused",
            step: step.key,
            effect: effect.name,
            key: verdict.key,
            issue: "recorded earlier",
            message: `"${effect.name}" happened, but its outcome was refused by its Schema. Settle ${verdict.key} with an outcome that is accepted.`
          })
        case "InDoubt": {
          const recorded = find(verdict.key)
          return recorded === undefined
            ? Effect.die(stopped)
            : Effect.flatMap(this.recover(effect, recorded), (resolved) =>
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
          const again = this.decideAgain(effect, position, input, inputDigest)
          return this.fire(effect, key, id, input, again)
        }
      }
    })
  }

  private decideAgain(effect: SideEffect.Any, position: string, input: string, inputDigest: string): () => Outcome {
    return () => this.decide(effect, position, input, inputDigest)
  }

  private serve(effect: SideEffect.Any, recorded: RecordedTry): Outcome {
    const failed = recorded.state === "failed"
    const codec = (failed ? effect.codecs.error : effect.codecs.success) as Codec<unknown>
    const value = codec.revive(recorded.outcome)
    if (Either.isLeft(value)) {
      return this.step.block({
        _tag: "ValueUnreadable",
        seq: recorded.outcomeSeq ?? 0,
        what: `the outcome of ${recorded.key}`,
        message: `The recorded outcome of ${recorded.key} does not satisfy the Schema that the code has now: ${value.left.issues.join("; ")}. Deploy a Schema that reads it.`
      })
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
        return Effect.zipRight(
          this.intend(effect, key, id, input, undefined),
          this.fireKeyed(effect, key, id, input, 1)
        )
      case "once":
        return this.fireOnce(effect, key, id, input, again)
      case "transactional":
        return this.fireTransactional(effect, key, id, input)
    }
  }

  /** Writes the intent and waits until it, and all before it, is durable (output commit). */
  private intend(
    _effect: SideEffect.Any,
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

  private fireKeyed(
    effect: SideEffect.Any,
    key: EffectKey,
    id: EffectIdentity,
    input: string,
    tries: number,
    again = false
  ): Outcome {
    return Effect.flatMap(this.handle(effect, key, input, again), (exit) =>
      this.outcome(effect, key, id, exit, () =>
        tries >= keyedTries
          ? this.inDoubt(effect, key, `its handler died ${tries} times, last of: ${messageOf(exit)}`)
          : Effect.zipRight(
              Effect.sleep(Duration.millis(50 * 4 ** tries)),
              this.fireKeyed(effect, key, id, input, tries + 1, true)
            )
      )
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
        return this.intend(effect, key, id, input, { fireBefore, timeLimit }).pipe(
          Effect.flatMap((): Outcome => {
            if (this.step.isAbandoned) return Effect.die(stopped)
            // Checked on a monotonic clock immediately before the handler: a worker that was paused past it has not
            // fired, and says so if it still may write.
            if (performance.now() - begun >= fireWithin) {
              return Effect.flatMap(this.close(draft.effectVoided(key, id, "owner")), again)
            }
            return this.handle(effect, key, input, false, entered).pipe(
              Effect.flatMap((exit) =>
                this.outcome(effect, key, id, exit, () => {
                  const recorded = branch.recovery.effects.get(key)
                  return recorded === undefined
                    ? Effect.die(stopped)
                    : Effect.flatMap(this.recover(effect, recorded), (resolved) =>
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

  private fireTransactional(effect: SideEffect.Any, key: EffectKey, id: EffectIdentity, input: string): Outcome {
    const { branch } = this.step
    const { runtime } = branch.host
    const { sql } = branch.host.ledger
    const handler = this.handler(effect)
    const value = (effect.codecs.input as Codec<unknown>).decode(input)
    if (handler === undefined || sql === undefined || Either.isLeft(value)) return this.missing(effect)
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
          this.step.wait<Exit.Exit<unknown, unknown> | undefined>((resume) =>
            branch.writer.transact(
              Effect.provide(Effect.provide(body, handler.context), runtime),
              (exit) =>
                exit._tag === "Success"
                  ? draft.effectSucceeded(key, id, encodeOr(success, exit.value), "transaction")
                  : draft.effectFailed(key, id, encodeOr(failure, exit.error), "transaction"),
              resume,
              () => this.step.isStopped
            )
          )
        ),
        Effect.flatMap((exit): Outcome => {
          if (exit === undefined) return Effect.die(stopped)
          if (Exit.isFailure(exit)) return Effect.failCause(Cause.die(Cause.squash(exit.cause)))
          const recorded = branch.recovery.effects.get(key)
          return recorded === undefined ? Effect.die(stopped) : this.serve(effect, recorded)
        }),
        Effect.tap(CrashPoint.reach("after-outcome", key))
      )
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
      const handler = this.handler(effect)
      const value = (effect.codecs.input as Codec<unknown>).decode(input)
      if (handler === undefined || Either.isLeft(value)) return this.missing(effect)
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
  private outcome(
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
    const encoded = this.step.branch.writer.fitting(codec.encode(succeeded ? exit.value : Option.getOrUndefined(failure)))
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
        this.step.block({
          _tag: "EffectValueRefused",
          step: this.step.key,
          effect: effect.name,
          key,
          issue,
          message: `"${effect.name}" happened, but its outcome was refused: ${issue}. Settle ${key} with an outcome that its Schema accepts.`
        })
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

  // ── Recovery ────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves an intent without an outcome. True if the history now says more; a keyed one is fired again. */
  private recover(effect: SideEffect.Any, recorded: RecordedTry): Effect.Effect<boolean> {
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
            yield* Effect.exit(this.fireKeyed(effect, key, id, input, 1, true))
            return !this.step.isBlocked
          }
          case "WaitUntil": {
            const left = Math.max(1, verdict.at - ledger.unsafeNow())
            // The owner may be found dead, or end its firing, before the time is up: look again now and then.
            yield* Effect.sleep(Duration.millis(Math.min(left, 1000)))
            return yield* ask("notAsked")
          }
          case "AskOutside": {
            const reconcile = this.handler(effect)?.reconcile
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
                  this.outcome(effect, key, id, Exit.succeed(answer.value), () => Effect.die(stopped), "reconcile")
                )
                return !this.step.isBlocked
              case "Declined":
                yield* Effect.exit(
                  this.outcome(effect, key, id, Exit.fail(answer.error), () => Effect.die(stopped), "reconcile")
                )
                return !this.step.isBlocked
              case "NeverWill":
                yield* this.close(draft.effectVoided(key, id, "reconcile"))
                return true
              case "Unknown":
                return yield* ask("Unknown")
            }
          }
          // A reported outcome was recorded above; what is left is an answer that says nothing.
          case "Adopt":
          case "Void":
          case "AwaitSettlement":
            return yield* this.inDoubt(effect, key, "nobody can say what became of it")
        }
      })
    return Effect.suspend(() => ask("notAsked"))
  }

  private inDoubt(effect: SideEffect.Any, key: EffectKey, why: string): Effect.Effect<never> {
    return this.step.block({
      _tag: "InDoubt",
      step: this.step.key,
      effect: effect.name,
      key,
      message: `The outcome of "${effect.name}" under ${key} is not known: ${why}. Find out, then settle it (client.settle).`
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
  private close(entryDraft: EntryDraft): Effect.Effect<number | undefined> {
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

  private handler(effect: SideEffect.Any): SideEffect.Handler | undefined {
    return Option.getOrUndefined(
      Context.getOption(
        this.step.branch.host.runtime.context as Context.Context<SideEffect.HandlerOf<string>>,
        SideEffect.handlerTag(effect.name)
      )
    )
  }

  private missing(effect: SideEffect.Any): Effect.Effect<never> {
    return this.step.block({
      _tag: "BadEffect",
      step: this.step.key,
      effect: effect.name,
      message: `The worker has no handler of "${effect.name}" that reads its input: provide its layer to the worker.`
    })
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

class KeyedFiring implements SideEffect.Firing {
  constructor(
    readonly key: EffectKey,
    readonly again: boolean
  ) {}

  /** Computed when asked for: many receivers have no use for it. */
  get idempotencyKey(): string {
    return digest(this.key)
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

/** Whether a handler's fiber is under way. */
interface Entered {
  running?: boolean
  onEnd?: () => void
}

/**
 * The exit of an effect within a time limit (milliseconds). It runs on a fiber of its own, so that the limit holds also
 * where the caller may not be interrupted; it has the caller's spans and annotations. One that ends at once costs no
 * timer.
 */
const limited = (
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
