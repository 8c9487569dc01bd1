/** CO across hosts: two hosts with a network between them and the service that they share, and a cut. */
import { Effect } from "effect"
import { canonical } from "../CanonicalWorkflow.js"
import * as Hosts from "../Hosts.js"
import type { Probe } from "../Probe.js"
import { finishes, happensOnce } from "../Scenario.js"
import { Inapplicable } from "../Needs.js"
import type { At, Stand } from "../Stand.js"

export const acrossHosts: Probe["run"] = (stand) =>
  Effect.gen(function* () {
    const { service } = stand.hello.capabilities
    const { onHost } = stand.driver
    if (service === null || onHost === undefined) {
      const reason = "the plane's processes share no service that other hosts could reach"
      return yield* new Inapplicable({ verdict: "not applicable", reason })
    }
    const hosts = yield* Effect.forEach(["host a", "host b"], (name) => Hosts.make(name, service))
    const worker = yield* stand.open()
    const clients = yield* Effect.forEach(hosts, (host) => {
      stand.note(`${host.name} sees the service at ${host.service}`)
      return stand.open({ role: "client", service: host.service, driver: onHost(host.prefix) })
    })
    yield* race(stand, { process: worker, branch: "" }, clients, "run-1", Effect.void, Effect.void)
    const [, b] = hosts
    if (b === undefined) return
    const cut = Effect.zipRight(
      Effect.sync(() => stand.note(`${b.name} is cut off`)),
      b.cut
    )
    const heal = Effect.zipRight(
      Effect.sync(() => stand.note(`${b.name} is connected again`)),
      b.heal
    )
    yield* race(stand, { process: worker, branch: "" }, clients, "run-2", cut, heal)
  })

/** Both hosts answer one gate at once; `before` it, and once somebody was accepted, `after`. */
const race = (
  stand: Stand,
  { process }: At,
  clients: ReadonlyArray<At["process"]>,
  run: string,
  before: Effect.Effect<void>,
  after: Effect.Effect<void>
) =>
  Effect.gen(function* () {
    const workflow = canonical.gate(stand.strictest)
    const at = yield* stand.start(process, workflow, run)
    const gate = stand.pending(yield* stand.rest(at), "ask")
    if (gate === undefined) return
    const gated = stand.hold(`before.${run}.gated.gated-fx`)
    const line = stand.hold(`start-line-${run}`)
    const deliveries = yield* Effect.forEach(clients, (client, i) =>
      Effect.fork(
        stand
          .resume({ ...at, process: client }, gate, `value ${i}`, { deliveryId: `${run}-${i}`, line: line.point })
          .pipe(
            Effect.map(({ outcome }) => ({ outcome, value: `value ${i}` })),
            // Cut off, it may fail: then whoever asked does not know, and nobody was told that it was accepted.
            Effect.catchTag("Declined", ({ message }) => {
              stand.note(`${client.who} failed: ${message}`)
              return Effect.succeed({ outcome: "failed", value: `value ${i}` })
            })
          )
      )
    )
    yield* line.arrived(clients.length)
    yield* before
    yield* line.release
    const [first] = deliveries
    if (first !== undefined) yield* first
    yield* after
    const receipts = yield* Effect.forEach(deliveries, (delivery) => delivery)
    yield* gated.release
    const accepted = receipts.filter(({ outcome }) => outcome === "accepted")
    stand.check(accepted.length <= 1, `${accepted.length} of ${clients.length} hosts were accepted`)
    const [winner] = accepted
    const state = yield* stand.rest(at)
    if (winner !== undefined && accepted.length === 1)
      yield* finishes(stand, { answers: () => ({ value: winner.value }), at, run, state, workflow })
    yield* happensOnce(stand, at, run)
  })
