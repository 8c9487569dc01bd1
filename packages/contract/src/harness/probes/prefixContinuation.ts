/** PC: what has a durable outcome does not run again, and what has none runs. */
import { Effect } from "effect"
import { type CanonicalWorkflow, canonical } from "../CanonicalWorkflow.js"
import { of, type Probe } from "../Probe.js"
import { continues, crashAt, ran } from "../Scenario.js"
import { byName, type Stand } from "../Stand.js"

const probe = of("PC")

/** Kills one run at each of the points, and looks at how it goes on. */
const killedAt =
  (workflow: (stand: Stand) => CanonicalWorkflow, ...points: ReadonlyArray<string>): Probe["run"] =>
  (stand) =>
    Effect.forEach(
      points,
      (point, i) => {
        const run = `run-${i + 1}`
        const [window, ...rest] = point.split(" ")
        return Effect.scoped(
          Effect.flatMap(crashAt(stand, workflow(stand), `${window}.${run}.${rest.join(".")}`, { run }), (crash) =>
            Effect.zipRight(continues(stand, crash), stand.kill(crash.at.process))
          )
        )
      },
      { discard: true }
    )

export const prefixContinuation: ReadonlyArray<Probe> = [
  probe(
    "kill-at-body",
    "a run killed as a node's body begins goes on with that node",
    killedAt((stand) => canonical.linear(stand.strictest), "body one", "body two", "body three")
  ),
  probe(
    "kill-before-effect",
    "a run killed before an effect fires goes on with that effect",
    killedAt(
      (stand) => canonical.linear(stand.strictest),
      "before one one-fx",
      "before two two-fx",
      "before three three-fx"
    )
  ),
  probe(
    "kill-after-effect",
    "a run killed after an effect fired and before its outcome is recorded runs nothing before it again",
    killedAt(
      (stand) => canonical.linear(stand.strictest),
      "after one one-fx",
      "after two two-fx",
      "after three three-fx"
    )
  ),
  probe("two-effects", "an effect of a node that did not end is served its outcome when the node runs again", (stand) =>
    Effect.gen(function* () {
      const crash = yield* crashAt(stand, canonical.twoEffects(stand.strictest), "before.run-1.both.second-fx")
      yield* ran(stand, crash)
      const { length } = stand.fired("run-1", "both").filter(({ effect }) => effect === "first-fx")
      stand.check(length <= 1, `first-fx fired ${length} times`)
    })
  ),
  probe("resume", "an answer to a parked run does not run again what came before the gate", (stand) =>
    Effect.gen(function* () {
      const workflow = canonical.prefixGateSuffix(stand.strictest)
      const process = yield* stand.open()
      const at = yield* stand.start(process, workflow)
      const state = yield* stand.drive(at, byName)
      yield* ran(stand, { answers: byName, at, run: "run-1", state, workflow })
      stand.check(stand.bodies("run-1", "prefix") === 1, `prefix ran ${stand.bodies("run-1", "prefix")} times`)
    })
  ),
  probe("parked", "a run killed while parked is answered without running its prefix again", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable")
      const workflow = canonical.prefixGateSuffix(stand.strictest)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      yield* stand.rest(at)
      yield* stand.kill(first)
      const after = { ...at, process: yield* stand.open() }
      const state = yield* stand.drive(after, byName)
      yield* ran(stand, { answers: byName, at: after, run: "run-1", state, workflow })
      stand.check(stand.bodies("run-1", "prefix") === 1, `prefix ran ${stand.bodies("run-1", "prefix")} times`)
    })
  ),
  probe(
    "behind-gate",
    "a run killed behind a gate keeps its prefix and its answer",
    killedAt(
      (stand) => canonical.prefixGateSuffix(stand.strictest),
      "before suffix suffix-fx",
      "after suffix suffix-fx"
    )
  ),
  probe(
    "two-gates",
    "a run killed between and behind two gates keeps what was done and answered",
    killedAt((stand) => canonical.twoGates(stand.strictest), "before between between-fx", "before last last-fx")
  ),
  probe(
    "nested",
    "a run killed in its nested part goes on there",
    killedAt(
      (stand) => canonical.nested(stand.strictest),
      "before inner-prefix inner-prefix-fx",
      "before inner-suffix inner-suffix-fx",
      "before suffix suffix-fx"
    )
  ),
  probe(
    "fan-out",
    "a run killed with one part of a fan-out unfinished runs that part alone",
    killedAt((stand) => canonical.fanOut(stand.strictest), "before part@2 part-fx", "after part@3 part-fx")
  ),
  probe(
    "loop",
    "a run killed in a loop goes on in that iteration",
    killedAt(
      (stand) => canonical.loop(stand.strictest),
      "before turn@1 turn-fx",
      "after turn@2 turn-fx",
      "before last last-fx"
    )
  ),
  probe(
    "parallel",
    "a run killed with one lane unfinished runs that lane alone",
    killedAt(
      (stand) => canonical.parallel(stand.strictest),
      "before left left-fx",
      "before right right-fx",
      "before join join-fx"
    )
  ),
  probe("killed-twice", "a run killed again in its recovery goes on all the same", (stand) =>
    Effect.gen(function* () {
      const crash = yield* crashAt(stand, canonical.linear(stand.strictest), "before.run-1.two.two-fx", {
        again: "before.run-1.three.three-fx"
      })
      yield* continues(stand, crash)
    })
  ),
  probe("fork", "a fork runs nothing again that came before its checkpoint", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("fork")
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.prefixGateSuffix(stand.strictest))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      const made = yield* stand.forked(at, gate, "fork", "fork-1")
      const state = yield* stand.rest(made)
      stand.check(state.status === "completed", `the fork did not complete: it is ${state.status}`)
      stand.check(stand.bodies("run-1", "prefix") === 1, `prefix ran ${stand.bodies("run-1", "prefix")} times`)
    })
  )
]
