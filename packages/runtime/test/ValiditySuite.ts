/**
 * CV at every boundary: what is handed in comes back deep-equal, or is refused before the write with its path, without
 * repeating it, and the run goes on from where it was.
 */
import { assert, layer } from "@effect/vitest"
import { BranchId, type EffectKey } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client, Delivery, Interrupt, Node, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { Cause, Effect, Layer, Predicate, Schema } from "effect"
import { inspect, isDeepStrictEqual } from "node:util"
import { canary, type Flawed, flawedValues, type Sound, soundValues } from "./ValidityValues.js"

const deliveries = {
  keyed: Delivery.keyed,
  once: Delivery.once(),
  repeatable: Delivery.repeatable,
  transactional: Delivery.transactional
}
const policies = ["keyed", "once", "repeatable", "transactional"] as const

/** The error that must come, as it was raised: a span wraps it in a proxy of its own. */
const declined = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  effect.pipe(Effect.flip, Effect.orDie, Effect.map(Cause.originalError))

/** Names of side effects are texts here, so that one list of handlers serves the definitions of every value. */
const named = (text: string): string => text

// ── Values that come back ───────────────────────────────────────────────────────────────────────────────────

const check = (where: string, expected: unknown, actual: unknown): void => {
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${where}: ${inspect(actual, { depth: 4 }).slice(0, 500)}`)
}

const soundProbe = (index: number, { schema, value }: Sound) => {
  const echo = Node.make("echo", { input: schema, success: schema }, (given) => Effect.succeed(given))
  const fail = Node.make("fail", { input: schema, error: schema }, (given) => Effect.fail(given))
  const performing = policies.map((policy) => {
    const options = { delivery: deliveries[policy], input: schema, success: schema, error: schema }
    const Echo = SideEffect.make(named(`echo-${policy}`), options)
    const Decline = SideEffect.make(named(`decline-${policy}`), options)
    return Node.make(`perform-${policy}`, { input: schema, success: schema, effects: [Echo, Decline] }, (given) =>
      Effect.gen(function* () {
        const outcome = yield* Effect.orDie(Echo(given))
        check(`outcome of a ${policy} effect`, value, outcome)
        const error = yield* declined(Decline(outcome))
        check(`error of a ${policy} effect`, value, error)
        return error
      })
    )
  })
  const Ask = Interrupt.make("ask", { payload: schema, answer: schema })
  const Passes = Workflow.make(`passes-${index}`, { version: "1", input: schema, success: schema }, (input) =>
    Effect.gen(function* () {
      check("input of the workflow", value, input)
      check("success of a node", value, yield* echo(input))
      check("error of a node", value, yield* declined(fail(input)))
      for (const node of performing) check("success of a performing node", value, yield* node(input))
      const answer = yield* Ask(input)
      check("answer", value, answer)
      return answer
    })
  )
  const Fails = Workflow.make(`fails-${index}`, { version: "1", input: schema, error: schema }, (input) =>
    Effect.fail(input)
  )
  const Lost = SideEffect.make(named("lost"), {
    delivery: Delivery.once(),
    input: schema,
    success: schema,
    error: schema
  })
  const lose = Node.make("lose", { input: schema, success: schema, error: schema, effects: [Lost] }, (given) =>
    Lost(given)
  )
  const Doubts = Workflow.make(
    `doubts-${index}`,
    { version: "1", input: schema, success: schema, error: schema },
    (input) => lose(input)
  )
  return { echo, Ask, Passes, Fails, Lost, Doubts }
}

const soundProbes = soundValues.map((value, index) => ({ ...value, index, ...soundProbe(index, value) }))
const boundless = { input: Schema.Unknown, success: Schema.Unknown, error: Schema.Unknown }

const soundHandlers = [
  ...policies.flatMap((policy) => [
    SideEffect.make(named(`echo-${policy}`), { ...boundless, delivery: deliveries[policy] }).toLayer((given) =>
      Effect.succeed(given)
    ),
    SideEffect.make(named(`decline-${policy}`), { ...boundless, delivery: deliveries[policy] }).toLayer((given) =>
      Effect.fail(given)
    )
  ]),
  SideEffect.make(named("lost"), { ...boundless, delivery: Delivery.once() }).toLayer(() => Effect.dieMessage("lost"))
]

// ── Values that are refused ─────────────────────────────────────────────────────────────────────────────────

/** What the code says of a value that it refused inside a workflow. */
const refusalIn = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  effect.pipe(
    Effect.sandbox,
    Effect.match({
      onSuccess: () => "accepted",
      onFailure: (cause) => {
        const defect = Cause.squash(cause)
        return defect instanceof Error ? defect.message : "not a defect"
      }
    })
  )

const flawedProbe = (index: number, { schema, value }: Flawed) => {
  const take = Node.make("take", { input: schema }, () => Effect.void)
  const give = Node.make("give", { success: schema }, () => Effect.succeed(value))
  const fail = Node.make("fail", { error: schema }, () => Effect.fail(value))
  const Swallow = SideEffect.make(named("swallow"), { delivery: Delivery.keyed, input: schema })
  const swallow = Node.make("swallow", { effects: [Swallow] }, () => Swallow(value))
  const performing = policies.map((policy) => {
    const options = { delivery: deliveries[policy], input: Schema.Number, success: schema, error: schema }
    const Give = SideEffect.make(named(`give-${policy}`), options)
    const Deny = SideEffect.make(named(`deny-${policy}`), options)
    return {
      policy,
      Give,
      Deny,
      give: Node.make(`give-${policy}`, { success: schema, effects: [Give] }, () => Effect.orDie(Give(index))),
      deny: Node.make(`deny-${policy}`, { success: schema, effects: [Deny] }, () => declined(Deny(index)))
    }
  })
  // What became of these is recorded although it is refused: they happened.
  const sent = performing.filter(({ policy }) => policy === "keyed" || policy === "once")
  const pure = performing.filter(({ policy }) => policy === "repeatable" || policy === "transactional")
  const Ask = Interrupt.make("ask", { payload: schema })
  const Decide = Interrupt.make("decide", { answer: schema })
  const Refuses = Workflow.make(
    `refuses-${index}`,
    {
      version: "1",
      success: Schema.Struct({ refusals: Schema.Array(Schema.Tuple(Schema.String, Schema.String)), answer: schema })
    },
    () =>
      Effect.gen(function* () {
        const refusals: Array<readonly [string, string]> = [
          ["input of a node", yield* refusalIn(take(value))],
          ["success of a node", yield* refusalIn(give())],
          ["error of a node", yield* refusalIn(fail())],
          ["input of an effect", yield* refusalIn(swallow())],
          ["payload of an interrupt", yield* refusalIn(Ask(value))]
        ]
        for (const { policy, deny, give } of pure) {
          refusals.push([`outcome of a ${policy} effect`, yield* refusalIn(give())])
          refusals.push([`error of a ${policy} effect`, yield* refusalIn(deny())])
        }
        return { refusals, answer: yield* Decide() }
      })
  )
  const Ends = Workflow.make(`ends-${index}`, { version: "1", success: schema }, () => Effect.succeed(value))
  const Breaks = Workflow.make(`breaks-${index}`, { version: "1", error: schema }, () => Effect.fail(value))
  const Happens = Workflow.make(`happens-${index}`, { version: "1", success: Schema.Array(schema) }, () =>
    Effect.all(
      sent.flatMap(({ deny, give }) => [give(), deny()]),
      { concurrency: "unbounded" }
    )
  )
  const Given = Workflow.make(`given-${index}`, { version: "1", input: schema }, () => Effect.void)
  return { give, fail, Decide, Refuses, Ends, Breaks, Happens, Given, sent }
}

const flawedProbes = flawedValues.map((value, index) => ({ ...value, index, ...flawedProbe(index, value) }))

const flaw = (index: number): unknown => flawedValues[index]?.value

const flawedHandlers = [
  ...policies.flatMap((policy) => {
    const options = { ...boundless, input: Schema.Number, delivery: deliveries[policy] }
    return [
      SideEffect.make(named(`give-${policy}`), options).toLayer((index) => Effect.sync(() => flaw(index))),
      SideEffect.make(named(`deny-${policy}`), options).toLayer((index) =>
        Effect.flatMap(
          Effect.sync(() => flaw(index)),
          Effect.fail
        )
      )
    ]
  }),
  SideEffect.make(named("swallow"), { ...boundless, delivery: Delivery.keyed }).toLayer(() =>
    Effect.dieMessage("a value that is refused reached a handler")
  )
]

/** Everything that an error could show of a value. */
const shown = (error: unknown): string =>
  [String(error), JSON.stringify(error), inspect(error, { depth: 12, showHidden: true })].join("\n")

const names = (text: string, path: string): boolean =>
  new RegExp(`(^|[ ;])${path.replace(/[$[\].]/g, "\\$&")}\\S*:? `).test(text)

const refuses = (where: string, path: string, message: string): void => {
  assert.isTrue(names(message, path), `${where}: ${message.slice(0, 300)} names ${path}`)
  assert.notInclude(message, canary, where)
  assert.isBelow(message.length, 2_000, where)
}

/** The refusal that an operation of the client ends with. */
const refusal = <A, E, R>(where: string, tag: string, path: string, effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(Effect.asVoid(effect)), (error) => {
    assert.isTrue(Predicate.isTagged(error, tag), `${where}: ${String(error).slice(0, 500)}`)
    const text = shown(error)
    refuses(where, path, error instanceof Error ? error.message : text)
    assert.notInclude(text, canary, where)
  })

// ── The suite ───────────────────────────────────────────────────────────────────────────────────────────────

const handlers = [...soundHandlers, ...flawedHandlers].reduce<Layer.Layer<SideEffect.HandlerOf<string>>>(
  (all, one) => Layer.merge(all, one),
  Layer.empty as unknown as Layer.Layer<SideEffect.HandlerOf<string>>
)

/** A worker for one test's workflows. Nothing stays in memory: what is read after a wait comes from the database. */
const working = <const Ws extends ReadonlyArray<{ readonly definition: string }>>(...workflows: Ws) =>
  Effect.provide(Worker.layer<Ws>({ workflows, residentBranches: 0 }).pipe(Layer.provide(handlers)))

const isAtRest = ({ status }: Pick<Client.Description, "status">): boolean => status !== "ready" && status !== "running"

/** Waits until the run asks its question, and shows what it did instead if it does not. */
const asking = (run: Client.RunHandle) =>
  Effect.gen(function* () {
    const client = yield* Client.Client
    const paused = yield* client.awaitStatus(run, isAtRest)
    const [waits] = paused.waitingFor
    if (waits?._tag !== "Answer") {
      const last = (yield* client.history(run)).at(-1)
      assert.fail(`${paused.status}: ${JSON.stringify(paused.problems)} ${last?.payload.slice(0, 2_000)}`)
    }
    return paused
  })

const verified = Effect.gen(function* () {
  const { branches, problems } = yield* (yield* Ledger).verify
  assert.deepStrictEqual(problems, [])
  assert.isAbove(branches, 0)
})

export const validitySuite = <E>(place: string, plane: Layer.Layer<Ledger | Client.Client, E>): void => {
  layer(plane, { excludeTestServices: true })(`values on ${place}`, (it) => {
    for (const { Ask, Doubts, Fails, Lost, Passes, echo, index, name, schema, value } of soundProbes) {
      it.effect(`come back equal at every boundary: ${name}`, () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const run = yield* client.start(Passes, value, { run: `passes-${index}` })
          yield* asking(run)
          const [pending] = yield* client.pendingInterrupts({ run: run.run })
          check("question as encoded", Schema.encodeSync(schema)(value), pending?.payload)
          const answer = { interrupt: "ask#1", value, intent: "retry" } as const
          yield* client.resume(Ask, { ...answer, branch: run.branch, deliveryId: "d" })
          check("result", value, yield* client.result(Passes, run))
          // An equal value is the same delivery, an equal input the same start.
          const again = yield* client.resume(Ask, { ...answer, branch: run.branch, deliveryId: "d" })
          assert.strictEqual(again._tag === "Answered" && again.verdict, "Duplicate")
          assert.isFalse((yield* client.start(Passes, value, { run: `passes-${index}` })).created)

          const edited = yield* client.forkWithOutcome(echo, {
            branch: run.branch,
            step: "echo#1",
            forkId: "edited",
            outcome: { _tag: "Success", value }
          })
          yield* client.awaitStatus(edited.branch, ({ status }) => status === "waiting" || status === "failed")
          yield* client.resume(Ask, { ...answer, branch: edited.branch, deliveryId: "d2" })
          check("result of a fork with another outcome", value, yield* client.result(Passes, edited.branch))
          const answered = yield* client.resume(Ask, {
            ...answer,
            branch: run.branch,
            deliveryId: "d3",
            intent: "fork",
            forkId: "answered"
          })
          check("result of a fork with an answer", value, yield* client.result(Passes, answered.branch))

          const failing = yield* client.start(Fails, value, { run: `fails-${index}` })
          check("error of the workflow", value, yield* declined(client.result(Fails, failing)))

          for (const tag of ["Happened", "Declined"] as const) {
            const doubtful = yield* client.start(Doubts, value, { run: `doubts-${index}-${tag}` })
            const stuck = yield* client.awaitStatus(doubtful, isAtRest)
            const [problem] = stuck.problems
            assert.strictEqual(problem?._tag, "InDoubt", JSON.stringify(stuck).slice(0, 500))
            if (problem?._tag !== "InDoubt") continue
            const settlement = tag === "Happened" ? { _tag: tag, value } : { _tag: tag, error: value }
            yield* client.settle(Lost, { branch: doubtful.branch, key: problem.key, settlement })
            const end = client.result(Doubts, doubtful)
            check(`outcome settled as ${tag}`, value, yield* tag === "Happened" ? end : declined(end))
          }
        }).pipe(working(Passes, Fails, Doubts))
      )
    }

    it.effect("that came back left nothing that does not verify", () => verified)

    for (const probe of flawedProbes) {
      const { Breaks, Decide, Ends, Given, Happens, Refuses, fail, give, good, index, name, path, sent, value } = probe
      it.effect(`are refused at every boundary, and the run goes on: ${name}`, () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const given = client.start(Given, value, { run: `given-${index}` })
          yield* refusal("input of the workflow", "InvalidValue", path, given)
          assert.strictEqual((yield* Effect.flip(client.describe(`given-${index}`)))._tag, "RunNotFound")

          // Inside the workflow, then from outside.
          const run = yield* client.start(Refuses, undefined, { run: `refuses-${index}` })
          const { branch } = run
          const paused = yield* asking(run)
          const answer = { branch, interrupt: "decide#1", deliveryId: "d", intent: "retry" } as const
          const answered = client.resume(Decide, { ...answer, value })
          yield* refusal("answer", "ResumeValueInvalid", path, answered)
          const forking = client.resume(Decide, { ...answer, value, intent: "fork", forkId: "f" })
          yield* refusal("answer of a fork", "ResumeValueInvalid", path, forking)
          for (const [node, step, outcome] of [
            [give, "give#1", { _tag: "Success" as const, value }],
            [fail, "fail#1", { _tag: "Failure" as const, error: value }]
          ] as const) {
            // Each of the two nodes has one of the two outcomes.
            const options = { branch, step, forkId: "g", outcome: outcome as never }
            const edited = client.forkWithOutcome(node as typeof give, options)
            yield* refusal("edited outcome of a fork", "InvalidValue", path, edited)
          }
          assert.strictEqual((yield* client.branches(run.run)).length, 1)
          assert.strictEqual((yield* client.describe(run)).head, paused.head)
          // The checkpoint that it was refused at is as good as before: the branch and a fork of it go on.
          const child = yield* client.fork({ from: { branch, seq: paused.head }, forkId: "child" })
          yield* client.awaitStatus(child.branch, ({ status }) => status === "waiting" || status === "stuck")
          for (const branch of [run.branch, child.branch]) {
            yield* client.resume(Decide, { ...answer, branch, value: good })
            const { answer: served, refusals } = yield* client.result(Refuses, branch)
            check("answer", good, served)
            assert.strictEqual(refusals.length, 9)
            for (const [where, message] of refusals) refuses(where, path, message)
          }
          const journal = yield* client.history(run)
          assert.notInclude(JSON.stringify(journal), canary)

          yield* client.start(Ends, undefined, { run: `ends-${index}` })
          yield* refusal("success of the workflow", "RunDied", path, client.result(Ends, `ends-${index}`))
          yield* client.start(Breaks, undefined, { run: `breaks-${index}` })
          yield* refusal("error of the workflow", "RunDied", path, client.result(Breaks, `breaks-${index}`))
          for (const run of [`ends-${index}`, `breaks-${index}`]) {
            const entries = yield* client.history(run)
            assert.notInclude(JSON.stringify(entries), canary)
            const from = { branch: BranchId.make(`${run}/main`), seq: entries.length - 1 }
            const { branch } = yield* client.fork({ from, forkId: "f" })
            assert.strictEqual((yield* client.awaitStatus(branch, isAtRest)).status, "failed")
          }

          const happened = yield* client.start(Happens, undefined, { run: `happens-${index}` })
          const stuck = yield* client.awaitStatus(happened, isAtRest)
          assert.strictEqual(stuck.status, "stuck")
          assert.strictEqual(stuck.problems.length, 4, JSON.stringify(stuck.problems).slice(0, 1_000))
          for (const problem of stuck.problems) {
            assert.strictEqual(problem._tag, "EffectValueRefused")
            refuses("outcome of an effect that happened", path, problem.message)
            assert.notInclude(shown(problem), canary)
          }
          for (const problem of stuck.problems) {
            if (problem._tag !== "EffectValueRefused") continue
            const key = problem.key as EffectKey
            const success = problem.effect.startsWith("give")
            const declared = sent.flatMap(({ Deny, Give }) => [Give, Deny]).find((one) => one.name === problem.effect)
            if (declared === undefined) return assert.fail(problem.effect)
            const settle = (outcome: unknown) =>
              client.settle(declared, {
                branch: happened.branch,
                key,
                settlement: success ? { _tag: "Happened", value: outcome } : { _tag: "Declined", error: outcome }
              })
            yield* refusal("settlement", "InvalidValue", path, settle(value))
            assert.strictEqual(yield* settle(good), "Accepted")
            // It runs again with this outcome, and is stuck with those that are left: only then they are settled.
            yield* client.awaitStatus(
              happened,
              ({ problems, status }) =>
                isAtRest({ status }) && !problems.some((left) => "key" in left && left.key === problem.key)
            )
          }
          check("outcomes that were settled", [good, good, good, good], yield* client.result(Happens, happened))
          assert.notInclude(JSON.stringify(yield* client.history(happened)), canary)
        }).pipe(working(Refuses, Ends, Breaks, Happens))
      )
    }

    it.effect("that were refused left nothing that does not verify", () => verified)
  })
}
