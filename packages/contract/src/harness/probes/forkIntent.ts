/** FI: "again" and "another branch" are different requests, and neither is a default. */
import { Effect } from "effect"
import { canonical } from "../CanonicalWorkflow.js"
import { of, type Probe } from "../Probe.js"
import { finishes } from "../Scenario.js"
import { type At, byName, type Stand } from "../Stand.js"

const probe = of("FI")

const parked = (stand: Stand, use: (at: At, gate: string) => ReturnType<Probe["run"]>) =>
  Effect.gen(function* () {
    yield* stand.need("intents", "fork")
    const process = yield* stand.open()
    const at = yield* stand.start(process, canonical.gate(stand.strictest))
    const gate = stand.pending(yield* stand.rest(at), "ask")
    if (gate !== undefined) yield* use(at, gate)
  })

const branches = (stand: Stand, { process }: At) =>
  Effect.gen(function* () {
    if (!stand.hello.capabilities.branches) return undefined
    const { branches } = yield* stand.ask(process.ask("branches", { run: "run-1" }))
    stand.note(`branches: ${branches.join(", ")}`)
    return branches.length
  })

const completes = (stand: Stand, at: At, value: unknown) =>
  Effect.flatMap(stand.rest(at), (state) =>
    finishes(stand, { answers: () => ({ value }), at, run: "run-1", state, workflow: canonical.gate(stand.strictest) })
  )

export const forkIntent: ReadonlyArray<Probe> = [
  probe("no-default", "a delivery that does not say what it means is refused and changes nothing", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        // Without and with a name for a branch: neither guess may be made.
        for (const forkId of [null, "fork-1"]) {
          const { outcome } = yield* stand.resume(at, gate, "whatever", { intent: null, forkId })
          stand.check(outcome === "refused", `a delivery without intent was ${outcome}`)
        }
        stand.check(
          stand.pending(yield* stand.inspect(at), "ask") !== undefined,
          "a delivery without intent consumed the gate"
        )
        stand.check(((yield* branches(stand, at)) ?? 1) === 1, "a delivery without intent made a branch")
        yield* stand.drive(at, byName)
      })
    )
  ),
  probe("retry-is-no-fork", "a second answer never becomes a branch", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.resume(at, gate, "one")
        yield* completes(stand, at, "one")
        const { branch, outcome } = yield* stand.resume(at, gate, "two")
        stand.check(outcome !== "forked" && branch === null, `a second answer was ${outcome}`)
        stand.check(((yield* branches(stand, at)) ?? 1) === 1, "a second answer made a branch")
      })
    )
  ),
  probe("fork-is-no-duplicate", "a fork with the value that was answered is a branch, not a duplicate", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        yield* stand.resume(at, gate, "same")
        yield* completes(stand, at, "same")
        const made = yield* stand.fork(at, gate, "same", "fork-1")
        if (made === undefined) return
        stand.check(made.branch !== at.branch, "the fork is its parent")
        yield* completes(stand, made, "same")
        stand.check(((yield* branches(stand, at)) ?? 2) === 2, "the fork is not among the run's branches")
      })
    )
  ),
  probe("fork-again", "the same fork again is the same branch, and another one under its id is refused", (stand) =>
    parked(stand, (at, gate) =>
      Effect.gen(function* () {
        const fork = (value: string) =>
          stand.resume(at, gate, value, { intent: "fork", forkId: "fork-1", deliveryId: "fork-delivery" })
        const one = yield* fork("one")
        stand.check(one.outcome === "forked", `the fork was ${one.outcome}`)
        const again = yield* fork("one")
        stand.check(
          again.branch === one.branch || again.outcome === "duplicate",
          "the same fork again made another branch"
        )
        const other = yield* fork("two")
        stand.check(other.outcome === "refused", `another fork under the same id was ${other.outcome}`)
        const count = (yield* branches(stand, at)) ?? 2
        stand.check(count === 2, `after one fork that came twice the run has ${count} branches`)
      })
    )
  )
]
