/**
 * The commands of one workflow execution: what its fibers ask for and wait for. Each gets its key by counting, and its
 * mark the place that the history has for it, so a replay issues the same commands or is found to differ (RD).
 */
import { type BranchId, type Entry, type EntryDraft, type Recovery, type RunId, runOf } from "@fermata/contract"
import { Effect, Either, type Fiber } from "effect"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"
import type { Problem } from "../Problem.js"
import { InvalidValue } from "../RunError.js"
import type { BranchWriter } from "./BranchWriter.js"
import type { Command, StepCommand, TimerCommand } from "./Command.js"
import { digest, draft } from "./Payload.js"
import { foreignScheduler, nonDeterminism } from "./Problems.js"
import { describeEntry, type Divergence, type Timeline } from "./Timeline.js"
import type { Commands } from "./WorkflowScope.js"

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
  /** Nobody waits for this step any more. */
  readonly forgotten: (step: string) => void
}

export class WorkflowCommands implements Commands {
  readonly run: RunId
  readonly branch: BranchId
  /** What the workflow waits for, by key, in the order in which it was asked for. */
  readonly waiting = new Map<string, Command>()
  private readonly ordinals = new Map<string, number>()
  /** What was decided of each patch: once for an execution, at its first question. */
  private readonly patches = new Map<string, boolean>()
  /** Marks that a fork's history was cut before. */
  private deferred: Array<EntryDraft> = []
  private started: Array<StepCommand> = []
  private withdrawn: Array<string> = []

  constructor(private readonly context: CommandBranch) {
    this.run = runOf(context.branch)
    this.branch = context.branch
  }

  // ── From the workflow's fibers ──────────────────────────────────────────────────────────────────────────

  call(node: Node.Any, input: unknown, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<unknown, unknown> {
    if (!this.own(fiber)) return Effect.never
    const key = this.key(node.name)
    const encoded = this.context.writer.fitting(node.codecs.input.encode(input))
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
      this.waiting.set(key, command)
      this.started.push(command)
      return Effect.suspend(() => this.withdraw(command))
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

  ask(interrupt: Interrupt.Any, payload: unknown, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<unknown> {
    if (!this.own(fiber)) return Effect.never
    const key = this.key(interrupt.name)
    // The declared type of the payload is what the definition's call signature demanded.
    const encoded = this.context.writer.fitting(interrupt.codecs.payload.encode(payload as never))
    if (Either.isLeft(encoded)) {
      return Effect.die(new InvalidValue({ what: `payload of interrupt ${key}`, issues: encoded.left.issues }))
    }
    this.issue(draft.interruptOpened(key, interrupt.name, encoded.right))
    return Effect.async((resume) => {
      this.waiting.set(key, { kind: "interrupt", key, interrupt, resume })
      return Effect.sync(() => {
        if (this.waiting.delete(key)) this.issue(draft.interruptClosed(key))
      })
    })
  }

  patched(id: string, fiber: Fiber.RuntimeFiber<unknown, unknown>, retired: boolean): Effect.Effect<boolean> {
    if (!this.own(fiber)) return Effect.never
    const decided = this.patches.get(id)
    if (decided !== undefined) return Effect.succeed(decided)
    const verdict = this.context.timeline.decide("patch.taken", id)
    const taken = verdict === "recorded" || (verdict === "new" && !retired)
    this.patches.set(id, taken)
    if (taken) this.issue(draft.patchTaken(id))
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

  /** A fiber that left the branch's scheduler could not be resumed in order. */
  private own(fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean {
    if (this.context.owns(fiber)) return true
    this.context.doom(foreignScheduler(this.branch, this.context.recovery.head))
    return false
  }

  private key(name: string): string {
    const ordinal = (this.ordinals.get(name) ?? 0) + 1
    this.ordinals.set(name, ordinal)
    return `${name}#${ordinal}`
  }

  /** Gives a command's mark its place: the one that the history has, or a new one. */
  private issue(entryDraft: EntryDraft): void {
    const { doom, recovery, timeline, writer } = this.context
    const found = timeline.match(entryDraft.kind, entryDraft.key)
    if (found === "new") {
      writer.append(entryDraft)
    } else if (found === "cut") {
      this.deferred.push(entryDraft)
    } else if ("kind" in found) {
      if (found.payload !== entryDraft.payload && found.kind === "interrupt.opened") {
        doom(
          nonDeterminism(this.branch, {
            seq: found.seq,
            history: `${describeEntry(found)} with another payload`,
            code: describeEntry(entryDraft)
          })
        )
      }
      recovery.apply(found)
    } else {
      doom(nonDeterminism(this.branch, found))
    }
  }

  // ── From the branch ─────────────────────────────────────────────────────────────────────────────────────

  /** Issues what a fork's history was cut before, in front of what the next event brings. */
  issueDeferred(): void {
    const { deferred } = this
    this.deferred = []
    for (const entryDraft of deferred) this.issue(entryDraft)
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

  /** The timer that is due first. */
  get nextTimer(): TimerCommand | undefined {
    let next: TimerCommand | undefined
    for (const command of this.waiting.values()) {
      if (command.kind === "timer" && (next === undefined || command.due < next.due)) next = command
    }
    return next
  }
}
