/**
 * The steps of a branch that run on the host, and those that cannot go on. A step that was interrupted while an effect
 * was firing is kept until that is resolved (EO).
 */
import type { BranchId, EntryDraft, Recovery } from "@fermata/contract"
import { isUnsettled } from "@fermata/contract"
import type { Effect } from "effect"
import type { Problem } from "../Problem.js"
import type { BranchWriter } from "./BranchWriter.js"
import type { StepCommand } from "./Command.js"
import { stepCounter } from "./Counters.js"
import type { Mailbox } from "./Mailbox.js"
import type { Step, StepBranch, StepHost } from "./Step.js"
import { StepRun } from "./StepRun.js"
import { Telemetry } from "./Telemetry.js"
import type { WorkflowCommands } from "./WorkflowCommands.js"

/** What the steps need of their branch. */
export interface StepsContext {
  readonly branch: BranchId
  readonly host: StepHost
  readonly recovery: Recovery
  readonly writer: BranchWriter
  readonly mailbox: Mailbox
  readonly commands: Pick<WorkflowCommands, "waiting">
  /** Lets go, or is gone: no step begins. */
  readonly stopping: () => boolean
  /** The workflow's root has ended: no step's outcome is delivered. */
  readonly closing: () => boolean
  /** Appends a step's outcome and delivers it. */
  readonly emit: (outcome: EntryDraft, value: Effect.Effect<unknown, unknown> | undefined) => void
  /** The last step of a branch that is closing has ended. */
  readonly onLastEnded: () => void
}

export class RunningSteps implements StepBranch {
  readonly branch: BranchId
  readonly host: StepHost
  readonly recovery: Recovery
  readonly writer: BranchWriter
  readonly telemetry: Telemetry
  private readonly running = new Map<string, StepRun>()
  private readonly problems = new Map<string, Problem>()

  constructor(private readonly context: StepsContext) {
    this.branch = context.branch
    this.host = context.host
    this.recovery = context.recovery
    this.writer = context.writer
    this.telemetry = new Telemetry(context.branch, context.host.runtime)
  }

  // ── From the branch ─────────────────────────────────────────────────────────────────────────────────────

  get size(): number {
    return this.running.size
  }

  get isStopping(): boolean {
    return this.context.stopping()
  }

  /** Why steps cannot go on, as the journal's row stores it; `undefined` if none is blocked. */
  get blockedBy(): string | undefined {
    return this.problems.size === 0 ? undefined : JSON.stringify([...this.problems.values()])
  }

  /** True if every step only waits for its next attempt. */
  get resting(): boolean {
    for (const step of this.running.values()) if (!step.resting) return false
    return true
  }

  /** When steps that rest go on (ledger milliseconds). */
  get wakes(): ReadonlyArray<number> {
    return [...this.running.values()].map((step) => step.restingUntil).filter((at) => at !== undefined)
  }

  /** Begins a step, unless it runs or is blocked. */
  takeUp(command: StepCommand): void {
    if (!this.running.has(command.key) && !this.problems.has(command.key)) this.run(command)
  }

  /** Begins a step. */
  run(command: StepCommand): void {
    const step = new StepRun(this, command)
    this.running.set(command.key, step)
    step.start()
  }

  /** Resolves what an interrupted step left in doubt: it may not be forgotten, whoever waits for the step (EO). */
  resolve(command: StepCommand): void {
    command.withdrawing = true
    this.run(command)
  }

  /** The workflow does not wait for this step any more. */
  withdraw(key: string): void {
    const step = this.running.get(key)
    const command = this.context.commands.waiting.get(key)
    if (step !== undefined) step.interrupt()
    // Blocked by something else before: nobody waits for that any more, but what fires must still be resolved.
    else if (command?.kind === "step" && command.withdrawing && !this.isStopping) {
      this.problems.delete(key)
      this.resolve(command)
    }
  }

  /** The run is over, and this step with it. */
  end(command: StepCommand): void {
    this.problems.delete(command.key)
    const step = this.running.get(command.key)
    if (step !== undefined) step.interrupt()
    // EO: an effect in doubt is resolved before the run may end.
    else if (this.recovery.firing(command.key).length > 0) this.resolve(command)
  }

  /** An operator gave the outcome of one of the step's effects: it goes on with that. */
  settled(key: string): void {
    this.problems.delete(key)
    const command = this.context.commands.waiting.get(key)
    if (command?.kind === "step" && !this.running.has(key)) this.run(command)
  }

  /** The step has its outcome. */
  delete(key: string): void {
    this.running.delete(key)
  }

  /** Nobody waits for the step: what stops it is nobody's problem. */
  forget(key: string): void {
    this.problems.delete(key)
  }

  /** Goes on after parking. */
  start(): void {
    for (const step of this.running.values()) step.start()
  }

  park(): void {
    for (const step of this.running.values()) step.park()
  }

  interrupt(): void {
    for (const step of this.running.values()) step.interrupt()
  }

  abandon(): void {
    for (const step of this.running.values()) step.abandon()
    this.running.clear()
  }

  // ── From steps ──────────────────────────────────────────────────────────────────────────────────────────

  post(job: () => void): void {
    this.context.mailbox.post(job)
  }

  block(step: Step, problem: Problem): void {
    this.problems.set(step.key, problem)
  }

  /** Not delivered to a command that is not there any more: a late outcome (PC). */
  stepEnded(step: Step, outcome: EntryDraft | undefined, value?: Effect.Effect<unknown, unknown>): void {
    const { closing, commands, emit, onLastEnded } = this.context
    if (this.running.get(step.key) === step) this.running.delete(step.key)
    const over = closing() || this.isStopping
    if (outcome !== undefined) stepCounter.count(outcome.kind.slice("step.".length))
    if (step.isBlocked && !over) return this.blockedEnded(step)
    if (outcome !== undefined && !over && commands.waiting.get(step.key) === step.command) {
      emit(outcome, value)
    } else if (closing() && this.running.size === 0) {
      onLastEnded()
    }
  }

  private blockedEnded(step: Step): void {
    const problem = this.problems.get(step.key)
    // A settlement may have come in while the body was finding out that it needs one.
    if (problem === undefined || !("key" in problem) || problem._tag === "EffectInputChanged") return
    if (isUnsettled(this.recovery.effects.get(problem.key)?.state)) return
    this.problems.delete(step.key)
    this.run(step.command)
  }
}
