/**
 * A loop of a workflow. Each iteration begins with its state in the journal and runs in a scope of its own: keys,
 * ordinals, random draws, resources and fibers. So a replay can begin with the last one as if it were the first (RD), and
 * whatever it costs does not grow with the number of iterations.
 */
import { admitSnapshot, type BranchId, type Entry, iterationScope, payloadOf } from "@fermata/contract"
import { Effect, Either, type Exit, type Fiber, type Option, Supervisor } from "effect"
import { InvalidValue } from "../RunError.js"
import type * as Codec from "./Codec.js"
import type { CommandBranch } from "./WorkflowCommands.js"
import { draft } from "./Payload.js"
import { entryUnreadable, iterationOutlived } from "./Problems.js"
import { type Commands, WorkflowScope } from "./WorkflowScope.js"
import { WorkflowClock, WorkflowRandom } from "./WorkflowServices.js"

/** What an iteration comes to. */
export type LoopStep =
  { readonly _tag: "Next"; readonly state: unknown } | { readonly _tag: "Done"; readonly value: unknown }

/** A loop as its definition has it. */
export interface LoopDefinition {
  readonly name: string
  readonly state: Codec.Codec<unknown>
  readonly initial: unknown
  readonly body: (state: unknown, iteration: number) => Effect.Effect<LoopStep, unknown, unknown>
}

/** What a loop needs of the commands of its branch. */
export interface LoopHost {
  readonly context: CommandBranch
  readonly branch: BranchId
  readonly key: string
  readonly waiting: () => Iterable<string>
  readonly issue: (snapshot: ReturnType<typeof draft.loopSnapshot>) => void
  /** The snapshot that the history goes on from; `undefined` if it has none but the one at entry. */
  readonly resumption: () => Effect.Effect<Entry> | undefined
  /** Commands whose keys are counted within `scope`. */
  readonly within: (scope: string) => Commands & {
    readonly sleep: (millis: number) => Effect.Effect<void>
    /** Positions of what the iteration took and wrote. */
    readonly claimed: ReadonlyArray<number> | undefined
  }
}

/** The fibers that an iteration began and that have not ended, also daemons and those that they began. */
class IterationFibers extends Supervisor.AbstractSupervisor<number> {
  private readonly live = new Set<Fiber.RuntimeFiber<unknown, unknown>>()
  override readonly value = Effect.sync(() => this.live.size)

  get size(): number {
    return this.live.size
  }

  override onStart<A, E, R>(
    _context: unknown,
    _effect: Effect.Effect<A, E, R>,
    _parent: Option.Option<Fiber.RuntimeFiber<unknown, unknown>>,
    fiber: Fiber.RuntimeFiber<A, E>
  ): void {
    this.live.add(fiber)
  }

  override onEnd<A, E>(_exit: Exit.Exit<A, E>, fiber: Fiber.RuntimeFiber<A, E>): void {
    this.live.delete(fiber)
  }
}

/** Runs a loop from its first iteration, or from the one that the history goes on with. */
export const runLoop = (host: LoopHost, loop: LoopDefinition): Effect.Effect<unknown, unknown, unknown> => {
  const { branch, context, key } = host

  /** What the iteration before took and wrote. */
  let claimed: ReadonlyArray<number> = []

  /** Journals the state that an iteration begins with, and gives it as a replay would read it. */
  const snapshot = (iteration: number, state: unknown): Effect.Effect<unknown> => {
    const encoded = context.writer.fitting(loop.state.encode(state))
    if (Either.isLeft(encoded)) {
      const what = `state of loop ${key} for iteration ${iteration}`
      return Effect.die(new InvalidValue({ what, issues: encoded.left.issues }))
    }
    // What one iteration hands to the next is what was written: no object is shared, live or replayed.
    const read = loop.state.decode(encoded.right)
    if (Either.isLeft(read)) {
      const what = `state of loop ${key} for iteration ${iteration}, which its Schema writes and does not read`
      return Effect.die(new InvalidValue({ what, issues: read.left.issues }))
    }
    host.issue(draft.loopSnapshot(key, iteration, context.time(), sorted(claimed), encoded.right))
    return Effect.succeed(read.right)
  }

  const restored = (entry: Entry): Effect.Effect<{ readonly iteration: number; readonly state: unknown }> => {
    const { iteration, state } = payloadOf({ kind: "loop.snapshot", payload: entry.payload })
    const read = loop.state.revive(state)
    if (Either.isRight(read)) return Effect.succeed({ iteration, state: read.right })
    context.doom(entryUnreadable(branch, entry.seq, `the state of loop ${key}`, read.left.issues))
    return Effect.never
  }

  const iterate = (iteration: number, state: unknown): Effect.Effect<LoopStep, unknown, unknown> => {
    const scope = iterationScope(key, iteration)
    const commands = host.within(scope)
    claimed = commands.claimed ?? []
    const fibers = new IterationFibers()
    return Effect.suspend(() => loop.body(state, iteration)).pipe(
      Effect.scoped,
      Effect.provideService(WorkflowScope, commands),
      Effect.withClock(new WorkflowClock(context.time, (millis) => commands.sleep(millis))),
      Effect.withRandom(new WorkflowRandom(`${commands.run}|${scope}`)),
      Effect.supervised(fibers),
      Effect.flatMap((step) => {
        const verdict = admitSnapshot(key, iteration, { waiting: host.waiting(), fibers: fibers.size })
        if (verdict._tag === "Take") return Effect.succeed(step)
        context.doom(iterationOutlived(branch, context.recovery.head, key, iteration, verdict.by))
        return Effect.never
      })
    )
  }

  return Effect.gen(function* () {
    let state = yield* snapshot(1, loop.initial)
    let iteration = 1
    const later = host.resumption()
    if (later !== undefined) ({ iteration, state } = yield* restored(yield* later))
    for (;;) {
      const step = yield* iterate(iteration, state)
      if (step._tag === "Done") return step.value
      iteration++
      state = yield* snapshot(iteration, step.state)
    }
  })
}

/** Each once, in order: replays that skip an inner loop come by them in another one. */
const sorted = (positions: ReadonlyArray<number>): ReadonlyArray<number> =>
  [...new Set(positions)].sort((a, b) => a - b)
