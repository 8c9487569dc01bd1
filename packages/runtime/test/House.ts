/** A plane with a clock set by hand and workers that come and go: what the engine's tests play in. */
import type { BranchId, Entry } from "@fermata/contract"
import { type CorruptJournal, Ledger, type LedgerError, type RunNotFound, type RunPurged } from "@fermata/ledger"
import { Client, type Problem, type Worker } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Context, Duration, Effect, Exit, Layer, Logger, Scope } from "effect"
import { HandClock } from "./HandClock.js"
import { turn } from "./Stage.js"

/** Turns of the event loop after which what is waited for will never come. */
const patience = 20_000

export interface House {
  readonly client: Client.Client
  readonly ledger: Ledger
  readonly plane: Context.Context<Ledger | Client.Client>
  readonly clock: HandClock
  /** Takes a worker on, beside any that there are. Runs to let it go again. */
  readonly hire: <E>(worker: Layer.Layer<Worker.Worker, E, Ledger>) => Effect.Effect<Effect.Effect<void>, E>
  readonly history: (
    branch: BranchId
  ) => Effect.Effect<ReadonlyArray<Entry>, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** `kind key` of every entry. */
  readonly lines: (
    branch: BranchId
  ) => Effect.Effect<ReadonlyArray<string>, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** Waits until the history has an entry `kind key`. */
  readonly recorded: (
    branch: BranchId,
    line: string
  ) => Effect.Effect<void, RunNotFound | RunPurged | CorruptJournal | LedgerError>
  /** Moves the clock on. */
  readonly pass: (span: Duration.DurationInput) => Effect.Effect<void>
  /** Waits until the branch is stuck; gives its only problem. */
  readonly problem: (
    branch: BranchId
  ) => Effect.Effect<Problem.Problem, RunNotFound | RunPurged | CorruptJournal | LedgerError>
}

/** Waits, turn by turn of the event loop, until `condition` holds. */
export const until = (what: string, condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let turns = 0; !condition(); turns++) {
      if (turns > patience) return yield* Effect.dieMessage(`never came: ${what}`)
      yield* turn
    }
  })

const begin = 1_700_000_000_000

/** Plays `body` in a house of its own, on a plane in memory whose time is the house's clock. */
export const play = <A, E>(
  body: (house: House) => Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E | LedgerError> =>
  Effect.suspend(() => {
    const clock = new HandClock(begin)
    return Effect.withClock(inhabit(body, Testing.layer, clock), clock)
  })

/** Plays `body` in a house of its own on another plane, in real time: its clock moves nothing. */
export const playOn = <A, E, E2>(
  plane: Layer.Layer<Ledger | Client.Client, E2>,
  body: (house: House) => Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E | E2> => Effect.suspend(() => inhabit(body, plane, new HandClock(begin)))

const inhabit = <A, E, E2>(
  body: (house: House) => Effect.Effect<A, E, Scope.Scope>,
  plane: Layer.Layer<Ledger | Client.Client, E2>,
  clock: HandClock
): Effect.Effect<A, E | E2> => {
  return Effect.gen(function* () {
    const outer = yield* Effect.scope
    const context = yield* Layer.build(plane)
    const client = Context.get(context, Client.Client)
    const ledger = Context.get(context, Ledger)
    const history = (branch: BranchId) => Effect.map(ledger.history(branch), ({ entries }) => entries)
    const lines = (branch: BranchId) =>
      Effect.map(history(branch), (entries) => entries.map(({ key, kind }) => `${kind} ${key}`.trim()))
    const house: House = {
      client,
      ledger,
      plane: context,
      clock,
      hire: (worker) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
          yield* Effect.provide(Layer.buildWithScope(worker, scope), context)
          return Scope.close(scope, Exit.void)
        }).pipe(Scope.extend(outer)),
      history,
      lines,
      recorded: (branch, line) =>
        Effect.gen(function* () {
          for (let turns = 0; turns < patience; turns++) {
            if ((yield* lines(branch)).includes(line)) return
            yield* turn
          }
          return yield* Effect.dieMessage(`never recorded: ${line}; there is ${(yield* lines(branch)).join(", ")}`)
        }),
      pass: (span) =>
        Effect.flatMap(
          Effect.sync(() => Duration.toMillis(span)),
          (millis) => Effect.sync(() => clock.set(clock.unsafeCurrentTimeMillis() + millis))
        ),
      problem: (branch) =>
        Effect.flatMap(
          client.awaitStatus(
            branch,
            ({ status }) =>
              status === "stuck" || status === "completed" || status === "failed" || status === "cancelled"
          ),
          ({ problems, status }) => {
            const [only, ...others] = problems
            return only === undefined || others.length > 0
              ? Effect.dieMessage(`${status}, with ${problems.length} problems: ${JSON.stringify(problems)}`)
              : Effect.succeed(only)
          }
        )
    }
    return yield* body(house)
  }).pipe(Effect.scoped, Effect.provide(Logger.remove(Logger.defaultLogger)))
}
