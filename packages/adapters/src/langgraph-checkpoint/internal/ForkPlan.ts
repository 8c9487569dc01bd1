/**
 * How a thread is forked at a question (FI, FD): the checkpoint that asked is copied, with those of the nested graphs that
 * the question came from, and the task that asked gets the new answer. Ids of tasks follow from the checkpoint's, so the
 * copies have others: the graph itself says which, of copies that it is shown before they are stored.
 */
import {
  type AskedInterrupt,
  type CheckpointOperation,
  jsonDigest,
  type StoredCheckpoint,
  type ThreadFork
} from "@fermata/ledger"
import { uuid6 } from "@langchain/langgraph-checkpoint"
import type { GraphState, StockGraph } from "../Conformant.js"
import type { FermataSaver } from "../FermataSaver.js"
import { ForkRefused, UnknownThread } from "../FrontError.js"
import { frontKey, type FrontMark } from "./SaverConfig.js"
import * as StrictSerde from "./StrictSerde.js"

/** What the fork is made of. Nothing is stored yet. */
export const planFork = async (request: {
  readonly graph: StockGraph
  readonly plane: FermataSaver
  readonly thread: string
  readonly forkId: string
  readonly requestDigest: string
  readonly asked: AskedInterrupt
  readonly answer: ThreadFork["answers"][number]
}): Promise<ThreadFork> => {
  const { answer, asked, forkId, graph, plane, requestDigest, thread } = request
  const puts: Array<CheckpointOperation> = []
  let ns = ""
  let root = ""
  let earlier: ThreadFork["answers"] = []
  let at: ThreadFork["at"] | undefined
  let effects: ThreadFork["effects"] | undefined
  for (const [depth, level] of asked.path.entries()) {
    const stored = await plane.stored(thread, level.ns, level.checkpoint)
    if (stored === undefined) throw new UnknownThread({ thread, checkpoint: level.checkpoint })
    const copy = await copyOf(stored, ns)
    const before = await tasksOf(graph, thread, level.ns, { ...stored, writes: [], answers: [] })
    const after = await tasksOf(graph, thread, ns, copy)
    const renamed = new Map(before.map(({ id }, index) => [id, after[index]?.id]))
    const name = before.find(({ id }) => id === level.task)?.name
    const task = renamed.get(level.task)
    if (name === undefined || task === undefined) {
      const detail = `The graph has no task ${level.task} at checkpoint ${level.checkpoint}: it is another graph, or a nested one that a node calls by itself.`
      throw new ForkRefused({ thread, reason: "GraphNotFound", detail })
    }
    puts.push({
      _tag: "Put",
      ns,
      id: copy.id,
      parent: copy.parent,
      body: copy.body,
      metadata: copy.metadata,
      changed: copy.channels,
      carried: {},
      strict: true,
      values: new Map(),
      as: "branch",
      hold: undefined
    })
    puts.push(...inherited(stored, copy, level.task, renamed))
    if (depth === 0) root = copy.id
    at = { ns, checkpoint: copy.id, task }
    earlier = stored.answers
      .filter((one) => one.task === level.task && one.ordinal < asked.ordinal)
      .map(({ value }) => ({ value, valueDigest: jsonDigest(value) }))
    const from = `${level.ns === "" ? "" : `${level.ns}|`}${name}:${level.task}`
    const to = `${ns === "" ? "" : `${ns}|`}${name}:${task}`
    effects = { from, to }
    // A second graph that the same task calls has a number behind.
    ns = to + (asked.path[depth + 1]?.ns.slice(from.length) ?? "")
  }
  if (at === undefined || effects === undefined) throw new UnknownThread({ thread, checkpoint: asked.checkpoint })
  return { fork: forkId, requestDigest, checkpoint: root, puts, answers: [...earlier, answer], at, effects }
}

/** The checkpoint under an id of its own, as a child of the one that it copies if that one is the root graph's. */
const copyOf = async (stored: StoredCheckpoint, ns: string): Promise<StoredCheckpoint> => {
  // `put` wrote both as objects.
  const body = (await StrictSerde.decode(stored.body)) as Record<string, unknown>
  const metadata = (await StrictSerde.decode(stored.metadata)) as Record<string, unknown>
  const step = metadata["step"]
  const id = uuid6(typeof step === "number" ? step + 1 : 0)
  return {
    ...stored,
    ns,
    id,
    parent: ns === "" ? stored.id : null,
    body: StrictSerde.encode({ ...body, id }, `checkpoint ${id}`),
    metadata: StrictSerde.encode({ ...metadata, source: "fork" }, `metadata of checkpoint ${id}`),
    writes: [],
    answers: []
  }
}

/** The tasks that the graph would run on a checkpoint, in its order. */
const tasksOf = async (
  graph: StockGraph,
  thread: string,
  ns: string,
  preview: StoredCheckpoint
): Promise<GraphState["tasks"]> => {
  const mark: FrontMark = { hold: undefined, head: undefined, preview }
  const config = { configurable: { thread_id: thread, checkpoint_ns: ns, [frontKey]: mark } }
  try {
    return (await graph.getState(config)).tasks
  } catch (cause) {
    const detail = `The graph of ${ns} cannot be found (${String(cause)}).`
    throw new ForkRefused({ thread, reason: "GraphNotFound", detail })
  }
}

/** PC: outcomes of the other tasks are a part of the prefix; they are not run again. */
const inherited = (
  stored: StoredCheckpoint,
  copy: StoredCheckpoint,
  forked: string,
  renamed: ReadonlyMap<string, string | undefined>
): ReadonlyArray<CheckpointOperation> =>
  stored.writes.flatMap(({ channel, idx, path, task, value }): ReadonlyArray<CheckpointOperation> => {
    const to = renamed.get(task)
    if (idx < 0 || task === forked || to === undefined) return []
    const writes = [{ idx, channel, value }]
    return [
      {
        _tag: "Write",
        ns: copy.ns,
        checkpoint: copy.id,
        task: to,
        path,
        writes,
        replace: false,
        interrupts: [],
        hold: undefined
      }
    ]
  })
