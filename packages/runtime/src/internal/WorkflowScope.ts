/** What a workflow's body runs in: the commands that it may issue to the branch that runs it. */
import type { BranchId, EntryDraft, RunId, TaskFacts } from "@fermata/contract"
import { Context, Effect, type Either, type Fiber } from "effect"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"
import type { InvalidValue } from "../RunError.js"
import type * as Codec from "./Codec.js"
import type { LoopDefinition } from "./WorkflowLoop.js"

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
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    /** What names the step instead of the count of the node's calls. */
    key?: string
  ) => Effect.Effect<unknown, unknown>
  readonly loop: (loop: LoopDefinition) => Effect.Effect<unknown, unknown, unknown>
  readonly ask: (
    interrupt: Interrupt.Any,
    payload: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    /** Fails with {@link Expired} if it has a deadline and nobody answers before. */
    task?: TaskFacts
  ) => Effect.Effect<unknown, unknown>
  /** The next signal or update of a name: what came and was not taken, or what comes. */
  readonly receive: (channel: Channel, fiber: Fiber.RuntimeFiber<unknown, unknown>) => Effect.Effect<Message>
  /** All signals of a name that came and were not taken. */
  readonly drain: (
    channel: Channel,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<ReadonlyArray<Message>>
  /** True if this execution takes the patch's path; `retired`: the code has no other, so that nothing is recorded anew. */
  readonly patched: (
    id: string,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    retired: boolean
  ) => Effect.Effect<boolean>
  /** Records what the outside may read: a reply to an update, or a view. */
  readonly tell: (
    told: Either.Either<EntryDraft, InvalidValue>,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<void>
  /** Gives the run these tags; values that the workflow does not declare so die with `InvalidValue`. */
  readonly tag: (
    values: Readonly<Record<string, unknown>>,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) => Effect.Effect<void>
  /** Ledger milliseconds of the event being delivered. */
  readonly now: () => number
}

/** Where signals or updates of one definition come in, and how they are read. */
export interface Channel {
  readonly kind: "signal" | "update"
  readonly name: string
  readonly codec: Pick<Codec.Codec<unknown>, "revive">
}

/** A message that came in, its value read by its channel's Schema. */
export interface Message {
  readonly id: string
  readonly value: unknown
}

/** An interrupt's deadline passed unanswered. */
export class Expired {
  readonly _tag = "Expired"
  constructor(
    readonly interrupt: string,
    readonly deadline: number
  ) {}
}

export const WorkflowScope = Context.GenericTag<WorkflowScope, Commands>("fermata/WorkflowScope")

/** As {@link command}, typed. */
export const scoped = <A>(
  issue: (scope: Commands, fiber: Fiber.RuntimeFiber<unknown, unknown>) => Effect.Effect<A>
): Effect.Effect<A, never, WorkflowScope> =>
  Effect.withFiberRuntime<A, never, WorkflowScope>((fiber) =>
    issue(Context.unsafeGet(fiber.currentContext, WorkflowScope), fiber)
  )

/** Issues a command to the branch that runs the current fiber. */
export const command = (
  issue: (scope: Commands, fiber: Fiber.RuntimeFiber<unknown, unknown>) => Effect.Effect<unknown, unknown>
): Effect.Effect<unknown, unknown, WorkflowScope> =>
  Effect.withFiberRuntime<unknown, unknown, WorkflowScope>((fiber) =>
    issue(Context.unsafeGet(fiber.currentContext, WorkflowScope), fiber)
  )
