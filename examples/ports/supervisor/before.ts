/** A supervisor that sends researchers out, one for each topic, and then has a writer put together what they found. */
import { AIMessage } from "@langchain/core/messages"
import { Annotation, Command, END, MemorySaver, Send, START, StateGraph } from "@langchain/langgraph"
import { ScriptedModel } from "../ScriptedModel.js"

const Team = Annotation.Root({
  request: Annotation<string>,
  topics: Annotation<Array<string>>,
  findings: Annotation<Array<string>>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
  report: Annotation<string>
})

const planner = new ScriptedModel(([request]) =>
  JSON.stringify((request?.text ?? "").split(/, | and /).map((topic) => topic.trim()))
)
const expert = new ScriptedModel(([topic]) => new AIMessage(`${topic?.text}: worth a try`))

const supervisor = async ({ findings, report, request, topics }: typeof Team.State) => {
  if (topics === undefined) {
    const planned = JSON.parse((await planner.invoke(request)).text) as Array<string>
    return new Command({ update: { topics: planned }, goto: planned.map((topic) => new Send("researcher", { topic })) })
  }
  if (report !== undefined) return new Command({ goto: END })
  return new Command({ goto: findings.length < topics.length ? END : "writer" })
}

const researcher = async ({ topic }: { topic: string }) =>
  new Command({ update: { findings: [(await expert.invoke(topic)).text] }, goto: "supervisor" })

/** A team of its own, whose editor hands back to the supervisor outside. */
const writer = new StateGraph(Team)
  .addNode("draft", ({ findings }) => ({ report: `- ${[...findings].sort().join("\n- ")}` }))
  .addNode(
    "editor",
    ({ report, request }) =>
      new Command({ graph: Command.PARENT, goto: "supervisor", update: { report: `On ${request}\n${report}` } })
  )
  .addEdge(START, "draft")
  .addEdge("draft", "editor")
  .compile()

export const graph = new StateGraph(Team)
  .addNode("supervisor", supervisor, { ends: ["researcher", "writer", END] })
  .addNode("researcher", researcher, { ends: ["supervisor"] })
  .addNode("writer", writer, { ends: ["supervisor"] })
  .addEdge(START, "supervisor")
  .compile({ checkpointer: new MemorySaver() })

export const main = async () => {
  const thread = { configurable: { thread_id: "garden" } }
  for await (const chunk of await graph.stream(
    { request: "roses, tulips and ferns" },
    { ...thread, streamMode: "updates" }
  ))
    console.log("ran", Object.keys(chunk as object).join(", "))
  console.log((await graph.getState(thread)).values.report)
}
