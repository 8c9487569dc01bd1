/**
 * A human task: an interrupt that says what a person needs to answer it. It has a title, a description, an assignee, a form
 * as JSON Schema (derived from the answer's Schema) and a deadline. All that are pending, of all runs, are listed by
 * `client.pendingInterrupts`, and answered by `client.resume`.
 *
 * An answer and the deadline exclude each other: exactly one wins, durably.
 *
 * @example
 * const Approve = HumanTask.make("approve", {
 *   payload: Schema.Struct({ cents: Schema.Number }),
 *   answer: Schema.Boolean,
 *   title: ({ cents }) => `Refund ${cents / 100}?`,
 *   assignee: "team:refunds",
 *   deadline: "2 days",
 *   otherwise: () => false
 * })
 * const approved = yield* Approve({ cents: 12_000 })
 */
import { idProblem, runAssignee, type TaskFacts } from "@fermata/contract"
import { Duration, Effect, JSONSchema, Schema } from "effect"
import * as Interrupt from "./Interrupt.js"
import { Expired, WorkflowScope } from "./internal/WorkflowScope.js"
import { InvalidValue } from "./RunError.js"

/** Nobody answered the task before its deadline. Handle it to escalate: ask somebody else, say. */
export class TaskExpired extends Schema.TaggedError<TaskExpired>("fermata/TaskExpired")("TaskExpired", {
  /** `name#n`. */
  task: Schema.String,
  /** Ledger milliseconds. */
  deadline: Schema.Number
}) {
  override get message() {
    return `Nobody answered ${this.task} before ${new Date(this.deadline).toISOString()}.`
  }
}

/** A time span from the moment of asking, or a point in time. */
export type Deadline = Duration.DurationInput | Date

/** What one ask may say otherwise than the definition: a reminder to somebody else, with more time. */
export interface Ask {
  readonly assignee?: string
  readonly deadline?: Deadline
}

/** A declared task. `P`: what is asked. `A`: the answer. `E`: `TaskExpired`, unless it has a default answer. */
export interface HumanTask<N extends string, P, A, E> extends Interrupt.Answerable<N, P, A> {
  /** Asks, and waits for the answer or the deadline. The n-th ask of a branch is answered as `name#n`. */
  (payload: P, ask?: Ask): Effect.Effect<A, E, WorkflowScope>
  /** JSON Schema of the encoded answer, for a form. */
  readonly form: JSONSchema.JsonSchema7Root
}

/** What a task is declared with; what is a function is asked with the payload, and must be pure. */
export interface Options<P, PE, A, AE> {
  readonly payload?: Schema.Schema<P, PE>
  readonly answer?: Schema.Schema<A, AE>
  readonly title: string | ((payload: P) => string)
  readonly description?: string | ((payload: P) => string)
  readonly assignee?: string | ((payload: P) => string)
  readonly deadline?: Deadline | ((payload: P) => Deadline)
}

/**
 * Declares a task. `payload` and `answer` default to void. With `otherwise`, the deadline answers the task; without, it
 * fails with `TaskExpired`. An answer that JSON Schema cannot describe throws here.
 */
export const make: {
  <const N extends string, P = void, PE = void, A = void, AE = void>(
    name: N,
    options: Options<P, PE, A, AE> & { readonly otherwise: (payload: P) => A }
  ): HumanTask<N, P, A, never>
  <const N extends string, P = void, PE = void, A = void, AE = void>(
    name: N,
    options: Options<P, PE, A, AE>
  ): HumanTask<N, P, A, TaskExpired>
} = <const N extends string, P, PE, A, AE>(
  name: N,
  options: Options<P, PE, A, AE> & { readonly otherwise?: (payload: P) => A }
): HumanTask<N, P, A, never> => {
  const interrupt = Interrupt.make<N, P, PE, A, AE>(name, {
    ...(options.payload === undefined ? {} : { payload: options.payload }),
    ...(options.answer === undefined ? {} : { answer: options.answer })
  })
  const form = JSONSchema.make(interrupt.answer)
  const ask = (payload: P, given: Ask = {}) =>
    Effect.withFiberRuntime<unknown, unknown, WorkflowScope>((fiber) =>
      Effect.flatMap(WorkflowScope, (scope) => {
        const assignee = given.assignee ?? said(options.assignee, payload)
        const problem = assignee === undefined ? undefined : assigneeProblem(assignee)
        if (problem !== undefined) {
          return Effect.die(new InvalidValue({ what: `assignee of task ${name}`, issues: [`$: ${problem}`] }))
        }
        const until = given.deadline ?? said(options.deadline, payload)
        const deadline = until === undefined ? undefined : dueAt(until, scope.now())
        if (deadline !== undefined && !Number.isSafeInteger(deadline)) {
          return Effect.die(new InvalidValue({ what: `deadline of task ${name}`, issues: ["$: is no point in time"] }))
        }
        const description = said(options.description, payload)
        const task: TaskFacts = {
          title: said(options.title, payload) ?? name,
          ...(description === undefined ? {} : { description }),
          ...(assignee === undefined ? {} : { assignee }),
          ...(deadline === undefined ? {} : { deadline }),
          form
        }
        return Effect.catchAll(scope.ask(interrupt as Interrupt.Any, payload, fiber, task), (error) =>
          !(error instanceof Expired)
            ? Effect.die(error)
            : options.otherwise !== undefined
              ? Effect.sync(() => options.otherwise?.(payload))
              : Effect.fail(new TaskExpired({ task: error.interrupt, deadline: error.deadline }))
        )
      })
    )
  const { answer, codecs, payload } = interrupt
  const task = Object.assign(ask, { answer, codecs, form, payload })
  Object.defineProperty(task, "name", { value: name, enumerable: true })
  // Its codecs read the declared types, and `otherwise` decides which of the two errors it has.
  return task as unknown as HumanTask<N, P, A, never>
}

/** What is wrong with an assignee, if anything. */
const assigneeProblem = (text: string): string | undefined =>
  idProblem(text) ??
  (text >= runAssignee.from && text < runAssignee.below
    ? `begins with "${runAssignee.from}", which stands for runs`
    : undefined)

/** A point in time: ledger milliseconds, whole, not before it is due. */
const dueAt = (deadline: Deadline, now: number): number =>
  deadline instanceof Date ? deadline.getTime() : now + Math.ceil(Duration.toMillis(deadline))

/** What an option says of this payload. */
const said = <P, T extends string | Deadline>(
  option: T | ((payload: P) => T) | undefined,
  payload: P
): T | undefined => (typeof option === "function" ? option(payload) : option)
