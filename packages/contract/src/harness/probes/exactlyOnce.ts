/** EO: an effect happens as often as its declared delivery permits, through crashes, resumes, forks and takeovers. */
import { Effect } from "effect"
import type { DeliveryPolicy } from "../../Delivery.js"
import { canonical } from "../CanonicalWorkflow.js"
import { DriverFault } from "../Driver.js"
import { of, type Probe } from "../Probe.js"
import { crashAt, happensOnce, ran } from "../Scenario.js"
import { Inapplicable } from "../Needs.js"
import { byName, type Stand } from "../Stand.js"

const probe = of("EO")

/** Kills a run in one window of the middle effect's firing. */
const killed =
  (delivery: DeliveryPolicy, window: "before" | "after"): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      const crash = yield* crashAt(stand, canonical.linear(delivery), `${window}.run-1.two.two-fx`)
      yield* happensOnce(stand, crash.at, "run-1")
      yield* ran(stand, crash)
    })

const ofDelivery = (delivery: DeliveryPolicy): ReadonlyArray<Probe> => [
  probe(
    `${delivery}/kill-before-effect`,
    `a ${delivery} effect happens as promised when its process is killed before it fires`,
    killed(delivery, "before")
  ),
  probe(
    `${delivery}/kill-after-effect`,
    `a ${delivery} effect happens as promised when its process is killed after it fired`,
    killed(delivery, "after")
  ),
  probe(`${delivery}/parked`, `a ${delivery} effect before a gate happens once through a crash while parked`, (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable")
      const workflow = canonical.prefixGateSuffix(delivery)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      yield* stand.rest(at)
      const durable = stand.fired("run-1", "prefix").length
      yield* stand.kill(first)
      const after = { ...at, process: yield* stand.open() }
      yield* stand.drive(after, byName)
      yield* happensOnce(stand, after, "run-1")
      stand.check(
        stand.fired("run-1", "prefix").length === durable,
        "an effect whose outcome was durable fired again after the crash"
      )
    })
  )
]

/** An effect in doubt of which the receiver says nothing: an operator settles it. */
const settled =
  (window: "before" | "after"): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      yield* stand.need("settle", "durable")
      const happened = window === "after"
      const { at, state } = yield* crashAt(stand, canonical.silent("once"), `${window}.run-1.pay.pay-fx`)
      const doubt = state.waitingFor.find(({ kind }) => kind === "operator")
      yield* happensOnce(stand, at, "run-1")
      if (doubt === undefined) {
        // Whether it may be so is LV's to judge; that it fired no more was just seen.
        const reason = `the run is ${state.status} and names no operator that it waits for, which LV judges`
        return yield* new Inapplicable({ verdict: "not applicable", reason })
      }
      const value = stand.fired("run-1", "pay").at(0)?.value ?? ""
      stand.note(`an operator says that ${doubt.name} ${happened ? "happened" : "did not happen"}`)
      const { accepted } = yield* stand.ask(
        at.process.ask("settle", { branch: at.branch, key: doubt.name, happened, value })
      )
      stand.check(accepted, "the operator's word was not taken")
      const ended = yield* stand.rest(at)
      stand.check(ended.status === "completed", `the run did not complete: it is ${ended.status}`)
      yield* happensOnce(stand, at, "run-1")
      const { length } = stand.fired("run-1", "pay")
      stand.check(length === 1, `the effect fired ${length} times`)
    })

/** What was fired depends on what was read: the reading must be durable first. */
const readThenAct =
  (delivery: "once" | "keyed"): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      const crash = yield* crashAt(stand, canonical.readThenAct(delivery), "after.run-1.act.act-fx")
      yield* happensOnce(stand, crash.at, "run-1")
      yield* ran(stand, crash)
    })

const zombie = (stand: Stand) =>
  Effect.gen(function* () {
    yield* stand.need("takeover")
    yield* stand.needMany()
    const delivery = stand.strictest
    if (delivery === "repeatable")
      return yield* new Inapplicable({
        verdict: "cannot be expressed",
        reason: "the plane's effects may all be repeated"
      })
    const workflow = canonical.linear(delivery)
    const hold = stand.hold("after.run-1.two.two-fx")
    const first = yield* stand.open({ brief: true })
    const at = yield* stand.start(first, workflow)
    if ((yield* stand.until(hold, at)) !== undefined) return
    stand.note(`${first.who} stands still`)
    yield* first.freeze
    const second = { ...at, process: yield* stand.open({ takeover: true, brief: true }) }
    // The successor passes the same point, if it fires, without stopping.
    yield* hold.release
    const state = yield* stand.rest(second)
    stand.note(`${first.who} goes on`)
    yield* first.thaw
    yield* stand.ask(first.ask("idle", {}))
    yield* ran(stand, { answers: byName, at: second, run: "run-1", state, workflow })
    yield* happensOnce(stand, second, "run-1")
    // A body may begin again: it does nothing outside but by its effects.
    const { length } = stand.fired("run-1", "three")
    stand.check(length === 1 || delivery !== "once", `three-fx fired ${length} times`)
  })

export const exactlyOnce: ReadonlyArray<Probe> = [
  ...(["once", "keyed", "transactional", "repeatable"] as const).flatMap(ofDelivery),
  probe("once/settled-happened", "an effect that an operator says happened is not fired again", settled("after")),
  probe("once/settled-not-happened", "an effect that an operator says did not happen is fired once", settled("before")),
  probe("once/read-then-act", "a once effect fires only after what it depends on is durable", readThenAct("once")),
  probe("keyed/read-then-act", "a keyed effect fires with one input, whatever was lost", readThenAct("keyed")),
  probe(
    "two-effects/kill-between",
    "of two effects of a node the first does not happen again for the second's sake",
    (stand) =>
      Effect.gen(function* () {
        const crash = yield* crashAt(stand, canonical.twoEffects(stand.strictest), "after.run-1.both.second-fx")
        yield* ran(stand, crash)
        yield* happensOnce(stand, crash.at, "run-1")
      })
  ),
  probe(
    "parallel/kill",
    "an effect that happened in one lane does not happen again for the other lane's sake",
    (stand) =>
      Effect.gen(function* () {
        const crash = yield* crashAt(stand, canonical.parallel(stand.strictest), "after.run-1.left.left-fx")
        yield* ran(stand, crash)
        yield* happensOnce(stand, crash.at, "run-1")
      })
  ),
  probe("fork", "a fork does not repeat effects before its checkpoint", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("fork")
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.prefixGateSuffix(stand.strictest))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      for (const forkId of ["fork-1", "fork-2"]) {
        yield* stand.rest(yield* stand.forked(at, gate, forkId, forkId))
      }
      const { length } = stand.fired("run-1", "prefix")
      const committed = yield* stand.committed(process, "run-1")
      const times = length + committed.filter(({ step }) => step === "prefix").length
      stand.check(times <= 1, `the effect before the gate happened ${times} times`)
      yield* happensOnce(stand, at, "run-1", 3)
    })
  ),
  probe("duplicate", "an answer delivered twice does not repeat the effect behind the gate", (stand) =>
    Effect.gen(function* () {
      const process = yield* stand.open()
      const at = yield* stand.start(process, canonical.gate(stand.strictest))
      const gate = stand.pending(yield* stand.rest(at), "ask")
      if (gate === undefined) return
      yield* stand.resume(at, gate, "yes", { deliveryId: "same" })
      yield* stand.rest(at)
      yield* stand.resume(at, gate, "yes", { deliveryId: "same" })
      yield* stand.rest(at)
      yield* happensOnce(stand, at, "run-1")
      const { length } = stand.fired("run-1", "gated")
      stand.check(length <= 1, `the gated effect fired ${length} times`)
    })
  ),
  probe("zombie", "an owner that stood still and was replaced fires nothing more", zombie),
  probe("every-commit", "effects happen as promised when the process is killed at any durable boundary", (stand) =>
    Effect.gen(function* () {
      yield* stand.need("announcesCommits", "durable")
      const workflow = canonical.prefixGateSuffix(stand.strictest)
      // The store exists before the recorded run, so that the others pass the same points.
      const founder = yield* stand.open()
      yield* stand.kill(founder)
      const points = yield* Effect.scoped(
        Effect.gen(function* () {
          const process = yield* stand.open()
          const passed = stand.trace()
          const at = yield* stand.start(process, workflow, "recorded")
          yield* stand.drive(at, byName)
          const points = passed().filter((point) => point.startsWith("commit."))
          stand.stopTracing()
          yield* stand.kill(process)
          return [...new Set(points)]
        })
      )
      stand.note(`${points.length} points around commits`)
      if (points.length === 0)
        return yield* new DriverFault({
          kind: "lied",
          message: "it says that it announces commits, and announced none"
        })
      yield* Effect.forEach(
        points,
        (point, i) =>
          Effect.scoped(
            Effect.gen(function* () {
              const run = `run-${i + 1}`
              const crash = yield* crashAt(stand, workflow, point, { run, optional: true })
              yield* ran(stand, crash)
              yield* happensOnce(stand, crash.at, run)
              yield* stand.kill(crash.at.process)
            })
          ),
        { discard: true }
      )
    })
  )
]
