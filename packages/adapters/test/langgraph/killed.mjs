/** A graph in a process of its own, which kills itself in its second node the first time. */
import { Annotation, Fermata, START, StateGraph, task } from "@fermata/adapters/langgraph"
import { appendFileSync } from "node:fs"

const [filename, effects, what] = process.argv.slice(2)
const happened = (line) => appendFileSync(effects, `${line}\n`)

const once = task("once", () => {
  happened("task")
  return "task"
})

const graph = new StateGraph(
  Annotation.Root({ log: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }) })
)
  .addNode("one", () => {
    happened("one")
    return { log: ["one"] }
  })
  .addNode("two", async () => {
    happened("two")
    const done = await once()
    if (what === "begin") process.kill(process.pid, "SIGKILL")
    happened("after task")
    return { log: [done, "two"] }
  })
  .addNode("three", () => {
    happened("three")
    return { log: ["three"] }
  })
  .addEdge(START, "one")
  .addEdge("one", "two")
  .addEdge("two", "three")
  .compile({ checkpointer: Fermata.sqlite({ filename }) })

const config = { configurable: { thread_id: "t" } }
const output = await graph.invoke(what === "begin" ? { log: [] } : null, config)
process.stdout.write(JSON.stringify(output))
await graph.close()
