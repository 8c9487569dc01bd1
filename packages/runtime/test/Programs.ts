/**
 * Random workflow programs: a syntax tree, how fast-check makes one, and the workflow that interprets it. Every step takes
 * a random draw, the time and a call number into its input, so that whatever else a replay did differently shows as
 * another input.
 */
import { Delivery, Interrupt, Node, SideEffect, Signal, Update, Workflow } from "@fermata/runtime"
import {
  Clock,
  Deferred,
  Duration,
  Effect,
  FastCheck as fc,
  Fiber,
  Layer,
  Queue,
  Random,
  Ref,
  Schedule,
  Schema,
  type Scope
} from "effect"
import type { Stage } from "./Stage.js"

export type Delivered = "plain" | "keyed" | "once" | "transactional" | "repeatable"

export type Op =
  | { readonly op: "step"; readonly how: Delivered; readonly fails: boolean; readonly sync: boolean }
  | { readonly op: "sleep"; readonly millis: number }
  | {
      readonly op:
        | "ask"
        | "receive"
        | "reply"
        | "draw"
        | "time"
        | "offer"
        | "take"
        | "signal"
        | "await"
        | "count"
        | "locked"
        | "die"
        | "yield"
    }
  | { readonly op: "seq"; readonly of: ReadonlyArray<Op> }
  | { readonly op: "all"; readonly of: ReadonlyArray<Op>; readonly concurrency: number }
  | { readonly op: "race" | "raceFirst" | "raceAll"; readonly of: ReadonlyArray<Op> }
  | { readonly op: "timeout"; readonly of: Op; readonly millis: number }
  | {
      readonly op: "retry"
      readonly of: Op
      readonly schedule: "exponential" | "jittered" | "spaced"
      readonly times: number
    }
  | {
      readonly op: "fork"
      readonly how: "fork" | "forkDaemon" | "forkScoped"
      readonly of: Op
      readonly next: Op
      readonly end: "join" | "interrupt" | "leave"
    }
  | { readonly op: "ensuring" | "acquireRelease" | "catchAll"; readonly of: Op; readonly next: Op }
  | { readonly op: "uninterruptible"; readonly of: Op }

// ── Making them ─────────────────────────────────────────────────────────────────────────────────────────────

const step: fc.Arbitrary<Op> = fc.record({
  op: fc.constant("step" as const),
  how: fc.constantFrom<Delivered>("plain", "plain", "keyed", "once", "transactional", "repeatable"),
  fails: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  sync: fc.integer({ min: 0, max: 2 }).map((n) => n === 0)
})
const sleep: fc.Arbitrary<Op> = fc.record({
  op: fc.constant("sleep" as const),
  millis: fc.constantFrom(0, -1, 1, 7, 900, 1500, 5000)
})
const small: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: step },
  { weight: 2, arbitrary: sleep },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom(
        "ask",
        "ask",
        "receive",
        "reply",
        "draw",
        "time",
        "offer",
        "take",
        "signal",
        "await",
        "count",
        "locked",
        "yield",
        "die"
      )
      .map((op): Op => ({ op }) as Op)
  }
)

/** Programs, nested up to `depth`. */
export const program = (depth: number): fc.Arbitrary<Op> => {
  if (depth === 0) return small
  const one = program(depth - 1)
  const some = fc.array(one, { minLength: 1, maxLength: 4 })
  const composite: fc.Arbitrary<Op> = fc.oneof(
    { weight: 3, arbitrary: some.map((of): Op => ({ op: "seq", of })) },
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constant("all" as const), of: some, concurrency: fc.constantFrom(1, 2, 99) })
    },
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constantFrom("race" as const, "raceFirst" as const, "raceAll" as const), of: some })
    },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constant("timeout" as const), of: one, millis: fc.constantFrom(0, 10, 1500, 4000) })
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("retry" as const),
        of: one,
        schedule: fc.constantFrom("exponential" as const, "jittered" as const, "spaced" as const),
        times: fc.integer({ min: 1, max: 2 })
      })
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant("fork" as const),
        how: fc.constantFrom("fork" as const, "forkDaemon" as const, "forkScoped" as const),
        of: one,
        next: one,
        end: fc.constantFrom("join" as const, "interrupt" as const, "leave" as const)
      })
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constantFrom("ensuring" as const, "acquireRelease" as const, "catchAll" as const),
        of: one,
        next: one
      })
    },
    { weight: 1, arbitrary: one.map((of): Op => ({ op: "uninterruptible", of })) }
  )
  return fc.oneof({ weight: 1, arbitrary: small }, { weight: 3, arbitrary: composite })
}

// ── Their nodes ─────────────────────────────────────────────────────────────────────────────────────────────

const Call = Schema.Struct({
  call: Schema.Number,
  draw: Schema.Number,
  at: Schema.Number,
  fails: Schema.Boolean,
  sync: Schema.Boolean
})
type Call = typeof Call.Type
const Done = Schema.Struct({ call: Schema.Number, draw: Schema.Number })
export const Mail = Signal.make("mail", { payload: Schema.Number })
export const Add = Update.make("add", { input: Schema.Number, success: Schema.Number })
export const Approval = Interrupt.make("approval", { payload: Schema.Number, answer: Schema.Unknown })

const long = { timeLimit: "1000 days" } as const
const declared = { input: Call, success: Done, error: Done }
const Keyed = SideEffect.make("keyed", { ...declared, delivery: Delivery.keyedWithin(long) })
const Once = SideEffect.make("once", { ...declared, delivery: Delivery.once({ ...long, fireWithin: "1000 days" }) })
const Transactional = SideEffect.make("transactional", { ...declared, delivery: Delivery.transactional })
const Repeatable = SideEffect.make("repeatable", { ...declared, delivery: Delivery.repeatableWithin(long) })

const outcome = ({ call, draw, fails }: Call): Effect.Effect<typeof Done.Type, typeof Done.Type> =>
  fails ? Effect.fail({ call, draw: draw + 1 }) : Effect.succeed({ call, draw: draw + 1 })

/** The latch that holds a step's body after its effect; how it ends is then what the test says. */
export const bodyLatch = (call: number): string => `call:${call}`
/** The latch that holds a handler. */
export const handlerLatch = (key: string): string => `effect:${key}`

type Handlers =
  | SideEffect.HandlerOf<"keyed">
  | SideEffect.HandlerOf<"once">
  | SideEffect.HandlerOf<"transactional">
  | SideEffect.HandlerOf<"repeatable">
type Running = Effect.Effect<void, string, Workflow.WorkflowScope | Scope.Scope | Handlers>

/** The ways to fork. */
const forks = { fork: Effect.fork, forkDaemon: Effect.forkDaemon, forkScoped: Effect.forkScoped }

/** The workflow that interprets programs, and the handlers of its effects, which wait on the stage. */
export const interpreter = (stage: Stage) => {
  const wait = ({ call, sync }: Call) => (sync && !stage.strict ? Effect.void : stage.wait(bodyLatch(call)))
  /** Whatever the effect came to, the step ends when the test says. */
  const held = <R>(effect: Effect.Effect<typeof Done.Type, typeof Done.Type, R>, call: Call) =>
    Effect.flatMap(Effect.either(effect), (done) => Effect.zipRight(wait(call), done))
  const handler = (call: Call, firing: SideEffect.Firing) =>
    Effect.suspend(() => {
      stage.fired.push(firing.key)
      return Effect.zipRight(
        call.sync && !stage.strict ? Effect.void : stage.wait(handlerLatch(firing.key)),
        outcome(call)
      )
    })
  const plain = Node.make("plain", declared, (call) => Effect.zipRight(wait(call), outcome(call)))
  const keyed = Node.make("keyed", { ...declared, effects: [Keyed] }, (call) => held(Keyed(call), call))
  const once = Node.make("once", { ...declared, effects: [Once] }, (call) => held(Once(call), call))
  const transactional = Node.make("transactional", { ...declared, effects: [Transactional] }, (call) =>
    held(Transactional(call), call)
  )
  const repeatable = Node.make("repeatable", { ...declared, effects: [Repeatable] }, (call) =>
    held(Repeatable(call), call)
  )
  // A timer that is due at once would race with what starts beside it.
  const span = (millis: number) => Duration.millis(stage.strict ? Math.max(1, millis) : millis)
  const nodes: Record<
    Delivered,
    (call: Call) => Effect.Effect<typeof Done.Type, typeof Done.Type, Workflow.WorkflowScope | Handlers>
  > = {
    plain,
    keyed,
    once,
    transactional,
    repeatable
  }

  const workflow = Workflow.make(
    "program",
    {
      version: "1",
      input: Schema.String,
      success: Schema.String,
      error: Schema.String,
      signals: [Mail],
      updates: [Add]
    },
    (text) =>
      Effect.gen(function* () {
        const trace: Array<string> = []
        let calls = 0
        const queue = yield* Queue.bounded<number>(1)
        const signal = yield* Deferred.make<number>()
        const counter = yield* Ref.make(0)
        const lock = yield* Effect.makeSemaphore(1)
        const begun = yield* Clock.currentTimeMillis
        const note = (what: string) => Effect.sync(() => void trace.push(what))

        const call = (op: Extract<Op, { op: "step" }>): Running =>
          Effect.gen(function* () {
            const number = ++calls
            const draw = yield* Random.nextIntBetween(0, 1000)
            const at = (yield* Clock.currentTimeMillis) - begun
            const input = { call: number, draw, at, fails: op.fails, sync: op.sync }
            const done = yield* Effect.mapError(
              nodes[op.how](input),
              (error) => `step ${error.call} failed with ${error.draw}`
            )
            yield* note(`${op.how} ${done.call}=${done.draw}`)
          })

        const run = (op: Op): Running => {
          switch (op.op) {
            case "step":
              return call(op)
            case "sleep":
              return Effect.zipRight(Effect.sleep(span(op.millis)), note(`slept ${op.millis}`))
            case "ask":
              return Effect.flatMap(
                Effect.suspend(() => Approval(++calls)),
                (answer) => note(`told ${JSON.stringify(answer)}`)
              )
            // In a finalizer nobody else could end these, either.
            case "receive":
              return Effect.flatMap(
                Effect.timeoutOption(Effect.interruptible(Signal.next(Mail)), "2 seconds"),
                (received) => note(`received ${JSON.stringify(received)}`)
              )
            case "reply":
              return Effect.flatMap(
                Effect.timeoutOption(Effect.interruptible(Update.next(Add)), "2 seconds"),
                (request) =>
                  request._tag === "None"
                    ? note("nothing to reply to")
                    : Effect.zipRight(request.value.succeed(request.value.input + ++calls), note("replied"))
              )
            case "draw":
              return Effect.flatMap(Random.next, (drawn) => note(`drew ${drawn}`))
            case "time":
              return Effect.flatMap(Clock.currentTimeMillis, (at) => note(`at ${at - begun}`))
            // In a finalizer nothing could end these but the timeout.
            case "offer":
              return Effect.flatMap(
                Effect.timeoutOption(
                  Effect.interruptible(Effect.suspend(() => Queue.offer(queue, ++calls))),
                  "1 seconds"
                ),
                (offered) => note(`offered ${offered._tag}`)
              )
            case "take":
              return Effect.flatMap(
                Effect.timeoutOption(Effect.interruptible(Queue.take(queue)), "2 seconds"),
                (taken) => note(`took ${JSON.stringify(taken)}`)
              )
            case "signal":
              return Effect.flatMap(
                Effect.suspend(() => Deferred.succeed(signal, ++calls)),
                (first) => note(`signalled ${first}`)
              )
            case "await":
              return Effect.flatMap(
                Effect.timeoutOption(Effect.interruptible(Deferred.await(signal)), "2 seconds"),
                (value) => note(`awaited ${JSON.stringify(value)}`)
              )
            case "count":
              return Effect.flatMap(
                Ref.updateAndGet(counter, (n) => n + 1),
                (n) => note(`counted ${n}`)
              )
            case "locked":
              return lock.withPermits(1)(call({ op: "step", how: "plain", fails: false, sync: false }))
            case "die":
              return Effect.dieMessage("the program died")
            case "yield":
              return Effect.zipRight(Effect.yieldNow(), note("yielded"))
            case "seq":
              return Effect.forEach(op.of, run, { discard: true })
            case "all":
              return Effect.forEach(op.of, run, { discard: true, concurrency: op.concurrency })
            case "race":
              return op.of.map(run).reduce((left, right) => Effect.race(left, right))
            case "raceFirst":
              return op.of.map(run).reduce((left, right) => Effect.raceFirst(left, right))
            case "raceAll":
              return Effect.raceAll(op.of.map(run))
            case "timeout":
              return Effect.timeoutTo(run(op.of), {
                duration: span(op.millis),
                onSuccess: () => "in time",
                onTimeout: () => "timed out"
              }).pipe(Effect.flatMap(note))
            case "retry": {
              const schedules: Record<typeof op.schedule, Schedule.Schedule<unknown>> = {
                exponential: Schedule.exponential("100 millis"),
                jittered: Schedule.jittered(Schedule.exponential("1 seconds")),
                spaced: Schedule.spaced("3 seconds")
              }
              const schedule = schedules[op.schedule]
              return Effect.retry(run(op.of), Schedule.intersect(schedule, Schedule.recurs(op.times)))
            }
            case "fork":
              return Effect.gen(function* () {
                const fiber = yield* forks[op.how](Effect.onExit(run(op.of), (exit) => note(`child ${exit._tag}`)))
                yield* run(op.next)
                if (op.end === "join") yield* Fiber.join(fiber)
                else if (op.end === "interrupt") yield* Fiber.interrupt(fiber)
              })
            case "ensuring":
              return Effect.ensuring(run(op.of), Effect.ignore(run(op.next)))
            case "acquireRelease":
              return Effect.scoped(
                Effect.zipRight(
                  Effect.acquireRelease(note("acquired"), () =>
                    Effect.zipRight(Effect.ignore(run(op.next)), note("released"))
                  ),
                  run(op.of)
                )
              )
            case "catchAll":
              return Effect.catchAll(run(op.of), (error) => Effect.zipRight(note(`caught ${error}`), run(op.next)))
            case "uninterruptible":
              return Effect.uninterruptible(run(op.of))
          }
        }
        // The text is a program that this file made.
        yield* run(JSON.parse(text) as Op)
        return trace.join("; ")
      })
  )
  const handlers = Layer.mergeAll(
    Keyed.toLayer(handler),
    // What is in doubt happened: the receiver knows what it was asked.
    Once.toLayer(handler, {
      reconcile: (_firing, call) =>
        Effect.map(Effect.either(outcome(call)), (done) =>
          done._tag === "Right" ? SideEffect.Happened(done.right) : SideEffect.Declined(done.left)
        )
    }),
    Transactional.toLayer((call, { key }) =>
      Effect.suspend(() => {
        stage.fired.push(key)
        return outcome(call)
      })
    ),
    Repeatable.toLayer(handler)
  )
  return { workflow, handlers }
}
