/** An agent that looks up orders by itself, and refunds one only when a person agrees. */
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { Command, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph"
import { ToolNode } from "@langchain/langgraph/prebuilt"
import { z } from "zod"
import { ScriptedModel } from "../ScriptedModel.js"

const lookUp = tool(({ order }) => `Order ${order}: 3 lamps for 120 EUR, broken on arrival`, {
  name: "look_up",
  description: "Looks up an order",
  schema: z.object({ order: z.string() })
})

const refund = tool(
  ({ euros, order }) => {
    console.log(`  [the bank pays ${euros} EUR for ${order}]`)
    return `Refunded ${euros} EUR`
  },
  { name: "refund", description: "Pays an order back", schema: z.object({ order: z.string(), euros: z.number() }) }
)

const model = new ScriptedModel((messages) => {
  const last = messages.at(-1)
  if (last instanceof HumanMessage)
    return new AIMessage({ content: "", tool_calls: [{ id: "c1", name: "look_up", args: { order: "A-17" } }] })
  if (last instanceof ToolMessage && last.name === "look_up")
    return new AIMessage({
      content: "",
      tool_calls: [{ id: "c2", name: "refund", args: { order: "A-17", euros: 120 } }]
    })
  return last?.text === "refused" ? "I am sorry: we cannot refund this order." : "Your 120 EUR are on their way."
}).bindTools()

const agent = async ({ messages }: typeof MessagesAnnotation.State) => ({ messages: [await model.invoke(messages)] })

const approve = ({ messages }: typeof MessagesAnnotation.State) => {
  const [call] = (messages.at(-1) as AIMessage).tool_calls ?? []
  if (call?.name !== "refund") return new Command({ goto: "tools" })
  if (interrupt({ question: "Refund?", ...call.args }) === true) return new Command({ goto: "tools" })
  const refusal = new ToolMessage({ tool_call_id: call.id ?? "", name: "refund", content: "refused" })
  return new Command({ goto: "agent", update: { messages: [refusal] } })
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("agent", agent)
  .addNode("approve", approve, { ends: ["tools", "agent"] })
  .addNode("tools", new ToolNode([lookUp, refund]))
  .addEdge(START, "agent")
  .addConditionalEdges("agent", ({ messages }) =>
    ((messages.at(-1) as AIMessage).tool_calls ?? []).length > 0 ? "approve" : END
  )
  .addEdge("tools", "agent")
  .compile({ checkpointer: new MemorySaver() })

export const main = async () => {
  for (const [customer, agrees] of [
    ["ada", true],
    ["bob", false]
  ] as const) {
    const thread = { configurable: { thread_id: customer } }
    const asked = await graph.invoke({ messages: [new HumanMessage("My lamps came broken.")] }, thread)
    console.log(
      customer,
      JSON.stringify((asked as { __interrupt__?: Array<{ value: unknown }> }).__interrupt__?.[0]?.value)
    )
    const done = await graph.invoke(new Command({ resume: agrees }), thread)
    console.log(customer, done.messages.at(-1)?.text)
  }
}
