import { CheckpointConflict, FermataSaver, ValueRefused } from "@fermata/adapters/langgraph-checkpoint"
import { AIMessage, HumanMessage } from "@langchain/core/messages"
import { Annotation, Command, interrupt, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph"
import { type Checkpoint, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint"
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { databases, open, withSaver } from "./Databases.js"

const Value = Annotation.Root({ value: Annotation<unknown> })
const Items = Annotation.Root({
  items: Annotation<Array<string>>({ reducer: (a, b) => a.concat(b), default: () => [] })
})

/** A graph of one node that stores a value. */
const storing = (checkpointer: FermataSaver, value: () => unknown) =>
  new StateGraph(Value)
    .addNode("store", () => ({ value: value() }))
    .addEdge(START, "store")
    .compile({ checkpointer })

const thread = (more: object = {}) => ({ configurable: { thread_id: "t", ...more } })
const resume = (value: unknown) => new Command<unknown, Record<never, never>, never>({ resume: value })
const metadata = { source: "loop" as const, step: 0, parents: {} }
const checkpoint = (id: string, values: Record<string, unknown>, version: string | number = 1): Checkpoint => ({
  ...emptyCheckpoint(),
  id,
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((name) => [name, version]))
})

describe.each(databases)("the saver alone on %s", (database) => {
  // oxlint-disable-next-line vitest/valid-title -- the names are at the calls
  const test = (name: string, body: Parameters<typeof withSaver>[1]) => it(name, withSaver(database, body))

  test("gives values back as they were, or refuses them with their path and keeps the last checkpoint", async (plane, address) => {
    let value: unknown = {
      big: 12n,
      zero: -0,
      none: undefined,
      not: Number.NaN,
      at: new Date(5),
      map: new Map([["a", new Set([1])]]),
      tag: { $class: ["Date", 1], $$class: 2, $fermata: "x", lc: 2, type: "undefined" },
      text: "\0 and \ud800",
      bytes: Uint8Array.of(1, 255)
    }
    const graph = storing(plane, () => value)
    await graph.invoke({ value: null }, thread())
    const elsewhere = open(address)
    const read = async () => (await elsewhere.get(thread()))?.channel_values["value"]
    const before = await read()
    expect(before).toStrictEqual(value)
    const loop: { self?: unknown } = {}
    loop.self = loop
    class Point {
      readonly x = 1
    }
    for (const [bad, path] of [
      [{ a: [() => 1] }, "$.a[0]"],
      [{ s: Symbol("s") }, "$.s"],
      [loop, "$.self"],
      [{ p: new Point() }, "$.p"],
      // A sparse array.
      [{ l: Object.assign([], { 1: 1 }) }, "$.l[0]"],
      [new HumanMessage({ content: "hi", additional_kwargs: { n: 1n } }), "$…n"]
    ] as const) {
      value = bad
      const refused: unknown = await graph.invoke({ value: before }, thread()).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(ValueRefused)
      expect(refused).toMatchObject({ path })
      expect(await read()).toStrictEqual(before)
    }
    value = "well again"
    expect((await graph.invoke({ value: before }, thread())).value).toBe("well again")
    await elsewhere.close()
  })

  test("keeps messages as messages", async (plane) => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("say", () => ({
        messages: [new AIMessage({ content: "hello", tool_calls: [{ name: "f", args: { a: 1 } }] })]
      }))
      .addEdge(START, "say")
      .compile({ checkpointer: plane })
    await graph.invoke({ messages: [new HumanMessage("hi")] }, thread())
    const { messages } = (await graph.getState(thread())).values
    expect(messages).toHaveLength(2)
    expect(messages[1]).toBeInstanceOf(AIMessage)
    expect(messages[1]).toMatchObject({ content: "hello", tool_calls: [{ name: "f", args: { a: 1 } }] })
  })

  test("gives a fork its own values when it is read again", async (plane, address) => {
    const graph = new StateGraph(Value)
      .addNode("gate", () => ({ value: interrupt("?") }))
      .addEdge(START, "gate")
      .compile({ checkpointer: plane })
    await graph.invoke({ value: 0 }, thread())
    const { config } = await graph.getState(thread())
    await graph.invoke(resume("A"), thread())
    const copy = await graph.updateState(config, null, "__copy__")
    await graph.invoke(resume("B"), copy)
    const elsewhere = open(address)
    const values = []
    for await (const { checkpoint } of elsewhere.list(thread())) {
      values.push(checkpoint.channel_values["value"])
    }
    expect([...new Set(values)]).toEqual(expect.arrayContaining(["A", "B"]))
    await elsewhere.close()
  })

  test("refuses the second child of a checkpoint that nobody asked for", async (plane, address) => {
    const elsewhere = open(address)
    let arrived = 0
    let go = () => {}
    const both = new Promise<void>((resolve) => (go = resolve))
    const graphs = [plane, elsewhere].map((checkpointer) =>
      new StateGraph(Value)
        .addNode("meet", async ({ value }) => {
          if (value === "start") return {}
          arrived += 1
          if (arrived === 2) go()
          await both
          return {}
        })
        .addEdge(START, "meet")
        .compile({ checkpointer })
    )
    await graphs[0]?.invoke({ value: "start" }, thread())
    const ends = await Promise.allSettled(graphs.map((graph, n) => graph.invoke({ value: n }, thread())))
    const refused = ends.filter((end) => end.status === "rejected")
    expect(refused).toHaveLength(1)
    expect(refused[0]?.reason).toBeInstanceOf(CheckpointConflict)
    // By its name it is a branch.
    const first = await graphs[0]?.getState(thread())
    arrived = 1
    if (first?.parentConfig === undefined) throw new Error("no parent")
    await graphs[0]?.invoke({ value: 2 }, first.parentConfig)
    await elsewhere.close()
  })

  test("makes what LangGraph asked for durable in the order in which it was run", async (plane) => {
    const [one, two] = [uuid6(0), uuid6(1)]
    const config = (id?: string) => thread(id === undefined ? {} : { checkpoint_id: id })
    const done: Array<string> = []
    // Writes of a checkpoint that is asked for only when the one before it is stored: LangGraph's own order.
    const chain = plane
      .put(config(), checkpoint(one, { a: 1 }), metadata, { a: 1 })
      .then(() => done.push("one"))
      .then(() => plane.put(config(one), checkpoint(two, { a: 2 }, 2), metadata, { a: 2 }))
      .then(() => done.push("two"))
    const early = plane.putWrites(config(two), [["a", 3]], "task").then(() => done.push("early"))
    await Promise.all([chain, early])
    expect(done.indexOf("early")).toBeGreaterThan(done.indexOf("one"))
    expect((await plane.getTuple(config(two)))?.pendingWrites).toEqual([["task", "a", 3]])
    // Writes whose checkpoint never comes are stored, too.
    await plane.putWrites(config(uuid6(2)), [["a", 4]], "task")
  })

  test("orders writes by path, keeps the first outcome, and renews what is said of a task", async (plane) => {
    const id = uuid6(0)
    await plane.put(thread(), checkpoint(id, {}), metadata, {})
    const at = thread({ checkpoint_id: id })
    await plane.putWrites(at, [["x", "late"]], "a-task", "~2")
    await plane.putWrites(at, [["x", "first"]], "z-task", "~1")
    await plane.putWrites(at, [["x", "again"]], "z-task", "~1")
    await plane.putWrites(at, [["__error__", "one"]], "z-task", "~1")
    await plane.putWrites(at, [["__error__", "two"]], "z-task", "~1")
    expect((await plane.getTuple(at))?.pendingWrites).toEqual([
      ["z-task", "__error__", "two"],
      ["z-task", "x", "first"],
      ["a-task", "x", "late"]
    ])
  })

  test("filters exactly", async (plane) => {
    for (const [n, more] of [{ tag: { a: 1, b: 2 } }, { tag: { a: 1 } }, { tag: null }, {}].entries()) {
      await plane.put(thread(), checkpoint(uuid6(n), {}), { ...metadata, ...more }, {})
    }
    const count = async (filter: Record<string, unknown>) => {
      let found = 0
      for await (const _ of plane.list(thread(), { filter })) found += 1
      return found
    }
    expect(await count({ tag: { b: 2, a: 1 } })).toBe(1)
    expect(await count({ tag: { a: 1 } })).toBe(1)
    expect(await count({ tag: null })).toBe(1)
    expect(await count({ tag: undefined })).toBe(1)
    expect(await count({ source: "loop" })).toBe(4)
  })

  test("refuses configs and formats that it does not know", async (plane) => {
    const id = uuid6(0)
    for (const thread_id of [undefined, null, "", 5, ["t"], "a\0b"]) {
      const put = plane.put({ configurable: { thread_id } }, checkpoint(id, {}), metadata, {})
      await expect(put).rejects.toMatchObject({ _tag: "ConfigInvalid", field: "thread_id" })
    }
    await expect(plane.put(thread(), { ...checkpoint(id, {}), v: 5 }, metadata, {})).rejects.toMatchObject({
      _tag: "CheckpointFormat",
      found: "5"
    })
    expect(await plane.getTuple({ configurable: { thread_id: "unknown" } })).toBeUndefined()
    await plane.deleteThread("unknown")
  })
})

describe("what a checkpointer cannot do for stock LangGraph.js, as the page says", () => {
  const gates = (checkpointer: FermataSaver, asked: (answer: string) => void) =>
    new StateGraph(Value)
      .addNode("ask", () => {
        const said = `${String(interrupt("first?"))}/${String(interrupt("second?"))}`
        asked(said)
        return { value: said }
      })
      .addEdge(START, "ask")
      .compile({ checkpointer })

  it(
    "hands an old answer to the next question when it goes on",
    withSaver("SQLite", async (plane) => {
      const said: Array<string> = []
      const graph = gates(plane, (answer) => said.push(answer))
      await graph.invoke({ value: 0 }, thread())
      await graph.invoke(resume("yes"), thread())
      await graph.invoke(null, thread())
      expect(said).toEqual(["yes/yes"])
    })
  )

  it(
    "serves the first answer to another one at the same checkpoint, and answers everything with a bare one",
    withSaver("SQLite", async (plane) => {
      const one = new StateGraph(Value)
        .addNode("ask", () => ({ value: interrupt("?") }))
        .addEdge(START, "ask")
        .compile({ checkpointer: plane })
      await one.invoke({ value: 0 }, thread())
      const { config } = await one.getState(thread())
      expect((await one.invoke(resume("A"), config)).value).toBe("A")
      expect((await one.invoke(resume("B"), config)).value).toBe("A")

      const several = new StateGraph(Items)
        .addNode("ask", () => ({ items: [String(interrupt("?"))] }))
        .addConditionalEdges(START, () => [new Send("ask", {}), new Send("ask", {}), new Send("ask", {})], ["ask"])
        .compile({ checkpointer: plane })
      const other = { configurable: { thread_id: "several" } }
      await several.invoke({ items: [] }, other)
      expect((await several.invoke(resume("all"), other)).items).toEqual(["all", "all", "all"])
    })
  )
})

describe("what is stored", () => {
  it(
    "grows with what changes, not with the thread",
    withSaver("SQLite", async (plane, address) => {
      const graph = new StateGraph(Items)
        .addNode("grow", ({ items }) => ({ items: [`${items.length}`.padEnd(200)] }))
        .addEdge(START, "grow")
        .addConditionalEdges("grow", ({ items }) => (items.length % 60 === 0 ? "__end__" : "grow"))
        .compile({ checkpointer: plane })
      if (address._tag !== "Sqlite") throw new Error("not SQLite")
      const file = new Database(address.filename)
      const bytes = () => Number(file.prepare("SELECT SUM(LENGTH(value)) FROM fermata_thread_values").pluck().get())
      const run = () => graph.invoke({ items: ["first"] }, { ...thread(), recursionLimit: 500 })
      await run()
      const first = bytes()
      await run()
      await run()
      const third = bytes()
      file.close()
      // Whole lists would be nine times as much for three times the length.
      expect(third / first).toBeLessThan(6)
      expect((await graph.getState(thread())).values.items).toHaveLength(180)
    }),
    60_000
  )

  it(
    "is refused when it was changed behind the saver's back",
    withSaver("SQLite", async (plane, address) => {
      if (address._tag !== "Sqlite") throw new Error("not SQLite")
      const id = uuid6(0)
      const at = thread({ checkpoint_id: id })
      const file = new Database(address.filename)
      const damages = [
        ["writes", "UPDATE fermata_thread_writes SET value = '2'"],
        ["values", "UPDATE fermata_thread_values SET value = 'v2'"],
        ["checkpoints", "UPDATE fermata_thread_checkpoints SET metadata = '{}'"]
      ] as const
      for (const [table, damage] of damages) {
        await plane.deleteThread("t")
        await plane.put(thread(), checkpoint(id, { a: 1 }), metadata, { a: 1 })
        await plane.putWrites(at, [["a", 1]], "task")
        expect(file.prepare(damage).run().changes).toBe(1)
        await expect(plane.getTuple(at)).rejects.toMatchObject({ _tag: "CorruptCheckpoint", table })
      }
      file.prepare("UPDATE fermata_migrations SET migration_id = 99999 WHERE migration_id = 1").run()
      file.close()
      const newer = FermataSaver.sqlite({ filename: address.filename })
      await expect(newer.getTuple(at)).rejects.toMatchObject({ _tag: "LedgerUnusable", reason: "newer version" })
      await newer.close()
    })
  )
})
