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
  readonly results: Results
  readonly asked: Array<Asked>
}

/** The id of a thread's checkpoint: its step, so that later ones sort after, and the branch that made it. */
const checkpointId = (branch: string, step: number): string =>
  `${String(step + 1).padStart(8, "0")}-${branch.slice(branch.lastIndexOf("/") + 1)}`

/** Results as they were stored; read when somebody asks, which is for the last checkpoint mostly. */
export class Results {
  private readonly stored = new Map<string, unknown>()

  get size(): number {
    return this.stored.size
  }

  has(task: string): boolean {
    return this.stored.has(task)
  }

  get(task: string): NodeResult | undefined {
    return this.stored.has(task) ? (fromWire(this.stored.get(task)) as NodeResult) : undefined
  }

  set(task: string, wire: unknown): void {
    this.stored.set(task, wire)
  }
}

/** A thread's branch as far as it was read. What was read once is not read again: entries never change. */
export class ThreadView {
  private readonly found: Array<CheckpointView> = []
  private readonly questions = new Map<string, Asked>()
  private values: Values = {}
  /** Rough size of what is kept (characters). */
  weight = 0
  private position: { readonly seq: number; readonly digest: string } | undefined

  /** The last entry that was read; `undefined` before there is one. */
  get read(): { readonly seq: number; readonly digest: string } | undefined {
    return this.position
  }

  /** The checkpoints, oldest first. */
  get checkpoints(): ReadonlyArray<CheckpointView> {
    return [...this.found]
  }

  /** Reads on. What another reader has added meanwhile is passed over. */
  add(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) {
      if (entry.seq <= (this.position?.seq ?? 0)) continue
      this.apply(entry)
      this.weight += entry.payload.length
      this.position = { seq: entry.seq, digest: entry.digest }
    }
  }

  private apply(entry: Entry): void {
    const last = this.found.at(-1)
    if (entry.kind === "interrupt.opened") {
      const { name, payload } = payloadOf({ kind: entry.kind, payload: entry.payload })
      const plain = StrictJson.fromJson(payload)
      // Only this package's threads open such an interrupt, with this payload.
      if (name === "$input") this.checkpoint(entry, plain as CheckpointPayload, last)
      else if (name === "interrupt" && last !== undefined) {
        const asked: Asked = {
          ...(plain as QuestionPayload),
          interrupt: entry.key,
          branch: entry.branch,
          seq: entry.seq,
          open: true
        }
        this.questions.set(entry.key, asked)
        last.asked.push(asked)
      }
    } else if (entry.kind === "interrupt.answered" || entry.kind === "interrupt.closed") {
      const asked = this.questions.get(entry.key)
      if (asked !== undefined) asked.open = false
    } else if (entry.kind === "step.succeeded" && last !== undefined) {
      const { value } = payloadOf({ kind: entry.kind, payload: entry.payload })
      const outcome = StrictJson.fromJson(value) as {
        readonly _tag: string
        readonly task: string
        readonly value: unknown
      }
      if (outcome._tag === "Done") last.results.set(outcome.task, outcome.value)
    }
  }

  private checkpoint(entry: Entry, payload: CheckpointPayload, last: CheckpointView | undefined): void {
    this.values = withDelta(this.values, payload.delta as Delta)
    const id = checkpointId(entry.branch, payload.step)
    // A thread that goes on from where it rested opens its mailbox again: it is the same checkpoint.
    const again = last?.id === id ? last : undefined
    if (again !== undefined) this.found.pop()
    this.found.push({
      id,
      interrupt: entry.key,
      branch: entry.branch,
      seq: entry.seq,
      at: again?.at ?? entry.at,
      values: this.values,
      payload,
      results: again?.results ?? new Results(),
      asked: again?.asked ?? []
    })
  }
}
