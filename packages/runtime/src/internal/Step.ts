/** One step as others see it: the firing of its effects, and its branch. */
import type { BranchId, EntryDraft, Recovery } from "@fermata/contract"
import type { Ledger } from "@fermata/ledger"
import type { Effect, Runtime } from "effect"
import type { Problem } from "../Problem.js"
import type { BranchWriter } from "./BranchWriter.js"
import type { StepCommand } from "./Command.js"
import type { Telemetry } from "./Telemetry.js"

/** What a body dies of when its step cannot go on; nobody sees it. */
export const stopped = new Error("the step was stopped by its branch")

/** What bodies and handlers need of the worker. */
export interface StepHost {
  readonly ledger: Pick<Ledger, "fate" | "unsafeNow"> & Partial<Pick<Ledger, "emit" | "sql">>
  /** The worker's registered name. */
  readonly worker: string
  /** The worker's runtime: bodies and handlers run on it, with its services. */
  readonly runtime: Runtime.Runtime<never>
  /** `once` firings under way in this process, by effect key, also those of branches that were evicted since. */
  readonly firing: Set<string>
}

/** What the firing of an effect needs of the branch. */
export interface EffectBranch {
  readonly branch: BranchId
  readonly host: StepHost
  readonly recovery: Recovery
  readonly writer: Pick<BranchWriter, "epoch" | "fitting" | "head" | "mark" | "transact" | "whenDurable">
}

/** A step, as the firing of its effects sees it. */
export interface Step {
  readonly key: string
  readonly command: StepCommand
  readonly branch: EffectBranch
  /** The current attempt, 1-based: failed ones are counted by the history, so a lost worker is none. */
  readonly attempt: number
  /** It cannot go on without help. */
  readonly isBlocked: boolean
  /** Blocked or interrupted: nothing may begin to fire any more. */
  readonly isStopped: boolean
  /** True once its branch is gone: nothing of it may act any more. */
  readonly isAbandoned: boolean
  /** Waits for something the branch does; stops waiting when the branch is gone. */
  wait<A>(register: (resume: (value: A) => void) => void): Effect.Effect<A>
  /** Stops the step with a problem that needs help; what it returns never continues. */
  block(problem: Problem): Effect.Effect<never>
}

/** What a step needs of its branch. */
export interface StepBranch extends EffectBranch {
  /** What its steps' bodies log and trace under. */
  readonly telemetry: Telemetry
  /** True once the branch only waits for firings to end, to be let go of. */
  readonly isStopping: boolean
  /** Handles `job` in its turn. Dropped if the branch is gone. */
  post(job: () => void): void
  /** A step's body ended. `value` is what the outcome's text reads back as. */
  stepEnded(step: Step, outcome: EntryDraft | undefined, value?: Effect.Effect<unknown, unknown>): void
  /** The step cannot go on: the branch is stuck once everything else rests. */
  block(step: Step, problem: Problem): void
  /** Resolves what an interrupted step left in doubt: it may not be forgotten, whoever waits for the step (EO). */
  resolve(command: StepCommand): void
}
