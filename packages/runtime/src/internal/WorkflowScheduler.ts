/**
 * The Scheduler of one branch: one FIFO, drained only inside an activation. What is runnable is therefore a function
 * of the events delivered, and a wake-up from anywhere else is seen for what it is (RD).
 */
import { FiberRef, type Fiber, type Scheduler } from "effect"

/** Work that one activation may do before it is taken for a loop that never waits. */
export interface ActivationLimits {
  readonly tasks: number
  /** Yields of fibers that computed for long without waiting. */
  readonly yields: number
}

export const defaultLimits: ActivationLimits = { tasks: 2_000_000, yields: 50_000 }

const opsBeforeYield = 2048

// What a fiber was told last decides whether being scheduled means that it goes on: the queue is not public.
interface FiberQueue {
  readonly _queue: ReadonlyArray<{ readonly _tag: string }>
}

export class WorkflowScheduler implements Scheduler.Scheduler {
  /** True while an activation runs. */
  active = false
  /** True once the branch was evicted: nothing runs any more. */
  dead = false
  private tasks: Array<Scheduler.Task> = []
  private next = 0
  private done = 0
  private yields = 0

  /** `onForeign` is told of wake-ups that no delivered event caused. */
  constructor(
    private readonly onForeign: () => void,
    private readonly limits: ActivationLimits = defaultLimits
  ) {}

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    if (fiber.currentOpCount <= opsBeforeYield) return false
    this.yields++
    return fiber.getFiberRef(FiberRef.currentSchedulingPriority)
  }

  scheduleTask(task: Scheduler.Task, _priority: number, fiber?: Fiber.RuntimeFiber<unknown, unknown>): void {
    if (this.dead) return
    if (this.active) {
      this.tasks.push(task)
      return
    }
    const last = fiber === undefined ? undefined : (fiber as unknown as FiberQueue)._queue.at(-1)
    // An observer from the host (`Fiber.status`, `Fiber.dump`) only looks; let it.
    if (last?._tag === "Stateful") return task()
    this.onForeign()
  }

  /** Begins an activation. */
  begin(): void {
    this.active = true
    this.done = 0
    this.yields = 0
  }

  /** Runs tasks until none is left (true), the deadline passes (false), or the limits are exceeded (`"runaway"`). */
  drain(deadline: number): boolean | "runaway" {
    this.active = true
    const result = this.run(deadline)
    // Between slices nothing of the branch runs: a wake-up then is foreign too.
    this.active = false
    return result
  }

  private run(deadline: number): boolean | "runaway" {
    while (this.next < this.tasks.length) {
      const task = this.tasks[this.next++]
      task?.()
      if ((++this.done & 63) === 0) {
        if (this.done > this.limits.tasks || this.yields > this.limits.yields) return "runaway"
        if (this.next > 1024) {
          this.tasks.splice(0, this.next)
          this.next = 0
        }
        if (performance.now() > deadline && this.next < this.tasks.length) return false
      } else if (this.yields > 0 && performance.now() > deadline && this.next < this.tasks.length) {
        return this.yields > this.limits.yields ? "runaway" : false
      }
    }
    this.tasks.length = 0
    this.next = 0
    return true
  }

  /** Nothing runs from here on. */
  kill(): void {
    this.dead = true
    this.active = false
    this.tasks.length = 0
    this.next = 0
  }
}
