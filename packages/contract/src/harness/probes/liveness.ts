/** LV: every branch goes on until it is over or waits for something that inspection names; no wake-up is lost. */
import { Effect } from "effect"
import { canonical } from "../CanonicalWorkflow.js"
import type { BranchState } from "../Plane.js"
import { of, type Probe } from "../Probe.js"
import { crashAt, isNamed } from "../Scenario.js"
import { type Answers, byName, type Stand } from "../Stand.js"

const probe = of("LV")

/** Driven step by step; at each rest inspection must name what is waited for. */
const runs = (name: keyof typeof canonical, answers: Answers = byName): Probe =>
  probe(
    `runs/${canonical[name]("once").name}`,
    `${canonical[name]("once").name} ends, and says at each rest what it waits for`,
    (stand) =>
      Effect.gen(function* () {
        const workflow = canonical[name](stand.strictest)
        const process = yield* stand.open()
        const at = yield* stand.start(process, workflow)
        const looking: Answers = (gate) => answers(gate)
        for (;;) {
          const state = yield* stand.rest(at)
          isNamed(stand, state)
          const [next] = state.pending
          if (state.status !== "waiting" || next === undefined) {
            stand.check(state.status === "completed", `the run did not complete: it is ${state.status}`)
            return
          }
          const answer = looking(next.gate)
          const { outcome } = yield* stand.resume(at, next.interrupt, answer?.value)
          stand.check(outcome === "accepted", `the answer to the open gate ${next.gate} was ${outcome}`)
          if (outcome !== "accepted") return
        }
      })
  )

const completes = (stand: Stand, state: BranchState) =>
  Effect.sync(() => {
    isNamed(stand, state)
    stand.check(state.status === "completed", `the run did not complete: it is ${state.status}`)
  })

const parkedCrash = (stand: Stand) =>
  Effect.gen(function* () {
    yield* stand.need("durable")
    const workflow = canonical.prefixGateSuffix(stand.strictest)
    const first = yield* stand.open()
    const at = yield* stand.start(first, workflow)
    isNamed(stand, yield* stand.rest(at))
    yield* stand.kill(first)
    const after = { ...at, process: yield* stand.open() }
    const state = yield* stand.rest(after)
    isNamed(stand, state)
    const gate = stand.pending(state, "ask")
    if (gate === undefined) return
    yield* stand.resume(after, gate, "answer to ask")
    yield* completes(stand, yield* stand.rest(after))
  })

export const liveness: ReadonlyArray<Probe> = [
  ...(
    [
      "linear",
      "twoEffects",
      "gate",
      "prefixGateSuffix",
      "parallel",
      "parallelGates",
      "gateBesideNode",
      "twoGates",
      "twoGatesInOneNode",
      "nested",
      "fanOut",
      "loop",
      "loopOfGates"
    ] as const
  ).map((name) => runs(name)),
  runs("invalidWriter"),
  probe("parked-crash", "a run killed while parked is woken by its answer", parkedCrash),
  probe("answered-while-down", "an answer that came while no process ran the branch wakes it", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable")
      yield* stand.needMany()
      const workflow = canonical.prefixGateSuffix(stand.strictest)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      const gate = stand.pending(yield* stand.rest(at), "ask")
      yield* stand.kill(first)
      if (gate === undefined) return
      const client = yield* stand.open({ role: "client" })
      const { outcome } = yield* stand.resume({ ...at, process: client }, gate, "answer to ask")
      stand.check(outcome === "accepted", `the answer was ${outcome}`)
      const after = { ...at, process: yield* stand.open() }
      yield* completes(stand, yield* stand.rest(after))
    })
  ),
  probe("answered-while-busy", "an answer that comes while the run is busy elsewhere is not lost", (stand) =>
    Effect.gen(function* () {
      const workflow = canonical.gateBesideNode(stand.strictest)
      const hold = stand.hold("before.run-1.busy.busy-fx")
      const process = yield* stand.open()
      const at = yield* stand.start(process, workflow)
      if ((yield* stand.until(hold, at)) !== undefined) return
      const state = yield* stand.inspect(at)
      const gate = state.pending.find(({ gate }) => gate === "ask")?.interrupt
      if (gate === undefined) {
        stand.note("the gate is not open yet while the other lane is busy: answered at rest")
        yield* hold.release
        yield* completes(stand, yield* stand.drive(at, byName))
        return
      }
      const { outcome } = yield* stand.resume(at, gate, "answer to ask")
      stand.check(outcome === "accepted", `the answer was ${outcome}`)
      yield* hold.release
      const ended = yield* stand.rest(at)
      yield* completes(stand, ended)
    })
  ),
  ...(
    [
      ["linear", ["body.one", "before.one.one-fx", "after.one.one-fx", "before.two.two-fx", "after.three.three-fx"]],
      ["twoEffects", ["before.both.second-fx"]],
      ["parallel", ["before.left.left-fx", "after.right.right-fx", "body.join"]],
      ["twoGates", ["before.between.between-fx", "after.last.last-fx"]],
      ["nested", ["before.inner-prefix.inner-prefix-fx", "before.inner-suffix.inner-suffix-fx"]],
      ["fanOut", ["before.part@2.part-fx"]],
      ["loop", ["before.turn@1.turn-fx", "before.last.last-fx"]]
    ] as const
  ).map(([name, points]) =>
    probe(
      `killed/${canonical[name]("once").name}`,
      `${canonical[name]("once").name} killed in its course ends all the same`,
      (stand) =>
        Effect.forEach(
          points,
          (point, i) => {
            const run = `run-${i + 1}`
            const [window = "", ...rest] = point.split(".")
            return Effect.scoped(
              Effect.gen(function* () {
                const workflow = canonical[name](stand.strictest)
                const { at, state } = yield* crashAt(stand, workflow, [window, run, ...rest].join("."), { run })
                isNamed(stand, state)
                stand.check(state.status === "completed", `${run} did not complete: it is ${state.status}`)
                yield* stand.kill(at.process)
              })
            )
          },
          { discard: true }
        )
    )
  ),
  probe("in-doubt", "a run that is stuck with an effect in doubt says so", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable")
      const { state } = yield* crashAt(stand, canonical.silent("once"), "after.run-1.pay.pay-fx")
      isNamed(stand, state)
    })
  ),
  probe("cancel", "a parked run that is cancelled ends", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("cancel")
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.prefixGateSuffix(stand.strictest))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      const { accepted } = yield* stand.ask(process.ask("cancel", { branch: at.branch }))
      stand.check(accepted, "the cancellation was not taken")
      const state = yield* stand.rest(at)
      stand.check(state.status === "cancelled", `the run was cancelled and is ${state.status}`)
      if (gate === undefined) return
      const { outcome } = yield* stand.resume(at, gate, "too late")
      stand.check(outcome === "refused", `an answer to a cancelled run was ${outcome}`)
      stand.check(stand.bodies("run-1", "suffix") === 0, "a cancelled run went on")
    })
  )
]
