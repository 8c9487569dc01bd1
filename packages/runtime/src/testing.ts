/**
 * For tests of workflows: a plane in memory whose timers follow the test's clock, and points at which a process may be
 * stopped or killed.
 *
 * @example
 * it.effect("waits three days", () =>
 *   Effect.gen(function* () {
 *     const client = yield* Client.Client
 *     const run = yield* client.start(Greet, "Ada")
 *     yield* client.awaitStatus(run, ({ status }) => status === "waiting")
 *     yield* TestClock.adjust("3 days")
 *     assert.strictEqual(yield* client.result(Greet, run), "hello Ada")
 *   }).pipe(Effect.provide(Testing.worker({ workflows: [Greet] }).pipe(Layer.provideMerge(Testing.layer)))))
 */
import type { BranchId } from "@fermata/contract"
import {
  type CorruptJournal,
  Ledger,
  layerSqlite,
  type LedgerError,
  type RunNotFound,
  type RunPurged
} from "@fermata/ledger"
import { Duration, Effect, Layer } from "effect"
import * as Client from "./Client.js"
import * as Worker from "./Worker.js"
import { check, type ReplayDiverged } from "./internal/ReplayCheck.js"
import type { HandlerOf } from "./SideEffect.js"
import type * as Workflow from "./Workflow.js"

export * as Replay from "./internal/ReplayCheck.js"
export * as CrashPoint from "./internal/CrashPoint.js"
export { ReplayDiverged } from "./internal/ReplayCheck.js"

/**
 * A plane in memory, gone with its scope. Time is the `Clock` that the layer is built under: with a `TestClock`,
 * `TestClock.adjust` fires durable timers. Waiting operations of its client never poll: everything happens in this
 * process, and is heard.
 */
export const layer: Layer.Layer<Ledger | Client.Client, LedgerError> = Layer.provideMerge(
  Client.layerWith({ poll: Duration.infinity }),
  layerSqlite({ filename: ":memory:" })
)

/** A worker whose lease never lapses under a `TestClock`, and that never polls: everything happens in this process. */
export const worker = <const Ws extends ReadonlyArray<{ readonly definition: string }>>(
  options: Omit<Worker.WorkerOptions<Ws>, "lease" | "poll">
): Layer.Layer<Worker.Worker, LedgerError, Ledger | Workflow.Requirements<Ws[number]>> =>
  Worker.layer<Ws>({
    ...(options as Worker.WorkerOptions<Ws>),
    lease: Duration.days(365 * 100),
    poll: Duration.days(365 * 100)
  })

/**
 * Replays a branch's history from every prefix with this code, running no node: every prefix must lead to the commands
 * that the history shows, and the whole to its recorded end (RD). This finds `Date.now()`, `Math.random()` and whatever
 * else a workflow takes from outside the journal.
 */
export const replayCheck = <N extends string, I, A, E, R>(
  workflow: Workflow.Workflow<N, I, A, E, R>,
  branch: BranchId
): Effect.Effect<
  void,
  ReplayDiverged | RunNotFound | RunPurged | CorruptJournal | LedgerError,
  Ledger | Exclude<R, HandlerOf<string>>
> =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    yield* check(workflow, yield* ledger.history(branch))
  })
