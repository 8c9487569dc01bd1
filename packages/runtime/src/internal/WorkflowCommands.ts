/**
 * The commands of one workflow execution: what its fibers ask for and wait for. Each gets its key by counting, and its
 * mark the place that the history has for it, so a replay issues the same commands or is found to differ (RD).
 */
import {
  type BranchId,
  type Entry,
  type EntryDraft,
  isClaimed,
  type KeyedStepName,
  keyedStep,
  messageChannel,
  payloadOf,
  type ReceivedMessage,
  type Recovery,
  type RunId,
  runOf,
  type TaskFacts
} from "@fermata/contract"
import { Effect, Either, type Fiber } from "effect"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"
import type { Problem } from "../Problem.js"
import { InvalidValue } from "../RunError.js"
import * as Tag from "../Tag.js"
import type * as Workflow from "../Workflow.js"
import type { BranchWriter } from "./BranchWriter.js"
import type { Command, InterruptCommand, StepCommand, TimerCommand } from "./Command.js"
import { KeyedSteps } from "./KeyedSteps.js"
import { digest, draft } from "./Payload.js"
import { entryUnreadable, foreignScheduler, nonDeterminism, undeclaredMessage } from "./Problems.js"
import { describeEntry, type Divergence, type Timeline } from "./Timeline.js"
import { type LoopDefinition, runLoop } from "./WorkflowLoop.js"
import type { Channel, Commands, Message } from "./WorkflowScope.js"

/** What commands need of the branch that they are issued to. */
export interface CommandBranch {
  readonly branch: BranchId
  readonly recovery: Recovery
  readonly timeline: Timeline
  readonly writer: Pick<BranchWriter, "append" | "fitting">
  /** Time of the event being delivered (ledger milliseconds). */
  readonly time: () => number
  /** True if the fiber runs on this execution's scheduler. */
  readonly owns: (fiber: Fiber.RuntimeFiber<unknown, unknown>) => boolean
  /** The branch is stuck when this activation is over. */
  readonly doom: (problem: Problem) => void
  /** True if the workflow declares a signal (or an update) of that name. */
  readonly accepts: (kind: "signal" | "update", name: string) => boolean
  /** An interrupt was opened that is assigned to somebody. */
  readonly assigned: (assignee: string) => void
  /** The tags that the workflow declares. */
  readonly tags: Workflow.Any["tags"]
  /** Nobody waits for this step any more. */
  readonly forgotten: (step: string) => void
}

export class WorkflowCommands implements Commands {
  readonly run: RunId
  readonly branch: BranchId
  /** What the workflow waits for, by key, in the order in which it was asked for. */
  readonly waiting = new Map<string, Command>()
  /** What keys begin with: nothing, or the iteration of the loop that they are counted in. */
  private prefix = ""
  private ordinals = new Map<string, number>()
  /** What was decided of each patch: once for an execution (in a loop: an iteration), at its first question. */
  private patches = new Map<string, boolean>()
  /** Steps that were called by a key of the workflow's choice. */
  private keyed = new KeyedSteps()
  /** Inside an iteration: positions of what it took and wrote. */
  claimed: Array<number> | undefined = undefined
  /** Inside an iteration: the commands around its loop. */
  private enclosing: WorkflowCommands | undefined = undefined
  /** Marks that a fork's history was cut before. */
  private deferred: Array<EntryDraft> = []
  private started: Array<StepCommand> = []
  private withdrawn: Array<string> = []

  constructor(private readonly context: CommandBranch) {
    this.run = runOf(context.branch)
    this.branch = context.branch
  }

  // ── From the workflow's fibers ──────────────────────────────────────────────────────────────────────────

  call(
    node: Node.Any,
    input: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    ownKey?: string
  ): Effect.Effect<unknown, unknown> {
    if (!this.own(fiber)) return Effect.never
    const named: KeyedStepName =
      ownKey === undefined ? { _tag: "Named", step: this.key(node.name) } : keyedStep(this.prefix, node.name, ownKey)
    if (named._tag === "Refused") {
      return Effect.die(new InvalidValue({ what: `key of a call of node ${node.name}`, issues: [named.problem] }))
    }
    const key = named.step
    const encoded = this.context.writer.fitting(node.codecs.input.encode(input))
    if (Either.isLeft(encoded)) {
      return Effect.die(new InvalidValue({ what: `input of node ${node.name} (${key})`, issues: encoded.left.issues }))
    }
    const inputDigest = digest(encoded.right)
    const begin = (resume: StepCommand["resume"]): StepCommand => {
      const command: StepCommand = {
        kind: "step",
        key,
        node,
        input: encoded.right,
        inputDigest,
        since: this.context.time(),
        withdrawing: false,
        resume
      }
      this.waiting.set(key, command)
      this.started.push(command)
      return command
    }
    const withdraw = (command: StepCommand) => this.withdraw(command)
    if (ownKey !== undefined) return this.keyed.call(this.branch, key, inputDigest, begin, withdraw)
    return Effect.async((resume) => {
      const command = begin(resume)
      return Effect.suspend(() => withdraw(command))
    })
  }

  /** The fiber that waits was interrupted. */
  private withdraw(command: StepCommand): Effect.Effect<void> {
    const { recovery } = this.context
    if (this.waiting.get(command.key) !== command) return Effect.void
    this.withdrawn.push(command.key)
    // EO: what fires and may not be interrupted is waited for. Decided from the history up to the event being
    // delivered, so that replay decides alike.
    if (recovery.firing(command.key).length > 0) {
      command.withdrawing = true
      return Effect.async<void>((resume) => {
        command.resume = () => resume(Effect.void)
      })
    }
    this.waiting.delete(command.key)
    this.context.forgotten(command.key)
    recovery.forgetStep(command.key)
    return Effect.void
  }

  ask(
    interrupt: Interrupt.Any,
    payload: unknown,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    task?: TaskFacts
  ): Effect.Effect<unknown, unknown> {
    if (!this.own(fiber)) return Effect.never
    const key = this.key(interrupt.name)
    // The declared type of the payload is what the definition's call signature demanded.
    const encoded = this.context.writer.fitting(interrupt.codecs.payload.encode(payload as never))
    if (Either.isLeft(encoded)) {
      return Effect.die(new InvalidValue({ what: `payload of interrupt ${key}`, issues: encoded.left.issues }))
    }
    this.issue(draft.interruptOpened(key, interrupt.name, encoded.right, task))
    if (task?.assignee !== undefined) this.context.assigned(task.assignee)
    return Effect.async((resume) => {
      // A corrected deployment may have changed the deadline: what was recorded counts.
      const recorded = this.context.recovery.interrupts.get(key)
      const deadline = recorded === undefined ? task?.deadline : recorded.deadline
      this.waiting.set(key, { kind: "interrupt", key, interrupt, deadline, resume })
      return Effect.sync(() => {
        if (this.waiting.delete(key)) this.issue(draft.interruptClosed(key))
      })
    })
  }

  patched(id: string, fiber: Fiber.RuntimeFiber<unknown, unknown>, retired: boolean): Effect.Effect<boolean> {
    if (!this.own(fiber)) return Effect.never
    const decided = this.patches.get(id)
    if (decided !== undefined) return Effect.succeed(decided)
    // An iteration of a loop decides for itself: a replay may begin with it.
    const key = `${this.prefix}${id}`
    const verdict = this.context.timeline.decide("patch.taken", key)
    const taken = verdict === "recorded" || (verdict === "new" && !retired)
    this.patches.set(id, taken)
    if (taken) this.issue(draft.patchTaken(key))
    return Effect.succeed(taken)
  }

  sleep(millis: number): Effect.Effect<void> {
    const { recovery, time } = this.context
    return Effect.withFiberRuntime((fiber) => {
      if (!this.own(fiber)) return Effect.never
      const due = time() + Math.ceil(millis)
      if (!Number.isSafeInteger(due)) return Effect.die(new RangeError("A durable timer cannot be due that late"))
      const key = this.key("sleep")
      this.issue(draft.timerStarted(key, due))
      return Effect.async((resume) => {
        // A corrected deployment may have changed the span: what was recorded counts.
        this.waiting.set(key, { kind: "timer", key, due: recovery.timers.get(key) ?? due, resume })
        return Effect.sync(() => {
          this.waiting.delete(key)
          recovery.timers.delete(key)
        })
      })
    })
  }

  receive(channel: Channel, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<Message> {
    if (!this.own(fiber) || !this.declared(channel)) return Effect.never
    const name = messageChannel(channel.kind, channel.name)
    const message = this.context.recovery.takeMessage(name)
    if (message !== undefined) {
      this.claim(message.seq)
      return this.read(channel, message)
    }
    const key = this.key(name)
    return Effect.async((resume) => {
      const resumed = (message: ReceivedMessage) => {
        this.claim(message.seq)
        resume(this.read(channel, message))
      }
      this.waiting.set(key, { kind: "message", key, channel: name, resume: resumed })
      return Effect.sync(() => {
        this.waiting.delete(key)
      })
    })
  }

  drain(channel: Channel, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<ReadonlyArray<Message>> {
    if (!this.own(fiber) || !this.declared(channel)) return Effect.never
    const { recovery } = this.context
    const name = messageChannel(channel.kind, channel.name)
    const taken: Array<Effect.Effect<Message>> = []
    for (let next = recovery.takeMessage(name); next !== undefined; next = recovery.takeMessage(name)) {
      this.claim(next.seq)
      taken.push(this.read(channel, next))
    }
    return Effect.all(taken)
  }

  tell(
    told: Either.Either<EntryDraft, InvalidValue>,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ): Effect.Effect<void> {
    if (!this.own(fiber)) return Effect.never
    if (Either.isLeft(told)) return Effect.die(told.left)
    const { kind, payload } = told.right
    const fitting = this.context.writer.fitting(Either.right(payload))
    if (Either.isLeft(fitting)) return Effect.die(new InvalidValue({ what: kind, issues: fitting.left.issues }))
    this.issue(told.right)
    return Effect.void
  }

  tag(values: Readonly<Record<string, unknown>>, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<void> {
    const tags = Tag.encoded(this.context.tags, values)
    return this.tell(
      Either.mapBoth(tags, {
        onLeft: (issues) => new InvalidValue({ what: "tags", issues }),
        onRight: draft.tagsSet
      }),
      fiber
    )
  }

  now(): number {
    return this.context.time()
  }

  /** Senders are refused what the workflow does not declare, so that waiting for it would never end. */
  private declared({ kind, name }: Channel): boolean {
    if (this.context.accepts(kind, name)) return true
    this.context.doom(undeclaredMessage(this.branch, this.context.recovery.head, kind, name))
    return false
  }

  /** The message by its Schema; one that the code cannot read is no reason to lose it. */
  private read(channel: Channel, { message, seq, value }: ReceivedMessage): Effect.Effect<Message> {
    const read = channel.codec.revive(value)
    if (Either.isRight(read)) return Effect.succeed({ id: message, value: read.right })
    const what = `${channel.kind} ${channel.name} (${message})`
    this.context.doom(entryUnreadable(this.branch, seq, what, read.left.issues))
    return Effect.never
  }

  loop(loop: LoopDefinition): Effect.Effect<unknown, unknown, unknown> {
    return Effect.withFiberRuntime((fiber) => {
      if (!this.own(fiber)) return Effect.never
      const key = this.key(loop.name)
      const { timeline } = this.context
      const host = {
        context: this.context,
        branch: this.branch,
        key,
        waiting: () => this.waiting.keys(),
        issue: (snapshot: EntryDraft) => this.issue(snapshot),
        resumption: () => (timeline.resumesLater(key) ? this.resumption(key) : undefined),
        within: (scope: string) => this.within(scope)
      }
      return runLoop(host, loop)
    })
  }

  /** Waits for the replay to come to the snapshot that the loop goes on from. */
  private resumption(key: string): Effect.Effect<Entry> {
    return Effect.async<Entry>((resume) => {
      const resumed = (entry: Effect.Effect<Entry>) =>
        resume(
          Effect.tap(entry, ({ seq }) =>
            Effect.sync(() => {
              // What the iterations that are skipped took is taken from those around the loop, too.
              for (const own of this.context.timeline.ownAt(seq)) this.claim(own)
            })
          )
        )
      this.waiting.set(key, { kind: "loop", key, resume: resumed })
      this.resumeLoops()
      return Effect.sync(() => {
        this.waiting.delete(key)
      })
    })
  }

  /** These commands with keys counted in `scope`: all else (what waits, what was issued) is the branch's, and shared. */
  private within(scope: string): WorkflowCommands {
    const scoped = Object.create(this) as WorkflowCommands
    scoped.prefix = scope
    scoped.ordinals = new Map()
    scoped.patches = new Map()
    scoped.keyed = new KeyedSteps()
    scoped.claimed = []
    scoped.enclosing = this
    return scoped
  }

  /** An iteration, and those around it, took a message or wrote a mark: a snapshot after it replaces that, too. */
  private claim(seq: number): void {
    this.claimed?.push(seq)
    this.enclosing?.claim(seq)
  }

  /** A fiber that left the branch's scheduler could not be resumed in order. */
  private own(fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean {
    if (this.context.owns(fiber)) return true
    this.context.doom(foreignScheduler(this.branch, this.context.recovery.head))
    return false
  }

  private key(name: string): string {
    const ordinal = (this.ordinals.get(name) ?? 0) + 1
    this.ordinals.set(name, ordinal)
    return `${this.prefix}${name}#${ordinal}`
  }

  /** Gives a command's mark its place: the one that the history has, or a new one. */
  private issue(entryDraft: EntryDraft): void {
    const { doom, recovery, timeline, writer } = this.context
    const found = timeline.match(entryDraft.kind, entryDraft.key)
    if (found === "new") {
      const { seq } = writer.append(entryDraft)
      if (isClaimed(entryDraft)) this.claim(seq)
    } else if (found === "cut") {
      this.deferred.push(entryDraft)
    } else if ("kind" in found) {
      if (found.payload !== entryDraft.payload && binds(found, entryDraft)) {
        doom(
          nonDeterminism(this.branch, {
            seq: found.seq,
            history: `${describeEntry(found)} with another payload`,
            code: describeEntry(entryDraft)
          })
        )
      }
      if (isClaimed(found)) this.claim(found.seq)
      recovery.apply(found)
    } else {
      doom(nonDeterminism(this.branch, found))
    }
    this.resumeLoops()
  }

  // ── From the branch ─────────────────────────────────────────────────────────────────────────────────────

  /** Issues what a fork's history was cut before, in front of what the next event brings. */
  issueDeferred(): void {
    const { deferred } = this
    this.deferred = []
    for (const entryDraft of deferred) this.issue(entryDraft)
  }

  /** Loops go on whose snapshot is what the activation's history has next. */
  resumeLoops(): void {
    const { recovery, timeline } = this.context
    for (;;) {
      const entry = timeline.resumption
      const command = entry && this.waiting.get(entry.key)
      if (entry === undefined || command?.kind !== "loop") return
      timeline.passResumption()
      timeline.resumed(entry.key)
      recovery.apply(entry)
      this.waiting.delete(entry.key)
      command.resume(Effect.succeed(entry))
    }
  }

  /** What was asked for, and what was withdrawn, since this was last asked. */
  takeChanges(): { readonly started: ReadonlyArray<StepCommand>; readonly withdrawn: ReadonlyArray<string> } {
    const { started, withdrawn } = this
    this.started = []
    this.withdrawn = []
    return { started, withdrawn }
  }

  /** The command that an event answers, or how the code differs from the history. */
  awaiting<K extends Command["kind"]>(entry: Entry, kind: K): Either.Either<Extract<Command, { kind: K }>, Divergence> {
    const command = this.waiting.get(entry.key)
    if (command?.kind === kind) return Either.right(command as Extract<Command, { kind: K }>)
    return Either.left({
      seq: entry.seq,
      history: describeEntry(entry),
      code: this.waiting.size === 0 ? "nothing that waits" : `waits for ${[...this.waiting.keys()].join(", ")}`
    })
  }

  /** Hands a message that just came to whoever has waited longest for one of its channel. */
  offer(channel: string): void {
    for (const command of this.waiting.values()) {
      if (command.kind !== "message" || command.channel !== channel) continue
      const message = this.context.recovery.takeMessage(channel)
      if (message === undefined) return
      this.waiting.delete(command.key)
      return command.resume(message)
    }
  }

  /** What is due first, of timers and of deadlines: the event that it will be. */
  get nextDue(): { readonly due: number; readonly entry: EntryDraft } | undefined {
    let next: { readonly due: number; readonly command: TimerCommand | InterruptCommand } | undefined
    for (const command of this.waiting.values()) {
      const due = command.kind === "timer" ? command.due : command.kind === "interrupt" ? command.deadline : undefined
      if (due === undefined || (command.kind !== "timer" && command.kind !== "interrupt")) continue
      if (next === undefined || due < next.due) next = { due, command }
    }
    if (next === undefined) return undefined
    const { command, due } = next
    return {
      due,
      entry: command.kind === "timer" ? draft.timerFired(command.key) : draft.interruptExpired(command.key, due)
    }
  }

  /** What its owner says of a branch that it lets go of: what is waited for, and how much came that nobody took. */
  get standing(): string | null {
    const awaits = new Set<string>()
    for (const command of this.waiting.values()) if (command.kind === "message") awaits.add(command.channel)
    const unread: Record<string, number> = {}
    for (const [channel, queued] of this.context.recovery.messages) unread[channel] = queued.length
    return awaits.size === 0 && Object.keys(unread).length === 0
      ? null
      : JSON.stringify({ awaits: [...awaits], unread })
  }
}

/** True if the outside has seen what the history has, so that the code may not say something else now. */
const binds = (found: Entry, entryDraft: EntryDraft): boolean => {
  if (found.kind === "update.replied" || found.kind === "update.rejected" || found.kind === "loop.snapshot") return true
  if (found.kind !== "interrupt.opened") return false
  // How a task is described may change with a deployment; what is asked may not.
  const asked = ({ payload }: { readonly payload: string }) =>
    JSON.stringify(payloadOf({ kind: "interrupt.opened", payload }).payload)
  return asked(found) !== asked(entryDraft)
}
