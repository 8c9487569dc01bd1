/**
 * A checkpointer for stock LangGraph.js on the ledger's database: what it stores is exact, forks read their own values,
 * what a crash leaves is a prefix of what ran, and of two runs that go on from one checkpoint the second is refused.
 */
import { type Ledger, Ledger as LedgerTag, layerPostgres, layerSqlite } from "@fermata/ledger"
import type { RunnableConfig } from "@langchain/core/runnables"
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  compareChannelVersions,
  type PendingWrite,
  WRITES_IDX_MAP
} from "@langchain/langgraph-checkpoint"
import {
  type ChannelRef,
  type CheckpointQuery,
  type CheckpointStore,
  type LedgerError,
  type StoredCheckpoint
} from "@fermata/ledger"
import { Cause, Effect, Exit, Layer, ManagedRuntime, type Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { Addressed } from "./internal/Addressed.js"
import { isOwnVersion, nextVersion } from "./internal/ChannelVersion.js"
import { matches } from "./internal/MetadataFilter.js"
import * as SavedValue from "./internal/SavedValue.js"
import { addressOf, markOf, storable, threadOf } from "./internal/SaverConfig.js"
import * as StrictSerde from "./internal/StrictSerde.js"
import { ThreadQueue } from "./internal/ThreadQueue.js"
import { interruptsOf, tupleOf } from "./internal/Tuple.js"
import { CheckpointFormat, ConfigInvalid } from "./SaverError.js"

/** The newest format of checkpoints that this code stores and reads. */
const newestFormat = 4

/** For a value whose channel has no version: it is stored each time. */
const unversioned = ""

/** Checkpoints read at once by `list`. */
const pageSize = 50

/** Queues of threads that are kept while idle. */
const keptQueues = 256

/**
 * The checkpointer. Compile a graph with it, and close it when the process is done with it.
 *
 * Serves PC, CV, RD and FD as far as a checkpointer can; CO, FI and EO need `conformant` in front of the graph.
 *
 * @example
 * const checkpointer = FermataSaver.sqlite({ filename: "app.db" })
 * const graph = builder.compile({ checkpointer })
 */
export class FermataSaver extends BaseCheckpointSaver {
  private readonly queues = new Map<string, ThreadQueue>()
  /** The last read of each thread that is under way. */
  private readonly turns = new Map<string, Promise<void>>()
  private readonly addressed = new Addressed()
  // FD: versions of two branches never meet, whichever process made them.
  private readonly versionSeed = randomBytes(6).toString("hex")

  private constructor(
    private readonly runtime: ManagedRuntime.ManagedRuntime<Ledger, LedgerError>,
    private readonly owns: boolean
  ) {
    super(StrictSerde.serde)
    // LangGraph before 1.5 calls it without its object.
    this.getNextVersion = this.getNextVersion.bind(this)
  }

  /** A checkpointer in a SQLite file, which is created if there is none. Options and failures as of `Plane.sqlite`. */
  static sqlite(options: { readonly filename: string; readonly synchronous?: "full" | "normal" }): FermataSaver {
    return FermataSaver.layer(layerSqlite(options))
  }

  /** A checkpointer in a PostgreSQL database. Options and failures as of `Plane.postgres`. */
  static postgres(options: {
    readonly url: string | Redacted.Redacted
    readonly maxConnections?: number
  }): FermataSaver {
    return FermataSaver.layer(layerPostgres(options))
  }

  /** A checkpointer on the database of a layer that provides the ledger, such as a plane; closing it closes the layer. */
  static layer(layer: Layer.Layer<Ledger, LedgerError>): FermataSaver {
    return new FermataSaver(ManagedRuntime.make(layer), true)
  }

  /** A checkpointer on a ledger that is open already; closing the checkpointer leaves it open. */
  static ledger(ledger: Ledger): FermataSaver {
    return new FermataSaver(ManagedRuntime.make(Layer.succeed(LedgerTag, ledger)), false)
  }

  /** Stores what is under way, then closes the database if the checkpointer opened it. It is of no use afterwards. */
  async close(): Promise<void> {
    for (const queue of this.queues.values()) await queue.idle()
    if (this.owns) await this.runtime.dispose()
  }

  /** Runs an operation on the ledger; rejects with its typed error. For the front; not a part of LangGraph's interface. */
  async run<A, E>(use: (ledger: Ledger) => Effect.Effect<A, E>): Promise<A> {
    const exit = await this.runtime.runPromiseExit(Effect.flatMap(LedgerTag, use))
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  }

  override getNextVersion(current: number | undefined): number {
    // LangGraph takes texts as versions, too, but where it names the type of a saver it says number.
    return nextVersion(current, this.versionSeed) as unknown as number
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const address = addressOf("getTuple", config)
    const { thread } = address
    if (thread === undefined) return undefined
    const ns = address.ns ?? ""
    const mark = markOf(config)
    // The front's run goes on from the head of its own branch, which need not be the thread's newest checkpoint.
    const id = address.id ?? (ns === "" ? mark?.head : undefined)
    if (mark?.preview !== undefined && mark.preview.ns === ns) return this.tuple(mark.preview)
    if (address.id === undefined) this.addressed.latest(config)
    else this.addressed.byName(config, thread, ns, address.id)
    // RD: one after the other, so that parallel tasks get their answers in the order in which they asked.
    const turn = (this.turns.get(thread) ?? Promise.resolve()).then(async () => {
      // A run that failed does not wait for what it had asked for: the next one must not begin before that is stored.
      await this.settled(thread)
      const [found] = await this.find({ thread, ns, ...(id === undefined ? {} : { id }), limit: 1 })
      return found === undefined ? undefined : this.tuple(found)
    })
    const over = turn.then(nothing, nothing)
    this.turns.set(thread, over)
    void this.forget(thread, over)
    return turn
  }

  private async forget(thread: string, over: Promise<void>): Promise<void> {
    await over
    if (this.turns.get(thread) === over) this.turns.delete(thread)
  }

  /** When all that was asked for on the thread so far is stored. For the front. */
  async settled(thread: string): Promise<void> {
    await this.queues.get(thread)?.idle()
  }

  /** A checkpoint as it is stored. For the front. */
  async stored(thread: string, ns: string, id: string): Promise<StoredCheckpoint | undefined> {
    const [found] = await this.find({ thread, ns, id, limit: 1 })
    return found
  }

  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { id, ns, thread } = addressOf("list", config)
    const before = addressOf("list (before)", options.before).id
    const limit = limitOf(options.limit)
    const query = {
      ...(thread === undefined ? {} : { thread }),
      ...(ns === undefined ? {} : { ns }),
      ...(id === undefined ? {} : { id }),
      ...(before === undefined ? {} : { before })
    }
    let listed = 0
    let after: CheckpointQuery["after"]
    while (listed < limit) {
      const page = await this.find({
        ...query,
        ...(after === undefined ? {} : { after }),
        limit: options.filter === undefined ? Math.min(pageSize, limit - listed) : pageSize
      })
      for (const found of page) {
        const metadata = await StrictSerde.decode(found.metadata)
        if (!matches(metadata, options.filter)) continue
        this.addressed.byName(config, found.thread, found.ns, found.id)
        yield await this.tuple(found)
        listed += 1
        if (listed >= limit) return
      }
      after = page.at(-1)
      if (after === undefined || page.length < (options.filter === undefined ? Math.min(pageSize, limit) : pageSize)) {
        return
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions
  ): Promise<RunnableConfig> {
    const address = addressOf("put", config)
    const thread = threadOf("put", address)
    const ns = address.ns ?? ""
    const id = storable("put", "checkpoint.id", checkpoint.id)
    if (!isFormat(checkpoint.v)) throw new CheckpointFormat({ thread, checkpoint: id, found: String(checkpoint.v) })

    // Encoded before anything is awaited: the graph goes on and may change what it handed over.
    const values = new Map<string, string>()
    const changed: Record<string, ChannelRef> = {}
    const carried: Record<string, string | number> = {}
    // A copy says that nothing changed, and means since the checkpoint that it copies, which is not its parent.
    const copies = metadata.source === "fork"
    for (const [channel, value] of Object.entries<unknown>(checkpoint.channel_values)) {
      const version = checkpoint.channel_versions[channel]
      if (version !== undefined && !Object.hasOwn(newVersions, channel) && !copies) carried[channel] = version
      else {
        const where = `channel ${JSON.stringify(channel)} of thread ${JSON.stringify(thread)}`
        changed[channel] = [version ?? unversioned, SavedValue.store(value, where, values)]
      }
    }
    const { channel_values: _, ...body } = checkpoint
    const branch = copies || this.addressed.isBranch(config, thread, ns, address.id)
    await this.queue(thread).add({
      _tag: "Put",
      ns,
      id,
      parent: address.id ?? null,
      body: StrictSerde.encode(body, `checkpoint ${id}`),
      metadata: StrictSerde.encode(metadata, `metadata of checkpoint ${id}`),
      changed,
      carried,
      values,
      strict: Object.values(carried).every(isOwnVersion),
      as: branch ? "branch" : "next",
      hold: markOf(config)?.hold
    })
    return { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } }
  }

  async putWrites(config: RunnableConfig, writes: Array<PendingWrite>, taskId: string, taskPath = ""): Promise<void> {
    const address = addressOf("putWrites", config)
    const thread = threadOf("putWrites", address)
    if (address.id === undefined) {
      throw new ConfigInvalid({ call: "putWrites", field: "checkpoint_id", problem: "is missing" })
    }
    const task = storable("putWrites", "task id", taskId)
    const encoded = writes.map(([channel, value], index) => ({
      idx: WRITES_IDX_MAP[channel] ?? index,
      channel: storable("putWrites", "channel", channel),
      value: StrictSerde.encode(value, `the write of task ${task} to ${JSON.stringify(channel)}`)
    }))
    await this.queue(thread).add({
      _tag: "Write",
      ns: address.ns ?? "",
      checkpoint: address.id,
      task,
      path: storable("putWrites", "task path", taskPath),
      writes: encoded,
      // What LangGraph says of a task (an error, a question, an answer) is renewed; an outcome is not.
      replace: writes.every(([channel]) => channel in WRITES_IDX_MAP),
      interrupts: interruptsOf(writes),
      hold: markOf(config)?.hold
    })
  }

  /** Removes everything of the thread. A run of it that is still under way may store no more if the front runs it. */
  async deleteThread(threadId: string): Promise<void> {
    const thread = threadOf("deleteThread", { thread: storable("deleteThread", "thread_id", threadId), ns: "", id: "" })
    await this.queues.get(thread)?.idle()
    this.queues.delete(thread)
    await this.run(({ checkpoints }) => checkpoints.remove(thread))
  }

  private find(query: CheckpointQuery): Promise<ReadonlyArray<StoredCheckpoint>> {
    return this.run(({ checkpoints }) => checkpoints.find(query))
  }

  private async tuple(stored: StoredCheckpoint): Promise<CheckpointTuple> {
    const body = await StrictSerde.decode(stored.body)
    const format: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "v") : undefined
    if (!isFormat(format)) {
      throw new CheckpointFormat({ thread: stored.thread, checkpoint: stored.id, found: String(format) })
    }
    const names = Object.keys(stored.channels)
    const values = await SavedValue.load(
      Object.values(stored.channels).map(([, digest]) => digest),
      (digests) => this.run(({ checkpoints }) => checkpoints.values(stored.thread, digests)),
      stored.thread
    )
    const channels = Object.fromEntries(names.map((name, index) => [name, values[index]]))
    // Before format 4 what was sent to nodes was among the writes of the checkpoint before.
    const [parent] =
      format < newestFormat && stored.parent !== null
        ? await this.find({ thread: stored.thread, ns: stored.ns, id: stored.parent, limit: 1 })
        : []
    return tupleOf(stored, body as Checkpoint, channels, parent, (versions) =>
      versions.length > 0
        ? versions.reduce((max, version) => (compareChannelVersions(max, version) >= 0 ? max : version))
        : this.getNextVersion(undefined)
    )
  }

  private queue(thread: string): ThreadQueue {
    const known = this.queues.get(thread)
    if (known !== undefined) return known
    const store = <A, E>(use: (store: CheckpointStore) => Effect.Effect<A, E>) =>
      this.run(({ checkpoints }) => use(checkpoints))
    const queue = new ThreadQueue({
      commit: (operations) => store((checkpoints) => checkpoints.commit(thread, operations)),
      known: (wanted) => store((checkpoints) => checkpoints.known(thread, wanted))
    })
    this.queues.set(thread, queue)
    for (const [oldest, other] of this.queues) {
      if (this.queues.size <= keptQueues) break
      if (other.isIdle) this.queues.delete(oldest)
    }
    return queue
  }
}

const nothing = (): void => undefined

const isFormat = (format: unknown): format is number =>
  typeof format === "number" && Number.isInteger(format) && format >= 1 && format <= newestFormat

/** How many checkpoints are asked for. Throws `ConfigInvalid`. */
const limitOf = (limit: unknown): number => {
  if (limit === undefined) return Number.POSITIVE_INFINITY
  if (typeof limit === "number" && Number.isInteger(limit)) return limit
  throw new ConfigInvalid({ call: "list", field: "limit", problem: "is no whole number" })
}
