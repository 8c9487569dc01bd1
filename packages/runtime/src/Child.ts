/**
 * Child workflows: runs that a workflow starts. An attached one (`Child.run`) is waited for: the workflow gets its success or
 * its typed error, holds no memory and no worker meanwhile, and takes the child with it when it is cancelled. A detached one
 * (`Child.start`) goes its own way.
 *
 * Both are started once, whatever crashes, and are found by their run id like any run. A child is an ordinary workflow;
 * any worker that knows it runs it.
 *
 * @example
 * const parcels = yield* Effect.forEach(order.parcels, (parcel) => Child.run(Ship, parcel), { concurrency: 10 })
 */
import { idProblem, RunId, runAssignee } from "@fermata/contract"
import { Effect, Either, Schema } from "effect"
import { cancelChild, type ChildConflict, startChild } from "./internal/ChildRuns.js"
import { startedAs } from "./internal/ClientMessages.js"
import { WorkflowScope } from "./internal/WorkflowScope.js"
import * as Interrupt from "./Interrupt.js"
import { InvalidId, InvalidValue } from "./RunError.js"
import type * as Workflow from "./Workflow.js"

export { ChildConflict } from "./internal/ChildRuns.js"

/** The child was cancelled, by whomever, or purged before its parent heard of its end. */
export class ChildCancelled extends Schema.TaggedError<ChildCancelled>("fermata/ChildCancelled")("ChildCancelled", {
  run: Schema.String,
  reason: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `Child ${this.run} was cancelled${this.reason === null ? "" : `: ${this.reason}`}.`
  }
}

/** The child ended with a defect. It is a defect of the parent's, too, unless it is caught as one. */
export class ChildDied extends Schema.TaggedError<ChildDied>("fermata/ChildDied")("ChildDied", {
  run: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `Child ${this.run} died: ${this.detail}`
  }
}

export interface Options {
  /**
   * The child's run id. A run that has it already, of the same workflow and input, is the child. By default an id that is the
   * same on every replay and for every fork that inherits the start, and another for each branch that starts one: the parent's
   * run id, a dot, and 16 characters.
   */
  readonly run?: RunId | string
}

export interface RunOptions extends Options {
  /** What becomes of the child when the parent stops waiting (it is cancelled, say, or a timeout is over): `"cancel"` by default. */
  readonly onInterrupt?: "cancel" | "abandon"
}

/**
 * Starts the child and waits for its end. Fails with the child's typed error, with `ChildCancelled`, or with `ChildConflict` if
 * the run id is another run's; dies with `ChildDied`. Interrupted, it asks for the child's cancellation, durably, and does not
 * wait for it.
 */
export const run = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  input: I,
  options: RunOptions = {}
): Effect.Effect<A, E | ChildCancelled | ChildConflict, WorkflowScope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      // A start that was asked for is waited for: whoever gives up knows what there is to cancel.
      const id = yield* start(workflow, input, options)
      const ended = Effect.withFiberRuntime<Outcome<A, E>, never, WorkflowScope>((fiber) =>
        Effect.flatMap(
          WorkflowScope,
          (scope) =>
            // What the child's Schemas read.
            scope.ask(questionOf(workflow), { run: id }, fiber, { assignee: runAssignee.of(id) }) as Effect.Effect<
              Outcome<A, E>
            >
        )
      )
      const outcome = yield* Effect.onInterrupt(restore(ended), () =>
        options.onInterrupt === "abandon" ? Effect.void : cancelChild({ run: id, reason: "its parent waits no more" })
      )
      switch (outcome._tag) {
        case "Succeeded":
          return outcome.value
        case "Failed":
          return yield* Effect.fail(outcome.error)
        case "Cancelled":
          return yield* new ChildCancelled({ run: id, reason: outcome.reason })
        case "Purged":
          return yield* new ChildCancelled({ run: id, reason: "it was purged" })
        case "Died":
          return yield* Effect.die(new ChildDied({ run: id, detail: outcome.message }))
      }
    })
  )

/** Starts the child and goes on: neither waits for the other, and neither's end or cancellation is the other's affair. */
export const start = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  input: I,
  options: Options = {}
): Effect.Effect<RunId, ChildConflict, WorkflowScope> =>
  Effect.flatMap(WorkflowScope, (scope) => {
    const { run } = options
    const problem = run === undefined ? undefined : idProblem(run)
    if (problem !== undefined) return Effect.die(new InvalidId({ what: "run id of a child", problem }))
    const json = workflow.codecs.input.encode(input)
    if (Either.isLeft(json)) {
      const what = `input of child workflow ${workflow.name}`
      return Effect.die(new InvalidValue({ what, issues: json.left.issues }))
    }
    const { accepts, version } = startedAs(workflow, json.right)
    return startChild({
      run: run === undefined ? null : RunId.make(run),
      parent: scope.run,
      workflow: workflow.name,
      version,
      input: json.right,
      accepts: accepts ?? null
    })
  })

type Outcome<A, E> =
  | { readonly _tag: "Succeeded"; readonly value: A }
  | { readonly _tag: "Failed"; readonly error: E }
  | { readonly _tag: "Cancelled"; readonly reason: string | null }
  | { readonly _tag: "Died"; readonly message: string }
  | { readonly _tag: "Purged" }

const questions = new WeakMap<object, Interrupt.Any>()

/** The interrupt that is answered by a run of the workflow: one for each definition, whose Schemas are compiled once. */
const questionOf = <N extends string, I, A, E, R>(workflow: Workflow.Workflow<N, I, A, E, R>): Interrupt.Any => {
  const known = questions.get(workflow)
  if (known !== undefined) return known
  const question = Interrupt.make(`child/${workflow.name}`, {
    payload: Schema.Struct({ run: Schema.String }),
    answer: Schema.Union(
      Schema.TaggedStruct("Succeeded", { value: workflow.success }),
      Schema.TaggedStruct("Failed", { error: workflow.error }),
      Schema.TaggedStruct("Cancelled", { reason: Schema.NullOr(Schema.String) }),
      Schema.TaggedStruct("Died", { message: Schema.String }),
      Schema.TaggedStruct("Purged", {})
    )
  })
  // Its codecs read what its own Schemas say.
  questions.set(workflow, question as unknown as Interrupt.Any)
  return question as unknown as Interrupt.Any
}
