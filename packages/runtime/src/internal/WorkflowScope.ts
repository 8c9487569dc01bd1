/** What a workflow's body runs in: the commands that it may issue to the branch that runs it. */
import { Context, Effect, type Fiber } from "effect"
import type { BranchId, RunId } from "@fermata/contract"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"

/** Required by everything that only a workflow's body may do; provided by the runtime. */
export interface WorkflowScope {
  readonly _: unique symbol
}

/** The commands behind the scope. */
export interface Commands {
  readonly run: RunId
  readonly branch: BranchId
  readonly call: (
    node: Node.Any,
    input: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<unknown, unknown>
  readonly ask: (
    interrupt: Interrupt.Any,
    payload: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<unknown>
  /** True if this execution takes the patch's path; `retired`: the code has no other, so that nothing is recorded anew. */
  readonly patched: (
    id: string,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    retired: boolean
  ) => Effect.Effect<boolean>
}

export const WorkflowScope = Context.GenericTag<WorkflowScope, Commands>("fermata/WorkflowScope")

/** Issues a command to the branch that runs the current fiber. */
export const command = (
  issue: (scope: Commands, fiber: Fiber.RuntimeFiber<unknown, unknown>) => Effect.Effect<unknown, unknown>
): Effect.Effect<unknown, unknown, WorkflowScope> =>
  Effect.withFiberRuntime<unknown, unknown, WorkflowScope>((fiber) =>
    issue(Context.unsafeGet(fiber.currentContext, WorkflowScope), fiber)
  )
