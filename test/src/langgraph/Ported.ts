/** A ported graph of four nodes with effects of every delivery, a question, a task and a graph inside a node. */
import { Annotation, effect, Fermata, interrupt, START, StateGraph, task } from "@fermata/adapters/langgraph"
import type { EffectLog } from "../EffectLog.js"
import type { PlaneAddress } from "../PlaneAddress.js"

/** The thread that everything here is about. */
export const config = { configurable: { thread_id: "ported" } }

export const open = (address: PlaneAddress) =>
  address._tag === "Sqlite"
    ? Fermata.sqlite({ filename: address.filename })
    : Fermata.postgres({ url: address.url, maxConnections: 4 })

/** `fired` is called after each effect, before anything of it is recorded. */
export const ported = (
  plane: ReturnType<typeof open>,
  log: EffectLog,
  fired: (what: string) => void,
  /** What the outside says of a `once` effect in doubt; by default it knows. */
  reconciles = true
) => {
  const act = (at: string) => (idempotencyKey: string) => {
    log.write({ at, effect: at, idempotencyKey, inputDigest: "" })
    fired(at)
    return `${at} done`
  }
  const once = () =>
    effect(
      "charge",
      {
        delivery: "once",
        input: 12,
        ...(reconciles
          ? {
              reconcile: async (key) =>
                log.rows().some(({ idempotencyKey }) => idempotencyKey === key)
                  ? { _tag: "Happened", outcome: "charge done" }
                  : { _tag: "NeverWill" }
            }
          : {})
      },
      act("charge")
    )
  const State = Annotation.Root({
    log: Annotation<Array<string>>({ reducer: (left, right) => left.concat(right), default: () => [] })
  })
  const inner = new StateGraph(State)
    .addNode("in1", async () => ({ log: [await effect("inner", { delivery: "keyed" }, act("inner"))] }))
    .addNode("in2", () => ({ log: ["in2"] }))
    .addEdge(START, "in1")
    .addEdge("in1", "in2")
    .compile()
  const mail = task("mail", async () => effect("mail", { delivery: "keyed" }, act("mail")))
  return new StateGraph(State)
    .addNode("n1", async () => ({ log: [await effect("look", { delivery: "repeatable" }, act("look"))] }))
    .addNode("n2", async () => {
      const charged = await once()
      const said = interrupt<string, string>("go on?")
      // At the same time, each named by its key.
      const both = await Promise.all(
        ["a", "b"].map((key) => effect("notify", { delivery: "keyed", input: said, key }, act(`notify ${key}`)))
      )
      return { log: [charged, said, ...both] }
    })
    .addNode("n3", async () => ({ log: [await mail()] }))
    .addNode("n4", async () => ({ log: (await inner.invoke({ log: [] })).log }))
    .addEdge(START, "n1")
    .addEdge("n1", "n2")
    .addEdge("n2", "n3")
    .addEdge("n3", "n4")
    .compile({ checkpointer: plane, name: "ported" })
}

/** What the thread's log holds at its end. */
export const ended = [
  "look done",
  "charge done",
  "yes",
  "notify a done",
  "notify b done",
  "mail done",
  "inner done",
  "in2"
]
