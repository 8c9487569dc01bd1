/** CV: what is persisted satisfies what was declared; what does not is refused loudly, and what is damaged is noticed. */
import { Effect } from "effect"
import { canonical } from "../CanonicalWorkflow.js"
import { of, type Probe } from "../Probe.js"
import { finishes } from "../Scenario.js"
import type { Stand } from "../Stand.js"

const probe = of("CV")

/** A run whose writer broke its Schema. */
const broken = (stand: Stand) =>
  Effect.gen(function* () {
    yield* stand.need("schemas")
    const process = yield* stand.open()
    const at = yield* stand.start(process, canonical.invalidWriter(stand.strictest))
    const gate = stand.pending(yield* stand.rest(at), "break")
    if (gate === undefined) return undefined
    yield* stand.resume(at, gate, true)
    return { at, gate, state: yield* stand.rest(at) }
  })

const invalidAnswers = ["true", 1, null, {}, []]

export const checkpointValidity: ReadonlyArray<Probe> = [
  probe("invalid-output", "a node's output that breaks its Schema is refused loudly and not stored", (stand) =>
    Effect.gen(function* () {
      const found = yield* broken(stand)
      if (found === undefined) return
      const { at, state } = found
      stand.check(
        state.status === "failed" || state.status === "stuck",
        `what broke its Schema was not refused: the run is ${state.status}`
      )
      stand.check((state.error ?? "") !== "", "the refusal does not say what is wrong")
      stand.check(stand.bodies("run-1", "suffix") === 0, "what comes after the refused output ran")
      if (!stand.hello.capabilities.history) return
      const recorded = yield* stand.recorded(at)
      stand.check(!recorded.includes("writer"), "what broke its Schema is in the history")
    })
  ),
  probe("last-checkpoint", "after a refused output the last valid checkpoint is usable", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("fork")
      const found = yield* broken(stand)
      if (found === undefined) return
      const made = yield* stand.forked(found.at, found.gate, "valid", "fork-1")
      const answers = () => ({ value: "valid" })
      const workflow = canonical.invalidWriter(stand.strictest)
      yield* finishes(stand, { answers, at: made, run: "run-1", state: yield* stand.rest(made), workflow })
    })
  ),
  probe("invalid-answer", "an answer that breaks the gate's Schema is refused, and consumes nothing", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("schemas")
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.gate(stand.strictest, "boolean"))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      for (const value of invalidAnswers) {
        const { outcome } = yield* stand.resume(at, gate, value)
        stand.check(outcome === "refused", `${JSON.stringify(value)} was ${outcome} as a boolean`)
      }
      const state = yield* stand.rest(at)
      stand.check(stand.pending(state, "ask") !== undefined, "a refused answer consumed the gate")
      const { outcome } = yield* stand.resume(at, gate, false)
      stand.check(outcome === "accepted", `the valid answer after refused ones was ${outcome}`)
    })
  ),
  probe("invalid-fork", "a fork with a value that breaks the gate's Schema is refused", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("schemas", "fork")
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.gate(stand.strictest, "boolean"))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      for (const [i, value] of invalidAnswers.entries()) {
        const { outcome } = yield* stand.resume(at, gate, value, { intent: "fork", forkId: `fork-${i}` })
        stand.check(outcome === "refused", `a fork with ${JSON.stringify(value)} as a boolean was ${outcome}`)
      }
    })
  ),
  probe("damage", "a recorded outcome that was damaged in the store is noticed, and not served", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("damage", "durable")
      const workflow = canonical.prefixGateSuffix(stand.strictest)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      yield* stand.kill(first)
      const vandal = yield* stand.open({ role: "client" })
      yield* stand.ask(vandal.ask("damage", { branch: at.branch }))
      yield* stand.kill(vandal)
      const after = { ...at, process: yield* stand.open() }
      const { outcome } = yield* stand.resume(after, gate, "go on")
      // Whether the answer is refused or the run is stuck is the plane's choice; that it goes on is not.
      const state = yield* stand.rest(after)
      stand.check(state.status !== "completed", "the run went on with what was damaged")
      stand.check(
        outcome === "refused" || state.status === "stuck" || state.status === "failed",
        `the damage was not noticed: the run is ${state.status}`
      )
      stand.check(stand.bodies("run-1", "suffix") === 0, "what depends on the damaged outcome ran")
    })
  )
]
