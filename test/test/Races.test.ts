import { Client } from "@fermata/runtime"
import * as EffectLog from "@fermata/test/EffectLog"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import * as Child from "@fermata/test/processes/Child"
import * as Race from "@fermata/test/processes/Race"
import { type Heat, Verdict } from "@fermata/test/race/Answers"
import { Act, Gate, Mail } from "@fermata/test/race/Gate"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Ref, Schema } from "effect"
import { join } from "node:path"

const repetitions = 20

/** A gated workflow's worker, and processes that answer it. */
const arena = (database: (typeof PlaneAddress.databases)[number], racers: number) =>
  Effect.gen(function* () {
    const plane = yield* PlaneAddress.fresh(database)
    const logFile = join(yield* PlaneAddress.freshFolder, "outside.db")
    const log = yield* Effect.acquireRelease(
      Effect.sync(() => EffectLog.open(logFile)),
      (log) => Effect.sync(log.close)
    )
    // Many processes share one server: a racer needs one connection to answer and one for notifications.
    const slim = plane._tag === "Postgres" ? { ...plane, maxConnections: 2 } : plane
    const gatekeeper = yield* Child.spawn("race/gatekeeper", { input: { plane, log: logFile }, stopAt: ["gate"] })
    const race = yield* Race.make
    const processes = yield* Effect.replicateEffect(
      Child.spawn("race/racer", { input: { plane: slim }, race: race.file }),
      racers,
      { concurrency: 4 }
    )
    return { plane, log, gatekeeper, processes, race, starts: yield* Ref.make(0) }
  })

type Arena = Effect.Effect.Success<ReturnType<typeof arena>>

/** Lets the first processes give their answers at the same moment; the others sit this one out. */
const verdictsOf = ({ processes, race, starts }: Arena, branch: string, answers: ReadonlyArray<Heat["answers"]>) =>
  Effect.gen(function* () {
    const start = yield* Ref.getAndUpdate(starts, (n) => n + 1)
    const racing = processes.slice(0, answers.length)
    yield* Effect.forEach(racing, (racer, index) =>
      racer.send({ start, branch, answers: answers[index] ?? [] } satisfies Heat)
    )
    yield* race.start(racing)
    const verdicts = yield* Effect.forEach(racing, (racer) => racer.receive(Schema.Array(Verdict)), {
      concurrency: "unbounded"
    })
    return verdicts.flat()
  })

/** Starts runs, and waits until each has asked. */
const ask = (runs: ReadonlyArray<string>) =>
  Effect.forEach(
    runs,
    (run) =>
      Effect.gen(function* () {
        const client = yield* Client.Client
        const { branch } = yield* client.start(Gate, run, { run })
        yield* client.awaitStatus(branch, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
      }),
    { concurrency: "unbounded", discard: true }
  )

/**
 * One heat: each of the processes gives its answers at the same moment. The gated node is held until all verdicts are
 * in, so that whatever it did, the claim came first.
 */
const heat = (here: Arena, run: string, answers: ReadonlyArray<Heat["answers"]>) =>
  Effect.gen(function* () {
    const { gatekeeper, log } = here
    const client = yield* Client.Client
    const verdicts = yield* verdictsOf(here, `${run}/main`, answers)
    const gate = yield* gatekeeper.stopped("gate")
    // The node has started: the claim must be durable, and nothing has happened yet.
    expect(yield* client.pendingInterrupts({ run })).toEqual([])
    expect(firings(log, run, Act.name)).toEqual([])
    yield* gatekeeper.release(gate)
    return { run, verdicts }
  })

const firings = (log: EffectLog.EffectLog, run: string, effect: string) =>
  log.rows().filter((row) => row.effect === effect && row.at.startsWith(`${run}/main|`))

/** CO, judged from the verdicts, the result and the log. */
const expectOneWinner = ({ log }: Arena, run: string, verdicts: ReadonlyArray<Verdict>, result: string) => {
  const accepted = verdicts.filter(({ verdict }) => verdict === "Accepted")
  expect(accepted.length, `${run}: ${JSON.stringify(verdicts)}`).toBe(1)
  const winner = accepted[0]
  for (const loser of verdicts) {
    if (loser === winner) continue
    expect(loser, run).toMatchObject({ verdict: "AlreadyConsumed", by: winner?.deliveryId, at: winner?.at })
  }
  expect(result, run).toBe(winner?.value)
  expect(
    firings(log, run, Act.name).map(({ inputDigest }) => inputDigest),
    run
  ).toEqual([winner?.value])
  expect(firings(log, run, Mail.name).length, run).toBe(1)
  return winner
}

describe.each(PlaneAddress.databases)("an interrupt on %s", (database) => {
  it.scopedLive(
    "accepts one of k answers that k processes give at once, and refuses the others",
    () =>
      Effect.gen(function* () {
        const here = yield* arena(database, 16)
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          for (const k of [2, 4, 8, 16]) {
            for (const values of ["equal", "different"]) {
              const runs = Array.from({ length: repetitions }, (_, n) => `${values}-${k}-${n}`)
              const answers = Array.from({ length: k }, (_, n) => [
                { value: values === "equal" ? "yes" : `answer ${n}`, deliveryId: `delivery ${n}` }
              ])
              yield* ask(runs)
              for (const { run, verdicts } of yield* Effect.forEach(runs, (run) => heat(here, run, answers)))
                expectOneWinner(here, run, verdicts, yield* client.result(Gate, run))
            }
          }
        }).pipe(Effect.provide(PlaneAddress.layer(here.plane)))
      }),
    600_000
  )

  it.scopedLive(
    "accepts one of 20 answers that come at once from 2 processes, and the same request again (B79)",
    () =>
      Effect.gen(function* () {
        const here = yield* arena(database, 2)
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          const run = "double-click"
          const answers = [0, 1].map((process) =>
            Array.from({ length: 10 }, (_, n) => ({ value: `${process}-${n}`, deliveryId: `request ${process}-${n}` }))
          )
          yield* ask([run])
          const { verdicts } = yield* heat(here, run, answers)
          const winner = expectOneWinner(here, run, verdicts, yield* client.result(Gate, run))
          expect(verdicts.length).toBe(20)
          // A webhook that is delivered again after all is over.
          const [receipt] = yield* verdictsOf(here, `${run}/main`, [
            [{ value: winner?.value ?? "", deliveryId: winner?.deliveryId ?? "" }]
          ])
          expect(receipt).toMatchObject({ verdict: "Duplicate", at: winner?.at })
        }).pipe(Effect.provide(PlaneAddress.layer(here.plane)))
      }),
    120_000
  )
})
