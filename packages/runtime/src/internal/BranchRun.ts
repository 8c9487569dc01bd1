/**
 * One branch, running: the loop that delivers events, one per activation, to the fibers of its workflow.
 *
 * Everything that happens to a branch passes its mailbox and is handled in turn: outcomes and intents from the host,
 * rows of the inbox, due timers. Handling one gives it its place in the journal; an event is then delivered, and the
 * workflow's fibers run until none is runnable. Replay is the same loop with events from the history, so live and
 * replayed executions cannot differ in how fibers interleave (RD). While it replays, nothing new starts (PC).
 */
import {
  type BranchId,
  Defect,
  type Entry,
  type EntryDraft,
  type InterruptId,
  payloadOf,
  Recovery,
  runOf
} from "@fermata/contract"
import { type BranchJournal, type Claim, type InboxRow, type Ledger, type Release } from "@fermata/ledger"
import { Cause, Effect, Either, Exit, type Fiber, Option, Runtime, type Scope } from "effect"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"
import type { Problem } from "../Problem.js"
import { InvalidValue } from "../RunError.js"
import type * as Workflow from "../Workflow.js"
import type { Refusal } from "./Codec.js"
import * as CrashPoint from "./CrashPoint.js"
import { HostTimer } from "./HostTimer.js"
import { digest, draft } from "./Payload.js"
import { StepRun } from "./StepRun.js"
import { describeEntry, type Divergence, isCommandMark, Timeline } from "./Timeline.js"
import { rootFiber, type RootFiber } from "./RootFiber.js"
import type { Commands } from "./WorkflowScope.js"

/** What a branch needs of its worker. */
export interface BranchHost {
  readonly ledger: Pick<Ledger, "database" | "fate" | "inbox" | "maxPayload" | "open" | "unsafeNow"> &
    Partial<Pick<Ledger, "sql">>
  /** The worker's registered name. */
  readonly worker: string
  /** The worker's runtime: bodies and handlers run on it, with its services. */
  readonly runtime: Runtime.Runtime<never>
  /** `once` firings under way in this process, by effect key, also those of branches that were evicted since. */
  readonly firing: Set<string>
  /** The branch came to rest and was let go of, or was lost. */
  readonly onRest: (run: BranchRun, rest: Rest) => void
  /** Given by a check that only replays: called instead of going live. */
  readonly onReplayed?: (run: BranchRun, state: ReplayState) => void
}

/** Where the code stands when a history is replayed. */
export interface ReplayState {
  readonly commands: ReadonlyArray<string>
  readonly exit: Exit.Exit<unknown, unknown> | undefined
  readonly ending: EntryDraft | undefined
}

export type Rest = "parked" | "ended" | "stuck" | "released" | "lost"

/** A call of a node that waits for its outcome. */
export interface StepCommand {
  readonly kind: "step"
  readonly key: string
  readonly node: Node.Any
  readonly input: string
  readonly inputDigest: string
  /** Interrupted while an effect was firing: waits for how that ends. */
  withdrawing: boolean
  resume: (effect: Effect.Effect<unknown, unknown>) => void
}

interface InterruptCommand {
  readonly kind: "interrupt"
  readonly key: string
  readonly interrupt: Interrupt.Any
  readonly resume: (effect: Effect.Effect<unknown>) => void
}

interface TimerCommand {
  readonly kind: "timer"
  readonly key: string
  readonly due: number
  readonly resume: (effect: Effect.Effect<void>) => void
}

type Command = StepCommand | InterruptCommand | TimerCommand

/** How long one turn of the host's event loop may be used before others get theirs (milliseconds). */
const turn = 8
/** Timers nearer than this are waited for in memory (milliseconds). */
const stayFor = 1000
/** Room for the names and digests around a value in its entry's payload (UTF-16 code units). */
const payloadMargin = 4096
/** Entries given out but not durable at which delivery pauses. */
const maxVolatile = 4096
/** Text given out (UTF-16 code units) after which delivery pauses until it is durable. */
const maxVolatileText = 16 * 1024 * 1024

export class BranchRun {
  readonly branch: BranchId
  readonly recovery: Recovery
  readonly host: BranchHost
  readonly workflow: Workflow.Any
  private journal: BranchJournal | undefined
  private readonly timeline: Timeline
  private readonly root: RootFiber
  private readonly commands = new Map<string, Command>()
  private readonly ordinals = new Map<string, number>()
  private readonly steps = new Map<string, StepRun>()
  private readonly problems = new Map<string, Problem>()
  private readonly timer: HostTimer
  private deferred: Array<EntryDraft> = []
  private started: Array<StepCommand> = []
  private withdrawn: Array<string> = []
  private mailbox: Array<() => void> = []
  private next = 0
  /** An asynchronous operation of the journal is under way. */
  private busy = false
  private pumping = false
  /** More was given out than the disk has taken: delivery pauses. */
  private congested = false
  private volatile = 0
  private live = false
  private unseen = false
  private closing = false
  private stopping = false
  private gone = false
  private parked = false
  private inboxDirty = false
  private time = 0
  private exit: Exit.Exit<unknown, unknown> | undefined
  /** The live outcome of the step whose event is being delivered: as its text reads back. */
  private outcome: Effect.Effect<unknown, unknown> | undefined
  private failure: Problem | undefined
  private readonly cancelReason: { value: string | null } = { value: null }
  /** Rough size in memory, for the worker's accounting (bytes). */
  weight = 16_384

  constructor(
    host: BranchHost,
    workflow: Workflow.Any,
    private readonly claim: Claim,
    history: ReadonlyArray<Entry>
  ) {
    this.host = host
    this.workflow = workflow
    this.branch = claim.branch.branch
    this.recovery = new Recovery(this.branch)
    this.timeline = new Timeline(history)
    this.timer = new HostTimer(host.runtime, () => host.ledger.unsafeNow())
    const commands: Commands = {
      run: runOf(this.branch),
      branch: this.branch,
      call: (node, input, fiber) => this.call(node, input, fiber),
      ask: (interrupt, payload, fiber) => this.ask(interrupt, payload, fiber)
    }
    this.root = rootFiber({
      seed: runOf(this.branch),
      commands,
      services: workflow.services,
      host: host.runtime,
      time: () => this.time,
      silent: () => !this.live && !this.unseen,
      sleep: (millis) => this.sleep(millis),
      onForeign: () => this.foreign()
    })
  }

  // ── From the worker ─────────────────────────────────────────────────────────────────────────────────────

  /** Position and digest of what is in memory: valid as a cache while the branch's row has the same. */
  get head(): { readonly seq: number; readonly digest: string } | undefined {
    const journal = this.journal
    return journal === undefined || this.gone ? undefined : { seq: journal.head, digest: journal.headDigest }
  }

  /** Begins: replays what there is, then goes live. */
  start(): void {
    this.take(this.claim)
    this.post(() => this.replay())
  }

  /** Goes on after parking, without replay: the claim's row is as this left it. */
  reattach(claim: Claim): void {
    this.parked = false
    this.take(claim)
    this.inboxDirty = true
    for (const step of this.steps.values()) step.start()
    this.armTimers()
    this.post(() => undefined)
  }

  /** Something may have come into the inbox. */
  inboxChanged(): void {
    this.inboxDirty = true
    if (this.live) this.pump()
  }

  /** True if the inbox holds more than was moved. */
  inboxBehind(inboxHead: number): boolean {
    return inboxHead > this.recovery.inboxSeen
  }

  /** Lets go gracefully: waits for firings that may not be interrupted, then makes the branch ready for others. */
  shutdown(): void {
    if (this.gone || this.parked || this.stopping) return
    this.stopping = true
    this.timer.clear()
    for (const step of this.steps.values()) step.interrupt()
    this.post(() => undefined)
  }

  /** Forgets everything in memory, running nothing: no finalizer, no handler's continuation. */
  evict(): void {
    this.gone = true
    this.mailbox = []
    this.next = 0
    this.timer.clear()
    this.journal?.close()
    this.root.evict()
    for (const step of this.steps.values()) step.abandon()
    this.steps.clear()
    this.commands.clear()
  }

  private take(claim: Claim): void {
    const journal = this.host.ledger.open(claim)
    this.journal = journal
    journal.onLost((cause) => {
      if (this.journal === journal) this.lose(cause)
    })
  }

  /** Why the branch was lost, for the worker's log. */
  lostTo: unknown

  private lose(cause: unknown): void {
    if (this.gone) return
    this.lostTo = cause
    this.evict()
    this.host.onRest(this, "lost")
  }

  // ── The mailbox ─────────────────────────────────────────────────────────────────────────────────────────

  /** Handles `job` in its turn. Dropped if the branch is gone. */
  post(job: () => void): void {
    if (this.gone) return
    this.mailbox.push(job)
    this.pump()
  }

  /** Nothing is under way that the next job would have to wait for. */
  private get free(): boolean {
    return !this.busy && !this.congested && !this.root.active
  }

  /** A job's own failure is this branch's: others go on. */
  private handle(job: (() => void) | undefined): void {
    try {
      job?.()
    } catch (error) {
      if (this.journal?.lost === true) return this.lose(error)
      this.fail({
        _tag: "EngineFailed",
        seq: this.recovery.head,
        message: `After position ${this.recovery.head} of ${this.branch} the runtime failed: ${error instanceof Error ? error.message : String(error)}`
      })
    }
  }

  private pump(): void {
    if (this.pumping || !this.free || this.parked) return
    this.pumping = true
    const deadline = performance.now() + turn
    let handled = 0
    while (this.next < this.mailbox.length && this.free && !this.gone) {
      const job = this.mailbox[this.next++]
      if (this.next === this.mailbox.length || this.next > 1024) {
        this.mailbox.splice(0, this.next)
        this.next = 0
      }
      this.handle(job)
      if ((++handled & 15) === 0 && performance.now() > deadline) {
        this.pumping = false
        setImmediate(() => {
          // A branch that always has something to do still hears what comes from outside.
          if (this.inboxDirty && this.live && this.free && !this.closing && !this.stopping && !this.gone) {
            this.readInbox(() => undefined)
          }
          this.pump()
        })
        return
      }
    }
    this.pumping = false
    if (!this.gone && this.free && this.mailbox.length === 0) this.rest()
  }

  /** Runs a journal operation with the mailbox held; whatever it says is handled first. */
  private hold<A, E>(effect: Effect.Effect<A, E>, then: (exit: Exit.Exit<A, E>) => void): void {
    this.busy = true
    const fiber = Runtime.runFork(this.host.runtime)(effect)
    fiber.addObserver((exit) => {
      if (this.gone) return
      this.busy = false
      then(exit)
      this.pump()
    })
  }

  private appendNow(entryDraft: EntryDraft): Entry {
    const journal = this.journal
    if (journal === undefined) throw new Error("a branch that is not owned cannot be appended to")
    const entry = journal.append(entryDraft)
    if (CrashPoint.armed()) {
      const detail = `${this.branch} ${entry.seq} ${describeEntry(entry)}`
      CrashPoint.pass("appended", detail)
      journal.onDurable(entry.seq, (lost) => {
        if (lost === undefined) CrashPoint.pass("durable", detail)
      })
    }
    this.recovery.apply(entry)
    this.weight += entryDraft.payload.length >> 3
    this.volatile += entryDraft.payload.length
    if (this.volatile > maxVolatileText) {
      this.volatile = 0
      this.congested = true
      journal.onDurable(entry.seq, () => {
        this.congested = false
        this.pump()
      })
    } else if (entry.seq - journal.durable > maxVolatile) {
      // Backpressure: memory does not grow faster than the disk writes.
      this.congested = true
      journal.onDurable(entry.seq - (maxVolatile >> 1), () => {
        this.congested = false
        this.pump()
      })
    }
    return entry
  }

  /** Appends a mark from the host unless it is refused by then. Calls back with its position; never if the branch is gone. */
  mark(entryDraft: EntryDraft, then: (seq: number | undefined) => void, refused?: () => boolean): void {
    this.post(() => {
      let seq: number | undefined
      try {
        if (refused?.() !== true) seq = this.appendNow(entryDraft).seq
      } finally {
        // Whoever waits must hear of it also when the journal refuses: a firing may not be interrupted while it waits.
        then(seq)
      }
    })
  }

  /** Calls back when all up to `seq` is durable; never if the branch is lost. */
  whenDurable(seq: number, then: () => void): void {
    this.journal?.onDurable(seq, (lost) => {
      if (lost === undefined) then()
    })
  }

  /** Runs a `transactional` effect: its writes and its outcome commit together, and nothing else comes between. */
  transact<A, E>(
    body: Effect.Effect<A, E>,
    outcome: (
      exit: { readonly _tag: "Success"; readonly value: A } | { readonly _tag: "Failure"; readonly error: E }
    ) => EntryDraft,
    then: (exit: Exit.Exit<Entry, unknown> | undefined) => void,
    refused: () => boolean
  ): void {
    this.post(() => {
      const journal = this.journal
      if (journal === undefined) return
      if (refused()) return then(undefined)
      this.hold(journal.transact(body, outcome), (exit) => {
        if (Exit.isSuccess(exit)) this.recovery.apply(exit.value)
        then(exit)
      })
    })
  }

  // ── Replay ──────────────────────────────────────────────────────────────────────────────────────────────

  private replay(): void {
    if (this.stopping) return
    const segment = this.timeline.advance()
    if (segment === undefined) return this.goLive()
    const { event, marks } = segment
    // A client wrote it, and nothing follows: what it sets off runs for the first time, and is heard.
    this.unseen = event.epoch === 0 && marks.length === 0 && !this.timeline.replaying
    this.recovery.apply(event)
    const deferred = this.deferred
    this.deferred = []
    for (const entryDraft of deferred) this.issue(entryDraft)
    this.deliver(event, () => {
      const leftover = this.timeline.leftover()
      if (leftover !== undefined) return this.diverge(leftover)
      // Command marks were folded in as they were matched.
      for (const mark of marks) if (!isCommandMark(mark.kind)) this.recovery.apply(mark)
      this.post(() => this.replay())
    })
  }

  private goLive(): void {
    this.timeline.finish()
    if (this.host.onReplayed !== undefined) {
      const ending = this.exit === undefined ? undefined : this.ending()
      return this.host.onReplayed(this, { commands: this.waitingCommands(), exit: this.exit, ending })
    }
    this.live = true
    this.started = []
    this.withdrawn = []
    // What was accepted meanwhile (a settlement, an answer, a cancel) comes before anything starts.
    this.readInbox(() => this.takeUp())
  }

  /** Begins what the history leaves to do. */
  private takeUp(): void {
    if (this.stopping) return
    if (this.exit !== undefined) return this.close()
    for (const command of this.commands.values()) {
      if (command.kind === "step" && !this.steps.has(command.key) && !this.problems.has(command.key)) this.run(command)
    }
    this.armTimers()
  }

  private waitingCommands(): ReadonlyArray<string> {
    return [...this.commands.values()].map((command) =>
      command.kind === "step"
        ? `step ${command.key} ${command.inputDigest}${command.withdrawing ? " withdrawing" : ""}`
        : `${command.kind} ${command.key}`
    )
  }

  // ── Activations ─────────────────────────────────────────────────────────────────────────────────────────

  /** Delivers an event that has its place in the history; `then` runs when no fiber is runnable any more. */
  private deliver(entry: Entry, then: () => void): void {
    this.time = entry.at
    const react = this.reaction(entry)
    if (react === undefined) return
    this.root.activate(react, (result) => {
      if (this.gone) return
      if (result === "runaway") {
        this.fail({
          _tag: "Runaway",
          seq: entry.seq,
          message: `After position ${entry.seq} the workflow of ${this.branch} ran on without waiting for anything. Look for a loop that never awaits a node, a timer or an interrupt.`
        })
      } else if (this.failure !== undefined) {
        this.fail(this.failure)
      } else if (this.exit === undefined && this.commands.size === 0) {
        this.fail({
          _tag: "UndeclaredAsync",
          seq: entry.seq,
          message: `After position ${entry.seq} the workflow of ${this.branch} waits for something that nothing recorded can bring: a bare promise or callback, or Effect.never. Put what it waits for in a Node, an Interrupt or a timer.`
        })
      } else {
        then()
      }
      this.pump()
    })
  }

  /** What delivering the entry does, or `undefined` after a failure was reported. */
  private reaction(entry: Entry): (() => void) | undefined {
    switch (entry.kind) {
      case "run.started":
        return this.begin(entry)
      case "cancel.requested":
        this.cancelReason.value = payloadOf({ kind: entry.kind, payload: entry.payload }).reason
        return () => this.root.interrupt()
      case "timer.fired": {
        const command = this.waiting(entry, "timer")
        if (command === undefined) return undefined
        this.commands.delete(entry.key)
        return () => command.resume(Effect.void)
      }
      case "interrupt.answered": {
        const command = this.waiting(entry, "interrupt")
        if (command === undefined) return undefined
        const answer = command.interrupt.codecs.answer.revive(
          payloadOf({ kind: entry.kind, payload: entry.payload }).value
        )
        if (Either.isLeft(answer)) return this.unreadable(entry, `the answer to ${entry.key}`, answer.left.issues)
        this.commands.delete(entry.key)
        return () => command.resume(Effect.succeed(answer.right))
      }
      case "step.succeeded":
      case "step.failed":
      case "step.died":
      case "step.interrupted":
        return this.stepOutcome(entry)
      default:
        this.diverge({ seq: entry.seq, history: describeEntry(entry), code: "an unfinished workflow" })
        return undefined
    }
  }

  private begin(entry: Entry): (() => void) | undefined {
    const input = this.workflow.codecs.input.decode(this.claim.run.input)
    if (Either.isLeft(input)) return this.unreadable(entry, "the run's input", input.left.issues)
    return () =>
      this.root.fork(
        // The scope is the body's own; the rest of its requirements are provided with the root fiber's context.
        Effect.scoped(
          Effect.suspend(() => this.workflow.body(input.right)) as Effect.Effect<unknown, unknown, Scope.Scope>
        ),
        (exit) => {
          this.exit = exit
        }
      )
  }

  private stepOutcome(entry: Entry): (() => void) | undefined {
    const command = this.waiting(entry, "step")
    if (command === undefined) return undefined
    const known = this.outcome
    this.outcome = undefined
    if (known !== undefined) {
      this.commands.delete(entry.key)
      return () => command.resume(known)
    }
    // Parsed once: which of the four shapes it is, the kind says below.
    const payload = JSON.parse(entry.payload) as {
      readonly node: string
      readonly input: string
      readonly value?: unknown
      readonly error?: unknown
      readonly defect?: unknown
    }
    if (payload.input !== command.inputDigest) {
      this.diverge({
        seq: entry.seq,
        history: `${describeEntry(entry)} with input ${payload.input}`,
        code: `${entry.key} with input ${command.inputDigest} (its input changed)`
      })
      return undefined
    }
    let result: Effect.Effect<unknown, unknown>
    if (entry.kind === "step.succeeded") {
      const value = command.node.codecs.success.revive(payload.value)
      if (Either.isLeft(value)) return this.unreadable(entry, `the outcome of ${entry.key}`, value.left.issues)
      result = Effect.succeed(value.right)
    } else if (entry.kind === "step.failed") {
      const error = command.node.codecs.error.revive(payload.error)
      if (Either.isLeft(error)) return this.unreadable(entry, `the error of ${entry.key}`, error.left.issues)
      result = Effect.fail(error.right)
    } else if (entry.kind === "step.died") {
      result = Effect.die(Defect.decode(payload.defect))
    } else {
      result = Effect.void
    }
    this.commands.delete(entry.key)
    this.steps.delete(entry.key)
    return () => command.resume(result)
  }

  private waiting<K extends Command["kind"]>(entry: Entry, kind: K): Extract<Command, { kind: K }> | undefined {
    const command = this.commands.get(entry.key)
    if (command?.kind === kind) return command as Extract<Command, { kind: K }>
    this.diverge({
      seq: entry.seq,
      history: describeEntry(entry),
      code: this.commands.size === 0 ? "nothing that waits" : `waits for ${[...this.commands.keys()].join(", ")}`
    })
    return undefined
  }

  // ── Commands of the workflow ────────────────────────────────────────────────────────────────────────────

  private call(
    node: Node.Any,
    input: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ): Effect.Effect<unknown, unknown> {
    if (!this.own(fiber)) return Effect.never
    const key = this.key(node.name)
    const encoded = this.fitting(node.codecs.input.encode(input))
    if (Either.isLeft(encoded)) {
      return Effect.die(new InvalidValue({ what: `input of node ${node.name} (${key})`, issues: encoded.left.issues }))
    }
    return Effect.async((resume) => {
      const command: StepCommand = {
        kind: "step",
        key,
        node,
        input: encoded.right,
        inputDigest: digest(encoded.right),
        withdrawing: false,
        resume
      }
      this.commands.set(key, command)
      this.started.push(command)
      return Effect.suspend(() => this.withdraw(command))
    })
  }

  /** The fiber that waits was interrupted. */
  private withdraw(command: StepCommand): Effect.Effect<void> {
    if (this.commands.get(command.key) !== command) return Effect.void
    this.withdrawn.push(command.key)
    // EO: what fires and may not be interrupted is waited for. Decided from the history up to the event being
    // delivered, so that replay decides alike.
    if (this.recovery.firing(command.key).length > 0) {
      command.withdrawing = true
      return Effect.async<void>((resume) => {
        command.resume = () => resume(Effect.void)
      })
    }
    this.commands.delete(command.key)
    this.problems.delete(command.key)
    this.recovery.forgetStep(command.key)
    return Effect.void
  }

  /** What would not fit into the journal is refused before it is written, as what fails its Schema is (CV). */
  fitting(encoded: Either.Either<string, Refusal>): Either.Either<string, Refusal> {
    const limit = this.host.ledger.maxPayload - payloadMargin
    return Either.isRight(encoded) && encoded.right.length > limit
      ? Either.left({ issues: [`$: is too large to store (${encoded.right.length} of ${limit} characters of JSON)`] })
      : encoded
  }

  private ask(
    interrupt: Interrupt.Any,
    payload: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ): Effect.Effect<unknown> {
    if (!this.own(fiber)) return Effect.never
    const key = this.key(interrupt.name)
    // The declared type of the payload is what the definition's call signature demanded.
    const encoded = this.fitting(interrupt.codecs.payload.encode(payload as never))
    if (Either.isLeft(encoded)) {
      return Effect.die(new InvalidValue({ what: `payload of interrupt ${key}`, issues: encoded.left.issues }))
    }
    this.issue(draft.interruptOpened(key, interrupt.name, encoded.right))
    return Effect.async((resume) => {
      this.commands.set(key, { kind: "interrupt", key, interrupt, resume })
      return Effect.sync(() => {
        if (this.commands.delete(key)) this.issue(draft.interruptClosed(key, "withdrawn"))
      })
    })
  }

  private sleep(millis: number): Effect.Effect<void> {
    return Effect.withFiberRuntime((fiber) => {
      if (!this.own(fiber)) return Effect.never
      const due = this.time + Math.ceil(millis)
      if (!Number.isSafeInteger(due)) return Effect.die(new RangeError("A durable timer cannot be due that late"))
      const key = this.key("sleep")
      this.issue(draft.timerStarted(key, due))
      return Effect.async((resume) => {
        // A corrected deployment may have changed the span: what was recorded counts.
        this.commands.set(key, { kind: "timer", key, due: this.recovery.timers.get(key) ?? due, resume })
        return Effect.sync(() => {
          this.commands.delete(key)
          this.recovery.timers.delete(key)
        })
      })
    })
  }

  /** Gives a command's mark its place: the one that the history has, or a new one. */
  private issue(entryDraft: EntryDraft): void {
    const found = this.live ? "new" : this.timeline.match(entryDraft.kind, entryDraft.key)
    if (found === "new") {
      this.appendNow(entryDraft)
    } else if (found === "cut") {
      this.deferred.push(entryDraft)
    } else if ("kind" in found) {
      if (found.payload !== entryDraft.payload && found.kind === "interrupt.opened") {
        this.failure ??= this.divergence({
          seq: found.seq,
          history: `${describeEntry(found)} with another payload`,
          code: describeEntry(entryDraft)
        })
      }
      this.recovery.apply(found)
    } else {
      this.failure ??= this.divergence(found)
    }
  }

  private key(name: string): string {
    const ordinal = (this.ordinals.get(name) ?? 0) + 1
    this.ordinals.set(name, ordinal)
    return `${name}#${ordinal}`
  }

  /** A fiber that left the branch's scheduler could not be resumed in order. */
  private own(fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean {
    if (this.root.owns(fiber)) return true
    this.failure ??= {
      _tag: "UndeclaredAsync",
      seq: this.recovery.head,
      message: `A fiber of ${this.branch} runs on another scheduler: Effect.withScheduler, Layer.setScheduler, or Effect.provide of a ManagedRuntime inside the workflow. Provide services to the worker instead.`
    }
    return false
  }

  private foreign(): void {
    if (this.gone) return
    // Its continuation is lost here: whoever takes the branch up again replays it, and meets the same wait.
    if (this.parked) return this.evict()
    this.fail({
      _tag: "UndeclaredAsync",
      seq: this.recovery.head,
      message: `A fiber of ${this.branch} was woken after position ${this.recovery.head} by something that is not in the journal: a promise, a callback, a timer of another clock, or a queue offered from outside. Put it in a Node.`
    })
  }

  // ── Live ────────────────────────────────────────────────────────────────────────────────────────────────

  /** After an activation that ran live: begin what it asked for, stop what it withdrew. */
  private afterActivation = (): void => {
    const started = this.started
    const withdrawn = this.withdrawn
    this.started = []
    this.withdrawn = []
    for (const key of withdrawn) {
      const step = this.steps.get(key)
      const command = this.commands.get(key)
      if (step !== undefined) step.interrupt()
      // Blocked by something else before: nobody waits for that any more, but what fires must still be resolved.
      else if (command?.kind === "step" && command.withdrawing && !this.stopping) {
        this.problems.delete(key)
        this.resolve(command)
      }
    }
    if (this.stopping) return
    // Once the root has ended nobody waits for what it left behind (PC).
    if (this.exit !== undefined) return this.close()
    for (const command of started) if (this.commands.get(command.key) === command) this.run(command)
    this.armTimers()
  }

  /** True once the branch only waits for firings to end, to be let go of. */
  get isStopping(): boolean {
    return this.stopping || this.gone
  }

  /** Resolves what an interrupted step left in doubt: it may not be forgotten, whoever waits for the step (EO). */
  resolve(command: StepCommand): void {
    command.withdrawing = true
    this.run(command)
  }

  private run(command: StepCommand): void {
    const step = new StepRun(this, command)
    this.steps.set(command.key, step)
    step.start()
  }

  /** Appends an event and delivers it. */
  private emit(entryDraft: EntryDraft, value?: Effect.Effect<unknown, unknown>): void {
    const entry = this.appendNow(entryDraft)
    this.outcome = value
    this.deliver(entry, this.afterActivation)
  }

  /** A step's body ended. Not delivered to a command that is not there any more: a late outcome (PC). */
  stepEnded(step: StepRun, outcome: EntryDraft | undefined, value?: Effect.Effect<unknown, unknown>): void {
    if (this.steps.get(step.key) === step) this.steps.delete(step.key)
    if (step.isBlocked && !this.closing && !this.stopping) return this.blockedEnded(step)
    if (outcome !== undefined && !this.closing && !this.stopping && this.commands.get(step.key) === step.command) {
      this.emit(outcome, value)
    } else if (this.closing && this.steps.size === 0) {
      this.finish()
    }
  }

  /** The step cannot go on: the branch is stuck once everything else rests. */
  block(step: StepRun, problem: Problem): void {
    this.problems.set(step.key, problem)
  }

  private blockedEnded(step: StepRun): void {
    const problem = this.problems.get(step.key)
    // A settlement may have come in while the body was finding out that it needs one.
    if (problem !== undefined && "key" in problem && problem._tag !== "EffectInputChanged") {
      const state = this.recovery.effects.get(problem.key)?.state
      if (state !== "intended" && state !== "refused") {
        this.problems.delete(step.key)
        return this.run(step.command)
      }
    }
  }

  private armTimers(): void {
    if (!this.live) return
    const due = this.nextDue()
    if (due === undefined) this.timer.clear()
    else this.timer.at(due, () => this.post(() => this.timersDue()))
  }

  private nextDue(): number | undefined {
    let due: number | undefined
    for (const command of this.commands.values()) {
      if (command.kind === "timer" && (due === undefined || command.due < due)) due = command.due
    }
    return due
  }

  private timersDue(): void {
    if (this.closing || this.stopping) return
    let next: TimerCommand | undefined
    for (const command of this.commands.values()) {
      if (command.kind === "timer" && (next === undefined || command.due < next.due)) next = command
    }
    if (next === undefined) return
    if (next.due > this.host.ledger.unsafeNow()) return this.armTimers()
    const { due, key } = next
    // What was accepted from outside before now is delivered first; the timer is durable before it is delivered.
    this.appendIf(
      [draft.timerFired(key)],
      due,
      ([entry]) => {
        if (entry !== undefined) this.deliver(entry, this.afterActivation)
      },
      () => this.post(() => this.timersDue())
    )
  }

  private appendIf(
    drafts: ReadonlyArray<EntryDraft>,
    notBefore: number | undefined,
    then: (entries: ReadonlyArray<Entry>) => void,
    again: () => void
  ): void {
    const journal = this.journal
    if (journal === undefined) return
    const options = { inboxSeen: this.recovery.inboxSeen, ...(notBefore === undefined ? {} : { notBefore }) }
    this.hold(journal.appendIf(drafts, options), (exit) => {
      if (Exit.isSuccess(exit)) {
        for (const entry of exit.value) {
          if (CrashPoint.armed()) CrashPoint.pass("durable", `${this.branch} ${entry.seq} ${describeEntry(entry)}`)
          this.recovery.apply(entry)
        }
        return then(exit.value)
      }
      const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
      if (error?._tag === "InboxAdvanced") return this.readInbox(again)
      this.lose(error ?? exit.cause)
    })
  }

  // ── The inbox ───────────────────────────────────────────────────────────────────────────────────────────

  private readInbox(then: () => void): void {
    this.inboxDirty = false
    this.hold(this.host.ledger.inbox(this.branch, this.recovery.inboxSeen), (exit) => {
      if (Exit.isFailure(exit)) {
        const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
        if (error?._tag === "CorruptJournal") {
          return this.fail({ _tag: "CorruptJournal", table: error.table, message: error.message })
        }
        return this.lose(error ?? exit.cause)
      }
      // Accepted in this order, and before whatever is still in the mailbox.
      const jobs = exit.value.map((row) => () => this.move(row))
      this.mailbox = [...jobs, then, ...this.mailbox.slice(this.next)]
      this.next = 0
    })
  }

  private move(row: InboxRow): void {
    if (row.pos <= this.recovery.inboxSeen) return
    switch (row.kind) {
      case "cancel": {
        const { reason } = JSON.parse(row.payload) as { readonly reason: string | null }
        if (this.exit !== undefined) return this.unserved(row, "the run was over")
        return this.emit(draft.cancelRequested(reason, row.pos))
      }
      case "answer": {
        const answer = JSON.parse(row.payload) as {
          readonly interrupt: InterruptId
          readonly delivery: string
          readonly value: unknown
          readonly valueDigest: string
        }
        if (this.commands.get(answer.interrupt)?.kind !== "interrupt") {
          return this.unserved(row, this.exit === undefined ? "its interrupt had closed" : "the run was over")
        }
        return this.emit(draft.interruptAnswered(answer, row.pos))
      }
      case "settlement": {
        const settlement = JSON.parse(row.payload) as {
          readonly effect: string
          readonly settlement: "Succeeded" | "Failed" | "DidNotHappen"
          readonly value?: unknown
        }
        const recorded = this.recovery.effects.get(settlement.effect)
        if (recorded === undefined || (recorded.state !== "intended" && recorded.state !== "refused")) {
          return this.unserved(row, "its outcome was known")
        }
        this.appendNow(draft.settled(recorded, settlement, row.pos))
        this.problems.delete(recorded.step)
        const command = this.commands.get(recorded.step)
        if (command?.kind === "step" && !this.steps.has(command.key)) this.run(command)
        return
      }
    }
  }

  private unserved(row: InboxRow, reason: string): void {
    this.appendNow(draft.unserved(row.key, row.pos, reason))
  }

  // ── Coming to rest ──────────────────────────────────────────────────────────────────────────────────────

  /** Called when the mailbox is empty and nothing runs. */
  private rest(): void {
    if (this.parked) return
    if (this.stopping) {
      if (this.steps.size > 0) return
      return this.failure === undefined
        ? this.release({ _tag: "Ready" }, "released")
        : this.release({ _tag: "Stuck", problem: JSON.stringify([this.failure]) }, "stuck")
    }
    if (!this.live || this.closing) return
    if (this.inboxDirty) return this.readInbox(() => undefined)
    for (const step of this.steps.values()) if (!step.resting) return
    const wakes = [...this.steps.values()].map((step) => step.restingUntil).filter((at) => at !== undefined)
    const due = this.nextDue()
    if (due !== undefined) wakes.push(due)
    const wakeAt = wakes.length === 0 ? null : Math.min(...wakes)
    if (this.problems.size > 0) {
      return this.releaseStuck(() => undefined, wakeAt)
    }
    // A short wait is waited for here: letting go and claiming again costs more than the memory.
    if (wakeAt !== null && wakeAt - this.host.ledger.unsafeNow() < stayFor) return
    this.release({ _tag: "Waiting", wakeAt }, "parked")
  }

  /** One step needs help; what else waits for a time is woken by it all the same. */
  private releaseStuck(again: () => void, wakeAt: number | null = null): void {
    const problem = JSON.stringify([...this.problems.values()])
    this.release({ _tag: "Stuck", problem, wakeAt }, "stuck", this.recovery.inboxSeen, again)
  }

  private release(
    how: Release,
    rest: Rest,
    inboxSeen = this.recovery.inboxSeen,
    again: () => void = () => undefined
  ): void {
    const journal = this.journal
    if (journal === undefined) return
    this.hold(journal.release(how, { inboxSeen }), (exit) => {
      if (Exit.isSuccess(exit)) {
        if (rest === "parked") {
          this.parked = true
          this.timer.clear()
          for (const step of this.steps.values()) step.park()
        } else {
          this.evict()
        }
        return this.host.onRest(this, rest)
      }
      const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
      if (error?._tag === "InboxAdvanced") {
        // One that stops takes nothing in any more: whoever claims it next sees what came. One that failed stays stuck:
        // made ready it would be claimed and fail again without end (LV).
        if (this.stopping) {
          return this.failure === undefined
            ? this.release({ _tag: "Ready" }, "released", error.inboxHead)
            : this.release(how, rest, error.inboxHead)
        }
        return this.readInbox(again)
      }
      this.lose(error ?? exit.cause)
    })
  }

  /** The root fiber ended: stop what is left, then record the end. */
  private close(): void {
    if (this.closing) return
    this.closing = true
    for (const [key, command] of this.commands) {
      this.commands.delete(key)
      if (command.kind !== "step") continue
      this.problems.delete(key)
      const step = this.steps.get(key)
      if (step !== undefined) step.interrupt()
      // EO: an effect in doubt is resolved before the run may end.
      else if (this.recovery.firing(key).length > 0) this.resolve(command)
    }
    if (this.steps.size === 0) this.post(() => this.finish())
  }

  private finish(): void {
    if (this.problems.size > 0) {
      return this.releaseStuck(() => this.finish())
    }
    // What was accepted before the end is journaled before it, as unserved.
    this.appendIf(
      [this.ending()],
      undefined,
      () => {
        this.evict()
        this.host.onRest(this, "ended")
      },
      () => this.finish()
    )
  }

  private ending(): EntryDraft {
    const exit = this.exit ?? Exit.void
    if (Exit.isSuccess(exit)) {
      const value = this.fitting(this.workflow.codecs.success.encode(exit.value))
      return Either.isRight(value)
        ? draft.completed(value.right)
        : draft.died(new InvalidValue({ what: `result of workflow ${this.workflow.name}`, issues: value.left.issues }))
    }
    const failure = Cause.failureOption(exit.cause)
    if (Option.isSome(failure)) {
      const error = this.fitting(this.workflow.codecs.error.encode(failure.value))
      return Either.isRight(error)
        ? draft.failed(error.right)
        : draft.died(new InvalidValue({ what: `error of workflow ${this.workflow.name}`, issues: error.left.issues }))
    }
    if (Cause.isInterruptedOnly(exit.cause)) {
      return this.recovery.cancelRequested
        ? draft.cancelled(this.cancelReason.value)
        : draft.died(new Error("The workflow interrupted itself"))
    }
    return draft.died(Cause.squash(exit.cause))
  }

  // ── Failing ─────────────────────────────────────────────────────────────────────────────────────────────

  private divergence(found: Divergence): Problem {
    return {
      _tag: "NonDeterminism",
      ...found,
      message: `At position ${found.seq} the history of ${this.branch} has ${found.history}, the code has ${found.code}. The workflow's code changed, or depends on something that is not journaled. Deploy code that matches under this version, or a new version beside it.`
    }
  }

  private diverge(found: Divergence): void {
    this.fail(this.divergence(found))
  }

  private unreadable(entry: Entry, what: string, issues: ReadonlyArray<string>): undefined {
    this.fail({
      _tag: "ValueUnreadable",
      seq: entry.seq,
      what,
      message: `At position ${entry.seq} of ${this.branch}, ${what} does not satisfy the Schema that the code has now: ${issues.join("; ")}. Deploy a Schema that reads it.`
    })
    return undefined
  }

  /** The branch is stuck: nothing of its memory is used again. Firings that may not be interrupted are waited for. */
  private fail(problem: Problem): void {
    if (this.gone) return
    this.failure ??= problem
    this.root.evict()
    this.shutdown()
  }
}
