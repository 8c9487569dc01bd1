/** What a thread does, on any plane. */
import {
  Annotation,
  Command,
  DidNotHappen,
  effect,
  END,
  entrypoint,
  type Fermata,
  ForkRequired,
  getWriter,
  GraphRecursionError,
  interrupt,
  InvalidUpdateError,
  isInterrupted,
  NotStorable,
  ResumeRefused,
  Send,
  START,
  StateGraph,
  task,
  ThreadStuck
} from "@fermata/adapters/langgraph"
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"

const Log = Annotation.Root({
  log: Annotation<Array<string>>({ reducer: (left, right) => left.concat(right), default: () => [] })
})

const collect = async <A>(from: AsyncIterable<A>): Promise<Array<A>> => {
  const all: Array<A> = []
  for await (const one of from) all.push(one)
  return all
}

type GraphPlane = ReturnType<typeof Fermata.memory>

/** The one question that waits. */
const asked = (output: unknown): { readonly id: string; readonly value: unknown } => {
  if (!isInterrupted(output) || output.__interrupt__[0] === undefined) throw new Error("nothing waits")
  return output.__interrupt__[0]
}

export const graphSuite = (name: string, open: () => Promise<GraphPlane>) =>
  describe(`a graph on ${name}`, () => {
    let plane: GraphPlane
    beforeAll(async () => {
      plane = await open()
    })
    afterAll(() => plane.close())
    let threads = 0
    const thread = () => ({ configurable: { thread_id: `t${++threads}` } })

    /** prep, a gate that asks, and what it lets through; `fired` is what the outside saw. */
    const gated = () => {
      const fired: Array<string> = []
      const graph = new StateGraph(Log)
        .addNode("prep", () => {
          fired.push("prep")
          return { log: ["prep"] }
        })
        .addNode("gate", () => {
          const answer = interrupt<string, unknown>("may I?")
          fired.push(`gate:${String(answer)}`)
          return { log: [`gate:${String(answer)}`] }
        })
        .addNode("act", ({ log }) => {
          fired.push(`act:${log.at(-1) ?? ""}`)
          return { log: ["act"] }
        })
        .addEdge(START, "prep")
        .addEdge("prep", "gate")
        .addEdge("gate", "act")
        .addEdge("act", END)
        .compile({ checkpointer: plane, name: `gated-${++threads}` })
      return { graph, fired }
    }

    it("runs its nodes in supersteps, writes in the order of paths", async () => {
      const graph = new StateGraph(Log)
        .addNode("fan", () => ({ log: ["fan"] }))
        .addNode("zz", () => ({ log: ["zz"] }))
        .addNode("aa", async () => {
          await Promise.resolve()
          return { log: ["aa"] }
        })
        .addNode("item", (input: unknown) => ({ log: [`item${String(input)}`] }))
        .addNode("join", ({ log }) => ({ log: [`join${log.length}`] }))
        .addEdge(START, "fan")
        .addConditionalEdges("fan", () => ["zz", "aa", new Send("item", 1), new Send("item", 2)])
        .addEdge(["zz", "aa"], "join")
        .compile({ checkpointer: plane, name: "fan" })
      const output = await graph.invoke({ log: ["in"] }, thread())
      assert.deepStrictEqual(output.log, ["in", "fan", "aa", "zz", "item1", "item2", "join6"])
    })

    it("keeps its state for the next input", async () => {
      const graph = new StateGraph(Log)
        .addNode("a", () => ({ log: ["a"] }))
        .addEdge(START, "a")
        .compile({ checkpointer: plane, name: "again" })
      const config = thread()
      await graph.invoke({ log: ["1"] }, config)
      assert.deepStrictEqual((await graph.invoke({ log: ["2"] }, config)).log, ["1", "a", "2", "a"])
    })

    it("parks at a question, and goes on from it with the answer, once", async () => {
      const { fired, graph } = gated()
      const config = thread()
      const parked = await graph.invoke({ log: [] }, config)
      assert.strictEqual(asked(parked).value, "may I?")
      assert.deepStrictEqual((await graph.getState(config)).next, ["gate"])
      // Continuing without an answer asks again.
      assert.strictEqual(asked(await graph.invoke(null, config)).id, asked(parked).id)
      const done = await graph.invoke(new Command({ resume: { [asked(parked).id]: true } }), config)
      assert.deepStrictEqual(done.log, ["prep", "gate:true", "act"])
      assert.deepStrictEqual(fired, ["prep", "gate:true", "act:gate:true"])
      // CO: a second answer is refused, by id and bare, and fires nothing.
      await expect(graph.invoke(new Command({ resume: { [asked(parked).id]: false } }), config)).rejects.toMatchObject({
        reason: "answered"
      })
      await expect(graph.invoke(new Command({ resume: false }), config)).rejects.toBeInstanceOf(ResumeRefused)
      assert.strictEqual(fired.length, 3)
    })

    it.each([false, 0, "", null, []])("takes %j for an answer", async (value) => {
      const graph = new StateGraph(Annotation.Root({ got: Annotation<unknown>() }))
        .addNode("ask", () => ({ got: [interrupt("?")] }))
        .addEdge(START, "ask")
        .compile({ checkpointer: plane, name: "falsy" })
      const config = thread()
      await graph.invoke({ got: "in" }, config)
      assert.deepStrictEqual((await graph.invoke(new Command({ resume: value }), config)).got, [value])
    })

    it("of racing answers lets one through", async () => {
      const { fired, graph } = gated()
      const config = thread()
      const { id } = asked(await graph.invoke({ log: [] }, config))
      const all = await Promise.allSettled(
        ["a", "b", "c", "d"].map((value) => graph.invoke(new Command({ resume: { [id]: value } }), config))
      )
      assert.strictEqual(all.filter(({ status }) => status === "fulfilled").length, 1)
      assert.strictEqual(fired.filter((what) => what.startsWith("gate")).length, 1)
    })

    it("goes on from an old checkpoint only as a fork, which gets its own value", async () => {
      const { fired, graph } = gated()
      const config = thread()
      await graph.invoke({ log: [] }, config)
      const parked = (await graph.getState(config)).config
      await graph.invoke(new Command({ resume: "yes" }), config)
      await expect(graph.invoke(new Command({ resume: "no" }), parked)).rejects.toBeInstanceOf(ForkRequired)
      await expect(graph.invoke(null, parked)).rejects.toBeInstanceOf(ForkRequired)
      assert.deepStrictEqual(fired, ["prep", "gate:yes", "act:gate:yes"])
      const other = await graph.invoke(new Command({ resume: "no", fork: true }), parked)
      assert.deepStrictEqual(other.log, ["prep", "gate:no", "act"])
      assert.deepStrictEqual(fired, ["prep", "gate:yes", "act:gate:yes", "gate:no", "act:gate:no"])
    })

    it("refuses a bare answer while several questions wait, and gives each answer to its own", async () => {
      const graph = new StateGraph(Log)
        .addNode("one", (input: unknown) => ({ log: [`${String(input)}:${interrupt<unknown, string>(input)}`] }))
        .addConditionalEdges(START, () => [1, 2, 3].map((n) => new Send("one", n)))
        .compile({ checkpointer: plane, name: "three" })
      const config = thread()
      const parked = await graph.invoke({ log: [] }, config)
      assert.isTrue(isInterrupted(parked))
      const questions = (
        parked as { readonly __interrupt__: ReadonlyArray<{ readonly id: string; readonly value: unknown }> }
      ).__interrupt__
      assert.strictEqual(new Set(questions.map(({ id }) => id)).size, 3)
      await expect(graph.invoke(new Command({ resume: "x" }), config)).rejects.toMatchObject({ reason: "ambiguous" })
      let output: unknown
      for (const { id, value } of questions.toReversed())
        output = await graph.invoke(new Command({ resume: { [id]: `for${String(value)}` } }), config)
      assert.deepStrictEqual((output as { readonly log: unknown }).log, ["1:for1", "2:for2", "3:for3"])
    })

    it("parks whatever the node does with the exception, and repeats no task", async () => {
      const fired: Array<string> = []
      const step = task("step", (what: string) => {
        fired.push(what)
        return what
      })
      const graph = new StateGraph(Log)
        .addNode("ask", async () => {
          const log = [await step("a")]
          try {
            log.push(interrupt("first"))
          } catch {
            log.push("swallowed")
          } finally {
            await step("cleanup").catch(() => undefined)
          }
          log.push(await step("b"), interrupt("second"), await step("c"))
          return { log }
        })
        .addEdge(START, "ask")
        .compile({ checkpointer: plane, name: "swallow" })
      const config = thread()
      assert.strictEqual(asked(await graph.invoke({ log: [] }, config)).value, "first")
      assert.deepStrictEqual(fired, ["a"])
      assert.strictEqual(asked(await graph.invoke(new Command({ resume: "1" }), config)).value, "second")
      const done = await graph.invoke(new Command({ resume: "2" }), config)
      assert.deepStrictEqual(done.log, ["a", "1", "b", "2", "c"])
      assert.deepStrictEqual(fired, ["a", "cleanup", "b", "c"])
    })

    it("a graph inside a node goes on after its question, its earlier nodes are not run again", async () => {
      const fired: Array<string> = []
      const child = new StateGraph(Log)
        .addNode("a", () => {
          fired.push("a")
          return { log: ["a"] }
        })
        .addNode("ask", () => ({ log: [interrupt<string, string>("?")] }))
        .addNode("b", () => {
          fired.push("b")
          return { log: ["b"] }
        })
        .addEdge(START, "a")
        .addEdge("a", "ask")
        .addEdge("ask", "b")
        .compile()
      const graph = new StateGraph(Log)
        .addNode("as node", child)
        .addNode("called", async () => ({ log: (await child.invoke({ log: ["called"] })).log }))
        .addEdge(START, "as node")
        .addEdge("as node", "called")
        .compile({ checkpointer: plane, name: "nested" })
      const config = thread()
      await graph.invoke({ log: [] }, config)
      await graph.invoke(new Command({ resume: "1" }), config)
      const done = await graph.invoke(new Command({ resume: "2" }), config)
      assert.deepStrictEqual(done.log, ["a", "1", "b", "called", "a", "2", "b"])
      assert.deepStrictEqual(fired, ["a", "b", "a", "b"])
    })

    it("refuses state that breaks its schema before it is saved, and stays usable", async () => {
      const graph = new StateGraph(z.object({ n: z.number().max(5) }))
        .addNode("add", ({ n }) => ({ n: n + 3 }))
        .addEdge(START, "add")
        .compile({ checkpointer: plane, name: "checked" })
      const config = thread()
      assert.strictEqual((await graph.invoke({ n: 1 }, config)).n, 4)
      await expect(graph.invoke({ n: 4 }, config)).rejects.toBeInstanceOf(InvalidUpdateError)
      assert.strictEqual((await graph.getState(config)).values.n, 4)
      assert.strictEqual((await graph.invoke({ n: 2 }, config)).n, 5)
    })

    it("refuses what cannot be stored with its path, and gives the rest back equal", async () => {
      const graph = new StateGraph(Annotation.Root({ v: Annotation<unknown>() }))
        .addNode("put", ({ v }) => (v === "function" ? { v: { deep: [() => 1] } } : {}))
        .addEdge(START, "put")
        .compile({ checkpointer: plane, name: "values" })
      const config = thread()
      const all = {
        date: new Date(5),
        map: new Map([["a", new Set([1n])]]),
        bytes: new Uint8Array([1, 2]),
        specials: [NaN, -0, Infinity, -Infinity, undefined, null, false],
        $g: "date"
      }
      await graph.invoke({ v: all }, config)
      assert.deepStrictEqual((await graph.getState(config)).values.v, all)
      await expect(graph.invoke({ v: "function" }, config)).rejects.toThrow(/deep\[0\]/)
      await expect(graph.invoke({ v: Object.create({ a: 1 }) as unknown }, config)).rejects.toBeInstanceOf(NotStorable)
    })

    it("stops at static breakpoints, takes updates there, and goes on", async () => {
      const { graph } = gated()
      const config = { ...thread(), interruptBefore: ["act"] }
      await graph.invoke({ log: [] }, config)
      await graph.invoke(new Command({ resume: "yes" }), config)
      const stopped = await graph.getState(config)
      assert.deepStrictEqual(stopped.next, ["act"])
      await graph.updateState(config, { log: ["edited"] })
      assert.deepStrictEqual((await graph.getState(config)).values.log, ["prep", "gate:yes", "edited"])
      const done = await graph.invoke(null, { configurable: config.configurable })
      assert.deepStrictEqual(done.log, ["prep", "gate:yes", "edited", "act"])
    })

    it("ends with a typed error at the recursion limit, and keeps its state", async () => {
      const graph = new StateGraph(Log)
        .addNode("turn", () => ({ log: ["turn"] }))
        .addEdge(START, "turn")
        .addConditionalEdges("turn", () => "turn")
        .compile({ checkpointer: plane, name: "endless" })
      const config = thread()
      await expect(graph.invoke({ log: [] }, { ...config, recursionLimit: 3 })).rejects.toBeInstanceOf(
        GraphRecursionError
      )
      assert.strictEqual((await graph.getState(config)).values.log.length, 3)
    })

    it("after a failure runs only what has no outcome", async () => {
      const fired: Array<string> = []
      let broken = true
      const graph = new StateGraph(Log)
        .addNode("good", () => {
          fired.push("good")
          return { log: ["good"] }
        })
        .addNode("bad", () => {
          fired.push("bad")
          if (broken) throw new RangeError("broken")
          return { log: ["bad"] }
        })
        .addEdge(START, "good")
        .addEdge(START, "bad")
        .compile({ checkpointer: plane, name: "failing" })
      const config = thread()
      await expect(graph.invoke({ log: [] }, config)).rejects.toBeInstanceOf(RangeError)
      broken = false
      assert.deepStrictEqual((await graph.invoke(null, config)).log, ["bad", "good"])
      assert.deepStrictEqual(fired.toSorted(), ["bad", "bad", "good"])
    })

    it("tells values, updates and custom chunks", async () => {
      const graph = new StateGraph(Log)
        .addNode("a", () => {
          getWriter()("busy")
          return { log: ["a"] }
        })
        .addEdge(START, "a")
        .compile({ checkpointer: plane, name: "streaming" })
      const chunks = await collect(
        await graph.stream({ log: ["in"] }, { ...thread(), streamMode: ["values", "updates", "custom"] })
      )
      assert.deepStrictEqual(chunks, [
        ["values", { log: ["in"] }],
        ["custom", "busy"],
        ["updates", { a: { log: ["a"] } }],
        ["values", { log: ["in", "a"] }]
      ])
    })

    it("shows its history, newest first, over its branches", async () => {
      const { graph } = gated()
      const config = thread()
      await graph.invoke({ log: [] }, config)
      await graph.invoke(new Command({ resume: "yes" }), config)
      const history = await collect(graph.getStateHistory(config))
      assert.deepStrictEqual(
        history.map(({ metadata, next }) => [metadata?.step, metadata?.source, next]),
        [
          [3, "loop", []],
          [2, "loop", ["act"]],
          [1, "loop", ["gate"]],
          [0, "loop", ["prep"]],
          [-1, "input", [START]]
        ]
      )
      const before = history.find(({ next }) => next[0] === "act")
      const replay = await graph.invoke(null, { configurable: { ...before?.config.configurable, fork: true } })
      assert.deepStrictEqual(replay.log, ["prep", "gate:yes", "act"])
      const edited = await graph.updateState(before?.config ?? {}, { log: ["other"] })
      const continued = await graph.invoke(null, edited)
      assert.deepStrictEqual(continued.log, ["prep", "gate:yes", "other", "act"])
    })

    it("an entrypoint repeats no task after a question, and hands on what it saved", async () => {
      const fired: Array<number> = []
      const double = task("double", (n: number) => {
        fired.push(n)
        return n * 2
      })
      const flow = entrypoint({ name: "flow", checkpointer: plane }, async (n: number, { previous }) => {
        const parts = await Promise.all([double(n), double(n + 1)])
        const more = interrupt<string, number>("more?")
        const sum = parts.reduce((a, b) => a + b, more)
        return entrypoint.final({ value: `${sum} after ${String(previous)}`, save: sum })
      })
      const config = thread()
      await flow.invoke(1, config)
      assert.strictEqual(await flow.invoke(new Command({ resume: 10 }), config), "16 after undefined" as never)
      assert.deepStrictEqual(fired, [1, 2])
      await flow.invoke(5, config)
      assert.strictEqual(await flow.invoke(new Command({ resume: 0 }), config), "22 after 16" as never)
    })

    it("runs the functions of the graph that was called, of two that were compiled alike", async () => {
      const graph = (word: string) =>
        new StateGraph(Log)
          .addNode("say", () => ({ log: [word] }))
          .addNode("ask", () => ({ log: [interrupt<string, string>(word)] }))
          .addEdge(START, "say")
          .addEdge("say", "ask")
          .compile({ checkpointer: plane, name: "alike" })
      const [first, second] = [graph("first"), graph("second")]
      const [a, b] = [thread(), thread()]
      await first.invoke({ log: [] }, a)
      await second.invoke({ log: [] }, b)
      expect((await first.getState(a)).values.log).toEqual(["first"])
      expect((await second.getState(b)).values.log).toEqual(["second"])
      // A thread may be called by one and then by the other, as by a process that was started anew.
      expect((await second.invoke(new Command({ resume: "yes" }), a)).log).toEqual(["first", "yes"])
      expect((await second.invoke({ log: [] }, a)).__interrupt__?.[0]?.value).toBe("second")
    })

    it("of two first calls at once begins with one, and goes on with the other", async () => {
      const graph = new StateGraph(Log)
        .addNode("say", () => ({ log: ["said"] }))
        .addEdge(START, "say")
        .compile({ checkpointer: plane, name: "twice" })
      const config = thread()
      await Promise.all([graph.invoke({ log: ["a"] }, config), graph.invoke({ log: ["b"] }, config)])
      const { log } = (await graph.getState(config)).values
      expect([["a", "said", "b", "said"].join(), ["b", "said", "a", "said"].join()]).toContain(log.join())
    })

    it("an effect of a node that runs again is served, not fired", async () => {
      const fired: Array<string> = []
      const graph = new StateGraph(Log)
        .addNode("pay", async () => {
          const receipt = await effect("pay", { delivery: "keyed", input: 12 }, (key) => {
            fired.push(key)
            return new Date(fired.length)
          })
          return { log: [receipt.toISOString(), interrupt<string, string>("fine?")] }
        })
        .addEdge(START, "pay")
        .compile({ checkpointer: plane, name: "pays" })
      const config = thread()
      await graph.invoke({ log: [] }, config)
      const { log } = await graph.invoke(new Command({ resume: "yes" }), config)
      expect(log).toEqual([new Date(1).toISOString(), "yes"])
      expect(fired).toHaveLength(1)
    })

    it("an effect that did not happen says so to the node, now and when it runs again", async () => {
      let tried = 0
      const graph = new StateGraph(Log)
        .addNode("pay", async () => {
          const said = await effect("pay", { delivery: "once" }, () => {
            tried++
            throw new DidNotHappen("declined")
          }).catch((error: unknown) => error)
          assert(said instanceof DidNotHappen)
          return { log: [said.message, interrupt<string, string>("go on?")] }
        })
        .addEdge(START, "pay")
        .compile({ checkpointer: plane, name: "declines" })
      const config = thread()
      await graph.invoke({ log: [] }, config)
      expect((await graph.invoke(new Command({ resume: "yes" }), config)).log).toEqual(["declined", "yes"])
      expect(tried).toBe(1)
    })

    it("a thread is stuck over a `once` effect whose body threw, until it is settled", async () => {
      const graph = new StateGraph(Log)
        .addNode("pay", async () => ({
          log: [
            await effect("pay", { delivery: "once" }, (): string => {
              throw new Error("the line went dead")
            })
          ]
        }))
        .addEdge(START, "pay")
        .compile({ checkpointer: plane, name: "dead" })
      const config = thread()
      const stuck = await graph.invoke({ log: [] }, config).catch((error: unknown) => error)
      assert(stuck instanceof ThreadStuck)
      const [problem] = stuck.problems
      assert(problem?._tag === "InDoubt")
      await expect(graph.settle(config, "another", { didNotHappen: true })).rejects.toThrow(/No effect another/)
      await graph.settle(config, problem.key, { happened: "paid" })
      expect((await graph.invoke(null, config)).log).toEqual(["paid"])
    })

    it("effects fire without a thread, too", async () => {
      const graph = new StateGraph(Log)
        .addNode("pay", async () => ({ log: [await effect("pay", { delivery: "once" }, () => "paid")] }))
        .addEdge(START, "pay")
        .compile()
      expect((await graph.invoke({ log: [] })).log).toEqual(["paid"])
    })
  })
