/**
 * The test stand of one probe: a fresh store, effect log and barriers; processes of the plane; and what a probe needs to
 * start runs, drive them, kill them at points and look at what happened outside. It records what was done and seen.
 */
import { Effect, Exit, Scope } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import type { DeliveryPolicy } from "../Delivery.js"
import * as Barriers from "./Barriers.js"
import { type CanonicalWorkflow, interpret } from "./CanonicalWorkflow.js"
import { type Driver, type DriverError, DriverFault, type Process, within } from "./Driver.js"
import { Inapplicable, inexpressible, missing, type Switch } from "./Needs.js"
import { type Fired, type LogLine, readLog } from "./Outside.js"
import type { BranchState, Committed, Hello, Receipt, Request } from "./Plane.js"

export type Stop = DriverError | Inapplicable

/** What answers a gate; `undefined` leaves it open. */
export type Answers = (gate: string) => { readonly value: unknown } | undefined

/** Answers every gate with its own name: an answer that strays is seen. */
export const byName: Answers = (gate) => ({ value: `answer to ${gate}` })

/** A branch that a process is asked about. */
export interface At {
  readonly process: Process
  readonly branch: string
}

export interface Options {
  readonly driver: Driver
  readonly hello: Hello
  /** The probe's folder. */
  readonly folder: string
  readonly timeLimit: number
}

export class Stand {
  readonly driver: Driver
  readonly hello: Hello
  readonly folder: string
  readonly log: string
  readonly notes: Array<string> = []
  /** What broke. */
  readonly broken: Array<string> = []
  private readonly barriers: string
  private readonly timeLimit: number
  private processes: ReadonlyArray<Process> = []
  private readonly stores = new Set<string>()
  private reader: Process | undefined
  private readonly scope = Effect.runSync(Scope.make())
  private opened = 0
  private deliveries = 0

  constructor(options: Options) {
    this.driver = options.driver
    this.hello = options.hello
    this.folder = options.folder
    this.timeLimit = options.timeLimit
    this.barriers = join(options.folder, "barriers")
    this.log = join(options.folder, "effects.jsonl")
    mkdirSync(this.barriers, { recursive: true })
  }

  // ── Records ───────────────────────────────────────────────────────────────────────────────────────────────

  note(text: string): void {
    this.notes.push(text)
  }

  /** Records what broke unless it is so. */
  check(isSo: boolean, broke: string): void {
    if (!isSo && !this.broken.includes(broke)) this.broken.push(broke)
  }

  // ── Processes ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Fails if the plane lacks any of these. */
  need(...switches: ReadonlyArray<Switch>): Effect.Effect<void, Inapplicable> {
    return Effect.suspend(() => missing(this.hello, switches) ?? Effect.void)
  }

  needMany(): Effect.Effect<void, Inapplicable> {
    return this.hello.capabilities.processes === "many"
      ? Effect.void
      : new Inapplicable({ verdict: "cannot be expressed", reason: "one process at a time may use a store" })
  }

  /** The strictest delivery that the plane has: effects that nobody may fire twice. */
  get strictest(): DeliveryPolicy {
    const { deliveries } = this.hello.capabilities
    return (
      (["once", "keyed", "transactional", "repeatable"] as const).find((one) => deliveries.includes(one)) ??
      deliveries[0]
    )
  }

  /** Opens a process of the plane. */
  open(
    options: {
      readonly role?: "worker" | "client"
      readonly takeover?: boolean
      readonly brief?: boolean
      readonly store?: string
      readonly log?: string
      readonly service?: string
      readonly driver?: Driver
    } = {}
  ): Effect.Effect<Process, DriverError, Scope.Scope> {
    return Effect.gen(this, function* () {
      const store = options.store ?? join(this.folder, "store")
      const create = !this.stores.has(store)
      if (create) {
        mkdirSync(store, { recursive: true })
        this.stores.add(store)
      }
      const role = options.role ?? "worker"
      const who = `p${++this.opened}`
      this.note(`${who} opens the store as ${role}${options.takeover === true ? " and takes over" : ""}`)
      const process = yield* (options.driver ?? this.driver).open({
        store,
        create,
        role,
        log: options.log ?? this.log,
        barriers: this.barriers,
        who,
        takeover: options.takeover ?? false,
        brief: options.brief ?? false,
        service: options.service ?? null
      })
      this.processes = [...this.processes, process]
      return process
    })
  }

  /**
   * Asks a process that runs nothing. Where many may use the store it is one for the whole probe; else it is gone
   * afterwards.
   */
  asReader<A>(use: (process: Process) => Effect.Effect<A, Stop, Scope.Scope>): Effect.Effect<A, Stop, Scope.Scope> {
    return Effect.gen(this, function* () {
      const shared = this.hello.capabilities.processes === "many"
      const reader =
        this.reader ??
        (yield* shared ? Scope.extend(this.open({ role: "client" }), this.scope) : this.open({ role: "client" }))
      if (shared) this.reader = reader
      const answer = yield* use(reader)
      if (!shared) yield* this.kill(reader)
      return answer
    })
  }

  kill(process: Process): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.note(`${process.who} is killed`)
      this.processes = this.processes.filter((one) => one !== process)
      return process.kill
    })
  }

  /** Copies the store, which nobody may have open; gives the copy's name. */
  copy(name: string): Effect.Effect<string, DriverError> {
    const to = join(this.folder, name)
    return Effect.suspend(() => {
      this.stores.add(to)
      this.note(`the store is copied as ${name}`)
      return Effect.as(this.driver.copy(join(this.folder, "store"), to), to)
    })
  }

  /** Kills what still runs and removes the stores. */
  readonly clear: Effect.Effect<void> = Effect.suspend(() => {
    const stores = [...this.stores]
    return Effect.zipRight(
      Effect.zipRight(
        Effect.forEach(this.processes, ({ kill }) => kill, { discard: true }),
        Scope.close(this.scope, Exit.void)
      ),
      Effect.forEach(stores, (store) => Effect.ignore(this.driver.drop(store)), { discard: true })
    )
  })

  // ── Barriers ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Puts a barrier up. */
  hold(point: string): Barriers.Hold {
    return Barriers.hold(this.barriers, point, {
      arrival: (arrived, what) =>
        Effect.raceAll([arrived, ...this.processes.map(({ ended }) => ended)]).pipe(
          within(this.timeLimit, what),
          Effect.tap(() => Effect.sync(() => this.note(`stopped at ${point}`)))
        )
    })
  }

  /** Records every point that is passed from now on; gives those passed so far. */
  trace(): () => ReadonlyArray<string> {
    return Barriers.trace(this.barriers)
  }

  stopTracing(): void {
    Barriers.stopTracing(this.barriers)
  }

  // ── Runs ──────────────────────────────────────────────────────────────────────────────────────────────────

  start(process: Process, workflow: CanonicalWorkflow, run = "run-1"): Effect.Effect<At, Stop> {
    return Effect.gen(this, function* () {
      const cannot = inexpressible(this.hello, workflow)
      if (cannot !== undefined) return yield* cannot
      this.note(`${run} (${workflow.name}) is started`)
      const { branch } = yield* this.ask(process.ask("start", { run, workflow }))
      return { process, branch }
    })
  }

  /** A request whose operation the driver claimed to have: declining it as unsupported is a lie. */
  ask<A>(request: Effect.Effect<A, DriverError>): Effect.Effect<A, DriverError> {
    return Effect.mapError(request, (error) =>
      error._tag === "Declined" && error.code === "unsupported"
        ? new DriverFault({ kind: "lied", message: `it says that it can, and then: ${error.message}` })
        : error
    )
  }

  inspect({ branch, process }: At): Effect.Effect<BranchState, Stop> {
    return Effect.tap(this.ask(process.ask("inspect", { branch })), (state) => Effect.sync(() => this.saw(state)))
  }

  rest({ branch, process }: At): Effect.Effect<BranchState, Stop> {
    return Effect.tap(this.ask(process.ask("rest", { branch })), (state) => Effect.sync(() => this.saw(state)))
  }

  private saw(state: BranchState): void {
    const pending = state.pending.map(({ gate }) => gate).join(", ")
    const waits = state.waitingFor.map(({ kind, name }) => `${kind} ${name}`).join(", ")
    const value = state.value === undefined ? "" : `, value ${JSON.stringify(state.value)}`
    const error = state.error === undefined ? "" : `, error ${state.error}`
    this.note(
      `${state.branch} is ${state.status}${waits === "" ? "" : `, waits for ${waits}`}${pending === "" ? "" : `, asks ${pending}`}${value}${error}`
    )
  }

  /** Delivers an answer; `deliveryId` is a new one unless given. */
  resume(
    { branch, process }: At,
    interrupt: string,
    value: unknown,
    options: Partial<Pick<Request<"resume">, "deliveryId" | "intent" | "forkId" | "line">> = {}
  ): Effect.Effect<Receipt, Stop> {
    const request = {
      branch,
      interrupt,
      value,
      deliveryId: options.deliveryId ?? `delivery-${++this.deliveries}`,
      intent: options.intent === undefined ? ("retry" as const) : options.intent,
      forkId: options.forkId ?? null,
      line: options.line ?? null
    }
    return Effect.tap(this.ask(process.ask("resume", request)), ({ branch: made, outcome, reason }) =>
      Effect.sync(() =>
        this.note(
          `${process.who} delivers ${JSON.stringify(value)} to ${interrupt} of ${branch} (${request.deliveryId}, intent ${request.intent ?? "none"}): ${outcome}, ${reason}${made === null ? "" : `, ${made}`}`
        )
      )
    )
  }

  /** Forks at a gate. The new branch, or `undefined` (and what broke) if the fork was not made. */
  fork(at: At, interrupt: string, value: unknown, forkId: string): Effect.Effect<At | undefined, Stop> {
    return Effect.map(this.resume(at, interrupt, value, { intent: "fork", forkId }), ({ branch, outcome, reason }) => {
      this.check(outcome === "forked" && branch !== null, `the fork ${forkId} was not made: ${outcome}, ${reason}`)
      return outcome === "forked" && branch !== null ? { process: at.process, branch } : undefined
    })
  }

  /** As `fork`, for probes that need one and judge something else: without it they are not applicable. */
  forked(at: At, interrupt: string, value: unknown, forkId: string): Effect.Effect<At, Stop> {
    return Effect.flatMap(
      this.resume(at, interrupt, value, { intent: "fork", forkId }),
      ({ branch, outcome, reason }) =>
        outcome === "forked" && branch !== null
          ? Effect.succeed({ process: at.process, branch })
          : new Inapplicable({
              verdict: "not applicable",
              reason: `the plane made no fork (${outcome}, ${reason}), which FD and FI judge`
            })
    )
  }

  /** Answers gates as they open until the branch is over, stuck, or waits for what nobody answers. */
  drive(at: At, answers: Answers, given: Set<string> = new Set()): Effect.Effect<BranchState, Stop> {
    return Effect.gen(this, function* () {
      for (;;) {
        const state = yield* this.rest(at)
        if (!(yield* this.answerAll(at, state, answers, given))) return state
      }
    })
  }

  /** Waits at a barrier; what broke, and the state, if the branch comes to rest elsewhere. */
  until(hold: Barriers.Hold, at: At): Effect.Effect<BranchState | undefined, Stop> {
    return Effect.tap(Effect.raceFirst(Effect.as(hold.arrived(), undefined), this.rest(at)), (state) =>
      Effect.sync(() => this.check(state === undefined, `${at.branch} did not come to ${hold.point}`))
    )
  }

  private answerAll(at: At, state: BranchState, answers: Answers, given: Set<string>): Effect.Effect<boolean, Stop> {
    return Effect.gen(this, function* () {
      if (state.status !== "waiting") return false
      let answered = false
      for (const { gate, interrupt } of state.pending) {
        const answer = answers(gate)
        if (answer === undefined) continue
        if (given.has(`${at.branch} ${gate}`)) {
          this.check(false, `the answer to ${gate} had been accepted, and is asked for again`)
          return false
        }
        const { outcome } = yield* this.resume(at, interrupt, answer.value)
        if (outcome === "accepted") {
          given.add(`${at.branch} ${gate}`)
          answered = true
        } else this.check(false, `the answer to the open gate ${gate} was ${outcome}`)
      }
      return answered
    })
  }

  /** The pending gate of this name. What broke, and `undefined`, if the branch does not ask it. */
  pending(state: BranchState, gate: string): string | undefined {
    const found = state.pending.find((one) => one.gate === gate)?.interrupt
    this.check(found !== undefined, `${state.branch} does not ask ${gate}: it is ${state.status}`)
    return found
  }

  recorded({ branch, process }: At): Effect.Effect<ReadonlyArray<string>, Stop> {
    return Effect.map(this.ask(process.ask("history", { branch })), ({ steps }) => {
      const names = steps.map(({ step }) => step)
      this.note(`durable outcomes of ${branch}: ${names.length === 0 ? "none" : names.join(", ")}`)
      return names
    })
  }

  /** Waits until a step has a durable outcome. */
  untilRecorded(at: At, step: string): Effect.Effect<void, Stop> {
    const look: Effect.Effect<void, Stop> = Effect.flatMap(
      this.ask(at.process.ask("history", { branch: at.branch })),
      ({ steps }) =>
        steps.some((one) => one.step === step)
          ? Effect.void
          : Effect.zipRight(
              Effect.async<void>((resume) => {
                setTimeout(() => resume(Effect.void), 2)
              }),
              look
            )
    )
    return look.pipe(
      within(this.timeLimit, `a durable outcome of ${step}`),
      Effect.tap(() => Effect.sync(() => this.note(`${step} has a durable outcome`)))
    )
  }

  // ── Outside ───────────────────────────────────────────────────────────────────────────────────────────────

  lines(log = this.log): ReadonlyArray<LogLine> {
    return readLog(log)
  }

  fired(run: string, step?: string, log = this.log): ReadonlyArray<Fired> {
    return this.lines(log).filter(
      (line): line is Fired => line.kind === "fire" && line.run === run && (step === undefined || line.step === step)
    )
  }

  bodies(run: string, step: string): number {
    return this.lines().filter((line) => line.kind === "body" && line.run === run && line.step === step).length
  }

  /** What `transactional` effects committed for the run; nothing if the plane has none. */
  committed(process: Process, run: string): Effect.Effect<ReadonlyArray<Committed>, Stop> {
    return this.hello.capabilities.deliveries.includes("transactional")
      ? Effect.map(this.ask(process.ask("committed", { run })), ({ effects }) => effects)
      : Effect.succeed([])
  }

  /**
   * The result that the workflow must have under these answers and what the receivers gave back, and every effect that it
   * must have performed, with its input.
   */
  expected(
    workflow: CanonicalWorkflow,
    run: string,
    answers: Answers,
    committed: ReadonlyArray<Committed>,
    log = this.log
  ): Expected {
    const firings: Array<Expected["firings"][number]> = []
    const fired = this.fired(run, undefined, log)
    const value = interpret(workflow, {
      answer: (gate) => answers(gate)?.value,
      effect: (step, { delivery, name }, input) => {
        const rows: ReadonlyArray<Committed> = delivery === "transactional" ? committed : fired
        const matching = rows.filter(
          (row) => row.step === step && row.effect === name && isDeepStrictEqual(row.input, input)
        )
        firings.push({ step, effect: name, delivery, input, happened: matching.length })
        return matching.at(-1)?.value
      }
    })
    return { value, firings }
  }
}

/** What a workflow must have done. */
export interface Expected {
  readonly value: unknown
  readonly firings: ReadonlyArray<{
    readonly step: string
    readonly effect: string
    readonly delivery: DeliveryPolicy
    readonly input: unknown
    readonly happened: number
  }>
}
