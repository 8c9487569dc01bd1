/** A compiled graph: runs threads, answers their questions, shows and edits their state. Promises, as in LangGraph. */
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { applyWrites, type Values } from "./Channel.js"
import { type Command, END, INTERRUPT, isCommand, START } from "./Control.js"
import type { GraphPlane } from "./Fermata.js"
import {
  EmptyInputError,
  ForkRequired,
  type Interrupt,
  InvalidUpdateError,
  ResumeRefused,
  ThreadOfOtherGraph,
  ThreadStuck,
  GraphValueError
} from "./GraphError.js"
import { Attempt } from "./internal/Attempt.js"
import { onceEffect } from "./internal/Effects.js"
import { chosen, type Core, type NodeResult, normalised, outputOf, returned } from "./internal/Core.js"
import { runAlone, runNested } from "./internal/Nested.js"
import { currentScope, type NodeConfig } from "./internal/Scope.js"
import {
  type Answer,
  Mailbox,
  type Message,
  Question,
  type RunConfig,
  type Surroundings,
  workflowOf
} from "./internal/Thread.js"
import type { Asked, CheckpointView } from "./internal/View.js"
import { fromWire, toWire } from "./internal/Wire.js"

/** What runs of a graph may be given. */
export interface GraphConfig {
  readonly configurable?: {
    readonly thread_id?: string
    readonly checkpoint_id?: string
    /** FI: with an old `checkpoint_id`, go on from it on a new branch. */
    readonly fork?: boolean
    readonly [key: string]: unknown
  }
  readonly context?: unknown
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly tags?: ReadonlyArray<string>
  /** Supersteps of one run; 25 by default. */
  readonly recursionLimit?: number
  readonly interruptBefore?: ReadonlyArray<string> | "*"
  readonly interruptAfter?: ReadonlyArray<string> | "*"
  readonly signal?: AbortSignal
  /** Accepted for LangGraph's sake: every superstep is durable. */
  readonly durability?: "sync" | "async" | "exit"
}

export type StreamMode = "values" | "updates" | "custom"

export interface StreamConfig extends GraphConfig {
  readonly streamMode?: StreamMode | ReadonlyArray<StreamMode>
}

/** A thread at a checkpoint. */
export interface StateSnapshot<S> {
  readonly values: S
  readonly next: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<{
    readonly id: string
    readonly name: string
    readonly path: ReadonlyArray<unknown>
    readonly interrupts: ReadonlyArray<Interrupt>
    readonly error?: unknown
    readonly result?: unknown
  }>
  readonly metadata?: {
    readonly source: string
    readonly step: number
    readonly parents: object
    readonly thread_id: string
  }
  readonly config: { readonly configurable: Readonly<Record<string, unknown>> }
  readonly createdAt?: string
  readonly parentConfig?: { readonly configurable: Readonly<Record<string, unknown>> }
}

/** The output of a run; with questions that wait, they are listed. */
export type Output<S> = S & { [INTERRUPT]?: Array<Interrupt> }

type Input<U> = U | Command | null

export class CompiledGraph<S, U> {
  constructor(
    readonly core: Core,
    readonly plane: GraphPlane | undefined
  ) {}

  get name(): string {
    return this.core.name
  }

  /** The workflow that a thread is a run of, for a worker elsewhere. */
  get workflow() {
    return workflowOf(this.core, this.around)
  }

  /** Lets go of the plane: see `GraphPlane.close`. */
  async close(): Promise<void> {
    await this.plane?.close()
  }

  /** Runs until the thread rests: at its end, at a question, or at a breakpoint. */
  async invoke(input: Input<U>, config: GraphConfig = {}): Promise<Output<S>> {
    const scope = currentScope()
    if (scope !== undefined) return (await runNested(this.core, input, scope)) as Output<S>
    if (this.plane === undefined) return (await this.alone(input, config, {})) as Output<S>
    const { branch } = await this.deliver(this.plane, input, config)
    return this.outcome(this.plane, branch, config)
  }

  /** Runs one thread for each input. */
  batch(
    inputs: ReadonlyArray<Input<U>>,
    config: GraphConfig | ReadonlyArray<GraphConfig> = {}
  ): Promise<ReadonlyArray<Output<S>>> {
    return Promise.all(
      inputs.map((input, i) => this.invoke(input, Array.isArray(config) ? config[i] : (config as GraphConfig)))
    )
  }

  /**
   * Runs as `invoke` does, and tells what happens. Chunks are told as it happens, before it is durable: what is durable is
   * what `getState` shows.
   */
  async stream(input: Input<U>, config: StreamConfig = {}): Promise<AsyncGenerator<unknown>> {
    const modes: ReadonlyArray<StreamMode> = Array.isArray(config.streamMode)
      ? (config.streamMode as ReadonlyArray<StreamMode>)
      : [(config.streamMode ?? "updates") as StreamMode]
    const chunks: Array<unknown> = []
    let wake: (() => void) | undefined
    const say = (mode: StreamMode, chunk: unknown) => {
      if (!modes.includes(mode)) return
      chunks.push(Array.isArray(config.streamMode) ? [mode, chunk] : chunk)
      wake?.()
    }
    const told = {
      result: (name: string, result: NodeResult) => {
        if (name !== START)
          say("updates", {
            [name]: this.core.entrypoint === undefined ? result.update : new Map(result.writes).get(returned)
          })
      },
      state: (values: Values) => say("values", outputOf(this.core, values))
    }
    const run = async (): Promise<void> => {
      const { core, plane } = this
      if (plane === undefined) {
        await this.alone(input, config, told, (chunk) => say("custom", chunk))
        return
      }
      let live: { readonly branch: string; readonly after: number } | undefined
      const early: Array<() => void> = []
      const listener: Parameters<typeof plane.listeners.add>[0] = (branch, event) => {
        const heard = () => {
          if (live === undefined || branch !== live.branch) return
          if (event._tag === "Custom") return say("custom", event.chunk)
          // What is told again on replay was heard before.
          if (event.checkpoint <= live.after) return
          if (event._tag === "Result") told.result(event.name, event.result)
          else told.state(event.values)
        }
        if (live === undefined) early.push(heard)
        else heard()
      }
      plane.listeners.add(listener)
      try {
        const before = await this.find(plane, config, true)
        const delivered = await this.deliver(plane, input, config)
        const after = before?.head.interrupt.split("#")[1] ?? "0"
        live = { branch: delivered.branch, after: delivered.branch === before?.branch ? Number(after) : 0 }
        for (const one of early) one()
        await this.rested(plane, delivered.branch, config.signal)
        const found = await this.read(plane, delivered.branch)
        const waiting = questionsOf(found)
        if (waiting.length > 0 && core.entrypoint === undefined) {
          say("updates", { [INTERRUPT]: waiting })
          say("values", { [INTERRUPT]: waiting })
        } else if (waiting.length > 0) say("updates", { [INTERRUPT]: waiting })
        else if (found.payload.rest?._tag === "Break") say("updates", { [INTERRUPT]: [] })
        this.throwFailure(plane, found)
      } finally {
        plane.listeners.delete(listener)
      }
    }
    let over: { readonly error?: unknown } | undefined
    const running = run().then(
      () => (over = {}),
      (error: unknown) => (over = { error })
    )
    return (async function* () {
      for (;;) {
        while (chunks.length > 0) yield chunks.shift()
        if (over !== undefined) break
        await Promise.race([running, new Promise<void>((resolve) => (wake = resolve))])
      }
      if (over.error !== undefined) throw over.error
    })()
  }

  /** The thread as it stands, or at the checkpoint that the config names. */
  async getState(config: GraphConfig): Promise<StateSnapshot<S>> {
    const plane = this.required()
    const found = await this.find(plane, config, false)
    if (found === undefined)
      return { values: {} as S, next: [], tasks: [], config: { configurable: { ...config.configurable } } }
    return this.snapshot(found, config.configurable?.checkpoint_id === undefined)
  }

  /** The thread's checkpoints over all its branches, newest first. */
  async *getStateHistory(
    config: GraphConfig,
    options: { readonly limit?: number; readonly before?: GraphConfig } = {}
  ): AsyncGenerator<StateSnapshot<S>> {
    const plane = this.required()
    const run = threadOf(config)
    const branches = await plane.run(
      Effect.flatMap(Client.Client, (client) => client.branches(run)).pipe(
        Effect.catchTag("RunNotFound", () => Effect.succeed([]))
      )
    )
    let left = options.limit ?? Infinity
    const until = options.before?.configurable?.checkpoint_id
    let begun = until === undefined
    for (const { branch } of branches.toReversed()) {
      const all = await plane.checkpoints(branch)
      for (const [i, head] of [...all.entries()].toReversed()) {
        if (head.branch !== branch || (head.payload.step < -1 && i === 0)) continue
        if (begun && left-- <= 0) return
        if (begun) yield this.snapshot({ branch, head, all }, i === all.length - 1)
        begun ||= head.id === until
      }
    }
  }

  /** Writes into the thread as if `asNode` had, and leaves it at rest. At an old checkpoint this makes a new branch. */
  async updateState(
    config: GraphConfig,
    values: unknown,
    asNode?: string
  ): Promise<{ readonly configurable: Readonly<Record<string, unknown>> }> {
    return this.bulkUpdateState(config, [{ updates: [{ values, ...(asNode === undefined ? {} : { asNode }) }] }])
  }

  /** Several updates, each list in one superstep. */
  async bulkUpdateState(
    config: GraphConfig,
    supersteps: ReadonlyArray<{
      readonly updates: ReadonlyArray<{ readonly values: unknown; readonly asNode?: string }>
    }>
  ): Promise<{ readonly configurable: Readonly<Record<string, unknown>> }> {
    const plane = this.required()
    let at = config
    for (const { updates } of supersteps) {
      const found = await this.find(plane, at, true)
      const results: Array<{ readonly name: string; readonly result: unknown }> = []
      for (const { asNode, values } of updates) {
        const name = asNode ?? lastWriter(this.core, found)
        if (name !== START && name !== END && !this.core.nodes.has(name))
          throw new InvalidUpdateError(`Node "${name}" does not exist`)
        const held = found === undefined ? {} : (fromWire(found.head.values) as Values)
        const attempt = new Attempt(new Map(), false)
        const scope = {
          attempt,
          path: "",
          counts: new Map<string, number>(),
          config: this.configOf("", name, runConfig(config), attempt.abort.signal)
        }
        const result =
          name === END
            ? normalised(this.core, values)
            : await chosen(this.core, name, held, normalised(this.core, values), scope)
        results.push({ name: name === END ? "" : name, result: toWire(result) })
      }
      const message: Message = { _tag: "Update", updates: results, go: false, config: runConfig(config) }
      const branch = await this.beginOrSend(plane, found, message, config, true)
      await this.rested(plane, branch)
      const head = await this.read(plane, branch)
      this.throwFailure(plane, head)
      at = { configurable: { ...config.configurable, checkpoint_id: head.id } }
    }
    return { configurable: { checkpoint_ns: "", ...at.configurable } }
  }

  /**
   * Says what became of an effect that is in doubt, which `ThreadStuck` names by its key; the thread goes on. That it did not
   * happen is a promise: it cannot happen any more, either.
   */
  async settle(
    config: GraphConfig,
    key: string,
    settlement: { readonly happened: unknown } | { readonly didNotHappen: true }
  ): Promise<void> {
    const plane = this.required()
    await plane.serve(this.core, this.around, threadOf(config))
    const branches = await plane.run(Effect.flatMap(Client.Client, (client) => client.branches(threadOf(config))))
    const stuck = branches.find(({ problems }) => problems.some((problem) => "key" in problem && problem.key === key))
    if (stuck === undefined) throw new GraphValueError(`No effect ${key} of this thread is in doubt`)
    await plane.run(
      Effect.flatMap(Client.Client, (client) =>
        client.settle(onceEffect, {
          branch: stuck.branch,
          key,
          settlement:
            "happened" in settlement
              ? { _tag: "Happened", value: toWire(settlement.happened) }
              : { _tag: "DidNotHappen" }
        })
      )
    )
  }

  // ── Delivering ──────────────────────────────────────────────────────────────────────────────────────────

  private async deliver(plane: GraphPlane, input: Input<U>, config: GraphConfig): Promise<{ readonly branch: string }> {
    if ((config.recursionLimit ?? 25) < 1) throw new GraphValueError(`"recursionLimit" must be at least 1`)
    const found = await this.find(plane, config, true)
    const known = found !== undefined && found.head.payload.step >= -1
    const run = runConfig(config)
    if (isCommand(input)) {
      const hasUpdate = input.update !== undefined || input.goto.length > 0
      const result = hasUpdate ? toWire(normalised(this.core, { ...input, lg_name: "Command" })) : undefined
      if ("resume" in input) {
        if (!known) throw new ResumeRefused("none", "No thread waits for this answer: nothing was started", [])
        return this.answer(plane, found, input, result, config)
      }
      if (result === undefined && input.fork !== true) throw new EmptyInputError("Received a Command that says nothing")
      const message: Message =
        result === undefined
          ? { _tag: "Continue", config: run }
          : { _tag: "Update", updates: [{ name: "", result }], go: true, config: run }
      return { branch: await this.beginOrSend(plane, found, message, config, input.fork === true, input) }
    }
    const fork = config.configurable?.fork === true
    if (input === null || input === undefined) {
      if (!known)
        throw new EmptyInputError("Received no input: this thread has not begun, so there is nothing to go on with")
      const { rest } = found.head.payload
      // Questions are asked again by showing them; what is over is over.
      if (this.isHead(found) && !fork && (rest === null || rest._tag === "Done")) return { branch: found.branch }
      return { branch: await this.send(plane, found, { _tag: "Continue", config: run }, config, fork) }
    }
    const message: Message = { _tag: "Input", input: toWire(input), config: run }
    return { branch: await this.beginOrSend(plane, found, message, config, fork) }
  }

  private isHead(found: Found): boolean {
    return found.all.at(-1)?.id === found.head.id
  }

  /** A thread that is not there yet begins with the message; whoever is second puts it into the mailbox. */
  private async beginOrSend(
    plane: GraphPlane,
    found: Found | undefined,
    message: Message,
    config: GraphConfig,
    fork: boolean,
    command?: Command
  ): Promise<string> {
    if (found !== undefined) return this.send(plane, found, message, config, fork, command)
    const run = threadOf(config)
    const begun = await plane.run(
      Effect.flatMap(Client.Client, (client) =>
        client
          .start(this.workflow, { message, delivery: command?.deliveryId ?? randomUUID() }, { run })
          .pipe(Effect.catchTag("RunConflict", () => Effect.succeed(undefined)))
      )
    )
    if (begun !== undefined) return begun.branch
    const now = await this.find(plane, config, true)
    if (now === undefined) throw new ThreadStuck(`Thread ${run} did not begin`)
    return this.send(plane, now, message, config, fork, command)
  }

  /** Puts a message into the thread's mailbox, or into that of an old checkpoint on a new branch. */
  private async send(
    plane: GraphPlane,
    found: Found,
    message: Message,
    config: GraphConfig,
    fork: boolean,
    command?: Command
  ): Promise<string> {
    const { branch, head } = found
    const old = !this.isHead(found)
    if (old && !fork) throw new ForkRequired(head.id, found.all.at(-1)?.id ?? "")
    const forkId = command?.forkId ?? randomUUID()
    const receipt = await plane.run(
      Effect.flatMap(Client.Client, (client) =>
        client.resume(Mailbox, {
          branch,
          interrupt: head.interrupt,
          value: message,
          deliveryId: command?.deliveryId ?? randomUUID(),
          ...(old || command?.fork === true || config.configurable?.fork === true
            ? { intent: "fork", forkId }
            : { intent: "retry" })
        })
      )
    )
    return receipt._tag === "Forked" ? receipt.branch : branch
  }

  private async answer(
    plane: GraphPlane,
    found: Found,
    command: Command,
    update: unknown,
    config: GraphConfig
  ): Promise<{ readonly branch: string }> {
    const fork = command.fork === true || config.configurable?.fork === true
    if (!this.isHead(found) && !fork) throw new ForkRequired(found.head.id, found.all.at(-1)?.id ?? "")
    const all = found.all.flatMap(({ asked }) => asked)
    const pending = fork ? found.head.asked : all.filter(({ open }) => open)
    const ids = pending.map(({ id }) => id)
    const { resume } = command
    const addressed =
      typeof resume === "object" &&
      resume !== null &&
      !Array.isArray(resume) &&
      Object.keys(resume).length > 0 &&
      Object.keys(resume).every((key) => /^[0-9a-f]{32}$/.test(key))
        ? Object.entries(resume)
        : undefined
    if (addressed === undefined && pending.length !== 1)
      throw pending.length === 0
        ? new ResumeRefused("none", "Nothing waits for an answer on this thread. Nothing changed", ids)
        : new ResumeRefused(
            "ambiguous",
            `${pending.length} questions wait: say which by Command({ resume: { [id]: answer } }). Nothing changed`,
            ids
          )
    const answers = (addressed ?? [[ids[0] ?? "", resume]]).map(([id, value]) => {
      const asked = pending.find((one) => one.id === id)
      if (asked !== undefined) return { asked, value }
      throw all.some((one) => one.id === id)
        ? new ResumeRefused("answered", `The question ${id} has its answer. Nothing changed`, ids)
        : new ResumeRefused("unknown", `No question ${id} waits on this thread. Nothing changed`, ids)
    })
    let { branch } = found
    let forked = !fork
    for (const [i, { asked, value }] of answers.toSorted((a, b) => b.asked.seq - a.asked.seq).entries()) {
      const answer: Answer = { value: toWire(value), ...(i === 0 && update !== undefined ? { update } : {}) }
      const receipt = await plane
        .run(
          Effect.flatMap(Client.Client, (client) =>
            client.resume(Question, {
              branch,
              interrupt: asked.interrupt,
              value: answer,
              deliveryId: command.deliveryId === undefined ? randomUUID() : `${command.deliveryId}-${asked.id}`,
              ...(forked ? { intent: "retry" } : { intent: "fork", forkId: command.forkId ?? randomUUID() })
            })
          )
        )
        .catch((error: unknown) => {
          const tag = typeof error === "object" && error !== null && "_tag" in error ? error._tag : undefined
          throw tag === "AlreadyConsumed" || tag === "InterruptClosed"
            ? new ResumeRefused("answered", `The question ${asked.id} has its answer. Nothing changed`, ids, error)
            : error
        })
      if (receipt._tag === "Forked") branch = receipt.branch
      forked = true
    }
    return { branch }
  }

  // ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

  private required(): GraphPlane {
    if (this.plane === undefined) throw new GraphValueError("No checkpointer set", { code: "MISSING_CHECKPOINTER" })
    return this.plane
  }

  /** The branch and checkpoint that a config means: the newest branch's head, unless it names another. */
  private async find(plane: GraphPlane, config: GraphConfig, settle: boolean): Promise<Found | undefined> {
    const run = threadOf(config)
    await plane.serve(this.core, this.around, run)
    const branches = await plane.run(
      Effect.flatMap(Client.Client, (client) => client.branches(run)).pipe(
        Effect.catchTag("RunNotFound", () => Effect.succeed([]))
      )
    )
    const newest = branches.at(-1)
    if (newest === undefined) return undefined
    if (newest.workflow !== `graph/${this.core.name}` || newest.version !== this.core.version)
      throw new ThreadOfOtherGraph(
        `Thread ${run} is of ${newest.workflow}@${newest.version}, not of graph/${this.core.name}@${this.core.version}: give the graph the name and version that it had`
      )
    const id = config.configurable?.checkpoint_id
    const named =
      id === undefined ? newest : branches.find(({ branch }) => branch.endsWith(`/${id.slice(id.indexOf("-") + 1)}`))
    if (named === undefined) throw new GraphValueError(`Thread ${run} has no checkpoint ${id ?? ""}`)
    if (settle) await this.rested(plane, named.branch)
    const all = await plane.checkpoints(named.branch)
    const head = id === undefined ? all.at(-1) : all.find((one) => one.id === id)
    if (head === undefined) {
      if (id !== undefined) throw new GraphValueError(`Thread ${run} has no checkpoint ${id}`)
      return undefined
    }
    return { branch: named.branch, head, all }
  }

  private async read(plane: GraphPlane, branch: string): Promise<CheckpointView> {
    return (await plane.checkpoints(branch)).at(-1) as CheckpointView
  }

  private async rested(plane: GraphPlane, branch: string, signal?: AbortSignal): Promise<void> {
    const { problems, status } = await plane.run(
      Effect.flatMap(Client.Client, (client) =>
        client.awaitStatus(
          branch,
          ({ status, waitingFor }) =>
            (status === "waiting" && waitingFor.every(({ _tag }) => _tag === "Answer")) ||
            status === "stuck" ||
            status === "failed" ||
            status === "completed" ||
            status === "cancelled"
        )
      ),
      signal
    )
    if (status !== "waiting")
      throw new ThreadStuck(
        `Thread ${branch} is ${status}: ${problems.map(({ message }) => message).join("; ") || (await this.defect(plane, branch))}`,
        problems
      )
  }

  /** Why a thread ended, which no graph makes it do: its last entry says so. */
  private async defect(plane: GraphPlane, branch: string): Promise<string> {
    const last = (await plane.run(Effect.flatMap(Client.Client, (client) => client.history(branch)))).at(-1)
    return last === undefined ? "" : `${last.kind} ${last.payload.slice(0, 500)}`
  }

  private async outcome(plane: GraphPlane, branch: string, config: GraphConfig): Promise<Output<S>> {
    await this.rested(plane, branch, config.signal)
    const head = await this.read(plane, branch)
    this.throwFailure(plane, head)
    const output = outputOf(this.core, this.valuesOf(head, true))
    const waiting = questionsOf(head)
    if (waiting.length > 0)
      return { ...(this.core.entrypoint === undefined ? (output as object) : {}), [INTERRUPT]: waiting } as Output<S>
    if (head.payload.rest?._tag === "Break") return { ...(output as object), [INTERRUPT]: [] } as unknown as Output<S>
    return output as Output<S>
  }

  private throwFailure(plane: GraphPlane, head: CheckpointView): void {
    const { rest } = head.payload
    const failure = rest?._tag === "Failed" ? rest.errors[0] : undefined
    if (failure === undefined) return
    const key = `${head.branch}|${failure.task}`
    throw plane.errors.has(key) ? plane.errors.get(key) : fromWire(failure.error)
  }

  /** Values with what finished tasks wrote, as the next superstep will see them. */
  private valuesOf(head: CheckpointView, pending: boolean): Values {
    const values = fromWire(head.values) as Values
    if (!pending || head.results.size === 0) return values
    const writes = head.payload.tasks.flatMap(({ id }) => head.results.get(id)?.writes ?? [])
    return applyWrites(this.core.topology.channels, values, writes)
  }

  private snapshot({ all, head }: Found, pending: boolean): StateSnapshot<S> {
    const { payload } = head
    const thread = head.branch.slice(0, head.branch.lastIndexOf("/"))
    const configOf = (id: string) => ({ configurable: { thread_id: thread, checkpoint_ns: "", checkpoint_id: id } })
    const parent = all[all.indexOf(head) - 1]
    const errors = payload.rest?._tag === "Failed" ? payload.rest.errors : []
    return {
      values: (outputOf(
        { ...this.core, output: Object.keys(this.core.topology.channels) },
        this.valuesOf(head, pending)
      ) ?? {}) as S,
      next: payload.tasks.filter(({ id }) => !pending || !head.results.has(id)).map(({ name }) => name),
      tasks: payload.tasks.map(({ id, name, path }) => {
        const error = errors.find(({ task }) => task === id)
        const result = head.results.get(id)
        return {
          id,
          name,
          path,
          interrupts: head.asked
            .filter(({ task }) => task === id)
            .map(({ id, value }) => ({ id, value: fromWire(value) })),
          ...(error === undefined ? {} : { error: fromWire(error.error) }),
          ...(result === undefined ? {} : { result: result.update })
        }
      }),
      metadata: { source: payload.source, step: payload.step, parents: {}, thread_id: thread },
      config: configOf(head.id),
      createdAt: new Date(head.at).toISOString(),
      ...(parent === undefined || parent.payload.step < -1 ? {} : { parentConfig: configOf(parent.id) })
    }
  }

  // ── Running ─────────────────────────────────────────────────────────────────────────────────────────────

  private coreOf(branch: string): Core {
    return this.plane?.coreOf(`${this.core.name}@${this.core.version}`, branch) ?? this.core
  }

  private readonly configOf = (branch: string, name: string, run: RunConfig, signal: AbortSignal): NodeConfig => {
    const { store } = this.coreOf(branch)
    return {
      configurable: { ...run.configurable },
      ...(run.context === undefined ? {} : { context: run.context }),
      metadata: run.metadata,
      tags: run.tags,
      recursionLimit: run.recursionLimit,
      runName: name,
      ...(store === undefined ? {} : { store }),
      signal,
      writer: (chunk) => {
        for (const listener of this.plane?.listeners ?? []) listener(branch, { _tag: "Custom", chunk })
      },
      interrupt: () => {
        throw new GraphValueError("Import interrupt from @fermata/adapters/langgraph")
      }
    }
  }

  private readonly around: Surroundings = {
    coreOf: (branch) => this.coreOf(branch),
    configOf: (branch, name, run, signal) =>
      this.configOf(
        branch,
        name,
        { ...run, configurable: fromWire(run.configurable) as RunConfig["configurable"] },
        signal
      ),
    failed: (branch, task, error) => this.plane?.errors.set(`${branch}|${task}`, error),
    told: (branch, event) => {
      for (const listener of this.plane?.listeners ?? []) listener(branch, event)
    }
  }

  private async alone(
    input: Input<U>,
    config: GraphConfig,
    told: Parameters<typeof runAlone>[3],
    writer?: (chunk: unknown) => void
  ): Promise<unknown> {
    if (input === null || input === undefined) throw new EmptyInputError("Received no input")
    const node = this.configOf("", this.name, runConfig(config), config.signal ?? new AbortController().signal)
    return runAlone(this.core, input, { ...node, ...(writer === undefined ? {} : { writer }) }, told)
  }
}

interface Found {
  readonly branch: string
  readonly head: CheckpointView
  readonly all: ReadonlyArray<CheckpointView>
}

const threadOf = (config: GraphConfig): string => {
  const id = config.configurable?.thread_id
  if (id === undefined)
    throw new GraphValueError(`A graph with a checkpointer needs a thread: { configurable: { thread_id: "..." } }`)
  return id
}

/** What of a config goes with the thread; what cannot be stored stays out of it. */
const runConfig = (config: GraphConfig): RunConfig => {
  const { checkpoint_id: _, fork: __, ...configurable } = config.configurable ?? {}
  return {
    configurable: Object.fromEntries(Object.entries(configurable).map(([key, value]) => [key, toWire(value)])),
    metadata: { ...config.metadata },
    ...(config.context === undefined ? {} : { context: toWire(config.context) }),
    tags: [...(config.tags ?? [])],
    recursionLimit: config.recursionLimit ?? 25,
    ...(config.interruptBefore === undefined ? {} : { interruptBefore: config.interruptBefore }),
    ...(config.interruptAfter === undefined ? {} : { interruptAfter: config.interruptAfter })
  }
}

const questionsOf = (head: CheckpointView): ReadonlyArray<Interrupt> =>
  head.asked.filter(({ open }: Asked) => open).map(({ id, value }) => ({ id, value: fromWire(value) }))

const lastWriter = (core: Core, found: Found | undefined): string => {
  const at = found === undefined ? -1 : found.all.indexOf(found.head)
  for (let i = at - 1; i >= 0; i--) {
    const ran = found?.all[i]?.payload.tasks ?? []
    if (ran.length > 1) throw new InvalidUpdateError('Ambiguous update, specify "asNode"')
    const one = ran[0]
    if (one !== undefined) return one.name
  }
  const only = [...core.nodes.keys()]
  if (only.length === 1 && only[0] !== undefined) return only[0]
  return START
}
