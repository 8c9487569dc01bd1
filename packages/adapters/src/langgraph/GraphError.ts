/**
 * Errors of the graph API. Those that LangGraph has keep their names and `lc_error_code`, so that code which catches
 * them goes on to work; the rest say where the resume contract refuses what would break it.
 */
import type { Problem } from "@fermata/runtime"

/** What every error here is. */
export class GraphError extends Error {
  readonly lc_error_code: string | undefined
  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.lc_error_code = options.code
  }
}

/** The graph ran for more supersteps than `recursionLimit` allows. Its state is kept. */
export class GraphRecursionError extends GraphError {
  override readonly name: string = "GraphRecursionError"
}

/** A graph is used in a way that it cannot be. */
export class GraphValueError extends GraphError {
  override readonly name: string = "GraphValueError"
}

/** An update cannot be applied: two writers of one plain channel, a value that is no update, or one its schema refuses. */
export class InvalidUpdateError extends GraphError {
  override readonly name: string = "InvalidUpdateError"
}

/** There is nothing to run: no input, and nothing that is unfinished. */
export class EmptyInputError extends GraphError {
  override readonly name: string = "EmptyInputError"
}

/** A node that nothing leads to. */
export class UnreachableNodeError extends GraphError {
  override readonly name: string = "UnreachableNodeError"
}

/** What `interrupt()` throws to leave the node. Catching it changes nothing: the node is parked all the same. */
export class GraphInterrupt extends GraphError {
  override readonly name: string = "GraphInterrupt"
  readonly interrupts: ReadonlyArray<Interrupt>
  readonly is_bubble_up = true
  constructor(interrupts: ReadonlyArray<Interrupt> = []) {
    super("The node waits for an answer")
    this.interrupts = interrupts
  }
}

/** True for what `interrupt()` throws. */
export const isGraphInterrupt = (error: unknown): error is GraphInterrupt =>
  error instanceof Error && error.name === "GraphInterrupt"

/** True for errors that only leave a node, and are no failures. */
export const isGraphBubbleUp = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "is_bubble_up" in error && error.is_bubble_up === true

/** One question that waits for an answer. */
export interface Interrupt<V = unknown> {
  /** 32 hexadecimal digits: the address for `Command({ resume: { [id]: answer } })`. */
  readonly id: string
  readonly value: V
}

/** A resume that names no waiting question, or does not say which of several. Nothing changed. */
export class ResumeRefused extends GraphError {
  override readonly name: string = "ResumeRefused"
  /** `none`: nothing waits. `ambiguous`: several wait. `unknown`: no such question. `answered`: it has its answer. */
  readonly reason: "none" | "ambiguous" | "unknown" | "answered"
  /** The ids that wait. */
  readonly pending: ReadonlyArray<string>
  constructor(reason: ResumeRefused["reason"], message: string, pending: ReadonlyArray<string>, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
    this.pending = pending
  }
}

/** An old checkpoint was addressed without saying that a new branch is meant. Nothing changed. */
export class ForkRequired extends GraphError {
  override readonly name: string = "ForkRequired"
  readonly checkpointId: string
  readonly head: string
  constructor(checkpointId: string, head: string) {
    super(
      `Checkpoint ${checkpointId} is not the head of its branch (${head}). To go on from it on a new branch, say so: ` +
        `new Command({ fork: true, ... }), or { configurable: { fork: true } } with no input. To go on from the head, leave checkpoint_id out`
    )
    this.checkpointId = checkpointId
    this.head = head
  }
}

/** A value cannot be stored exactly; `path` says which. Nothing was written. */
export class NotStorable extends GraphError {
  override readonly name: string = "NotStorable"
  readonly path: string
  constructor(path: string, reason: string) {
    super(`${path} ${reason}. Nothing was written`)
    this.path = path
  }
}

/** A node exceeded its timeout. */
export class NodeTimeoutError extends GraphError {
  override readonly name: string = "NodeTimeoutError"
}

/** A thread was made by another version of the graph. */
export class ThreadOfOtherGraph extends GraphError {
  override readonly name: string = "ThreadOfOtherGraph"
}

/** A thread cannot go on without help; `problems` are the runtime's words. */
export class ThreadStuck extends GraphError {
  override readonly name: string = "ThreadStuck"
  readonly problems: ReadonlyArray<Problem.Problem>
  constructor(message: string, problems: ReadonlyArray<Problem.Problem> = []) {
    super(message)
    this.problems = problems
  }
}

/** What an error handler of a node gets. */
export class NodeError extends GraphError {
  override readonly name: string = "NodeError"
  readonly node: string
  readonly error: Error
  constructor(node: string, error: Error) {
    super(`Node ${node} failed: ${error.message}`, { cause: error })
    this.node = node
    this.error = error
  }
}

/** Thrown by the body of an effect: it definitely did not happen. The message is recorded and thrown again on re-runs. */
export class DidNotHappen extends GraphError {
  override readonly name: string = "DidNotHappen"
}
