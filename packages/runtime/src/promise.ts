/**
 * Fermata for callers that are not Effect code: a client and a worker with promises, and the same types.
 *
 * @example
 * import { connect } from "@fermata/runtime/promise"
 * await using plane = await connect(Plane.sqlite({ filename: "app.db" }))
 * const run = await plane.client.start(Greet, "Ada", { run: "greet-ada" })
 * const text = await plane.client.result(Greet, run, { signal: request.signal })
 */
import type { BranchId, Entry, RunId } from "@fermata/contract"
import type { Ledger, LedgerError } from "@fermata/ledger"
import { Cause, Effect, Exit, type Layer, Layer as Layers, ManagedRuntime, Option } from "effect"
import * as Client from "./Client.js"
import type * as Plane from "./Plane.js"
import * as Worker from "./Worker.js"
import type * as Workflow from "./Workflow.js"

/** Stops waiting: the promise rejects with the signal's reason. What was accepted by then stays accepted. */
export interface Waiting {
  readonly signal?: AbortSignal
}

/**
 * A typed error that is no `Error` itself: a workflow's own failure as its Schema describes it, say. `_tag` is that of
 * the failure, and `cause` the failure as it is.
 */
export class PromiseFailure extends Error {
  override readonly name: string = "PromiseFailure"
  /** The failure's `_tag`; "PromiseFailure" if it has none. */
  readonly _tag: string

  constructor(failure: unknown) {
    const tag =
      typeof failure === "object" && failure !== null && "_tag" in failure && typeof failure._tag === "string"
        ? failure._tag
        : "PromiseFailure"
    super(`Failed with ${tag === "PromiseFailure" ? "a typed error" : tag}; see its cause`, { cause: failure })
    this._tag = tag
  }
}

/** The connection was closed while this waited, or before it was asked. The runs go on. */
export class ConnectionClosed extends Error {
  override readonly name = "ConnectionClosed"
  readonly _tag = "ConnectionClosed"

  constructor() {
    super("The connection to the plane is closed. Connect again.")
  }
}

type Address = Parameters<Client.Client["result"]>[1]

/**
 * The client, with promises. A rejection is the typed error that the Effect client fails with, which is an `Error` with
 * a `_tag`; a failure that is no `Error` is wrapped in `PromiseFailure`.
 */
export interface PromiseClient {
  readonly start: <N extends string, I, A, E, R>(
    workflow: Workflow.Workflow<N, I, A, E, R>,
    input: I,
    options?: { readonly run?: RunId | string } & Waiting
  ) => Promise<Client.RunHandle>
  readonly result: <N extends string, I, A, E, R>(
    workflow: Workflow.Workflow<N, I, A, E, R>,
    of: Address,
    options?: Waiting
  ) => Promise<A>
  readonly describe: (of: Address, options?: Waiting) => Promise<Client.Description>
  readonly awaitStatus: (
    of: Address,
    until: (description: Client.Description) => boolean,
    options?: Waiting
  ) => Promise<Client.Description>
  readonly branches: (run: RunId | string) => Promise<ReadonlyArray<Client.Description>>
  readonly list: (...options: Parameters<Client.Client["list"]>) => Promise<ReadonlyArray<Client.Description>>
  readonly pendingInterrupts: (
    ...options: Parameters<Client.Client["pendingInterrupts"]>
  ) => Promise<ReadonlyArray<Client.Pending>>
  /** As `Client.resume`: `intent` has no default. */
  readonly resume: <N extends string, P, A>(
    ...given: Parameters<typeof resumeOf<N, P, A>>
  ) => Promise<Effect.Effect.Success<ReturnType<typeof resumeOf<N, P, A>>>>
  readonly fork: (
    options: Parameters<Client.Client["fork"]>[0]
  ) => Promise<Effect.Effect.Success<ReturnType<Client.Client["fork"]>>>
  readonly cancel: (...given: Parameters<Client.Client["cancel"]>) => Promise<"Accepted" | "Duplicate" | "TooLate">
  readonly history: (of: Address) => Promise<ReadonlyArray<Entry>>
  readonly unstick: (branch: BranchId | string) => Promise<boolean>
  readonly purge: (run: RunId | string) => Promise<void>
}

/** Names the generic operation's types. */
const resumeOf = <N extends string, P, A>(
  ...[interrupt, delivery]: Parameters<typeof Client.Client.Service.resume<N, P, A>>
) => Effect.flatMap(Client.Client, (client) => client.resume(interrupt, delivery))

/** A connection to a plane, until it is closed. */
export interface Connection extends AsyncDisposable {
  readonly client: PromiseClient
  /**
   * Lets the plane's workers go, which finish what may not be interrupted, and closes the database. Waits until that is
   * done; what still waits for a result rejects. Again, it does nothing.
   */
  readonly close: () => Promise<void>
}

/** A client of a plane. Rejects with the `LedgerError` if the database cannot be used. */
export const connect = async (plane: Layer.Layer<Plane.Plane, LedgerError>): Promise<Connection> => open(plane)

/**
 * A worker on a plane, with a client of it; runs until it is closed. `handlers`: the layers of the side effects and
 * services that the workflows require, merged.
 */
export const work = async <const Ws extends ReadonlyArray<{ readonly definition: string }>, E = never>(
  plane: Layer.Layer<Plane.Plane, LedgerError>,
  options: Worker.WorkerOptions<Ws> & {
    readonly handlers: Layer.Layer<Workflow.Requirements<Ws[number]>, E, Ledger | Client.Client>
  }
): Promise<Connection> =>
  open(Worker.layer<Ws>(options).pipe(Layers.provide(options.handlers), Layers.provideMerge(plane)))

const open = async <R, E>(layer: Layer.Layer<Client.Client | R, E>): Promise<Connection> => {
  const runtime = ManagedRuntime.make(layer)
  const closed = new AbortController()
  const settled = <A>(exit: Exit.Exit<A, unknown>, signal: AbortSignal): A => {
    if (Exit.isSuccess(exit)) return exit.value
    if (signal.aborted && Cause.isInterruptedOnly(exit.cause)) throw signal.reason
    const failure = Option.getOrElse(Cause.failureOption(exit.cause), () => Cause.squash(exit.cause))
    throw failure instanceof Error ? failure : new PromiseFailure(failure)
  }
  const run = async <A, E2>(use: (client: Client.Client) => Effect.Effect<A, E2>, waiting?: Waiting): Promise<A> => {
    const signal = waiting?.signal === undefined ? closed.signal : AbortSignal.any([closed.signal, waiting.signal])
    signal.throwIfAborted()
    const effect = Effect.flatMap(Client.Client, use)
    return settled(await runtime.runPromiseExit(effect, { signal }), signal)
  }
  // What is wrong with the database is said here, and not by the first operation.
  try {
    settled(await runtime.runPromiseExit(Effect.void), closed.signal)
  } catch (error) {
    await runtime.dispose()
    throw error
  }
  const client: PromiseClient = {
    start: (workflow, input, options = {}) => run((client) => client.start(workflow, input, options), options),
    result: (workflow, of, options) => run((client) => client.result(workflow, of), options),
    describe: (of, options) => run((client) => client.describe(of), options),
    awaitStatus: (of, until, options) => run((client) => client.awaitStatus(of, until), options),
    branches: (of) => run((client) => client.branches(of)),
    list: (...options) => run((client) => client.list(...options)),
    pendingInterrupts: (...options) => run((client) => client.pendingInterrupts(...options)),
    resume: (interrupt, delivery) => run((client) => client.resume(interrupt, delivery)),
    fork: (options) => run((client) => client.fork(options)),
    cancel: (...given) => run((client) => client.cancel(...given)),
    history: (of) => run((client) => client.history(of)),
    unstick: (branch) => run((client) => client.unstick(branch)),
    purge: (of) => run((client) => client.purge(of))
  }
  const close = () => {
    closed.abort(new ConnectionClosed())
    return runtime.dispose()
  }
  return { client, close, [Symbol.asyncDispose]: close }
}
