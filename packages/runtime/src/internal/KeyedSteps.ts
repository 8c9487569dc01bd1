/**
 * Steps that a workflow calls by keys of its own choice: one step for all who call it. What is decided depends on the calls
 * and outcomes before, in the branch's order, so a replay decides alike (RD).
 */
import { admitKeyedCall, type BranchId } from "@fermata/contract"
import { Effect } from "effect"
import { StepKeyReused } from "../RunError.js"
import type { StepCommand } from "./Command.js"

type Resume = StepCommand["resume"]

interface KeyedStep {
  readonly input: string
  state: "running" | "ended" | "withdrawn"
  /** What its callers get, once it has ended. */
  outcome: Effect.Effect<unknown, unknown>
  /** Those who wait, in the order in which they came. */
  readonly callers: Set<Resume>
  /** Nobody waits any more. */
  readonly withdraw: () => Effect.Effect<void>
}

/** The steps of one scope. Outcomes are kept as long as the scope is: memory grows with the keys that it uses. */
export class KeyedSteps {
  private readonly steps = new Map<string, KeyedStep>()

  /** `begin` issues the step's command; `withdraw` takes it back when the last who waited was interrupted. */
  call(
    branch: BranchId,
    key: string,
    input: string,
    begin: (resume: Resume) => StepCommand,
    withdraw: (command: StepCommand) => Effect.Effect<void>
  ): Effect.Effect<unknown, unknown> {
    // Decided where it is registered: no other fiber runs between.
    return Effect.async((resume) => {
      const before = this.steps.get(key)
      const verdict = admitKeyedCall(before, input)
      switch (verdict) {
        case "OtherInput":
        case "Withdrawn":
          return resume(
            Effect.die(
              new StepKeyReused({ branch, step: key, because: verdict === "OtherInput" ? "input" : "withdrawn" })
            )
          )
        case "Start":
          return this.wait(this.start(key, input, begin, withdraw), resume)
        case "Join":
          return before && this.wait(before, resume)
        case "Serve":
          return before && resume(before.outcome)
      }
    })
  }

  private start(
    key: string,
    input: string,
    begin: (resume: Resume) => StepCommand,
    withdraw: (command: StepCommand) => Effect.Effect<void>
  ): KeyedStep {
    const callers = new Set<Resume>()
    const command = begin((outcome) => {
      step.state = "ended"
      step.outcome = outcome
      for (const resume of callers) resume(outcome)
      callers.clear()
    })
    const step: KeyedStep = {
      input,
      state: "running",
      outcome: Effect.never,
      callers,
      withdraw: () => withdraw(command)
    }
    this.steps.set(key, step)
    return step
  }

  /** Adds who waits; gives what its interruption does. */
  private wait(step: KeyedStep, resume: Resume): Effect.Effect<void> {
    step.callers.add(resume)
    return Effect.suspend(() => {
      step.callers.delete(resume)
      if (step.state !== "running" || step.callers.size > 0) return Effect.void
      step.state = "withdrawn"
      return step.withdraw()
    })
  }
}
