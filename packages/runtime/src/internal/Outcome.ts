/** What an event of the history brings to the command that waits for it, read back by the definition's codecs. */
import { type BranchId, Defect, type Entry, payloadOf } from "@fermata/contract"
import { Effect, Either } from "effect"
import type { Problem } from "../Problem.js"
import type { InterruptCommand, StepCommand } from "./Command.js"
import { entryUnreadable, nonDeterminism } from "./Problems.js"
import { describeEntry } from "./Timeline.js"

/** The four ways in which a step ends. */
export type StepOutcomeKind = "step.succeeded" | "step.failed" | "step.died" | "step.interrupted"

/** The outcome of a step, or why the code cannot take it. */
export const outcomeOfStep = (
  branch: BranchId,
  entry: Entry,
  kind: StepOutcomeKind,
  command: StepCommand
): Either.Either<Effect.Effect<unknown, unknown>, Problem> => {
  // Parsed once: which of the four shapes it is, the kind says below.
  const payload = JSON.parse(entry.payload) as {
    readonly node: string
    readonly input: string
    readonly value?: unknown
    readonly error?: unknown
    readonly defect?: unknown
  }
  if (payload.input !== command.inputDigest) {
    return Either.left(
      nonDeterminism(branch, {
        seq: entry.seq,
        history: `${describeEntry(entry)} with input ${payload.input}`,
        code: `${entry.key} with input ${command.inputDigest} (its input changed)`
      })
    )
  }
  const { codecs } = command.node
  switch (kind) {
    case "step.succeeded":
      return Either.mapBoth(codecs.success.revive(payload.value), {
        onLeft: ({ issues }) => entryUnreadable(branch, entry.seq, `the outcome of ${entry.key}`, issues),
        onRight: Effect.succeed
      })
    case "step.failed":
      return Either.mapBoth(codecs.error.revive(payload.error), {
        onLeft: ({ issues }) => entryUnreadable(branch, entry.seq, `the error of ${entry.key}`, issues),
        onRight: Effect.fail
      })
    case "step.died":
      return Either.right(Effect.die(Defect.decode(payload.defect)))
    case "step.interrupted":
      return Either.right(Effect.void)
  }
}

/** The answer to an interrupt, or why the code cannot take it. */
export const answerOf = (branch: BranchId, entry: Entry, command: InterruptCommand): Either.Either<unknown, Problem> =>
  Either.mapLeft(
    command.interrupt.codecs.answer.revive(payloadOf({ kind: "interrupt.answered", payload: entry.payload }).value),
    ({ issues }) => entryUnreadable(branch, entry.seq, `the answer to ${entry.key}`, issues)
  )
