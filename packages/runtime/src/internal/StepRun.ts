/**
 * The host's side of one step: runs the node's body on the worker's runtime, attempt after attempt, until there is an
 * outcome. Nothing it holds is shared with the workflow: inputs and outcomes cross as text.
 */
import { afterTypedError } from "@fermata/contract"
import { Cause, Context, Duration, Effect, Either, Exit, type Fiber, FiberId, Option, Runtime } from "effect"
import { retries, stepMillis } from "../Metrics.js"
import type { Problem } from "../Problem.js"
import { InvalidValue } from "../RunError.js"
import type { Refusal } from "./Codec.js"
import type { StepCommand } from "./Command.js"
import { EffectFiring } from "./EffectFiring.js"
import { HostTimer } from "./HostTimer.js"
import { draft } from "./Payload.js"
import { type Step, type StepBranch, stopped } from "./Step.js"
import { StepScope } from "./StepScope.js"

export class StepRun implements Step {
  readonly key: string
  /** True while it only waits for its next attempt. */
  resting = false
  /** When its next attempt begins (ledger milliseconds), while resting. */
  restingUntil: number | undefined
  private fiber: Fiber.RuntimeFiber<unknown, unknown> | undefined
  private readonly timer: HostTimer
  private blocked = false
  private interrupted = false
  private abandoned = false
  private readonly waiters = new Set<(effect: Effect.Effect<never>) => void>()

  constructor(
    readonly branch: StepBranch,
    readonly command: StepCommand
  ) {
    this.key = command.key
    this.timer = new HostTimer(branch.host.runtime, () => branch.host.ledger.unsafeNow())
  }

  /** The current attempt, 1-based: failed ones are counted by the history, so a lost worker is none. */
  get attempt(): number {
    return (this.branch.recovery.steps.get(this.key)?.attempts ?? 0) + 1
  }

  start(): void {
    const retryAt = this.branch.recovery.steps.get(this.key)?.retryAt
    if (!this.command.withdrawing && retryAt !== undefined && retryAt > this.branch.host.ledger.unsafeNow()) {
      this.resting = true
      this.restingUntil = retryAt
      this.timer.at(retryAt, () => this.branch.post(() => this.beginInOrder()))
    } else {
      this.beginInOrder()
    }
  }

  /** What may do anything to the outside waits, as a firing does, until all that led to it is durable (output commit). */
  private beginInOrder(): void {
    const { branch, command } = this
    const { head } = branch.writer
    if (!command.node.undeclared || command.withdrawing || head === undefined) return this.begin()
    branch.writer.whenDurable(head.seq, () =>
      branch.post(() => {
        if (!this.abandoned && !this.blocked) this.begin()
      })
    )
  }

  /** The branch parks: what only waits goes on when it is taken up again. */
  park(): void {
    this.timer.clear()
  }

  /** Asks it to stop. A firing that may not be interrupted ends first. */
  interrupt(): void {
    this.timer.clear()
    if (this.interrupted) return
    this.interrupted = true
    if (this.fiber !== undefined) this.fiber.unsafeInterruptAsFork(FiberId.none)
    else this.branch.post(() => this.stop())
  }

  /** Ended by interruption: what is in doubt is resolved first, whoever waits for the step (EO). */
  private stop(): void {
    const inDoubt = !this.branch.isStopping && this.branch.recovery.firing(this.key).length > 0
    if (inDoubt) this.branch.resolve(this.command)
    else this.branch.stepEnded(this, undefined)
  }

  /** The branch is gone: whoever waits for its journal waits no longer. */
  abandon(): void {
    this.abandoned = true
    this.blocked = true
    this.interrupt()
    for (const waiter of this.waiters) waiter(Effect.die(stopped))
    this.waiters.clear()
  }

  /** Waits for something the branch does; stops waiting when the branch is gone. */
  wait<A>(register: (resume: (value: A) => void) => void): Effect.Effect<A> {
    return Effect.suspend(() => {
      if (this.abandoned) return Effect.die(stopped)
      let done: { readonly value: A } | undefined
      let heard: ((effect: Effect.Effect<A>) => void) | undefined
      const waiter = (effect: Effect.Effect<never>) => heard?.(effect)
      register((value) => {
        done = { value }
        this.waiters.delete(waiter)
        heard?.(Effect.succeed(value))
      })
      // Most often the branch is free and it is done at once.
      const now = done as { readonly value: A } | undefined
      if (now !== undefined) return Effect.succeed(now.value)
      this.waiters.add(waiter)
      return Effect.async<A>((resume) => {
        heard = resume
        if (done !== undefined) resume(Effect.succeed(done.value))
        else if (this.abandoned) resume(Effect.die(stopped))
      })
    })
  }

  /** Stops the step with a problem that needs help; what it returns never continues. */
  block(problem: Problem): Effect.Effect<never> {
    return Effect.suspend(() => {
      if (!this.blocked) {
        this.blocked = true
        this.branch.post(() => {
          // It stays the branch's until its fiber ends: another firing of the same body may have an outcome yet.
          this.branch.block(this, problem)
          this.fiber?.unsafeInterruptAsFork(FiberId.none)
        })
      }
      return Effect.die(stopped)
    })
  }

  get isBlocked(): boolean {
    return this.blocked
  }

  /** True once its branch is gone: nothing of it may act any more. */
  get isAbandoned(): boolean {
    return this.abandoned
  }

  get isStopped(): boolean {
    return this.blocked || this.interrupted
  }

  private begin(): void {
    if (this.interrupted) return
    this.resting = false
    this.restingUntil = undefined
    const firing = new EffectFiring(this)
    const { node } = this.command
    const body = this.command.withdrawing
      ? Effect.zipRight(firing.recovery.resolveAll(), Effect.interrupt)
      : Effect.suspend(() => {
          const input = node.codecs.input.decode(this.command.input)
          return Either.isRight(input)
            ? this.timed(node.body(input.right))
            : Effect.die(
                new InvalidValue({ what: `input of node ${node.name} as read back`, issues: input.left.issues })
              )
        })
    const { runtime } = this.branch.host
    const fiber = Runtime.runFork(
      Runtime.make({
        context: Context.add(runtime.context, StepScope, firing) as Context.Context<never>,
        fiberRefs: this.branch.telemetry.refs,
        runtimeFlags: runtime.runtimeFlags
      })
    )(this.branch.telemetry.inSpan(body, this))
    this.fiber = fiber
    const began = performance.now()
    fiber.addObserver((exit) => {
      stepMillis.unsafeUpdate(performance.now() - began, [])
      this.branch.post(() => this.bodyEnded(exit, firing))
    })
  }

  /** The body within the node's time limits; beyond them it has failed with the node's error for that. */
  private timed(body: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> {
    const { timeouts } = this.command.node
    if (timeouts === undefined) return body
    const left = this.closesAt - this.branch.host.ledger.unsafeNow()
    const limit = timeouts.startToClose <= left ? "startToClose" : "scheduleToClose"
    const onTimeout = () => timeouts.error({ limit, attempt: this.attempt })
    const millis = Math.min(timeouts.startToClose, left)
    if (millis <= 0) return Effect.failSync(onTimeout)
    return Number.isFinite(millis) ? Effect.timeoutFail(body, { duration: Duration.millis(millis), onTimeout }) : body
  }

  /** When the time for all attempts is over (ledger milliseconds). */
  private get closesAt(): number {
    return this.command.since + (this.command.node.timeouts?.scheduleToClose ?? Infinity)
  }

  /** Whoever sees the outcome has been able to hear all that led to it. */
  private bodyEnded(exit: Exit.Exit<unknown, unknown>, { output }: EffectFiring): void {
    if (output === undefined || this.isStopped) return this.ended(exit)
    output.whenStored(() => this.branch.post(() => this.ended(exit)))
  }

  private ended(exit: Exit.Exit<unknown, unknown>): void {
    this.fiber = undefined
    if (this.blocked) return this.branch.stepEnded(this, undefined)
    const { command, key } = this
    const { node } = command
    if (this.interrupted && (!command.withdrawing || this.branch.recovery.firing(key).length > 0)) return this.stop()
    if (Exit.isSuccess(exit)) {
      const text = this.branch.writer.fitting(node.codecs.success.encode(exit.value))
      // Read back before it is written: what the workflow gets live is what a replay gives it (CV).
      const value = Either.flatMap(text, node.codecs.success.decode)
      if (Either.isRight(text) && Either.isRight(value)) {
        const outcome = draft.stepSucceeded(key, node.name, command.inputDigest, text.right)
        return this.branch.stepEnded(this, outcome, Effect.succeed(value.right))
      }
      return this.refused("result", Either.isLeft(text) ? text.left : Either.getLeft(value).pipe(Option.getOrThrow))
    }
    const failure = Cause.failureOption(exit.cause)
    if (Option.isSome(failure)) return this.failed(failure.value)
    const given = Exit.isFailure(exit) && Cause.squash(exit.cause) === stopped
    if ((Cause.isInterruptedOnly(exit.cause) || given) && command.withdrawing) {
      return this.branch.stepEnded(this, draft.stepInterrupted(key, node.name, command.inputDigest))
    }
    const defect = Cause.isInterruptedOnly(exit.cause)
      ? new Error(`The body of node ${node.name} interrupted itself`)
      : Cause.squash(exit.cause)
    this.branch.stepEnded(this, draft.stepDied(key, node.name, command.inputDigest, defect))
  }

  /** A typed error: another attempt if the policy has one, else the outcome. */
  private failed(error: unknown): void {
    const { command, key } = this
    const { node } = command
    const encoded = this.branch.writer.fitting(node.codecs.error.encode(error))
    if (Either.isLeft(encoded)) return this.refused("error", encoded.left)
    const readBack = node.codecs.error.decode(encoded.right)
    if (Either.isLeft(readBack)) return this.refused("error", readBack.left)
    const { attempt } = this
    const { retry } = node
    const withdrawn = this.interrupted || command.withdrawing
    const next = this.branch.host.ledger.unsafeNow() + (retry?.delay(attempt) ?? 0)
    const verdict = afterTypedError({
      attempt,
      retries: retry?.times,
      // The policy's own code is asked only while it can matter.
      passing: !withdrawn && retry?.while(error) === true,
      withdrawn,
      late: next >= this.closesAt
    })
    if (retry !== undefined && verdict === "Retry") {
      retries.unsafeUpdate(1, [])
      const due = Math.ceil(next)
      this.branch.writer.mark(
        draft.stepRetried(key, node.name, attempt, encoded.right, due),
        (seq) => {
          if (seq !== undefined) this.start()
        },
        () => this.isStopped
      )
      return
    }
    const outcome = draft.stepFailed(key, node.name, command.inputDigest, encoded.right)
    this.branch.stepEnded(this, outcome, Effect.fail(readBack.right))
  }

  /** What the body ended with does not satisfy the node's Schema: the step dies of that. */
  private refused(what: "result" | "error", { issues }: Refusal): void {
    const { command, key } = this
    const { node } = command
    const defect = new InvalidValue({ what: `${what} of node ${node.name} (${key})`, issues })
    this.branch.stepEnded(this, draft.stepDied(key, node.name, command.inputDigest, defect))
  }
}
