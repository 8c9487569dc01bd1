/**
 * A thread: a run whose workflow is the graph's loop. Between supersteps stands a checkpoint, which is the opening of
 * the thread's mailbox: an interrupt named `$input`. Whoever wants something of the thread answers it, and whoever wants
 * another branch answers an old one by a fork. So consume-once (CO), fork intent (FI) and durable delivery are those of
 * interrupts, and a checkpoint is a position of the ledger.
 *
 * A node is a step, `node/<name>#n`. It begins only when all before it is durable. `interrupt()` in it becomes an
 * interrupt named `interrupt`; the step runs again from its top when an answer came.
 */
import { Interrupt, Node, Workflow } from "@fermata/runtime"
import { Effect, Either, Fiber, Schema } from "effect"
import { deltaOf, type Values } from "../Channel.js"
import { START } from "../Control.js"
import { Attempt, type Ask, type Note, type Segment } from "./Attempt.js"
import { breaksAt, type Core, type NodeResult, retries, retryDelay, runNode, saved } from "./Core.js"
import { declared, type Perform, performer } from "./Effects.js"
import { tooManySteps } from "./Nested.js"
import { advance, initialState, interruptId, type State, type Task, withInput } from "./Plan.js"
import type { NodeConfig } from "./Scope.js"
import { errorToWire, fromWire, toWire } from "./Wire.js"

/** The part of a caller's config that goes with the thread. Wire data. */
export interface RunConfig {
  readonly configurable: Readonly<Record<string, unknown>>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly context?: unknown
  readonly tags: ReadonlyArray<string>
  readonly recursionLimit: number
  readonly interruptBefore?: ReadonlyArray<string> | "*"
  readonly interruptAfter?: ReadonlyArray<string> | "*"
}

/** What a thread is asked to do. */
export type Message =
  | { readonly _tag: "Input"; readonly input: unknown; readonly config: RunConfig }
  | { readonly _tag: "Continue"; readonly config: RunConfig }
  /** An update from outside; with `go` the thread runs on, without it rests. */
  | {
      readonly _tag: "Update"
      readonly updates: ReadonlyArray<{ readonly name: string; readonly result: unknown }>
      readonly go: boolean
      readonly config: RunConfig
    }

/** Why a thread rests. */
export type Rest =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Break" }
  | { readonly _tag: "Failed"; readonly errors: ReadonlyArray<{ readonly task: string; readonly error: unknown }> }

/** What the opening of a mailbox says: the checkpoint. */
export interface CheckpointPayload {
  readonly source: "input" | "loop" | "update" | "fork"
  readonly step: number
  readonly delta: unknown
  readonly tasks: ReadonlyArray<{ readonly id: string; readonly name: string; readonly path: Task["path"] }>
  readonly rest: Rest | null
}

/** A question of a node, as the ledger keeps it. */
export interface QuestionPayload {
  readonly id: string
  readonly task: string
  readonly path: string
  readonly value: unknown
}

/** An answer; an update that comes with it is applied before the node sees it, in the same entry. */
export interface Answer {
  readonly value: unknown
  readonly update?: unknown
}

export const Mailbox = Interrupt.make("$input", { payload: Schema.Unknown, answer: Schema.Unknown })
export const Question = Interrupt.make("interrupt", {
  payload: Schema.Unknown,
  answer: Schema.Struct({ value: Schema.Unknown, update: Schema.optionalWith(Schema.Unknown, { exact: true }) })
})

/** What the process around a thread lends it: nothing that it decides by. */
export interface Surroundings {
  /** The graph whose functions run: of several that were compiled alike, the one that the thread was last called by. */
  readonly coreOf: (branch: string) => Core
  readonly configOf: (branch: string, name: string, run: RunConfig, abort: AbortSignal) => NodeConfig
  readonly failed: (branch: string, task: string, error: unknown) => void
  readonly told: (branch: string, event: ThreadEvent) => void
}

/** What a thread tells while it runs; on replay it tells it again, with the same `checkpoint`. */
export type ThreadEvent =
  | { readonly _tag: "Result"; readonly checkpoint: number; readonly name: string; readonly result: NodeResult }
  | { readonly _tag: "State"; readonly checkpoint: number; readonly values: Values }

export const workflowOf = (core: Pick<Core, "name" | "version">, around: Surroundings) =>
  Workflow.make(`graph/${core.name}`, { version: core.version, input: Beginning }, ({ message }) =>
    // Only this package's threads are begun with a message, and it checks what it is given.
    thread(around, message as Message | undefined)
  )

/** What a thread begins with: its first message, and what names the delivery. */
const Beginning = Schema.Struct({ message: Schema.Unknown, delivery: Schema.String })

const emptyRun: RunConfig = { configurable: {}, metadata: {}, tags: [], recursionLimit: 25 }

const thread = (around: Surroundings, first: Message | undefined) =>
  Effect.gen(function* () {
    const { branch } = yield* Workflow.current
    const core = around.coreOf(branch)
    /** Attempts of this residency, and what each task is known to have done. */
    const attempts = new Map<string, Attempt>()
    const notes = new Map<string, Map<string, Note>>()
    const done = new Map<string, NodeResult>()
    let state: State = initialState(core.topology)
    let run = emptyRun
    let stored: Values = {}
    let source: CheckpointPayload["source"] = "input"
    let checkpoint = 0
    let busy = 0
    let idle = yield* Effect.makeLatch(true)

    const execute = async (task: string, segment: number, perform: Perform): Promise<Segment> => {
      const found = state.tasks.find(({ id }) => id === task)
      if (found === undefined) throw new Error(`no task ${task} runs`)
      const known = notes.get(task) ?? new Map<string, Note>()
      const live = attempts.get(task)
      if (live !== undefined && live.segment === segment && live.abort.signal.aborted === false) {
        live.performBy(perform)
        live.feed(known)
        return live.next()
      }
      const attempt = new Attempt(known, true)
      // The number goes on from what is recorded: it names the step, not this execution.
      attempt.segment = segment
      attempt.performBy(perform)
      attempts.set(task, attempt)
      const config = around.configOf(branch, found.name, run, attempt.abort.signal)
      // A copy: what a node does to its input is its own affair.
      const values = fromWire(toWire(state.values)) as Values
      const own = {
        ...found,
        ...(found.args === undefined ? {} : { args: { value: fromWire(toWire(found.args.value)) } })
      }
      attempt.start(
        async () =>
          toWire(
            await runNode(around.coreOf(branch), own, values, {
              attempt,
              path: "",
              config,
              counts: new Map(),
              previous: values[saved]
            })
          ),
        (error) => retries(core.nodes.get(found.name)?.retry, error)
      )
      const ended = await attempt.next()
      if (attempt.thrown !== undefined) around.failed(branch, task, attempt.thrown.error)
      return ended
    }

    const nodes = new Map([START, ...core.nodes.keys()].map((name) => [name, stepOf(name, execute)]))

    const open = (rest: Rest | null) =>
      Effect.suspend(() => {
        checkpoint++
        const payload: CheckpointPayload = {
          source,
          step: state.step,
          delta: toWire(deltaOf(stored, state.values, core.topology.channels)),
          tasks: state.tasks.map(({ id, name, path }) => ({ id, name, path })),
          rest
        }
        stored = state.values
        return Effect.map(Mailbox(payload), (message) => message as Message)
      })

    const runTask = (task: Task) =>
      Effect.gen(function* () {
        const finished = done.get(task.id)
        if (finished !== undefined) return { task, result: finished }
        const known = notes.get(task.id) ?? new Map<string, Note>()
        notes.set(task.id, known)
        const asked = new Map<string, Fiber.RuntimeFiber<unknown>>()
        const node = nodes.get(task.name)
        if (node === undefined)
          return { task, error: errorToWire(new Error(`Invalid node name "${task.name}" in Send packet`)) }
        let attempt = 1
        let segment = 0
        yield* enter
        for (;;) {
          const ended = (yield* node({ task: task.id, segment })) as Segment
          segment++
          if ("notes" in ended) for (const [path, note] of ended.notes) known.set(path, note)
          if (ended._tag === "Done") {
            yield* leave
            const result = fromWire(ended.value) as NodeResult
            done.set(task.id, result)
            around.told(branch, { _tag: "Result", checkpoint, name: task.name, result })
            return { task, result }
          }
          if (ended._tag === "Failed") {
            const delay = ended.retry ? retryDelay(core.nodes.get(task.name)?.retry, attempt) : undefined
            for (const [path, note] of known) if (note._tag === "Failed") known.delete(path)
            attempts.delete(task.id)
            if (delay === undefined) {
              yield* leave
              return { task, error: ended.error }
            }
            yield* Effect.sleep(delay)
            attempt++
          }
          if (ended._tag === "Asks") {
            attempts.delete(task.id)
            for (const ask of ended.asks)
              if (!asked.has(ask.path)) asked.set(ask.path, yield* Effect.fork(question(task, ask)))
            yield* leave
            const [path, answer] = yield* Effect.raceAll(
              ended.asks.map(({ path }) =>
                Effect.map(
                  Fiber.join(asked.get(path) as Fiber.RuntimeFiber<unknown>),
                  (answer) => [path, answer as Answer] as const
                )
              )
            )
            yield* enter
            known.set(path, { _tag: "Answer", value: answer.value })
            if (answer.update !== undefined) {
              const { goto, sends, writes } = fromWire(answer.update) as NodeResult
              const others = state.tasks
              state = {
                ...advance(core.topology, state, `${branch}`, [{ name: "", result: { goto, sends, writes } }], others),
                step: state.step,
                tasks: others
              }
            }
          }
        }
      })

    const question = (task: Task, { path, value }: Ask) =>
      Question({ id: interruptId(task.id, path), task: task.id, path, value } satisfies QuestionPayload)

    const enter = Effect.suspend(() => {
      busy++
      return idle.close
    })
    const leave = Effect.suspend(() => {
      busy--
      return busy === 0 ? idle.open : Effect.void
    })

    /** Runs what is planned until all of it ended, or until a message comes while it only waits. */
    const superstep = Effect.gen(function* () {
      const [only, ...others] = state.tasks
      const tasks = yield* Effect.fork(
        only !== undefined && others.length === 0
          ? Effect.map(runTask(only), (result) => [result])
          : Effect.forEach(state.tasks, runTask, { concurrency: "unbounded" })
      )
      let taken: Message | undefined
      const mailbox = yield* Effect.fork(
        Effect.gen(function* () {
          let message = yield* open(null)
          while (message._tag === "Continue") message = yield* open(null)
          taken = message
          // A node that was let loose by an answer ends first: what was accepted is not thrown away.
          if (busy > 0) yield* idle.await
          yield* Fiber.interrupt(tasks)
        })
      )
      const ended = yield* Fiber.await(tasks)
      if (taken !== undefined) {
        yield* Fiber.await(mailbox)
        return { _tag: "Message", message: taken } as const
      }
      yield* Fiber.interrupt(mailbox)
      return { _tag: "Ended", results: yield* ended } as const
    })

    const moveOn = (
      from: State,
      ran: ReadonlyArray<{ readonly name: string; readonly result: NodeResult }>
    ): Either.Either<State, unknown> => {
      try {
        return Either.right(advance(core.topology, from, "", ran))
      } catch (refused) {
        return Either.left(refused)
      }
    }

    let next = first
    let rest: Rest = { _tag: "Done" }
    for (;;) {
      const message: Message = next ?? (yield* open(rest))
      next = undefined
      let fresh = true
      run = message.config
      if (message._tag === "Input") {
        source = "input"
        state = withInput(state, "", fromWire(message.input))
      } else if (message._tag === "Update") {
        source = "update"
        const ran = message.updates.map(({ name, result }) => ({ name, result: fromWire(result) as NodeResult }))
        const moved = moveOn(state, ran)
        if (moved._tag === "Left") {
          rest = { _tag: "Failed", errors: [{ task: "", error: errorToWire(moved.left) }] }
          continue
        }
        state = moved.right
        rest = { _tag: state.tasks.length === 0 ? "Done" : "Break" }
        if (!message.go) continue
      } else fresh = false
      const before = run.interruptBefore ?? core.interruptBefore
      const after = run.interruptAfter ?? core.interruptAfter
      rest = { _tag: "Done" }
      for (let ran = 0; ; ran++) {
        if (ran > run.recursionLimit) {
          const error = errorToWire(tooManySteps(run.recursionLimit))
          rest = { _tag: "Failed", errors: [{ task: "", error }] }
          break
        }
        if (state.tasks.length === 0) break
        if ((fresh || ran > 0) && breaksAt(before, state.tasks)) {
          rest = { _tag: "Break" }
          break
        }
        busy = 0
        idle = yield* Effect.makeLatch(true)
        const ended = yield* superstep
        if (ended._tag === "Message") {
          next = ended.message
          break
        }
        const errors = ended.results.flatMap(({ task, ...how }) =>
          "error" in how ? [{ task: task.id, error: how.error }] : []
        )
        if (errors.length > 0) {
          rest = { _tag: "Failed", errors }
          break
        }
        const results = ended.results.flatMap(({ task, ...how }) =>
          "result" in how ? [{ name: task.name, result: how.result }] : []
        )
        const ranTasks = state.tasks
        const moved = moveOn(state, results)
        if (moved._tag === "Left") {
          // CV: what the channels refuse is not kept; the checkpoint before it stands, and the nodes may run again.
          done.clear()
          rest = { _tag: "Failed", errors: [{ task: "", error: errorToWire(moved.left) }] }
          break
        }
        source = "loop"
        state = results.some(({ result }) => result.parent === true) ? { ...state, tasks: [] } : moved.right
        for (const keep of [attempts, notes, done]) keep.clear()
        around.told(branch, { _tag: "State", checkpoint, values: state.values })
        if (breaksAt(after, ranTasks)) {
          rest = { _tag: state.tasks.length === 0 ? "Done" : "Break" }
          break
        }
      }
    }
  })

// Once for all threads: a Schema is compiled when it is first seen.
const StepInput = Schema.Struct({ task: Schema.String, segment: Schema.Number })

const stepOf = (name: string, execute: (task: string, segment: number, perform: Perform) => Promise<Segment>) =>
  Node.make(
    `node/${name.replaceAll("#", "%23")}`,
    {
      input: StepInput,
      success: Schema.Unknown,
      effects: declared,
      undeclared: true
    },
    ({ segment, task }) =>
      Effect.flatMap(performer, (perform) =>
        Effect.promise<unknown>(async () => ({ ...(await execute(task, segment, perform)), task }))
      )
  )
