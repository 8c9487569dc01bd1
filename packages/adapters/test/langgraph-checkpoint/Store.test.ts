import { FermataSaver, FermataStore } from "@fermata/adapters/langgraph-checkpoint"
import { Fermata, getStore, START, StateGraph, Annotation } from "@fermata/adapters/langgraph"
import { PayloadCodec } from "@fermata/ledger"
import { Plane } from "@fermata/runtime"
import { Embeddings } from "@langchain/core/embeddings"
import { Annotation as StockAnnotation, START as stockStart, StateGraph as StockGraph } from "@langchain/langgraph"
import Sqlite from "better-sqlite3"
import { Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "vitest"
import { databases, open, withSaver } from "./Databases.js"

const folder = mkdtempSync(join(tmpdir(), "fermata-store-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Counts of three letters: near is what is spelt alike. */
class Letters extends Embeddings {
  constructor() {
    super({})
  }
  private count = (text: string) => ["a", "b", "c"].map((letter) => text.split(letter).length - 1)
  override embedDocuments = (texts: Array<string>) => Promise.resolve(texts.map(this.count))
  override embedQuery = (text: string) => Promise.resolve(this.count(text))
}

describe.each(databases)("a store on %s", (database) => {
  it(
    "keeps documents, exactly, for whoever comes after",
    withSaver(database, async (saver, address) => {
      const store = new FermataStore(saver)
      const value = { at: new Date(5), tags: new Map([["a", 1]]), none: null, zero: -0, text: "a\u0000b\ud800" }
      await store.put(["users", "zoë"], "profile", value)
      const written = await store.get(["users", "zoë"], "profile")
      expect(written).toMatchObject({ namespace: ["users", "zoë"], key: "profile", value })
      await store.put(["users", "zoë"], "profile", { second: true })
      const other = open(address)
      try {
        const again = await new FermataStore(other).get(["users", "zoë"], "profile")
        expect(again?.value).toEqual({ second: true })
        expect(again?.createdAt).toEqual(written?.createdAt)
      } finally {
        await other.close()
      }
      await store.delete(["users", "zoë"], "profile")
      assert.isNull(await store.get(["users", "zoë"], "profile"))
    })
  )

  it(
    "finds by prefix of whole labels, filter and page, and lists namespaces",
    withSaver(database, async (saver) => {
      const store = new FermataStore(saver)
      await store.batch(
        [
          [["a"], "1", { n: 1, kind: "x" }],
          [["a", "b"], "2", { n: 2, kind: "y", in: { deep: [1] } }],
          [["a", "b"], "3", { n: 3, kind: "x" }],
          [["ab"], "4", { n: 4, kind: "x" }],
          [["a/b"], "5", { n: 5, kind: "x" }]
        ].map(
          ([namespace, key, value]) =>
            ({ namespace, key, value }) as { namespace: Array<string>; key: string; value: Record<string, unknown> }
        )
      )
      const keys = async (...search: Parameters<FermataStore["search"]>) =>
        (await store.search(...search)).map(({ key }) => key)
      expect(await keys(["a"])).toEqual(["1", "2", "3"])
      expect(await keys(["a", "b"])).toEqual(["2", "3"])
      expect(await keys([])).toEqual(["1", "2", "3", "5", "4"])
      expect(await keys([], { filter: { kind: "x" }, offset: 1, limit: 2 })).toEqual(["3", "5"])
      expect(await keys([], { filter: { n: { $gt: 1, $lte: 4 }, kind: { $in: ["x", "z"] } } })).toEqual(["3", "4"])
      expect(await keys([], { filter: { in: { deep: [1] } } })).toEqual(["2"])
      expect(await keys([], { filter: { missing: { $ne: 1 } }, limit: 1 })).toEqual(["1"])
      expect(await store.listNamespaces()).toEqual([["a"], ["a", "b"], ["a/b"], ["ab"]])
      expect(await store.listNamespaces({ prefix: ["a"], maxDepth: 1 })).toEqual([["a"]])
      expect(await store.listNamespaces({ suffix: ["b"] })).toEqual([["a", "b"]])
      expect(await store.listNamespaces({ prefix: ["*", "b"], limit: 1 })).toEqual([["a", "b"]])
    })
  )

  it(
    "finds by meaning, nearest first, what is not indexed last",
    withSaver(database, async (saver) => {
      const store = new FermataStore(saver, {
        index: { dims: 3, embeddings: new Letters(), fields: ["parts[*].text"] }
      })
      await store.put(["d"], "b", { parts: [{ text: "bbb" }, { text: "bba" }] })
      await store.put(["d"], "c", { parts: [{ text: "ccc" }] })
      await store.put(["d"], "hidden", { parts: [{ text: "bbb" }] }, false)
      const found = await store.search(["d"], { query: "b" })
      expect(found.map(({ key, score }) => [key, score])).toEqual([
        ["b", 1],
        ["c", 0],
        ["hidden", undefined]
      ])
    })
  )

  it(
    "refuses what it could not give back, and writes nothing of that batch",
    withSaver(database, async (saver) => {
      const store = new FermataStore(saver)
      const put = (key: string, value: Record<string, unknown>) => ({ namespace: ["a"], key, value })
      await expect(store.batch([put("1", { n: 1 }), put("2", { f: () => 1 })])).rejects.toMatchObject({
        _tag: "ValueRefused",
        path: "$.f"
      })
      assert.deepStrictEqual(await store.search([]), [])
      await expect(store.put(["a.b"], "1", {})).rejects.toThrow(/period/)
      await expect(store.batch([{ namespace: ["a.b"], key: "1", value: {} }])).rejects.toThrow(/have no dot/)
      await expect(store.put([], "1", {})).rejects.toThrow(/empty/)
    })
  )

  it(
    "takes writers at once, whichever process they are in",
    withSaver(database, async (saver, address) => {
      const other = open(address)
      try {
        const stores = [new FermataStore(saver), new FermataStore(other)]
        const batches = Array.from({ length: 20 }, (_, n) =>
          ["1", "2", "3"].map((key) => ({ namespace: ["race"], key, value: { n } }))
        )
        // Half of them the other way round: locks are taken in one order all the same.
        await Promise.all(batches.map((batch, n) => stores[n % 2]?.batch(n % 3 === 0 ? batch.reverse() : batch)))
        const found = await stores[0]?.search(["race"])
        assert.strictEqual(new Set(found?.map(({ value }) => value["n"] as number)).size, 1)
      } finally {
        await other.close()
      }
    })
  )

  it(
    "is found by nodes, of a stock graph and of ours",
    withSaver(database, async (saver) => {
      const store = new FermataStore(saver)
      const stock = new StockGraph(StockAnnotation.Root({ name: StockAnnotation<string> }))
        .addNode("remember", async ({ name }, config) => {
          await config.store?.put(["people"], name, { seen: 1 })
          return {}
        })
        .addEdge(stockStart, "remember")
        .compile({ checkpointer: saver, store })
      await stock.invoke({ name: "Ada" }, { configurable: { thread_id: "1" } })
      const ours = new StateGraph(Annotation.Root({ name: Annotation<string>(), seen: Annotation<unknown>() }))
        .addNode("recall", async ({ name }, config) => {
          assert.strictEqual(config.store, getStore())
          return { seen: (await config.store?.get(["people"], name))?.value["seen"] }
        })
        .addEdge(START, "recall")
        .compile({ store })
      expect(await ours.invoke({ name: "Ada" })).toEqual({ name: "Ada", seen: 1 })
    })
  )
})

it("hides documents by the plane's codecs, and finds damage", async () => {
  const filename = join(folder, "sealed.db")
  const secret = "the colour of the door"
  const key = Redacted.make(Buffer.alloc(32, 7).toString("base64"))
  const codecs = [PayloadCodec.aes256gcm({ keys: { k1: key }, current: "k1", digestKey: key })]
  const saver = FermataSaver.layer(Plane.sqlite({ filename, codecs }))
  const store = new FermataStore(saver)
  await store.put(["a"], "1", { secret })
  expect((await store.get(["a"], "1"))?.value).toEqual({ secret })
  const db = new Sqlite(filename)
  assert.notInclude(JSON.stringify(db.prepare("SELECT * FROM fermata_items").all()), secret)
  db.prepare("UPDATE fermata_items SET item_key = '2'").run()
  db.close()
  await expect(store.get(["a"], "2")).rejects.toMatchObject({ _tag: "CorruptItem", ns: "a", key: "2" })
  await saver.close()
})

it("lives on a graph's plane", async () => {
  const plane = Fermata.memory()
  const store = new FermataStore(plane.ledger)
  await store.put(["a"], "1", { n: 1 })
  assert.deepStrictEqual((await store.get(["a"], "1"))?.value, { n: 1 })
  await plane.close()
})
