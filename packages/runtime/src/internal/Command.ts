/** What a workflow waits for: the commands that it issued and that no event of the history has answered yet. */
import type { Entry, ReceivedMessage } from "@fermata/contract"
import type { Effect } from "effect"
import type * as Interrupt from "../Interrupt.js"
import type * as Node from "../Node.js"

/** A call of a node that waits for its outcome. */
export interface StepCommand {
  readonly kind: "step"
  readonly key: string
  readonly node: Node.Any
  readonly input: string
  readonly inputDigest: string
  /** The branch's time when it was asked for (ledger milliseconds): the same on every replay. */
  readonly since: number
  /** Interrupted while an effect was firing: waits for how that ends. */
  withdrawing: boolean
  resume: (effect: Effect.Effect<unknown, unknown>) => void
}

/** An interrupt that waits for its answer. */
export interface InterruptCommand {
  readonly kind: "interrupt"
  readonly key: string
  readonly interrupt: Interrupt.Any
  /** Ledger milliseconds at which it expires, unanswered; `undefined`: never. */
  readonly deadline: number | undefined
  readonly resume: (effect: Effect.Effect<unknown, unknown>) => void
}

/** A durable timer that waits for its time. */
export interface TimerCommand {
  readonly kind: "timer"
  readonly key: string
  readonly due: number
  readonly resume: (effect: Effect.Effect<void>) => void
}

/** A wait for the next message of a channel. */
export interface MessageCommand {
  readonly kind: "message"
  readonly key: string
  readonly channel: string
  readonly resume: (message: ReceivedMessage) => void
}

/** A loop that was entered in the history and goes on from its last snapshot when the replay comes to it. */
export interface LoopCommand {
  readonly kind: "loop"
  readonly key: string
  readonly resume: (effect: Effect.Effect<Entry>) => void
}

export type Command = StepCommand | InterruptCommand | TimerCommand | MessageCommand | LoopCommand

/** The command as text: two replays that wait for the same have the same. */
export const describeCommand = (command: Command): string =>
  command.kind === "step"
    ? `step ${command.key} ${command.inputDigest}${command.withdrawing ? " withdrawing" : ""}`
    : `${command.kind} ${command.key}`
