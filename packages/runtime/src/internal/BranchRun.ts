/**
 * One branch, running: the loop that delivers events, one per activation, to the fibers of its workflow.
 *
 * Everything that happens to a branch passes its mailbox and is handled in turn: outcomes and intents from the host,
 * rows of the inbox, due timers. Handling one gives it its place in the journal; an event is then delivered, and the
 * workflow's fibers run until none is runnable. Replay is the same loop with events from the history, so live and
 * replayed executions cannot differ in how fibers interleave (RD). While it replays, nothing new starts (PC).
 */
import {
  admitExpiry,
  type BranchId,
  type Entry,
  type EntryDraft,
  messageChannel,
  payloadOf,
  Recovery,
  runOf
} from "@fermata/contract"
import type { Claim, InboxRow, Ledger, Release } from "@fermata/ledger"
import { Cause, Effect, Either, Exit, Option, type Scope } from "effect"
import type { Problem } from "../Problem.js"
import type * as Workflow from "../Workflow.js"
import { BranchWriter } from "./BranchWriter.js"
import { describeCommand } from "./Command.js"
import { HostTimer } from "./HostTimer.js"
import { Mailbox } from "./Mailbox.js"
import { moveInboxRow } from "./MoveInboxRow.js"
import { answerOf, outcomeOfStep, type StepOutcomeKind } from "./Outcome.js"
import {
  engineFailed,
  entryUnreadable,
  nonDeterminism,
  runaway,
  waitsForNothing,
  wokenFromElsewhere
} from "./Problems.js"
import { rootFiber, type RootFiber } from "./RootFiber.js"
import { runEnd } from "./RunEnd.js"
import { RunningSteps } from "./RunningSteps.js"
import type { StepHost } from "./Step.js"
import { describeEntry, type Divergence, Timeline } from "./Timeline.js"
import { Expired } from "./WorkflowScope.js"
import { WorkflowCommands } from "./WorkflowCommands.js"

/** What a branch needs of its worker. */
export interface BranchHost extends StepHost {
  readonly ledger: StepHost["ledger"] & Pick<Ledger, "database" | "inbox" | "maxPayload" | "open">
  /** The branch came to rest and was let go of, or was lost. */
  readonly onRest: (run: BranchRun, rest: Rest) => void
  /** An open interrupt of a branch is assigned to somebody, durably. */
  readonly onAssigned?: (assignee: string) => void
  /** Given by a check that only replays: called instead of going live. */
  readonly onReplayed?: (run: BranchRun, state: ReplayState) => void
  /** Given by a check: the history that it replays was recorded to its end. */
  readonly complete?: boolean
}

/** Where the code stands when a history is replayed. */
export interface ReplayState {
  readonly commands: ReadonlyArray<string>
  readonly exit: Exit.Exit<unknown, unknown> | undefined
  readonly ending: EntryDraft | undefined
}

export type Rest = "parked" | "ended" | "stuck" | "released" | "lost"

/** Timers nearer than this are waited for in memory (milliseconds). */
const stayFor = 1000
/** Rough size in memory of a branch that wrote nothing yet (bytes). */
const baseWeight = 16_384

export class BranchRun {
  readonly branch: BranchId
  readonly recovery: Recovery
  private readonly mailbox: Mailbox
  private readonly writer: BranchWriter
  private readonly timeline: Timeline
  private readonly commands: WorkflowCommands
  private readonly steps: RunningSteps
  private readonly root: RootFiber
  private readonly timer: HostTimer
  private live = false
  /** What is being delivered was never run before, though it is in the history: what it logs is heard. */
  private unseen = false
  private closing = false
  private stopping = false
  private gone = false
  private parked = false
  private inboxDirty = false
  /** The host had a turn since something was delivered last. */
  private lingered = false
  private time = 0
  private exit: Exit.Exit<unknown, unknown> | undefined
  /** The live outcome of the step whose event is being delivered: as its text reads back. */
  private outcome: Effect.Effect<unknown, unknown> | undefined
  private failure: Problem | undefined
  /** The cancel that was delivered. */
  private cancelled: { readonly reason: string | null } | undefined

  constructor(
    readonly host: BranchHost,
    readonly workflow: Workflow.Any,
    private readonly claim: Claim,
    history: ReadonlyArray<Entry>
  ) {
    const { branch } = claim.branch
    const recovery = new Recovery(branch)
    this.branch = branch
    this.recovery = recovery
    this.timeline = new Timeline(history, host.complete)
    for (const entry of this.timeline.replaced) recovery.pass(entry)
    this.timer = new HostTimer(host.runtime, () => host.ledger.unsafeNow())
    this.mailbox = new Mailbox(host.runtime, {
      blocked: () => this.writer.congested || this.root.active || this.parked,
      // A branch that always has something to do still hears what comes from outside.
      onTurn: () => {
        if (this.inboxDirty && this.live && !this.closing && !this.stopping) this.readInbox(() => undefined)
      },
      onIdle: () => this.rest(),
      onFailure: (error) => {
        if (this.writer.lost) return this.lose(error)
        this.fail(engineFailed(branch, recovery.head, error))
      }
    })
    this.writer = new BranchWriter(branch, recovery, this.mailbox, host.ledger.maxPayload)
    this.commands = new WorkflowCommands({
      branch,
      recovery,
      timeline: this.timeline,
      writer: this.writer,
      time: () => this.time,
      owns: (fiber) => this.root.owns(fiber),
      doom: (problem) => {
        this.failure ??= problem
      },
      assigned: (assignee) => this.writer.whenDurable(this.writer.head?.seq ?? 0, () => host.onAssigned?.(assignee)),
      accepts: (kind, name) =>
        (kind === "signal" ? workflow.signals : workflow.updates).some((one) => one.name === name),
      tags: workflow.tags,
      forgotten: (step) => this.steps.forget(step)
    })
    this.steps = new RunningSteps({
      branch,
      host,
      recovery,
      writer: this.writer,
      mailbox: this.mailbox,
      commands: this.commands,
      stopping: () => this.stopping || this.gone,
      closing: () => this.closing,
      emit: (outcome, value) => this.emit(outcome, value),
      onLastEnded: () => this.finish()
    })
    this.root = rootFiber({
      seed: runOf(branch),
      annotations: this.steps.telemetry.annotations,
      commands: this.commands,
      services: workflow.services,
      host: host.runtime,
      time: () => this.time,
      silent: () => !this.live && !this.unseen,
      sleep: (millis) => this.commands.sleep(millis),
      onForeign: () => this.foreign()
    })
  }

  // ── From the worker ─────────────────────────────────────────────────────────────────────────────────────

  /** Position and digest of what is in memory: valid as a cache while the branch's row has the same. */
  get head(): { readonly seq: number; readonly digest: string } | undefined {
    return this.gone ? undefined : this.writer.head
  }

  /** Rough size in memory, for the worker's accounting (bytes). */
  get weight(): number {
    return baseWeight + this.writer.weight
  }

  /** Begins: replays what there is, then goes live. */
  start(): void {
    if (this.gone) return
    this.take(this.claim)
    this.mailbox.post(() => this.replay())
  }

  /** Goes on after parking, without replay: the claim's row is as this left it. */
  reattach(claim: Claim): void {
    this.parked = false
    this.take(claim)
    this.inboxDirty = true
    this.steps.start()
    this.armTimers()
    this.mailbox.post(() => undefined)
  }

  /** Something may have come into the inbox. */
  inboxChanged(): void {
    this.inboxDirty = true
    if (this.live) this.mailbox.pump()
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
    this.steps.interrupt()
    this.mailbox.post(() => undefined)
  }

  /** Forgets everything in memory, running nothing: no finalizer, no handler's continuation. */
  evict(): void {
    this.gone = true
    this.mailbox.close()
    this.timer.clear()
    this.writer.close()
    this.root.evict()
    this.steps.abandon()
    this.commands.waiting.clear()
  }

  private take(claim: Claim): void {
    this.writer.open(this.host.ledger.open(claim), (cause) => this.lose(cause))
  }

  /** Why the branch was lost, for the worker's log. */
  lostTo: unknown

  private lose(cause: unknown): void {
    if (this.gone) return
    this.lostTo = cause
    this.evict()
    this.host.onRest(this, "lost")
  }

  // ── Replay ──────────────────────────────────────────────────────────────────────────────────────────────

  private replay(): void {
    if (this.stopping) return
    const segment = this.timeline.advance()
    if (segment === undefined) return this.goLive()
    const { event, marks } = segment
    // A client wrote it, and nothing follows: what it sets off runs for the first time, and is heard.
    this.unseen = event.epoch === 0 && this.timeline.endsBare && this.host.onReplayed === undefined
    this.recovery.apply(event)
    this.commands.issueDeferred()
    this.deliver(event, () => {
      const leftover = this.timeline.leftover()
      if (leftover !== undefined) return this.diverge(leftover)
      // The timeline gives the host's marks alone: command marks were folded in as they were matched.
      for (const mark of marks) this.recovery.apply(mark)
      this.mailbox.post(() => this.replay())
    })
  }

  private goLive(): void {
    this.timeline.finish()
    if (this.host.onReplayed !== undefined) {
      const ending = this.exit === undefined ? undefined : this.ending()
      const commands = [...this.commands.waiting.values()].map(describeCommand)
      return this.host.onReplayed(this, { commands, exit: this.exit, ending })
    }
    this.live = true
    // What the history leaves to do is begun below, whichever activation asked for it.
    this.commands.takeChanges()
    // What was accepted meanwhile (a settlement, an answer, a cancel) comes before anything starts.
    if (this.inboxDirty || this.inboxBehind(this.claim.branch.inboxHead)) this.readInbox(() => this.takeUp())
    else this.takeUp()
  }

  /** Begins what the history leaves to do. */
  private takeUp(): void {
    if (this.stopping) return
    if (this.exit !== undefined) return this.close()
    for (const command of this.commands.waiting.values()) if (command.kind === "step") this.steps.takeUp(command)
    this.armTimers()
  }

  // ── Activations ─────────────────────────────────────────────────────────────────────────────────────────

  /** Delivers an event that has its place in the history; `then` runs when no fiber is runnable any more. */
  private deliver(entry: Entry, then: () => void): void {
    this.time = entry.kind === "loop.snapshot" ? payloadOf({ kind: entry.kind, payload: entry.payload }).at : entry.at
    this.lingered = false
    const react = this.reaction(entry)
    if (react === undefined) return
    const begin = () => {
      react()
      this.commands.resumeLoops()
    }
    this.root.activate(begin, (result) => {
      if (this.gone) return
      // After a slice this is called by the event loop, outside of any job.
      this.mailbox.guard(() => {
        if (result === "runaway") {
          this.fail(runaway(this.branch, entry.seq))
        } else if (this.failure !== undefined) {
          this.fail(this.failure)
        } else if (this.exit === undefined && this.commands.waiting.size === 0) {
          this.fail(waitsForNothing(this.branch, entry.seq))
        } else {
          then()
        }
      })
      this.mailbox.pump()
    })
  }

  /** What delivering the entry does, or `undefined` after a failure was reported. */
  private reaction(entry: Entry): (() => void) | undefined {
    switch (entry.kind) {
      case "run.started":
        return this.begin(entry)
      case "cancel.requested":
        this.cancelled = { reason: payloadOf({ kind: entry.kind, payload: entry.payload }).reason }
        return () => this.root.interrupt()
      case "timer.fired": {
        const command = this.commands.awaiting(entry, "timer")
        if (Either.isLeft(command)) return this.diverge(command.left)
        this.commands.waiting.delete(entry.key)
        return () => command.right.resume(Effect.void)
      }
      case "loop.snapshot": {
        const command = this.commands.awaiting(entry, "loop")
        if (Either.isLeft(command)) return this.diverge(command.left)
        this.commands.waiting.delete(entry.key)
        this.timeline.resumed(entry.key)
        return () => command.right.resume(Effect.succeed(entry))
      }
      case "interrupt.answered": {
        const command = this.commands.awaiting(entry, "interrupt")
        if (Either.isLeft(command)) return this.diverge(command.left)
        const answer = answerOf(this.branch, entry, command.right)
        if (Either.isLeft(answer)) return this.fail(answer.left)
        this.commands.waiting.delete(entry.key)
        return () => command.right.resume(Effect.succeed(answer.right))
      }
      case "interrupt.expired": {
        const command = this.commands.awaiting(entry, "interrupt")
        if (Either.isLeft(command)) return this.diverge(command.left)
        const { deadline } = payloadOf({ kind: entry.kind, payload: entry.payload })
        this.commands.waiting.delete(entry.key)
        return () => command.right.resume(Effect.fail(new Expired(entry.key, deadline)))
      }
      case "signal.received":
      case "update.received": {
        // It is in the history's queue by now: whoever waits takes it from there, or whoever asks later.
        const { name } = payloadOf({ kind: entry.kind, payload: entry.payload })
        const channel = messageChannel(entry.kind === "signal.received" ? "signal" : "update", name)
        return () => this.commands.offer(channel)
      }
      case "step.succeeded":
      case "step.failed":
      case "step.died":
      case "step.interrupted":
        return this.stepOutcome(entry, entry.kind)
      default:
        return this.diverge({ seq: entry.seq, history: describeEntry(entry), code: "an unfinished workflow" })
    }
  }

  private begin(entry: Entry): (() => void) | undefined {
    const input = this.workflow.codecs.input.decode(this.claim.run.input)
    if (Either.isLeft(input)) {
      return this.fail(entryUnreadable(this.branch, entry.seq, "the run's input", input.left.issues))
    }
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

  private stepOutcome(entry: Entry, kind: StepOutcomeKind): (() => void) | undefined {
    const command = this.commands.awaiting(entry, "step")
    if (Either.isLeft(command)) return this.diverge(command.left)
    const known = this.outcome
    this.outcome = undefined
    if (known !== undefined) {
      this.commands.waiting.delete(entry.key)
      return () => command.right.resume(known)
    }
    const result = outcomeOfStep(this.branch, entry, kind, command.right)
    if (Either.isLeft(result)) return this.fail(result.left)
    this.commands.waiting.delete(entry.key)
    this.steps.delete(entry.key)
    return () => command.right.resume(result.right)
  }

  private foreign(): void {
    if (this.gone) return
    // Its continuation is lost here: whoever takes the branch up again replays it, and meets the same wait.
    if (this.parked) return this.evict()
    this.fail(wokenFromElsewhere(this.branch, this.recovery.head))
  }

  // ── Live ────────────────────────────────────────────────────────────────────────────────────────────────

  /** After an activation that ran live: begin what it asked for, stop what it withdrew. */
  private afterActivation = (): void => {
    const { started, withdrawn } = this.commands.takeChanges()
    for (const key of withdrawn) this.steps.withdraw(key)
    if (this.stopping) return
    // Once the root has ended nobody waits for what it left behind (PC).
    if (this.exit !== undefined) return this.close()
    for (const command of started) if (this.commands.waiting.get(command.key) === command) this.steps.run(command)
    this.armTimers()
  }

  /** Appends an event and delivers it. */
  private emit(entryDraft: EntryDraft, value?: Effect.Effect<unknown, unknown>): void {
    const entry = this.writer.append(entryDraft)
    this.outcome = value
    this.deliver(entry, this.afterActivation)
  }

  private armTimers(): void {
    if (!this.live) return
    const next = this.commands.nextDue
    if (next === undefined) this.timer.clear()
    else this.timer.at(next.due, () => this.mailbox.post(() => this.timersDue()))
  }

  private timersDue(): void {
    if (this.closing || this.stopping) return
    const next = this.commands.nextDue
    if (next === undefined) return
    const { inboxSeen } = this.recovery
    // Whether more came in than was seen, the append finds out in its own transaction.
    const verdict = admitExpiry({
      open: true,
      deadline: next.due,
      now: this.host.ledger.unsafeNow(),
      inboxSeen,
      inboxHead: inboxSeen
    })
    if (verdict._tag !== "Expire") return this.armTimers()
    // What was accepted from outside before now is delivered first; the event is durable before it is delivered.
    this.appendIf(
      next.entry,
      next.due,
      (entry) => {
        if (entry !== undefined) this.deliver(entry, this.afterActivation)
      },
      () => this.mailbox.post(() => this.timersDue())
    )
  }

  /** Appends what may not overtake what was accepted from outside: that is moved first, and then this is tried `again`. */
  private appendIf(
    entryDraft: EntryDraft,
    notBefore: number | undefined,
    then: (entry: Entry | undefined) => void,
    again: () => void,
    standing: string | null = null
  ): void {
    this.writer.appendIf(entryDraft, { notBefore, standing }, (result) => {
      if (Either.isRight(result)) return then(result.right)
      if (result.left._tag === "InboxAdvanced") return this.readInbox(again)
      this.lose(result.left.cause)
    })
  }

  // ── The inbox ───────────────────────────────────────────────────────────────────────────────────────────

  private readInbox(then: () => void): void {
    this.inboxDirty = false
    this.mailbox.hold(this.host.ledger.inbox(this.branch, this.recovery.inboxSeen), (exit) => {
      if (Exit.isFailure(exit)) {
        const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
        if (error?._tag === "CorruptJournal") {
          return this.fail({ _tag: "CorruptJournal", table: error.table, message: error.message })
        }
        if (error?._tag === "LedgerUnusable" && error.reason === "sealed") {
          return this.fail({ _tag: "Sealed", message: error.message })
        }
        return this.lose(error ?? exit.cause)
      }
      // Accepted in this order, and before whatever is still in the mailbox.
      this.mailbox.postFirst([...exit.value.map((row) => () => this.move(row)), then])
    })
  }

  private move(row: InboxRow): void {
    if (row.pos <= this.recovery.inboxSeen) return
    const move = moveInboxRow(row, {
      over: this.exit !== undefined,
      waitsFor: (interrupt) => this.commands.waiting.get(interrupt)?.kind === "interrupt",
      effect: (key) => this.recovery.effects.get(key)
    })
    if (move._tag === "Event") return this.emit(move.entry)
    this.writer.append(move.entry)
    if (move._tag === "Settlement") this.steps.settled(move.step)
  }

  // ── Coming to rest ──────────────────────────────────────────────────────────────────────────────────────

  /** Called when the mailbox is empty and nothing runs. */
  private rest(): void {
    if (this.stopping) {
      if (this.steps.size > 0) return
      return this.failure === undefined
        ? this.release({ _tag: "Ready" }, "released")
        : this.release({ _tag: "Stuck", problem: JSON.stringify([this.failure]) }, "stuck")
    }
    if (!this.live || this.closing) return
    if (this.inboxDirty) return this.readInbox(() => undefined)
    if (!this.steps.resting) return
    const due = this.commands.nextDue?.due
    const wakes = due === undefined ? this.steps.wakes : [...this.steps.wakes, due]
    const wakeAt = wakes.length === 0 ? null : Math.min(...wakes)
    const { blockedBy } = this.steps
    if (blockedBy !== undefined) return this.releaseStuck(blockedBy, () => undefined, wakeAt)
    // A short wait is waited for here: letting go and claiming again costs more than the memory.
    if (wakeAt !== null && wakeAt - this.host.ledger.unsafeNow() < stayFor) return
    // What the host wakes at once, against the rules, is found now and not when the branch is taken up again.
    if (!this.lingered) {
      this.lingered = true
      setImmediate(() => this.mailbox.pump())
      return
    }
    this.release({ _tag: "Waiting", wakeAt, standing: this.commands.standing }, "parked")
  }

  /** One step needs help; what else waits for a time is woken by it all the same. */
  private releaseStuck(problem: string, again: () => void, wakeAt: number | null = null): void {
    this.release({ _tag: "Stuck", problem, wakeAt }, "stuck", this.recovery.inboxSeen, again)
  }

  private release(
    how: Release,
    rest: Rest,
    inboxSeen = this.recovery.inboxSeen,
    again: () => void = () => undefined
  ): void {
    this.writer.release(how, inboxSeen, (result) => {
      if (Either.isRight(result)) {
        // What failed meanwhile is found again by whoever takes it up from its journal.
        const keeps = rest === "parked" && this.failure === undefined
        if (!keeps) this.evict()
        this.parked = keeps
        this.timer.clear()
        this.steps.park()
        return this.host.onRest(this, rest === "parked" && !keeps ? "released" : rest)
      }
      const refusal = result.left
      if (refusal._tag === "Lost") return this.lose(refusal.cause)
      // One that stops takes nothing in any more: whoever claims it next sees what came. One that failed stays stuck:
      // made ready it would be claimed and fail again without end (LV).
      if (!this.stopping) return this.readInbox(again)
      return this.failure === undefined
        ? this.release({ _tag: "Ready" }, "released", refusal.inboxHead)
        : this.release(how, rest, refusal.inboxHead)
    })
  }

  /** The root fiber ended: stop what is left, then record the end. */
  private close(): void {
    if (this.closing) return
    this.closing = true
    for (const [key, command] of this.commands.waiting) {
      this.commands.waiting.delete(key)
      if (command.kind === "step") this.steps.end(command)
    }
    if (this.steps.size === 0) this.mailbox.post(() => this.finish())
  }

  private finish(): void {
    const { blockedBy } = this.steps
    if (blockedBy !== undefined) return this.releaseStuck(blockedBy, () => this.finish())
    // What was accepted before the end is journaled before it, as unserved.
    this.appendIf(
      this.ending(),
      undefined,
      () => {
        this.evict()
        this.host.onRest(this, "ended")
      },
      () => this.finish(),
      this.commands.standing
    )
  }

  private ending(): EntryDraft {
    const { cancelled, writer } = this
    return runEnd(this.workflow, this.exit ?? Exit.void, { cancelled, fitting: writer.fitting })
  }

  // ── Failing ─────────────────────────────────────────────────────────────────────────────────────────────

  private diverge(found: Divergence): undefined {
    return this.fail(nonDeterminism(this.branch, found))
  }

  /** The branch is stuck: nothing of its memory is used again. Firings that may not be interrupted are waited for. */
  private fail(problem: Problem): undefined {
    if (this.gone) return undefined
    this.failure ??= problem
    this.root.evict()
    this.shutdown()
    return undefined
  }
}
