/**
 * The fibers of one workflow execution on their own Scheduler, Clock and Random: forked, driven by activations, and
 * evicted without running anything.
 */
import type { Effect } from "effect"
import {
  Clock,
  Context,
  DefaultServices,
  type Exit,
  type Fiber,
  FiberId,
  FiberRef,
  FiberRefs,
  HashMap,
  HashSet,
  Logger,
  Random,
  Runtime,
  RuntimeFlags
} from "effect"
import { globalValue } from "effect/GlobalValue"
import { WorkflowScheduler } from "./WorkflowScheduler.js"
import { type Commands, WorkflowScope } from "./WorkflowScope.js"
import { WorkflowClock, WorkflowRandom } from "./WorkflowServices.js"

export interface RootFiber {
  /** True while an activation is under way, also between its slices. */
  readonly active: boolean
  /** True if the fiber runs on this execution's scheduler. */
  owns(fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean
  /** Starts the workflow. Only inside an activation. */
  fork(body: Effect.Effect<unknown, unknown>, onExit: (exit: Exit.Exit<unknown, unknown>) => void): void
  /** Interrupts the workflow's root. Only inside an activation. */
  interrupt(): void
  /** Runs `react`, then every fiber until none is runnable; long ones in slices. Nothing, once it was evicted. */
  activate(react: () => void, done: (result: "quiet" | "runaway") => void): void
  /** Forgets every fiber; no finalizer runs. */
  evict(): void
}

/** How long one slice of an activation may take (milliseconds): leases are renewed in between. */
const slice = 20

// Root fibers and daemons are held by Effect's global scope until they end; evicted ones never end by themselves.
const globalScope = globalValue(
  Symbol.for("effect/FiberScope/Global"),
  (): { readonly roots: Set<Fiber.RuntimeFiber<unknown, unknown>> } => ({
    roots: new Set()
  })
)

const flags = RuntimeFlags.disable(Runtime.defaultRuntimeFlags, RuntimeFlags.RuntimeMetrics)

export const rootFiber = (options: {
  readonly seed: string
  /** Said with every line that the workflow logs. */
  readonly annotations: HashMap.HashMap<string, unknown>
  readonly commands: Commands
  readonly services: ReadonlyArray<Context.Tag<never, unknown>>
  readonly host: Runtime.Runtime<never>
  readonly time: () => number
  /** True while logs are not to be written: they were, when this was live. */
  readonly silent: () => boolean
  readonly sleep: (millis: number) => Effect.Effect<void>
  readonly onForeign: () => void
}): RootFiber => {
  const scheduler = new WorkflowScheduler(options.onForeign)
  const clock = new WorkflowClock(options.time, options.sleep)
  const random = new WorkflowRandom(options.seed)
  const services = DefaultServices.liveServices.pipe(
    Context.add(Clock.Clock, clock),
    Context.add(Random.Random, random)
  )
  const loggers = FiberRefs.getOrDefault(options.host.fiberRefs, FiberRef.currentLoggers)
  const logger = Logger.make<unknown, void>((entry) => {
    if (options.silent()) return
    const annotations = HashMap.union(entry.annotations, options.annotations)
    for (const each of loggers) each.log({ ...entry, annotations })
  })
  const intervals = new Set<NodeJS.Timeout>()
  let root: Fiber.RuntimeFiber<unknown, unknown> | undefined
  let active = false

  // Only what the workflow declares of the worker's services; their types were checked at the definition.
  const declared = new Map<string, unknown>([[WorkflowScope.key, options.commands]])
  for (const { key } of options.services) declared.set(key, options.host.context.unsafeMap.get(key))
  const context = Context.unsafeMake<never>(declared)
  const runtime = Runtime.make({ context, runtimeFlags: flags, fiberRefs: FiberRefs.empty() })

  /** `Effect.never` keeps an interval alive to hold its process; an evicted one must not. */
  const tracked = <A>(run: () => A): A => {
    const setInterval = globalThis.setInterval
    globalThis.setInterval = ((...parameters: Parameters<typeof setInterval>) => {
      const interval = setInterval(...parameters)
      interval.unref()
      intervals.add(interval)
      return interval
    }) as typeof setInterval
    try {
      return run()
    } finally {
      globalThis.setInterval = setInterval
    }
  }

  const drain = (done: (result: "quiet" | "runaway") => void): void => {
    if (scheduler.dead) return
    const result = tracked(() => scheduler.drain(performance.now() + slice))
    if (result === false) {
      setImmediate(() => drain(done))
    } else {
      active = false
      done(result === true ? "quiet" : "runaway")
    }
  }

  return {
    get active() {
      return active
    },
    owns: (fiber) => fiber.currentScheduler === scheduler,
    fork: (body, onExit) => {
      root = Runtime.runFork(runtime)(body, {
        scheduler,
        immediate: false,
        updateRefs: (refs, fiberId) =>
          [
            [DefaultServices.currentServices, services] as const,
            [FiberRef.currentLoggers, HashSet.make(logger)] as const,
            [
              FiberRef.currentMinimumLogLevel,
              FiberRefs.getOrDefault(options.host.fiberRefs, FiberRef.currentMinimumLogLevel)
            ] as const
          ].reduce(
            (all, [fiberRef, value]) =>
              FiberRefs.updateAs(all, { fiberId, fiberRef: fiberRef as FiberRef.FiberRef<unknown>, value }),
            refs
          )
      })
      root.addObserver(onExit)
    },
    interrupt: () => root?.unsafeInterruptAsFork(FiberId.none),
    activate: (react, done) => {
      // What the journal took just before, or what failed meanwhile, reaches nobody any more.
      if (scheduler.dead) return
      active = true
      scheduler.begin()
      tracked(react)
      drain(done)
    },
    evict: () => {
      active = false
      scheduler.kill()
      for (const fiber of globalScope.roots) if (fiber.currentScheduler === scheduler) globalScope.roots.delete(fiber)
      for (const interval of intervals) clearInterval(interval)
      intervals.clear()
      root = undefined
    }
  }
}
