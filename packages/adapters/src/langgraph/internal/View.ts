/** A branch's history read as a thread: its checkpoints, what their tasks did, and the questions that wait. Pure. */
import { type Entry, payloadOf, StrictJson } from "@fermata/contract"
import { type Delta, withDelta, type Values } from "../Channel.js"
import type { NodeResult } from "./Core.js"
import type { CheckpointPayload, QuestionPayload } from "./Thread.js"
import { fromWire } from "./Wire.js"

export interface Asked extends QuestionPayload {
  /** The ledger's name for it. */
  readonly interrupt: string
  readonly branch: string
  readonly seq: number
  open: boolean
}

export interface CheckpointView {
  readonly id: string
  /** The mailbox that opened it, and where. */
  readonly interrupt: string
  readonly branch: string
  readonly seq: number
  /** Ledger milliseconds. */
  readonly at: number
  readonly values: Values
  readonly payload: CheckpointPayload
  /** Results of its tasks, by task. */
  readonly results: Map<string, NodeResult>
  readonly asked: Array<Asked>
}

/** The id of a thread's checkpoint: its step, so that later ones sort after, and the branch that made it. */
const checkpointId = (branch: string, step: number): string =>
  `${String(step + 1).padStart(8, "0")}-${branch.slice(branch.lastIndexOf("/") + 1)}`

/** The checkpoints of a history, oldest first. */
export const checkpointsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<CheckpointView> => {
  const found: Array<CheckpointView> = []
  const questions = new Map<string, Asked>()
  let stored: Values = {}
  for (const entry of entries) {
    const last = found.at(-1)
    if (entry.kind === "interrupt.opened") {
      const { name, payload } = payloadOf({ kind: entry.kind, payload: entry.payload })
      const plain = StrictJson.fromJson(payload)
      if (name === "$input") {
        // Only this package's threads open such an interrupt, with this payload.
        const checkpoint = plain as CheckpointPayload
        stored = withDelta(stored, checkpoint.delta as Delta)
        const id = checkpointId(entry.branch, checkpoint.step)
        // A thread that goes on from where it rested opens its mailbox again: it is the same checkpoint.
        const again = last?.id === id ? last : undefined
        if (again !== undefined) found.pop()
        found.push({
          id,
          interrupt: entry.key,
          branch: entry.branch,
          seq: entry.seq,
          at: again?.at ?? entry.at,
          values: stored,
          payload: checkpoint,
          results: again?.results ?? new Map<string, NodeResult>(),
          asked: again?.asked ?? []
        })
      } else if (name === "interrupt" && last !== undefined) {
        const asked: Asked = {
          ...(plain as QuestionPayload),
          interrupt: entry.key,
          branch: entry.branch,
          seq: entry.seq,
          open: true
        }
        questions.set(entry.key, asked)
        last.asked.push(asked)
      }
    } else if (entry.kind === "interrupt.answered" || entry.kind === "interrupt.closed") {
      const asked = questions.get(entry.key)
      if (asked !== undefined) asked.open = false
    } else if (entry.kind === "step.succeeded" && last !== undefined) {
      const { value } = payloadOf({ kind: entry.kind, payload: entry.payload })
      const outcome = StrictJson.fromJson(value) as {
        readonly _tag: string
        readonly task: string
        readonly value: unknown
      }
      if (outcome._tag === "Done") last.results.set(outcome.task, fromWire(outcome.value) as NodeResult)
    }
  }
  return found
}
