/** A stock LangGraph.js graph of four nodes in a line, each with one effect on the outside; the second may ask first. */
import { conformant, effect, FermataSaver } from "@fermata/adapters/langgraph-checkpoint"
import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph"
import { Schema } from "effect"
import type { EffectLog } from "../EffectLog.js"
import type { PlaneAddress } from "../PlaneAddress.js"

/** How the graph is run: by LangGraph with the saver alone, or behind the front with its effects declared. */
export const Way = Schema.Literal("saver sync", "saver async", "front")
export type Way = typeof Way.Type

export const nodes = ["n1", "n2", "n3", "n4"] as const

/** The thread that everything here is about. */
export const thread = { configurable: { thread_id: "line" } }

export const open = (address: PlaneAddress): FermataSaver =>
  address._tag === "Sqlite"
    ? FermataSaver.sqlite({ filename: address.filename })
    : FermataSaver.postgres({ url: address.url, maxConnections: 2 })

/** Starts the thread with `"go"`, or goes on with `null`. */
export type Run = (input: "go" | null) => Promise<ReadonlyArray<string>>

/** The graph behind a way; `fired` is called after an effect, in the node. */
export const line = (options: {
  readonly saver: FermataSaver
  readonly way: Way
  readonly asks: boolean
  readonly log: EffectLog
  readonly fired: (node: string) => void
}) => {
  const { asks, fired, log, saver, way } = options
  const act = (node: string) => (key: string) => {
    log.write({ at: node, effect: node, idempotencyKey: key, inputDigest: "" })
    fired(node)
  }
  const node = (name: string) => async () => {
    const said: unknown = asks && name === "n2" ? interrupt("go on?") : undefined
    if (way === "front") await effect("act", { delivery: "keyed" }, act(name))
    else act(name)("undeclared")
    return { log: [said === undefined ? name : `${name}:${String(said)}`] }
  }
  const graph = new StateGraph(
    Annotation.Root({ log: Annotation<Array<string>>({ reducer: (a, b) => a.concat(b), default: () => [] }) })
  )
    .addNode("n1", node("n1"))
    .addNode("n2", node("n2"))
    .addNode("n3", node("n3"))
    .addNode("n4", node("n4"))
    .addEdge(START, "n1")
    .addEdge("n1", "n2")
    .addEdge("n2", "n3")
    .addEdge("n3", "n4")
    .compile({ checkpointer: saver })
  const front = conformant(graph, { plane: saver })
  const run: Run = async (input) => {
    const start = input === null ? null : { log: [] }
    const state =
      way === "front"
        ? await front.invoke(start, thread)
        : await graph.invoke(start, { ...thread, durability: way === "saver sync" ? "sync" : "async" })
    return state.log
  }
  return { front, run }
}
