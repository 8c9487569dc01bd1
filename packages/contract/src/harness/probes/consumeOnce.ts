/** CO: a gate is consumed at most once, however many deliveries come, in whatever order, from however many processes. */
import { Effect } from "effect"
import { canonical, type CanonicalWorkflow } from "../CanonicalWorkflow.js"
import { of, type Probe } from "../Probe.js"
import { finishes, happensOnce, ran } from "../Scenario.js"
import { type At, byName, type Stand } from "../Stand.js"
import { acrossHosts } from "./hosts.js"

const probe = of("CO")

/** A run parked at its gate. */
const parked = (
  stand: Stand,
  workflow: CanonicalWorkflow,
  use: (at: At, gate: string) => ReturnType<Probe["run"]>,
  name = "ask"
) =>
  Effect.gen(function* () {
    const process = yield* stand.open()
    const at = yield* stand.start(process, workflow)
    const gate = stand.pending(yield* stand.rest(at), name)
    if (gate !== undefined) yield* use(at, gate)
  })

/** The second delivery is judged as it must be, and the first one's value is what the run ends with. */
const second =
  (
    deliveries: readonly [
      first: { value: unknown; deliveryId: string },
      second: { value: unknown; deliveryId: string }
    ],
    outcome: "duplicate" | "refused"
  ): Probe["run"] =>
  (stand) => {
    const workflow = canonical.gate(stand.strictest)
    return parked(stand, workflow, (at, gate) =>
      Effect.gen(function* () {
        const [one, two] = deliveries
        if (outcome === "duplicate") yield* stand.need("deliveryIds")
        const hold = stand.hold("before.run-1.gated.gated-fx")
        const first = yield* stand.resume(at, gate, one.value, one)
        stand.check(first.outcome === "accepted", `the first delivery was ${first.outcome}`)
        // While what is behind the gate is under way, and once more when all is over.
        yield* stand.until(hold, at)
        const during = yield* stand.resume(at, gate, two.value, two)
        yield* hold.release
        const answers = () => ({ value: one.value })
        yield* finishes(stand, { answers, at, run: "run-1", state: yield* stand.rest(at), workflow })
        const after = yield* stand.resume(at, gate, two.value, two)
        for (const receipt of [during, after])
          stand.check(receipt.outcome === outcome, `the second delivery was ${receipt.outcome}, not ${outcome}`)
        yield* finishes(stand, { answers, at, run: "run-1", state: yield* stand.rest(at), workflow })
        yield* happensOnce(stand, at, "run-1")
      })
    )
  }

const one = { value: "one", deliveryId: "delivery-a" }

const falsy = (name: string, value: unknown): Probe =>
  probe(`falsy/${name}`, `${JSON.stringify(value)} is an answer like any other`, (stand) => {
    const workflow = canonical.gate(stand.strictest)
    return parked(stand, workflow, (at, gate) =>
      Effect.gen(function* () {
        const { outcome } = yield* stand.resume(at, gate, value)
        stand.check(outcome === "accepted", `${JSON.stringify(value)} was ${outcome}`)
        const answers = () => ({ value })
        yield* finishes(stand, { answers, at, run: "run-1", state: yield* stand.rest(at), workflow })
        const again = yield* stand.resume(at, gate, "another")
        stand.check(again.outcome === "refused", `an answer after ${JSON.stringify(value)} was ${again.outcome}`)
      })
    )
  })

const race = (racers: number, values: "same" | "different"): Probe =>
  probe(
    `race/${racers}-${values}`,
    `of ${racers} processes that answer a gate at once with ${values === "same" ? "equal" : "different"} values one is accepted`,
    (stand) =>
      Effect.gen(function* () {
        yield* stand.needMany()
        const workflow = canonical.gate(stand.strictest)
        yield* parked(stand, workflow, (at, gate) =>
          Effect.gen(function* () {
            const clients = yield* Effect.forEach(
              Array.from({ length: racers }),
              () => stand.open({ role: "client" }),
              {
                concurrency: 2
              }
            )
            const gated = stand.hold("before.run-1.gated.gated-fx")
            const line = stand.hold("start-line")
            const deliveries = yield* Effect.fork(
              Effect.forEach(
                clients,
                (process, i) => {
                  const value = values === "same" ? "equal" : `value ${i}`
                  return Effect.map(
                    stand.resume({ ...at, process }, gate, value, { deliveryId: `racer-${i}`, line: line.point }),
                    (receipt) => ({ ...receipt, value })
                  )
                },
                { concurrency: "unbounded" }
              )
            )
            yield* Effect.raceFirst(
              line.arrived(racers),
              Effect.flatMap(deliveries, () => Effect.never)
            )
            yield* line.release
            const receipts = yield* deliveries
            const accepted = receipts.filter(({ outcome }) => outcome === "accepted")
            stand.check(accepted.length === 1, `${accepted.length} of ${racers} racing deliveries were accepted`)
            stand.check(
              receipts.every(({ outcome }) => outcome === "accepted" || outcome === "refused"),
              `racing deliveries were ${[...new Set(receipts.map(({ outcome }) => outcome))].join(", ")}`
            )
            // All verdicts are in: what is behind the gate may go on.
            yield* gated.release
            const state = yield* stand.rest(at)
            const winner = accepted[0]
            if (winner === undefined || accepted.length > 1) return yield* happensOnce(stand, at, "run-1")
            yield* finishes(stand, { answers: () => ({ value: winner.value }), at, run: "run-1", state, workflow })
            yield* happensOnce(stand, at, "run-1")
          })
        )
      })
  )

/** The gates are answered in this order, both before the run goes on. */
const answered =
  (order: readonly [string, string]): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable")
      yield* stand.needMany()
      const workflow = canonical.parallelGates(stand.strictest)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      const state = yield* stand.rest(at)
      const gates = order.map((name) => ({ name, gate: stand.pending(state, name) }))
      yield* stand.kill(first)
      // Nobody runs it: both answers wait in the store, in this order.
      const client = yield* stand.open({ role: "client" })
      for (const { gate, name } of gates)
        if (gate !== undefined) yield* stand.resume({ ...at, process: client }, gate, `answer to ${name}`)
      const after = { ...at, process: yield* stand.open() }
      const found = { answers: byName, at: after, run: "run-1", state: yield* stand.rest(after), workflow }
      yield* ran(stand, found)
      yield* finishes(stand, found)
    })

export const consumeOnce: ReadonlyArray<Probe> = [
  probe("same-delivery", "the same delivery again is a duplicate and changes nothing", second([one, one], "duplicate")),
  probe(
    "second-equal",
    "another delivery with an equal value is refused and changes nothing",
    second([one, { value: "one", deliveryId: "delivery-b" }], "refused")
  ),
  probe(
    "second-different",
    "another delivery with another value is refused and changes nothing",
    second([one, { value: "two", deliveryId: "delivery-b" }], "refused")
  ),
  probe("delivery-id-reused", "one delivery id with another value is refused", (stand) =>
    Effect.zipRight(
      stand.need("deliveryIds"),
      second([one, { value: "two", deliveryId: "delivery-a" }], "refused")(stand)
    )
  ),
  falsy("false", false),
  falsy("zero", 0),
  falsy("empty-text", ""),
  falsy("null", null),
  falsy("empty-list", []),
  probe("next-gate", "an answer does not pass the gate after the one that it was given to", (stand) => {
    const workflow = canonical.twoGates(stand.strictest)
    return parked(
      stand,
      workflow,
      (at, first) =>
        Effect.gen(function* () {
          yield* stand.resume(at, first, "answer to first")
          const state = yield* stand.rest(at)
          const next = stand.pending(state, "second")
          stand.check(stand.fired("run-1", "last").length === 0, "what is behind the second gate ran")
          // The address of the first gate is stale: it must not reach the second.
          const stale = yield* stand.resume(at, first, "stale")
          stand.check(stale.outcome === "refused", `a delivery to the gate that was consumed was ${stale.outcome}`)
          stand.check(
            stand.pending(yield* stand.inspect(at), "second") !== undefined,
            "a stale delivery passed the next gate"
          )
          if (next === undefined) return
          yield* stand.resume(at, next, "answer to second")
          yield* finishes(stand, { answers: byName, at, run: "run-1", state: yield* stand.rest(at), workflow })
        }),
      "first"
    )
  }),
  probe("one-of-two", "an answer to one of two open gates leaves the other open", (stand) => {
    const workflow = canonical.parallelGates(stand.strictest)
    return parked(
      stand,
      workflow,
      (at, left) =>
        Effect.gen(function* () {
          yield* stand.resume(at, left, "answer to left")
          const state = yield* stand.rest(at)
          const right = stand.pending(state, "right")
          stand.check(stand.bodies("run-1", "right-gated") === 0, "what is behind the other gate ran")
          if (right === undefined) return
          yield* stand.resume(at, right, "answer to right")
          yield* finishes(stand, { answers: byName, at, run: "run-1", state: yield* stand.rest(at), workflow })
        }),
      "left"
    )
  }),
  probe(
    "answers/left-first",
    "two answers that wait in the store, the left one first, pass their own gates",
    answered(["left", "right"])
  ),
  probe(
    "answers/right-first",
    "two answers that wait in the store, the right one first, pass their own gates",
    answered(["right", "left"])
  ),
  probe("two-gates-in-one-node", "two gates in one unit are consumed one by one", (stand) => {
    const workflow = canonical.twoGatesInOneNode(stand.strictest)
    return parked(
      stand,
      workflow,
      (at, first) =>
        Effect.gen(function* () {
          yield* stand.resume(at, first, "answer to first")
          const second = stand.pending(yield* stand.rest(at), "second")
          stand.check(stand.bodies("run-1", "signed") === 0, "what is behind the second gate ran")
          if (second === undefined) return
          yield* stand.resume(at, second, "answer to second")
          yield* finishes(stand, { answers: byName, at, run: "run-1", state: yield* stand.rest(at), workflow })
          yield* happensOnce(stand, at, "run-1")
        }),
      "first"
    )
  }),
  probe("loop-of-gates", "each iteration's gate takes an answer of its own", (stand) =>
    Effect.gen(function* () {
      const workflow = canonical.loopOfGates(stand.strictest)
      const process = yield* stand.open()
      const at = yield* stand.start(process, workflow)
      for (const name of ["ask@0", "ask@1", "ask@2"]) {
        const gate = stand.pending(yield* stand.rest(at), name)
        if (gate === undefined) return
        yield* stand.resume(at, gate, `answer to ${name}`)
      }
      yield* finishes(stand, { answers: byName, at, run: "run-1", state: yield* stand.rest(at), workflow })
    })
  ),
  probe("unknown-address", "a delivery to a gate or branch that is none is refused and changes nothing", (stand) => {
    const workflow = canonical.gate(stand.strictest)
    return parked(stand, workflow, (at, gate) =>
      Effect.gen(function* () {
        const refuses = (to: At, interrupt: string) =>
          stand.resume(to, interrupt, "stray").pipe(
            Effect.map(({ outcome }) => outcome),
            // To say that there is no such thing is a refusal, too.
            Effect.catchTag("Declined", ({ code }) => Effect.succeed(code === "unknown" ? "refused" : "failed"))
          )
        const gateless = yield* refuses(at, `${gate}-none`)
        stand.check(gateless === "refused", `a delivery to a gate that is none was ${gateless}`)
        const branchless = yield* refuses({ ...at, branch: `${at.branch}-none` }, gate)
        stand.check(branchless === "refused", `a delivery to a branch that is none was ${branchless}`)
        stand.check(stand.pending(yield* stand.inspect(at), "ask") !== undefined, "a stray delivery consumed the gate")
        yield* stand.resume(at, gate, "answer to ask")
        yield* finishes(stand, { answers: byName, at, run: "run-1", state: yield* stand.rest(at), workflow })
      })
    )
  }),
  probe(
    "crash-after-claim",
    "a gate stays consumed when the process is killed before what is behind it starts",
    (stand) => {
      const workflow = canonical.gate(stand.strictest)
      return parked(stand, workflow, (at, gate) =>
        Effect.gen(function* () {
          yield* stand.need("durable")
          const hold = stand.hold("body.run-1.gated")
          yield* stand.resume(at, gate, "answer to ask")
          yield* stand.until(hold, at)
          yield* stand.kill(at.process)
          yield* hold.release
          const after = { ...at, process: yield* stand.open() }
          const again = yield* stand.resume(after, gate, "another")
          stand.check(again.outcome === "refused", `a second delivery after the crash was ${again.outcome}`)
          yield* finishes(stand, {
            answers: byName,
            at: after,
            run: "run-1",
            state: yield* stand.rest(after),
            workflow
          })
          yield* happensOnce(stand, after, "run-1")
        })
      )
    }
  ),
  ...[2, 4, 8, 16].flatMap((racers) => [race(racers, "same"), race(racers, "different")]),
  probe("hosts", "of two hosts that answer a gate at once one is accepted, and a cut changes nothing", acrossHosts)
]
