/** Situations that many probes share, and what is looked at afterwards. */
import { Effect, type Scope } from "effect"
import { isDeepStrictEqual } from "node:util"
import type { CanonicalWorkflow } from "./CanonicalWorkflow.js"
import type { LogLine } from "./Outside.js"
import type { BranchState } from "./Plane.js"
import { Inapplicable } from "./Needs.js"
import { type Answers, type At, byName, type Stand, type Stop } from "./Stand.js"

/** A run whose process was killed, and what became of it. */
export interface Crash {
  readonly run: string
  readonly workflow: CanonicalWorkflow
  readonly answers: Answers
  readonly at: At
  /** The log when the process was dead. */
  readonly before: ReadonlyArray<LogLine>
  /** The steps that had a durable outcome then; `undefined` if the driver cannot say. */
  readonly recorded: ReadonlyArray<string> | undefined
  /** The state in which a new process left it. */
  readonly state: BranchState
}

/**
 * Runs the workflow to a point, kills the process there, lets a new one go on, and answers gates throughout. The second
 * process may be killed, too, at `again`.
 */
export const crashAt = (
  stand: Stand,
  workflow: CanonicalWorkflow,
  point: string,
  options: {
    readonly run?: string
    readonly answers?: Answers
    readonly again?: string
    readonly optional?: boolean
  } = {}
): Effect.Effect<Crash, Stop, Scope.Scope> =>
  Effect.gen(function* () {
    yield* stand.need("durable")
    const run = options.run ?? "run-1"
    const answers = options.answers ?? byName
    const given = new Set<string>()
    const hold = stand.hold(point)
    const first = yield* stand.open()
    // At the barrier the whole process may stand still: nothing that it was asked needs to be answered.
    const early = yield* Effect.raceFirst(
      Effect.as(hold.arrived(), undefined),
      Effect.flatMap(stand.start(first, workflow, run), (at) => stand.drive(at, answers, given))
    )
    const reached = early === undefined
    if (!reached) stand.note(`the run did not come to ${point}`)
    stand.check(reached || options.optional === true, `the run did not come to ${point}: it is ${early?.status}`)
    yield* stand.kill(first)
    yield* hold.release
    const before = stand.lines()
    const recorded = yield* recordedAfter(stand, workflow, run)
    if (options.again !== undefined) {
      const second = stand.hold(options.again)
      const process = yield* stand.open()
      const ended = yield* Effect.raceFirst(
        Effect.as(second.arrived(), undefined),
        Effect.flatMap(stand.start(process, workflow, run), (at) => stand.drive(at, answers, given))
      )
      stand.note(ended === undefined ? "the recovery is interrupted, too" : "the recovery did not come there")
      yield* stand.kill(process)
      yield* second.release
    }
    // Whoever started the run may have had no answer, and starts it again: it is the same run.
    const at = yield* stand.start(yield* stand.open(), workflow, run)
    const state = yield* stand.drive(at, answers, given)
    return { run, workflow, answers, at, before, recorded, state }
  })

/** What has a durable outcome now, as a process that runs nothing sees it. */
const recordedAfter = (
  stand: Stand,
  workflow: CanonicalWorkflow,
  run: string
): Effect.Effect<ReadonlyArray<string> | undefined, Stop, Scope.Scope> =>
  Effect.gen(function* () {
    if (!stand.hello.capabilities.history) return undefined
    return yield* stand.asReader((process) =>
      Effect.flatMap(stand.start(process, workflow, run), (at) => stand.recorded(at))
    )
  })

/** PC: what had a durable outcome did not run again, and what had none ran. */
export const continues = (stand: Stand, crash: Crash): Effect.Effect<void, Stop> =>
  Effect.gen(function* () {
    yield* ran(stand, crash)
    for (const step of crash.recorded ?? servedBefore(stand, crash)) {
      const earlier = count(crash.before, crash.run, step)
      const now = count(stand.lines(), crash.run, step)
      stand.check(earlier === now, `${step} had a durable outcome and ran again`)
    }
  })

/** Without a history: a step whose outcome was in the input of what fired later was finished. */
const servedBefore = (stand: Stand, { before, run }: Crash): ReadonlyArray<string> => {
  const fired = before.filter((line) => line.kind === "fire" && line.run === run)
  const last = fired.at(-1)
  stand.note("the driver cannot say what was durable: steps before the last firing are taken for finished")
  return fired.flatMap((line) =>
    line.kind === "fire" && last?.kind === "fire" && line.step !== last.step ? [line.step] : []
  )
}

const count = (lines: ReadonlyArray<LogLine>, run: string, step: string): number =>
  lines.filter((line) => line.kind !== "ruled" && line.run === run && line.step === step).length

/**
 * Every step of the run that completed has run. A run that did not complete is judged by LV: what a probe of another
 * property looks for cannot be seen of it.
 */
export const ran = (
  stand: Stand,
  { answers, at, run, state, workflow }: Pick<Crash, "answers" | "at" | "run" | "state" | "workflow">
): Effect.Effect<void, Stop> =>
  Effect.gen(function* () {
    if (state.status !== "completed") {
      const reason = `the run is ${state.status}${reasonOf(state)} and did not complete, which LV judges`
      return yield* new Inapplicable({ verdict: "not applicable", reason })
    }
    const committed = yield* stand.committed(at.process, run)
    const happened = new Set([...stand.fired(run), ...committed].map(({ effect, step }) => `${step} ${effect}`))
    for (const { effect, step } of stand.expected(workflow, run, answers, committed).firings)
      stand.check(happened.has(`${step} ${effect}`), `the run completed, and ${step} did not perform ${effect}`)
  })

/** The run completed, and its result is what its workflow, its answers and the receivers make it. */
export const finishes = (
  stand: Stand,
  { answers, at, run, state, workflow }: Pick<Crash, "answers" | "at" | "run" | "state" | "workflow">
): Effect.Effect<void, Stop> =>
  Effect.gen(function* () {
    stand.check(state.status === "completed", `the run did not complete: it is ${state.status}${reasonOf(state)}`)
    if (state.status !== "completed") return
    const { firings, value } = stand.expected(workflow, run, answers, yield* stand.committed(at.process, run))
    for (const { effect, happened, input, step } of firings)
      stand.check(happened > 0, `${step} did not perform ${effect} with the input ${JSON.stringify(input)}`)
    stand.check(
      isDeepStrictEqual(state.value, value),
      `the result is ${JSON.stringify(state.value)} and should be ${JSON.stringify(value)}`
    )
  })

const reasonOf = ({ error }: BranchState): string => (error === undefined ? "" : ` (${error})`)

/** EO: each effect of the run happened as its delivery promises. `except`: keys that an operator admitted anew. */
export const happensOnce = (stand: Stand, at: At, run: string, timelines = 1): Effect.Effect<void, Stop> =>
  Effect.gen(function* () {
    const fired = stand.fired(run)
    const committed = yield* stand.committed(at.process, run)
    for (const name of new Set(fired.map(({ effect, step }) => `${step} ${effect}`))) {
      const of = fired.filter(({ effect, step }) => `${step} ${effect}` === name)
      const keys = new Set(of.map(({ key }) => key))
      const delivery = of[0]?.delivery
      if (delivery === "once") {
        stand.check(of.length <= timelines, `${name} (once) fired ${of.length} times`)
      } else if (delivery === "keyed") {
        stand.check(keys.size <= timelines, `${name} (keyed) fired under ${keys.size} keys`)
        for (const key of keys) {
          const inputs = of.filter((one) => one.key === key).map(({ input }) => JSON.stringify(input))
          stand.check(
            new Set(inputs).size === 1,
            `${name} (keyed) fired with ${new Set(inputs).size} inputs under one key`
          )
        }
        stand.check(!keys.has(""), `${name} (keyed) fired without a key`)
      }
    }
    for (const name of new Set(committed.map(({ effect, step }) => `${step} ${effect}`))) {
      const times = committed.filter(({ effect, step }) => `${step} ${effect}` === name).length
      stand.check(times <= timelines, `${name} (transactional) was committed ${times} times`)
    }
  })

/** LV: the branch is over, or waits for something that inspection names. */
export const isNamed = (stand: Stand, state: BranchState): void => {
  stand.check(state.status !== "running", `${state.branch} is at rest and said to be running`)
  if (state.status === "waiting" || state.status === "stuck")
    stand.check(
      state.waitingFor.length > 0,
      `${state.branch} is ${state.status}, and inspection names nothing that it waits for`
    )
}
