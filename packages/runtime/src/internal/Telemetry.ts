/**
 * Spans and log annotations of what runs: one trace for each run, whichever processes carry it out, and nothing of it on the
 * hot path unless a tracer is installed. A replay runs no body, and so makes no span.
 */
import { type BranchId, runOf } from "@fermata/contract"
import { Context, DefaultServices, Effect, FiberId, FiberRef, FiberRefs, HashMap, type Runtime, Tracer } from "effect"
import { hash } from "node:crypto"
import type * as SideEffect from "../SideEffect.js"

/** The tracer that Effect has when nobody installed one: its spans go nowhere. */
const none = Context.get(DefaultServices.liveServices, Tracer.Tracer)

const isTraced = (runtime: Runtime.Runtime<never>): boolean => {
  const services = FiberRefs.getOrDefault(runtime.fiberRefs, DefaultServices.currentServices)
  return (
    Context.get(services, Tracer.Tracer) !== none &&
    FiberRefs.getOrDefault(runtime.fiberRefs, FiberRef.currentTracerEnabled)
  )
}

/** A step, as its span tells of it. */
interface Traced {
  readonly key: string
  readonly attempt: number
  readonly command: { readonly node: { readonly name: string; readonly effects: ReadonlyMap<string, SideEffect.Any> } }
}

/** What the bodies of one branch's steps log and trace under. */
export class Telemetry {
  /** The host's references, with annotations for what a body logs. */
  readonly refs: FiberRefs.FiberRefs
  /** What is said of the branch with every line of its log. */
  readonly annotations: HashMap.HashMap<string, unknown>
  private readonly parent: Tracer.ExternalSpan | undefined

  constructor(
    private readonly branch: BranchId,
    runtime: Runtime.Runtime<never>
  ) {
    this.annotations = HashMap.make(["fermata.run", runOf(branch)], ["fermata.branch", branch])
    const { fiberRefs } = runtime
    this.refs = FiberRefs.updateAs(fiberRefs, {
      fiberId: FiberId.runtime(0, 0),
      fiberRef: FiberRef.currentLogAnnotations,
      value: HashMap.union(FiberRefs.getOrDefault(fiberRefs, FiberRef.currentLogAnnotations), this.annotations)
    })
    this.parent = isTraced(runtime) ? parentOf(branch) : undefined
  }

  /** The body as a span of its run's trace, if anybody traces. */
  inSpan<A, E>(body: Effect.Effect<A, E>, step: Traced): Effect.Effect<A, E> {
    const { branch, parent } = this
    if (parent === undefined) return body
    const { effects, name } = step.command.node
    return Effect.withSpan(body, `step ${name}`, {
      parent,
      captureStackTrace: false,
      attributes: {
        "fermata.run": runOf(branch),
        "fermata.branch": branch,
        "fermata.step": step.key,
        "fermata.node": name,
        "fermata.attempt": step.attempt,
        "fermata.delivery": [...new Set([...effects.values()].map(({ delivery }) => delivery.policy))].join(",")
      }
    })
  }
}

/** Ids that every process derives alike from the run's: the trace of a run, and a parent for what happens in it. */
const parentOf = (branch: BranchId): Tracer.ExternalSpan => {
  const id = hash("sha256", runOf(branch), "hex")
  return Tracer.externalSpan({ traceId: id.slice(0, 32), spanId: id.slice(32, 48), sampled: true })
}
