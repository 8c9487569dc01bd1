/**
 * Where threads live: a plane, given to `compile` as its `checkpointer`. It opens when a graph first runs, with a worker in
 * this process; `close()` lets go of both, and what was under way goes on wherever it is opened next.
 *
 * @example
 * const graph = builder.compile({ checkpointer: Fermata.sqlite({ filename: "threads.db" }) })
 */
import { Client, Plane, Worker } from "@fermata/runtime"
import { Ledger, type LedgerError } from "@fermata/ledger"
import { type Context, Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import type { Core } from "./internal/Core.js"
import { handlers } from "./internal/Effects.js"
import { type Surroundings, type ThreadEvent, workflowOf } from "./internal/Thread.js"
import { type CheckpointView, ThreadView } from "./internal/View.js"

/** What a worker of one's own needs to run graphs: `Worker.layer({ workflows: [graph.workflow] })`, provided with these. */
export { handlers } from "./internal/Effects.js"

/** How much of branches is remembered as it was read, in characters of their journals. */
const mostKept = 16 * 1024 * 1024

/** Of how many threads it is remembered which graph called them; only graphs that are compiled alike need it. */
const keptCallers = 10_000

/** A plane for graphs. Made by `sqlite`, `postgres` and `memory`. */
export class GraphPlane {
  /** What this process knows of its threads: errors as they were thrown, and who listens. */
  readonly errors = new Map<string, unknown>()
  readonly listeners = new Set<
    (branch: string, event: ThreadEvent | { readonly _tag: "Custom"; readonly chunk: unknown }) => void
  >()
  /** What was read of branches, the last read ones last. */
  private readonly views = new Map<string, ThreadView>()
  private runtime: ManagedRuntime.ManagedRuntime<Ledger | Client.Client, LedgerError> | undefined
  private scope: Scope.CloseableScope | undefined
  private readonly workers = new Map<string, Promise<unknown>>()
  /** The graph that was compiled last under a name and version, and the one that a thread was last called by. */
  private readonly newest = new Map<string, Core>()
  private readonly callers = new Map<string, Core>()

  constructor(private readonly layer: Layer.Layer<Ledger | Client.Client, LedgerError>) {}

  /** The plane's ledger, for what else lives on its database: `new FermataStore(plane.ledger)`. */
  readonly ledger = {
    run: <A, E>(use: (ledger: Context.Tag.Service<typeof Ledger>) => Effect.Effect<A, E>): Promise<A> =>
      this.run(Effect.flatMap(Ledger, use))
  }

  /** Runs an effect with the plane's client. Rejects with the effect's error. */
  async run<A, E>(effect: Effect.Effect<A, E, Client.Client | Ledger>, signal?: AbortSignal): Promise<A> {
    const exit = await this.opened().runPromiseExit(effect, signal === undefined ? {} : { signal })
    if (Exit.isSuccess(exit)) return exit.value
    const failure = exit.cause
    throw failure._tag === "Fail" ? failure.error : (signal?.reason ?? new Error(String(failure)))
  }

  /** The checkpoints of a branch, oldest first. Reads what is new of it only. */
  async checkpoints(branch: string): Promise<ReadonlyArray<CheckpointView>> {
    const view = this.views.get(branch) ?? new ThreadView()
    this.views.delete(branch)
    this.views.set(branch, view)
    const { read } = view
    try {
      view.add(
        await this.run(
          Effect.flatMap(Client.Client, (client) => client.history(branch, read === undefined ? {} : { after: read }))
        )
      )
    } catch (error) {
      // Purged and begun anew, or damaged: the next one reads all of it.
      this.views.delete(branch)
      if (read === undefined) throw error
      return this.checkpoints(branch)
    }
    let kept = 0
    for (const { weight } of this.views.values()) kept += weight
    for (const [oldest, { weight }] of this.views) {
      if (kept <= mostKept || oldest === branch) break
      this.views.delete(oldest)
      kept -= weight
    }
    return view.checkpoints
  }

  /** Which graph's functions a branch of a graph of that name and version runs; `undefined` before one was served. */
  coreOf(name: string, branch: string): Core | undefined {
    return this.callers.get(branch.slice(0, branch.lastIndexOf("/"))) ?? this.newest.get(name)
  }

  /** Starts a worker for the graph, once for all that are compiled alike; this one's functions run in the thread from now on. */
  async serve(core: Core, around: Surroundings, thread: string): Promise<void> {
    const name = `${core.name}@${core.version}`
    this.callers.delete(thread)
    this.callers.set(thread, core)
    const [oldest] = this.callers.keys()
    if (this.callers.size > keptCallers && oldest !== undefined) this.callers.delete(oldest)
    this.newest.set(name, core)
    const known = this.workers.get(name)
    if (known !== undefined) {
      await known
      return
    }
    const runtime = this.opened()
    this.scope ??= Effect.runSync(Scope.make())
    const started = runtime.runPromise(
      Layer.buildWithScope(Layer.provide(Worker.layer({ workflows: [workflowOf(core, around)] }), handlers), this.scope)
    )
    this.workers.set(name, started)
    await started
  }

  private opened() {
    this.runtime ??= ManagedRuntime.make(this.layer)
    return this.runtime
  }

  /** Lets go of the worker's threads and of the database. */
  async close(): Promise<void> {
    const { runtime, scope } = this
    this.runtime = undefined
    this.scope = undefined
    this.workers.clear()
    this.views.clear()
    if (scope !== undefined) await Effect.runPromise(Scope.close(scope, Exit.void))
    await runtime?.dispose()
  }
}

/** A plane in a SQLite file. */
export const sqlite = (options: Parameters<typeof Plane.sqlite>[0]): GraphPlane => new GraphPlane(Plane.sqlite(options))

/** A plane in a PostgreSQL database. */
export const postgres = (options: Parameters<typeof Plane.postgres>[0]): GraphPlane =>
  new GraphPlane(Plane.postgres(options))

/** A plane in memory: for tests and for trying out. */
export const memory = (): GraphPlane => new GraphPlane(Plane.sqlite({ filename: ":memory:" }))
