/** A document goes round until both reviewers agree; the editor names it; and afterwards one asks "what if". */
import { Annotation, Command, Fermata, interrupt, Send, START, StateGraph } from "@fermata/adapters/langgraph"
import { ScriptedModel } from "../ScriptedModel.js"

const Document = Annotation.Root({
  text: Annotation<string>,
  round: Annotation<number>({ reducer: (_, next) => next, default: () => 0 }),
  verdicts: Annotation<Array<{ by: string; round: number; wants: string | null }>>({
    reducer: (left, right) => [...left, ...right],
    default: () => []
  }),
  title: Annotation<string>
})

const model = new ScriptedModel(([request]) => `${request?.text}, revised`)

const write = async ({ round, text, verdicts }: typeof Document.State) => {
  const wishes = verdicts.filter((verdict) => verdict.round === round && verdict.wants !== null)
  if (wishes.length === 0) return { round: round + 1 }
  const wish = wishes.map(({ wants }) => wants).join(" and ")
  return { text: (await model.invoke(`${text} with ${wish}`)).text, round: round + 1 }
}

const review = ({ by, round, text }: { by: string; round: number; text: string }) => ({
  verdicts: [{ by, round, wants: interrupt<unknown, string | null>({ by, text }) }]
})

export const graph = new StateGraph(Document)
  .addNode("write", write)
  .addNode("review", review)
  .addNode("decide", () => ({}))
  .addNode("entitle", ({ text }) => ({ title: interrupt<unknown, string>({ by: "editor", text }) }))
  .addEdge(START, "write")
  .addConditionalEdges(
    "write",
    ({ round, text }) => ["Ada", "Bob"].map((by) => new Send("review", { by, round, text })),
    ["review"]
  )
  .addEdge("review", "decide")
  .addConditionalEdges(
    "decide",
    ({ round, verdicts }) =>
      verdicts.every((verdict) => verdict.round !== round || verdict.wants === null) ? "entitle" : "write",
    ["write", "entitle"]
  )
  .compile({ checkpointer: Fermata.sqlite({ filename: process.env["FERMATA_DATABASE"] ?? "ports.db" }) })

type Asked = { __interrupt__?: Array<{ id: string; value: { by: string; text: string } }> }

/** What is answered to all that wait, each question by its id. */
const answers = (asked: Asked, by: (who: string, text: string) => unknown) =>
  Object.fromEntries((asked.__interrupt__ ?? []).map(({ id, value }) => [id, by(value.by, value.text)]))

export const main = async () => {
  const thread = { configurable: { thread_id: "report" } }
  let asked = (await graph.invoke({ text: "A report" }, thread)) as Asked
  while (asked.__interrupt__?.some(({ value }) => value.by !== "editor")) {
    console.log(asked.__interrupt__.map(({ value }) => `${value.by} reads "${value.text}"`).join("; "))
    const resume = answers(asked, (who, text) => (who === "Bob" && !text.includes("figures") ? "figures" : null))
    asked = (await graph.invoke(new Command({ resume }), thread)) as Asked
  }
  const before = (await graph.getState(thread)).config
  const published = await graph.invoke(new Command({ resume: answers(asked, () => "Plain") }), thread)
  console.log(`published "${published.title}": ${published.text}`)
  // What if the editor had named it otherwise?
  const other = await graph.invoke(new Command({ resume: "Bold", fork: true }), before)
  console.log(`or else "${other.title}": ${other.text}`)
  await graph.close()
}
