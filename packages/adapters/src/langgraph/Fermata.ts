/**
 * Where threads live: a plane, given to `compile` as its `checkpointer`. It opens when a graph first runs, with a worker in
 * this process; `close()` lets go of both, and what was under way goes on wherever it is opened next.
 *
 * @example
 * const graph = builder.compile({ checkpointer: Fermata.sqlite({ filename: "threads.db" }) })
 */
import { type Client, Plane, Worker } from "@fermata/runtime"
import { Ledger, type LedgerError } from "@fermata/ledger"
import { type Context, Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import type { Core } from "./internal/Core.js"
import { type Surroundings, type ThreadEvent, workflowOf } from "./internal/Thread.js"

/** A plane for graphs. Made by `sqlite`, `postgres` and `memory`. */
export class GraphPlane {
  /** What this process knows of its threads: errors as they were thrown, and who listens. */
  readonly errors = new Map<string, unknown>()
  readonly listeners = new Set<
    (branch: string, event: ThreadEvent | { readonly _tag: "Custom"; readonly chunk: unknown }) => void
  >()
  private runtime: ManagedRuntime.ManagedRuntime<Ledger | Client.Client, LedgerError> | undefined
  private scope: Scope.CloseableScope | undefined
  private readonly workers = new Map<string, Promise<unknown>>()

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

  /** Starts a worker for the graph, once. */
  async serve(core: Core, around: Surroundings): Promise<void> {
    const name = `${core.name}@${core.version}`
    const known = this.workers.get(name)
    if (known !== undefined) {
      await known
      return
    }
    const runtime = this.opened()
    this.scope ??= Effect.runSync(Scope.make())
    const started = runtime.runPromise(
      Layer.buildWithScope(Worker.layer({ workflows: [workflowOf(core, around)] }), this.scope)
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
