/**
 * A front for a stock compiled graph that does what a checkpointer cannot: answers are addressed and consumed once, in the
 * store, before any node runs (CO); branching off is asked for (FI) and gives each branch its own value (FD); a thread has
 * one runner; declared effects inside nodes are memoized (EO, by `effect`).
 */
import { type AnswerReceipt, type AskedInterrupt, jsonDigest, type ThreadAnswer, valueDigest } from "@fermata/ledger"
import type { RunnableConfig } from "@langchain/core/runnables"
import { IterableReadableStream } from "@langchain/core/utils/stream"
import { randomUUID } from "node:crypto"
import type { FermataSaver } from "./FermataSaver.js"
import {
  AnswerRefused,
  BareAnswer,
  ForkRefused,
  ForkRequired,
  FrontMisconfigured,
  UnknownThread
} from "./FrontError.js"
import { settle, type Settlement } from "./internal/EffectRun.js"
import { planFork } from "./internal/ForkPlan.js"
import { holding, type Held, type FrontRun } from "./internal/Front.js"
import { addressOf, frontKey, storable, threadOf } from "./internal/SaverConfig.js"
import * as StrictSerde from "./internal/StrictSerde.js"
import { ConfigInvalid } from "./SaverError.js"

/** What the front uses of a compiled graph. */
export interface StockGraph {
  readonly checkpointer?: unknown
  invoke(input: unknown, config?: RunnableConfig): Promise<unknown>
  stream(input: unknown, config?: RunnableConfig): Promise<AsyncIterable<unknown>>
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<GraphState>
  getStateHistory(config: RunnableConfig, options?: object): AsyncIterable<unknown>
  updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig>
}

/** A snapshot, as far as the front looks into it. */
export interface GraphState {
  readonly values: unknown
  readonly next: ReadonlyArray<unknown>
  readonly tasks: ReadonlyArray<{ readonly id: string; readonly name: string; readonly path?: unknown }>
}

/** An open question of a thread. */
export interface OpenInterrupt {
  readonly id: string
  readonly value: unknown
}

/** How a front works. */
export interface ConformantOptions {
  /** The checkpointer that the graph was compiled with. */
  readonly plane: FermataSaver
  /** How long a runner keeps the thread without word of it, in milliseconds. Default: 15 000. A dead process of this host is noticed at once. */
  readonly lease?: number
  /** CV: what is wrong with an answer, if anything. Asked before the answer is consumed. */
  readonly validate?: (interrupt: OpenInterrupt, answer: unknown) => string | undefined
}

/** A graph that keeps the resume contract. `configurable` takes `delivery_id`, `fork` and `fork_id` besides LangGraph's. */
export interface ConformantGraph<G extends StockGraph> {
  /**
   * Runs the graph. With `new Command({ resume })` it first consumes the answer; what is refused runs nothing. With
   * `null` it goes on where it was. Throws the errors of `FrontError` and `SaverError`.
   */
  readonly invoke: G["invoke"]
  /** As {@link invoke}, chunk by chunk. The thread is held until the stream ends or is left. */
  readonly stream: G["stream"]
  readonly getState: G["getState"]
  readonly getStateHistory: G["getStateHistory"]
  /** Edits the thread's state; refused while it runs. An older checkpoint needs `fork: true`. */
  readonly updateState: G["updateState"]
  /** The questions that are open at the thread's head, or at the checkpoint named. */
  readonly pending: (config: RunnableConfig) => Promise<ReadonlyArray<OpenInterrupt>>
  /** Says what became of an effect that is in doubt. */
  readonly settle: (
    config: RunnableConfig,
    effect: { readonly task: string; readonly position: string },
    settlement: Settlement
  ) => Promise<void>
}

/** The graph behind a front. It must have been compiled with `plane` as its checkpointer. */
export const conformant = <G extends StockGraph>(graph: G, options: ConformantOptions): ConformantGraph<G> => {
  const { lease = 15_000, plane } = options
  if (graph.checkpointer !== plane) {
    throw new FrontMisconfigured({
      detail: "The graph has another checkpointer than the front. Compile it with { checkpointer: plane }."
    })
  }
  const store = plane.run.bind(plane)

  /** The checkpoint that a call is about: the one named, or the thread's latest. */
  const headOf = async (call: string, config: RunnableConfig | undefined) => {
    const address = addressOf(call, config)
    const thread = threadOf(call, address)
    if (address.ns !== undefined && address.ns !== "") {
      throw new ConfigInvalid({
        call,
        field: "checkpoint_ns",
        problem: "is of a nested graph; the front runs the whole one"
      })
    }
    const tuple = await plane.getTuple({
      configurable: {
        thread_id: thread,
        checkpoint_ns: "",
        ...(address.id === undefined ? {} : { checkpoint_id: address.id })
      }
    })
    if (tuple === undefined && address.id !== undefined) throw new UnknownThread({ thread, checkpoint: address.id })
    return { thread, named: address.id, head: tuple?.checkpoint.id, tuple }
  }

  const hasGoneOn = (thread: string, checkpoint: string): Promise<boolean> =>
    store(({ checkpoints }) => checkpoints.hasChild(thread, "", checkpoint))

  const openAt = async (thread: string, checkpoint: string): Promise<ReadonlyArray<AskedInterrupt>> => {
    const asked = await store(({ checkpoints }) => checkpoints.asked(thread, { checkpoint }))
    return asked.filter(({ answer }) => answer === undefined)
  }

  /** CO: consumes answers. The checkpoint to go on from, or `undefined` if the thread went on from it already. */
  const deliver = async (thread: string, head: string, config: RunnableConfig, resume: unknown) => {
    const delivery = textOf(config, "delivery_id") ?? randomUUID()
    const addressed = addressees(resume)
    const pending = addressed === undefined ? await openAt(thread, head) : []
    const [only] = pending
    if (addressed === undefined && (only === undefined || pending.length > 1)) {
      throw new BareAnswer({ thread, pending: pending.map(({ interrupt }) => interrupt) })
    }
    const answers = addressed ?? [[only?.interrupt ?? "", resume] as const]
    const asked: Array<AskedInterrupt> = []
    const judged: Array<ThreadAnswer> = []
    for (const [interrupt, value] of answers) {
      const [one] = await store(({ checkpoints }) => checkpoints.asked(thread, { interrupt }))
      if (one !== undefined) asked.push(one)
      const text = StrictSerde.encode(value, `the answer to interrupt ${interrupt}`)
      judged.push({
        interrupt,
        delivery: answers.length === 1 ? delivery : `${delivery}/${interrupt}`,
        value: text,
        valueDigest: jsonDigest(text),
        invalid: await invalidity(one, value)
      })
    }
    const [at = head, ...others] = new Set(asked.map(({ path }) => path[0]?.checkpoint ?? head))
    if (others.length > 0) {
      throw refusal(
        thread,
        answers[0]?.[0] ?? "",
        "SeveralCheckpoints",
        "Answer the questions of one checkpoint at a time."
      )
    }
    refuseAny(thread, await store(({ checkpoints }) => checkpoints.answer(thread, judged)))
    // A delivery that comes again goes on only with what it began: whatever followed is not run by it.
    return (await hasGoneOn(thread, at)) ? undefined : at
  }

  const invalidity = async (asked: AskedInterrupt | undefined, value: unknown): Promise<string | undefined> =>
    asked === undefined || options.validate === undefined
      ? undefined
      : options.validate({ id: asked.interrupt, value: await StrictSerde.decode(asked.question) }, value)

  /** FI: begins a branch with an answer of its own; the same fork again is the same branch. Its first checkpoint. */
  const branchOff = async (thread: string, named: string | undefined, config: RunnableConfig, resume: unknown) => {
    const forkId = textOf(config, "fork_id") ?? randomUUID()
    const addressed = addressees(resume)
    const [pair] = addressed ?? []
    const candidates = await store(({ checkpoints }) =>
      checkpoints.asked(thread, pair === undefined ? { checkpoint: named ?? "" } : { interrupt: pair[0] })
    )
    const [asked] = candidates
    if (asked === undefined || candidates.length > 1 || (addressed ?? []).length > 1) {
      throw new ForkRefused({
        thread,
        reason: asked === undefined ? "UnknownInterrupt" : "Ambiguous",
        detail: "A fork answers one question. Name it: new Command({ resume: { [interruptId]: value } })."
      })
    }
    const value = pair === undefined ? resume : pair[1]
    const invalid = await invalidity(asked, value)
    if (invalid !== undefined) throw refusal(thread, asked.interrupt, "ResumeValueInvalid", invalid)
    const text = StrictSerde.encode(value, `the answer to interrupt ${asked.interrupt}`)
    const answer = { value: text, valueDigest: jsonDigest(text) }
    const requestDigest = valueDigest(`${asked.interrupt}\n${answer.valueDigest}`)
    let made = await store(({ checkpoints }) => checkpoints.forked(thread, forkId))
    if (made === undefined) {
      const plan = await planFork({ graph, plane, thread, forkId, requestDigest, asked, answer })
      made = await store(({ checkpoints }) => checkpoints.fork(thread, plan))
    }
    if (made.requestDigest !== requestDigest) {
      const detail = `Fork ${forkId} was made of another question or with another value. Use another fork_id.`
      throw new ForkRefused({ thread, reason: "ForkIdReused", detail })
    }
    return made.checkpoint
  }

  /** What a call comes to, before the thread is held. */
  const plan = async (call: string, input: unknown, config: RunnableConfig): Promise<Plan> => {
    const { head, named, thread } = await headOf(call, config)
    const fork = config.configurable?.["fork"] === true
    const resume = resumeOf(thread, input)
    if (resume !== undefined) {
      if (fork)
        return { thread, input: null, head: await branchOff(thread, named, config, resume.value), onlyThere: true }
      if (head === undefined) throw new UnknownThread({ thread, checkpoint: null })
      if (named !== undefined && (await hasGoneOn(thread, named))) throw new ForkRequired({ thread, checkpoint: named })
      const delivered = await deliver(thread, head, config, resume.value)
      return { thread, input: null, head: delivered, onlyThere: true }
    }
    if (head === undefined && (input === null || input === undefined))
      throw new UnknownThread({ thread, checkpoint: null })
    if (named === undefined) return { thread, input, head: undefined, onlyThere: false }
    if (!(await hasGoneOn(thread, named))) return { thread, input, head: named, onlyThere: true }
    if (!fork) throw new ForkRequired({ thread, checkpoint: named })
    return { thread, input, head: undefined, onlyThere: false, replay: named }
  }

  /** The config of LangGraph for a run that holds the thread; `undefined` if there is nothing left to run. */
  const configOf = async (planned: Plan, held: Held, config: RunnableConfig): Promise<RunnableConfig | undefined> => {
    const { onlyThere, replay, thread } = planned
    // While nobody held the thread it may have gone on: what was planned was done by another, or is no more possible.
    if (onlyThere && (planned.head === undefined || (await hasGoneOn(thread, planned.head)))) return undefined
    const latest = onlyThere || replay !== undefined ? undefined : await headOf("invoke", bare(config))
    const run: FrontRun = { saver: plane, thread, hold: held.hold, head: planned.head ?? latest?.head }
    const { checkpoint_id: _, delivery_id: __, fork: ___, fork_id: ____, ...configurable } = config.configurable ?? {}
    // PC, EO: a superstep is durable before what follows it starts. LangGraph's own options go through LangChain's config.
    const durable = { ...config, durability: "sync" }
    return {
      ...durable,
      signal: config.signal === undefined ? held.signal : AbortSignal.any([held.signal, config.signal]),
      configurable: {
        ...configurable,
        ...(replay === undefined ? {} : { checkpoint_id: replay }),
        [frontKey]: run
      }
    }
  }

  const valuesOf = async (thread: string): Promise<unknown> =>
    (await graph.getState({ configurable: { thread_id: thread } })).values

  const invoke = async (input: unknown, config: RunnableConfig = {}): Promise<unknown> => {
    const planned = await plan("invoke", input, config)
    // Nothing that this delivery began is left to do.
    if (planned.onlyThere && planned.head === undefined) return valuesOf(planned.thread)
    const held = await holding(plane, planned.thread, lease)
    try {
      const ready = await configOf(planned, held, config)
      return ready === undefined ? await valuesOf(planned.thread) : await graph.invoke(planned.input, ready)
    } catch (error) {
      throw held.signal.aborted ? held.signal.reason : error
    } finally {
      await held.release()
    }
  }

  async function* chunks(planned: Plan, config: RunnableConfig): AsyncGenerator<unknown> {
    if (planned.onlyThere && planned.head === undefined) return
    const held = await holding(plane, planned.thread, lease)
    try {
      const ready = await configOf(planned, held, config)
      if (ready !== undefined) yield* await graph.stream(planned.input, ready)
    } catch (error) {
      throw held.signal.aborted ? held.signal.reason : error
    } finally {
      await held.release()
    }
  }

  const stream = async (input: unknown, config: RunnableConfig = {}) =>
    IterableReadableStream.fromAsyncGenerator(chunks(await plan("stream", input, config), config))

  const updateState = async (config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig> => {
    const { named, thread } = await headOf("updateState", config)
    const held = await holding(plane, thread, lease)
    try {
      const { fork, ...configurable } = config.configurable ?? {}
      if (named !== undefined && fork !== true && (await hasGoneOn(thread, named))) {
        throw new ForkRequired({ thread, checkpoint: named })
      }
      const run: FrontRun = { saver: plane, thread, hold: held.hold, head: undefined }
      const { configurable: next } = await graph.updateState(
        { ...config, configurable: { ...configurable, [frontKey]: run } },
        values,
        asNode
      )
      const { [frontKey]: _, ...rest } = next ?? {}
      return { configurable: rest }
    } finally {
      await held.release()
    }
  }

  const pending = async (config: RunnableConfig): Promise<ReadonlyArray<OpenInterrupt>> => {
    const { head, thread } = await headOf("pending", config)
    const open: Array<OpenInterrupt> = []
    if (head === undefined || (await hasGoneOn(thread, head))) return open
    for (const { interrupt, question } of await openAt(thread, head)) {
      open.push({ id: interrupt, value: await StrictSerde.decode(question) })
    }
    return open
  }

  // The graph's own signatures: what goes through is what it was given, and what it gave.
  return {
    invoke: invoke as G["invoke"],
    stream: stream as unknown as G["stream"],
    getState: graph.getState.bind(graph) as G["getState"],
    getStateHistory: graph.getStateHistory.bind(graph) as G["getStateHistory"],
    updateState: updateState as G["updateState"],
    pending,
    settle: async (config, effect, settlement) => {
      const { thread } = await headOf("settle", config)
      const held = await holding(plane, thread, lease)
      try {
        await settle(plane, thread, held.hold, effect, settlement)
      } finally {
        await held.release()
      }
    }
  }
}

/** What a call comes to. */
interface Plan {
  readonly thread: string
  readonly input: unknown
  /** The checkpoint to go on from; with `onlyThere` and none there is nothing to do. */
  readonly head: string | undefined
  /** Go on from `head` or not at all. */
  readonly onlyThere: boolean
  /** A checkpoint that a fork without an answer goes on from. */
  readonly replay?: string
}

const bare = ({ configurable }: RunnableConfig): RunnableConfig => ({
  configurable: { thread_id: configurable?.["thread_id"], checkpoint_ns: configurable?.["checkpoint_ns"] }
})

const textOf = (config: RunnableConfig, field: string): string | undefined => {
  const value: unknown = config.configurable?.[field]
  return value === undefined ? undefined : storable("invoke", field, value)
}

/** The answer in an input, if it is one. `null`, `false` and `0` are answers. */
const resumeOf = (thread: string, input: unknown): { readonly value: unknown } | undefined => {
  if (typeof input !== "object" || input === null || !("lg_name" in input) || input.lg_name !== "Command")
    return undefined
  const value: unknown = Reflect.get(input, "resume")
  if (value === undefined) return undefined
  const goto: unknown = Reflect.get(input, "goto")
  const combined =
    Reflect.get(input, "update") !== undefined || (Array.isArray(goto) ? goto.length > 0 : goto !== undefined)
  if (!combined) return { value }
  const detail = "An answer goes alone: edit the state by updateState before, or after."
  throw refusal(thread, "", "CombinedCommand", detail)
}

/** Interrupt ids are 32 hexadecimal digits; a map of nothing but these says what answers what. */
const addressees = (resume: unknown): ReadonlyArray<readonly [string, unknown]> | undefined => {
  if (typeof resume !== "object" || resume === null || Array.isArray(resume)) return undefined
  const entries = Object.entries(resume)
  return entries.length > 0 && entries.every(([key]) => /^[0-9a-f]{32}$/.test(key)) ? entries : undefined
}

const refusal = (
  thread: string,
  interrupt: string,
  reason: AnswerRefused["reason"],
  detail: string,
  by: string | undefined = undefined,
  at: number | undefined = undefined
): AnswerRefused => new AnswerRefused({ thread, interrupt, reason, detail, by: by ?? null, at: at ?? null })

const details = {
  UnknownInterrupt: "The thread never asked this.",
  RunPurged: "The thread was deleted.",
  DeliveryIdReused: "The delivery_id was used for another question or value; a new answer has a new one.",
  AlreadyConsumed: "It was answered before; read the thread's state. To try another answer, fork.",
  InterruptClosed: "The thread went on without an answer; to go back there, fork.",
  ResumeValueInvalid: "The value is not what the question asks for; it is still open."
} as const

const refuseAny = (thread: string, receipts: ReadonlyArray<AnswerReceipt>): void => {
  for (const { at, by, interrupt, verdict } of receipts) {
    const { _tag } = verdict
    if (_tag !== "Accepted" && _tag !== "Duplicate") throw refusal(thread, interrupt, _tag, details[_tag], by, at)
  }
}
