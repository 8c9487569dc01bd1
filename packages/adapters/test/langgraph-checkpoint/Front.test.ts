import {
  AnswerRefused,
  BareAnswer,
  conformant,
  DidNotHappen,
  effect,
  EffectInDoubt,
  FermataSaver,
  ForkRefused,
  ForkRequired,
  UnknownThread
} from "@fermata/adapters/langgraph-checkpoint"
import { Annotation, Command, END, entrypoint, interrupt, Send, START, StateGraph, task } from "@langchain/langgraph"
import { describe, expect, it } from "vitest"
import { databases, open, withSaver } from "./Databases.js"

const Log = Annotation.Root({ log: Annotation<Array<string>>({ reducer: (a, b) => a.concat(b), default: () => [] }) })

/** prep, then a gate that has an effect, asks and has another, then after. */
const gated = (checkpointer: FermataSaver, fired: Array<string>) =>
  new StateGraph(Log)
    .addNode("prep", async () => {
      await effect("prep", { delivery: "keyed" }, () => void fired.push("prep"))
      return { log: ["prep"] }
    })
    .addNode("gate", async () => {
      await effect("notify", { delivery: "keyed" }, () => void fired.push("notify"))
      const answer: unknown = interrupt("go?")
      const said = String(answer)
      await effect("act", { delivery: "keyed", input: said }, () => void fired.push(`act:${said}`))
      return { log: [`gate:${said}`] }
    })
    .addNode("after", async () => ({ log: ["after"] }))
    .addEdge(START, "prep")
    .addEdge("prep", "gate")
    .addEdge("gate", "after")
    .addEdge("after", END)
    .compile({ checkpointer })

/** Two questions, one after the other, in one node. */
const twice = (checkpointer: FermataSaver, fired: Array<string>) =>
  new StateGraph(Log)
    .addNode("ask", async () => {
      const first: unknown = interrupt("first?")
      await effect("first", { delivery: "keyed", input: first }, () => void fired.push(`first:${String(first)}`))
      const second: unknown = interrupt("second?")
      await effect("second", { delivery: "keyed", input: second }, () => void fired.push(`second:${String(second)}`))
      return { log: [`${String(first)}/${String(second)}`] }
    })
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile({ checkpointer })

const thread = (more: object = {}) => ({ configurable: { thread_id: "t", ...more } })
/** For any graph's type. */
const resume = (value: unknown) => new Command<unknown, Record<never, never>, never>({ resume: value })
const answer = (id: string, value: unknown) => resume({ [id]: value })
const first = async (pending: Promise<ReadonlyArray<{ readonly id: string }>>): Promise<string> => {
  const [one] = await pending
  if (one === undefined) throw new Error("nothing is asked")
  return one.id
}

describe.each(databases)("a conformant graph on %s", (database) => {
  // oxlint-disable-next-line vitest/valid-title -- the names are at the calls
  const test = (name: string, body: Parameters<typeof withSaver>[1]) => it(name, withSaver(database, body))

  test("serves an answer once, and fires what came before it once", async (plane) => {
    const fired: Array<string> = []
    const graph = conformant(gated(plane, fired), { plane })
    const parked = await graph.invoke({ log: [] }, thread())
    expect(parked).toMatchObject({ log: ["prep"], __interrupt__: [{ value: "go?" }] })
    const id = await first(graph.pending(thread()))
    const done = await graph.invoke(answer(id, true), thread({ delivery_id: "d1" }))
    expect(done.log).toEqual(["prep", "gate:true", "after"])
    expect(fired).toEqual(["prep", "notify", "act:true"])
    // The same delivery again is inert, another one is refused, equal value or not.
    const again = await graph.invoke(answer(id, true), thread({ delivery_id: "d1" }))
    expect(again.log).toEqual(done.log)
    for (const value of [true, false]) {
      await expect(graph.invoke(answer(id, value), thread())).rejects.toMatchObject({
        reason: "AlreadyConsumed",
        by: "d1"
      })
    }
    await expect(graph.invoke(answer(id, false), thread({ delivery_id: "d1" }))).rejects.toMatchObject({
      reason: "DeliveryIdReused"
    })
    await expect(graph.invoke(resume(true), thread())).rejects.toBeInstanceOf(BareAnswer)
    expect(fired).toHaveLength(3)
  })

  test("serves each fork of a checkpoint its own value, live and stored, and leaves the origin alone", async (plane, address) => {
    const fired: Array<string> = []
    const graph = conformant(gated(plane, fired), { plane })
    await graph.invoke({ log: [] }, thread())
    const id = await first(graph.pending(thread()))
    const at = String((await graph.getState(thread())).config.configurable?.["checkpoint_id"])
    await graph.invoke(answer(id, true), thread())
    await expect(graph.invoke(answer(id, false), thread({ checkpoint_id: at }))).rejects.toBeInstanceOf(ForkRequired)
    await expect(graph.invoke(null, thread({ checkpoint_id: at }))).rejects.toBeInstanceOf(ForkRequired)
    const forked = await graph.invoke(answer(id, false), thread({ checkpoint_id: at, fork: true, fork_id: "f" }))
    expect(forked.log).toEqual(["prep", "gate:false", "after"])
    // `notify` came before the question: it is inherited. `act` is the branch's own.
    expect(fired).toEqual(["prep", "notify", "act:true", "act:false"])
    const same = await graph.invoke(answer(id, false), thread({ fork: true, fork_id: "f" }))
    expect(same.log).toEqual(forked.log)
    await expect(graph.invoke(answer(id, 1), thread({ fork: true, fork_id: "f" }))).rejects.toBeInstanceOf(ForkRefused)
    const third = await graph.invoke(answer(id, null), thread({ fork: true }))
    expect(third.log).toEqual(["prep", "gate:null", "after"])
    expect(fired).toEqual(["prep", "notify", "act:true", "act:false", "act:null"])
    const elsewhere = open(address)
    const ends = new Set<string>()
    for await (const { checkpoint } of elsewhere.list(thread())) {
      const log: unknown = checkpoint.channel_values["log"]
      if (Array.isArray(log) && log.length === 3) ends.add(log.join())
    }
    await elsewhere.close()
    expect([...ends].sort()).toEqual(["prep,gate:false,after", "prep,gate:null,after", "prep,gate:true,after"])
  })

  test("never hands an answer to a later question", async (plane) => {
    const fired: Array<string> = []
    const graph = conformant(twice(plane, fired), { plane })
    await graph.invoke({ log: [] }, thread())
    const one = await first(graph.pending(thread()))
    await graph.invoke(answer(one, "yes"), thread({ delivery_id: "d1" }))
    // The recovery call, and the first answer again, in every form.
    await graph.invoke(null, thread())
    await graph.invoke(answer(one, "yes"), thread({ delivery_id: "d1" }))
    await expect(graph.invoke(answer(one, "yes"), thread())).rejects.toBeInstanceOf(AnswerRefused)
    await expect(graph.invoke(resume("yes"), thread({ delivery_id: "d1" }))).rejects.toMatchObject({
      reason: "DeliveryIdReused"
    })
    expect(fired).toEqual(["first:yes"])
    const two = await first(graph.pending(thread()))
    expect(two).not.toBe(one)
    const done = await graph.invoke(answer(two, "no"), thread())
    expect(done.log).toEqual(["yes/no"])
    // A fork at the second question keeps the first one's answer and effect.
    const forked = await graph.invoke(answer(two, "maybe"), thread({ fork: true }))
    expect(forked.log).toEqual(["yes/maybe"])
    expect(fired).toEqual(["first:yes", "second:no", "second:maybe"])
  })

  test("keeps several open questions apart", async (plane) => {
    const fired: Array<string> = []
    const graph = conformant(
      new StateGraph(Log)
        .addNode("worker", async ({ name }: { name: string }) => {
          await effect("before", { delivery: "keyed", input: name }, () => void fired.push(`before:${name}`))
          const said: unknown = interrupt(name)
          return { log: [`${name}:${String(said)}`] }
        })
        .addConditionalEdges(START, () => ["a", "b", "c"].map((name) => new Send("worker", { name })), ["worker"])
        .compile({ checkpointer: plane }),
      { plane }
    )
    await graph.invoke({ log: [] }, thread())
    const open = await graph.pending(thread())
    expect(open.map(({ value }) => value).sort()).toEqual(["a", "b", "c"])
    await expect(graph.invoke(resume(1), thread())).rejects.toBeInstanceOf(BareAnswer)
    await expect(graph.invoke(answer("0".repeat(32), 1), thread())).rejects.toMatchObject({
      reason: "UnknownInterrupt"
    })
    const idOf = (value: string) => open.find((one) => one.value === value)?.id ?? ""
    await graph.invoke(answer(idOf("b"), 2), thread())
    expect((await graph.pending(thread())).map(({ value }) => value).sort()).toEqual(["a", "c"])
    // All or nothing: with one that is refused none is consumed.
    const mixed = resume({ [idOf("a")]: 1, [idOf("b")]: 5 })
    await expect(graph.invoke(mixed, thread())).rejects.toMatchObject({ reason: "AlreadyConsumed" })
    const rest = resume({ [idOf("a")]: 1, [idOf("c")]: 3 })
    expect((await graph.invoke(rest, thread())).log).toEqual(["a:1", "b:2", "c:3"])
    expect(fired.sort()).toEqual(["before:a", "before:b", "before:c"])
  })

  test("answers and forks a question of a nested graph", async (plane) => {
    const fired: Array<string> = []
    const inner = new StateGraph(Log)
      .addNode("quiet", async () => {
        await effect("quiet", { delivery: "keyed" }, () => void fired.push("quiet"))
        return { log: ["quiet"] }
      })
      .addNode("ask", () => {
        const said: unknown = interrupt("inner?")
        return { log: [`inner:${String(said)}`] }
      })
      .addEdge(START, "quiet")
      .addEdge("quiet", "ask")
      .compile()
    const graph = conformant(
      new StateGraph(Log).addNode("inner", inner).addEdge(START, "inner").compile({ checkpointer: plane }),
      { plane }
    )
    await graph.invoke({ log: [] }, thread())
    const id = await first(graph.pending(thread()))
    expect((await graph.invoke(answer(id, 1), thread())).log).toEqual(["quiet", "inner:1"])
    expect((await graph.invoke(answer(id, 2), thread({ fork: true }))).log).toEqual(["quiet", "inner:2"])
    expect(fired).toEqual(["quiet"])
  })

  test("does not approve a later run of an entrypoint by an answer to an earlier one", async (plane) => {
    const work = task("work", async (name: string) => name)
    const flow = entrypoint({ name: "flow", checkpointer: plane }, async (name: string) => {
      const done = await work(name)
      return `${done}:${String(interrupt(`approve ${done}`))}`
    })
    const graph = conformant(flow, { plane })
    await graph.invoke("A", thread())
    const id = await first(graph.pending(thread()))
    expect(await graph.invoke(answer(id, "yes"), thread({ delivery_id: "d" }))).toBe("A:yes")
    await graph.invoke(answer(id, "yes"), thread({ delivery_id: "d" }))
    await graph.invoke("B", thread())
    expect((await graph.pending(thread())).map(({ value }) => value)).toEqual(["approve B"])
  })

  test("lets one of many answers through, whoever runs", async (plane, address) => {
    const fired: Array<string> = []
    const others = [1, 2, 3].map(() => open(address))
    const graphs = [plane, ...others].map((saver) => conformant(gated(saver, fired), { plane: saver }))
    const [graph] = graphs
    if (graph === undefined) throw new Error("none")
    await graph.invoke({ log: [] }, thread())
    const id = await first(graph.pending(thread()))
    const outcomes = await Promise.allSettled(graphs.map((one, n) => one.invoke(answer(id, n), thread())))
    const won = outcomes.findIndex(({ status }) => status === "fulfilled")
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ reason: "AlreadyConsumed" })
    }
    expect(fired).toEqual(["prep", "notify", `act:${won}`])
    for (const other of others) await other.close()
  })

  test("refuses what it cannot make sense of, and loses nothing", async (plane) => {
    const graph = conformant(gated(plane, []), {
      plane,
      validate: (_, value) => (typeof value === "boolean" ? undefined : "is no boolean")
    })
    await expect(graph.invoke(null, thread())).rejects.toBeInstanceOf(UnknownThread)
    await expect(graph.invoke(resume(true), thread())).rejects.toBeInstanceOf(UnknownThread)
    await expect(graph.invoke({ log: [] }, {})).rejects.toMatchObject({ _tag: "ConfigInvalid", field: "thread_id" })
    await graph.invoke({ log: [] }, thread())
    await expect(graph.invoke(null, thread({ checkpoint_id: "none" }))).rejects.toMatchObject({ _tag: "UnknownThread" })
    await expect(graph.invoke(resume("x"), thread())).rejects.toMatchObject({
      reason: "ResumeValueInvalid"
    })
    const combined = new Command<unknown, { log: Array<string> }, never>({ resume: true, update: { log: ["x"] } })
    await expect(graph.invoke(combined, thread())).rejects.toMatchObject({ reason: "CombinedCommand" })
    expect((await graph.invoke(resume(false), thread())).log).toEqual(["prep", "gate:false", "after"])
    expect(() => conformant(gated(plane, []), { plane: FermataSaver.sqlite({ filename: ":memory:" }) })).toThrow(
      /another checkpointer/
    )
  })

  test("does not fire a `once` effect again whose outcome nobody knows, until it is settled", async (plane) => {
    const fired: Array<string> = []
    let fails: Error | undefined = new Error("the wire broke")
    const graph = conformant(
      new StateGraph(Log)
        .addNode("pay", async () => {
          const receipt = await effect("pay", { delivery: "once", timeLimit: 0 }, () => {
            fired.push("pay")
            if (fails !== undefined) throw fails
            return "paid"
          })
          return { log: [receipt] }
        })
        .addEdge(START, "pay")
        .compile({ checkpointer: plane }),
      { plane }
    )
    fails = new DidNotHappen("declined")
    await expect(graph.invoke({ log: [] }, thread())).rejects.toThrow("declined")
    fails = new Error("the wire broke")
    await expect(graph.invoke(null, thread())).rejects.toThrow("the wire broke")
    fails = undefined
    expect(fired).toEqual(["pay", "pay"])
    // Its process lives, so nobody asks before the firing is over; asked, it has nobody to ask.
    const doubt: unknown = await graph.invoke(null, thread()).catch((error: unknown) => error)
    expect(doubt).toBeInstanceOf(EffectInDoubt)
    if (!(doubt instanceof EffectInDoubt)) throw doubt
    await graph.settle(thread(), doubt, { _tag: "Happened", outcome: "paid by wire" })
    expect((await graph.invoke(null, thread())).log).toEqual(["paid by wire"])
    expect(fired).toEqual(["pay", "pay"])
    await expect(graph.settle(thread(), doubt, { _tag: "NeverWill" })).rejects.toMatchObject({ reason: "NotInDoubt" })
  })

  test("does not fire the effects of a node again that was under way when another failed", async (plane) => {
    const fired: Array<string> = []
    let fails = true
    let release = () => {}
    const started = new Promise<void>((resolve) => (release = resolve))
    const graph = conformant(
      new StateGraph(Log)
        .addNode("good", async () => {
          await effect("good", { delivery: "keyed" }, () => void fired.push("good"))
          release()
          // Its node is cut off by the other's failure, before it has an outcome.
          if (fails) await new Promise(() => {})
          return { log: ["good"] }
        })
        .addNode("bad", async () => {
          await started
          if (fails) throw new Error("no luck")
          return { log: ["bad"] }
        })
        .addEdge(START, "good")
        .addEdge(START, "bad")
        .compile({ checkpointer: plane }),
      { plane }
    )
    await expect(graph.invoke({ log: [] }, thread())).rejects.toThrow("no luck")
    fails = false
    expect((await graph.invoke(null, thread())).log).toEqual(["bad", "good"])
    expect(fired).toEqual(["good"])
  })

  test("streams, and holds the thread until the stream is left", async (plane) => {
    const graph = conformant(gated(plane, []), { plane })
    const chunks = []
    for await (const chunk of await graph.stream({ log: [] }, { ...thread(), streamMode: "updates" }))
      chunks.push(chunk)
    expect(chunks).toMatchObject([{ prep: { log: ["prep"] } }, { __interrupt__: [{ value: "go?" }] }])
    for await (const _ of await graph.stream(resume(1), thread())) {
      await expect(graph.invoke(null, thread())).rejects.toMatchObject({ _tag: "ThreadBusy" })
      break
    }
    expect((await graph.invoke(null, thread())).log).toEqual(["prep", "gate:1", "after"])
  })
})
