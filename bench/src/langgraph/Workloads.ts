/** What is run, once against LangGraph.js and once against the adapter: the same graphs, by the same interface. */
import type * as Adapter from "@fermata/adapters/langgraph"

/** What a library must have to run the workloads. LangGraph.js has the same names with the same meaning. */
export type GraphApi = Pick<typeof Adapter, "Annotation" | "Command" | "END" | "interrupt" | "START" | "StateGraph">

export type Checkpointer = Adapter.Fermata.GraphPlane

export interface Workload {
  /** What `--only` calls it. */
  readonly name: string
  readonly what: string
  /** Prepares one run of it; the run resolves when the thread rests, and rejects if it is not where it should be. */
  readonly prepare: (api: GraphApi, checkpointer: Checkpointer) => Promise<() => Promise<void>>
}

let threads = 0
const thread = (recursionLimit: number) => ({ configurable: { thread_id: `t${++threads}` }, recursionLimit })

const expected = (found: unknown, wanted: unknown): void => {
  if (found !== wanted) throw new Error(`The graph ended with ${String(found)} where ${String(wanted)} was expected`)
}

const chainOf = ({ Annotation, END, START, StateGraph }: GraphApi, length: number, checkpointer: Checkpointer) => {
  // Names of nodes are not known to the types here.
  const builder = new StateGraph<{ count: Adapter.KeyAnnotation<number> }, string>({ count: Annotation<number>() })
  const names = Array.from({ length }, (_, n) => `node${n}`)
  for (const name of names) builder.addNode(name, ({ count }) => ({ count: count + 1 }))
  for (const [n, name] of names.entries()) builder.addEdge(names[n - 1] ?? START, name)
  builder.addEdge(names[length - 1] ?? START, END)
  return builder.compile({ checkpointer })
}

const chain = (length: number): Workload => ({
  name: `chain${length}`,
  what: `a chain of ${length.toLocaleString("en")} nodes`,
  prepare: async (api, checkpointer) => {
    const graph = chainOf(api, length, checkpointer)
    return async () => expected((await graph.invoke({ count: 0 }, thread(length + 5))).count, length)
  }
})

const loop = (supersteps: number): Workload => ({
  name: "loop",
  what: `a loop of ${supersteps.toLocaleString("en")} supersteps, a list that grows by a text each`,
  prepare: async ({ Annotation, END, START, StateGraph }, checkpointer) => {
    const graph = new StateGraph({
      log: Annotation<Array<string>>({ reducer: (left, right) => [...left, ...right], default: () => [] })
    })
      .addNode("say", ({ log }) => ({ log: [`${log.length}: ${"x".repeat(100)}`] }))
      .addEdge(START, "say")
      .addConditionalEdges("say", ({ log }) => (log.length < supersteps ? "say" : END), ["say", END])
      .compile({ checkpointer })
    return async () => expected((await graph.invoke({ log: [] }, thread(supersteps + 5))).log.length, supersteps)
  }
})

const many: Workload = {
  name: "many",
  what: "100 threads at once, a chain of 10 nodes each",
  prepare: async (api, checkpointer) => {
    const graph = chainOf(api, 10, checkpointer)
    return async () => {
      const ended = await Promise.all(Array.from({ length: 100 }, () => graph.invoke({ count: 0 }, thread(25))))
      for (const { count } of ended) expected(count, 10)
    }
  }
}

const resume = (messages: number): Workload => ({
  name: "resume",
  what: `an answer to a thread that holds ${messages.toLocaleString("en")} messages`,
  prepare: async ({ Annotation, Command, interrupt, START, StateGraph }, checkpointer) => {
    const graph = new StateGraph({
      messages: Annotation<Array<{ role: string; content: string }>>({
        reducer: (left, right) => [...left, ...right],
        default: () => []
      }),
      answer: Annotation<string>()
    })
      .addNode("ask", () => ({ answer: interrupt<string, string>("well?") }))
      .addEdge(START, "ask")
      .compile({ checkpointer })
    const config = thread(25)
    const content = "x".repeat(100)
    await graph.invoke({ messages: Array.from({ length: messages }, () => ({ role: "user", content })) }, config)
    return async () => expected((await graph.invoke(new Command({ resume: "yes" }), config)).answer, "yes")
  }
})

export const workloads: ReadonlyArray<Workload> = [chain(100), chain(1000), loop(1000), many, resume(10_000)]

/**
 * How the time of a superstep grows with the thread's length: that of the last tenth beside that of the second (the first is
 * where the code is compiled), in one thread whose state stays small.
 */
export const growth = async (
  { Annotation, END, START, StateGraph }: GraphApi,
  checkpointer: Checkpointer,
  supersteps: number
): Promise<{ readonly early: number; readonly late: number }> => {
  const times: Array<number> = []
  const graph = new StateGraph({ count: Annotation<number>() })
    .addNode("step", ({ count }) => {
      times.push(performance.now())
      return { count: count + 1 }
    })
    .addEdge(START, "step")
    .addConditionalEdges("step", ({ count }) => (count < supersteps ? "step" : END), ["step", END])
    .compile({ checkpointer })
  expected((await graph.invoke({ count: 0 }, thread(supersteps + 5))).count, supersteps)
  const tenth = Math.floor(supersteps / 10)
  const spent = (from: number) => ((times[from + tenth - 1] ?? 0) - (times[from] ?? 0)) / (tenth - 1)
  return { early: spent(tenth), late: spent(supersteps - tenth) }
}
