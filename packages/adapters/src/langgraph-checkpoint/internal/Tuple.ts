/** Stored checkpoints as the tuples that LangGraph reads. */
import type { StoredCheckpoint, StoredWrite } from "@fermata/ledger"
import {
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  compareWritesSortKeys,
  INTERRUPT,
  type PendingWrite,
  RESUME,
  TASKS,
  writesSortKey
} from "@langchain/langgraph-checkpoint"
import * as StrictSerde from "./StrictSerde.js"

/** The tuple of a stored checkpoint. `parent` is needed for formats before 4 only. */
export const tupleOf = async (
  stored: StoredCheckpoint,
  body: Omit<Checkpoint, "channel_values">,
  values: Record<string, unknown>,
  parent: StoredCheckpoint | undefined,
  newest: (versions: ReadonlyArray<string | number>) => string | number
): Promise<CheckpointTuple> => {
  const { id, ns, thread } = stored
  const checkpoint: Checkpoint = { ...body, channel_values: values }
  if (parent !== undefined) {
    const sent = []
    for (const { channel, value } of ordered(parent.writes)) {
      if (channel === TASKS) sent.push(await StrictSerde.decode(value))
    }
    checkpoint.channel_values = { ...values, [TASKS]: sent }
    checkpoint.channel_versions = {
      ...body.channel_versions,
      [TASKS]: newest(Object.values(body.channel_versions))
    }
  }
  const config = (checkpoint_id: string) => ({
    configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id }
  })
  return {
    config: config(id),
    checkpoint,
    // `put` wrote what LangGraph gave it as metadata.
    metadata: (await StrictSerde.decode(stored.metadata)) as CheckpointMetadata,
    pendingWrites: await pendingWrites(stored),
    ...(stored.parent === null ? {} : { parentConfig: config(stored.parent) })
  }
}

const ordered = (writes: ReadonlyArray<StoredWrite>): ReadonlyArray<StoredWrite> => {
  const keyed = writes.map((write) => ({ write, key: writesSortKey(write.path, write.task, write.idx) }))
  return keyed.sort((a, b) => compareWritesSortKeys(a.key, b.key)).map(({ write }) => write)
}

/**
 * CO: the gate at the read path. Where answers were accepted for a task, they and nothing else are what it resumes with:
 * each is served to the question that it was given to, in order.
 */
const pendingWrites = async (stored: StoredCheckpoint): Promise<Array<CheckpointPendingWrite>> => {
  const answers = new Map<string, Array<unknown>>()
  for (const { ordinal, task, value } of stored.answers) {
    const served = answers.get(task) ?? []
    if (ordinal !== served.length) continue
    served.push(await StrictSerde.decode(value))
    answers.set(task, served)
  }
  const writes: Array<CheckpointPendingWrite> = []
  for (const { channel, task, value } of ordered(stored.writes)) {
    if (channel === RESUME && answers.has(task)) continue
    writes.push([task, channel, await StrictSerde.decode(value)])
  }
  for (const [task, served] of answers) writes.push([task, RESUME, served])
  return writes
}

/** The questions among what a task wrote. */
export const interruptsOf = (
  writes: ReadonlyArray<PendingWrite>
): ReadonlyArray<{ readonly interrupt: string; readonly question: string }> =>
  writes
    .filter(([channel]) => channel === INTERRUPT)
    .flatMap(([, value]): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [value]))
    .flatMap((asked) => {
      if (typeof asked !== "object" || asked === null || !("id" in asked) || typeof asked.id !== "string") return []
      const question = "value" in asked ? asked.value : undefined
      return [{ interrupt: asked.id, question: StrictSerde.encode(question, `the question of interrupt ${asked.id}`) }]
    })
