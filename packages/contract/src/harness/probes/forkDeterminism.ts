/** FD: each fork gets its own value, and the same value gives the same outcome, whatever else was resumed. */
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { canonical } from "../CanonicalWorkflow.js"
import { of, type Probe } from "../Probe.js"
import { finishes } from "../Scenario.js"
import { type At, type Stand } from "../Stand.js"

const probe = of("FD")

/** A parked run of prefix, gate and suffix; what `use` does with it. */
const parked = (stand: Stand, use: (at: At, gate: string) => ReturnType<Probe["run"]>) =>
  Effect.gen(function* () {
    yield* stand.need("fork")
    const process = yield* stand.open()
    const at = yield* stand.start(process, canonical.prefixGateSuffix(stand.strictest))
    const gate = stand.pending(yield* stand.rest(at), "ask")
    if (gate !== undefined) yield* use(at, gate)
  })

/** The branch ended as this answer makes it end. */
const endsWith = (stand: Stand, at: At, value: unknown) =>
  Effect.gen(function* () {
    const state = yield* stand.rest(at)
    const answers = () => ({ value })
    const workflow = canonical.prefixGateSuffix(stand.strictest)
    yield* finishes(stand, { answers, at, run: "run-1", state, workflow })
    return state.value
  })

const forked = (stand: Stand, at: At, gate: string, value: unknown, forkId: string) =>
  Effect.gen(function* () {
    const made = yield* stand.fork(at, gate, value, forkId)
    return made === undefined ? undefined : yield* endsWith(stand, made, value)
  })

export const forkDeterminism: ReadonlyArray<Probe> = [
  probe("after-resume", "a fork made after the gate was answered gets its own value", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.resume(at, gate, "first")
        yield* endsWith(stand, at, "first")
        yield* forked(stand, at, gate, "second", "fork-2")
        yield* forked(stand, at, gate, "third", "fork-3")
      })
    )
  ),
  probe(
    "before-resume",
    "a fork made before the gate was answered leaves the gate open, and each gets its own value",
    (stand) =>
      parked(stand, (at, gate) =>
        Effect.gen(function* () {
          yield* forked(stand, at, gate, "forked", "fork-1")
          const state = yield* stand.inspect(at)
          stand.check(stand.pending(state, "ask") !== undefined, "the fork consumed its parent's gate")
          yield* stand.resume(at, gate, "answered")
          yield* endsWith(stand, at, "answered")
        })
      )
  ),
  probe("between-resumes", "forks made before and after a resume of the same gate do not mix their values", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        const early = yield* stand.fork(at, gate, "early", "fork-1")
        yield* stand.resume(at, gate, "main")
        const late = yield* stand.fork(at, gate, "late", "fork-2")
        yield* endsWith(stand, at, "main")
        if (early !== undefined) yield* endsWith(stand, early, "early")
        if (late !== undefined) yield* endsWith(stand, late, "late")
      })
    )
  ),
  probe("equal-values", "two forks with equal values end alike", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        const one = yield* forked(stand, at, gate, { same: [1, 2] }, "fork-1")
        yield* stand.resume(at, gate, "other")
        yield* endsWith(stand, at, "other")
        const two = yield* forked(stand, at, gate, { same: [1, 2] }, "fork-2")
        stand.check(isDeepStrictEqual(one, two), `equal values gave ${JSON.stringify(one)} and ${JSON.stringify(two)}`)
      })
    )
  ),
  probe("value-of-parent", "a fork with the value that its parent was answered with ends as its parent did", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.resume(at, gate, "same")
        const parent = yield* endsWith(stand, at, "same")
        const child = yield* forked(stand, at, gate, "same", "fork-1")
        stand.check(isDeepStrictEqual(parent, child), "the fork and its parent ended differently")
      })
    )
  ),
  probe("parent-untouched", "a fork leaves its parent as it was", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.resume(at, gate, "first")
        const before = yield* endsWith(stand, at, "first")
        yield* forked(stand, at, gate, "second", "fork-1")
        const after = yield* endsWith(stand, at, "first")
        stand.check(isDeepStrictEqual(before, after), "the parent's result changed")
      })
    )
  ),
  probe("fork-of-fork", "a fork of a fork gets its own value, at the gate that was open there", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("fork")
      const process = yield* stand.open()
      const workflow = canonical.twoGates(stand.strictest)
      const at = yield* stand.start(process, workflow)
      const first = stand.pending(yield* stand.rest(at), "first")
      if (first === undefined) return
      const child = yield* stand.fork(at, first, "child", "fork-1")
      if (child === undefined) return
      const second = stand.pending(yield* stand.rest(child), "second")
      if (second === undefined) return
      yield* stand.resume(child, second, "of the child")
      const grandchild = yield* stand.fork(child, second, "of the grandchild", "fork-2")
      const ends = (branch: At, last: string) =>
        Effect.flatMap(stand.rest(branch), (state) =>
          finishes(stand, {
            answers: (gate) => ({ value: gate === "first" ? "child" : last }),
            at: branch,
            run: "run-1",
            state,
            workflow
          })
        )
      yield* ends(child, "of the child")
      if (grandchild !== undefined) yield* ends(grandchild, "of the grandchild")
    })
  ),
  probe("after-crash", "a fork made after a crash gets its own value", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.need("durable")
        yield* stand.resume(at, gate, "first")
        yield* endsWith(stand, at, "first")
        yield* stand.kill(at.process)
        const process = yield* stand.open()
        yield* forked(stand, { ...at, process }, gate, "second", "fork-1")
      })
    )
  )
]
