/**
 * LangGraph's store on the ledger's database: documents by namespace and key that threads share and that outlive them.
 * A batch is one transaction; what a document holds comes back as it was, or is refused before it is written (CV).
 */
import type { Ledger, LedgerError } from "@fermata/ledger"
import { CorruptItem, type ItemAddress, type ItemStore, type ItemWrite, type StoredItem } from "@fermata/ledger"
import {
  BaseStore,
  type GetOperation,
  type IndexConfig,
  InvalidNamespaceError,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
  tokenizePath
} from "@langchain/langgraph-checkpoint"
import type { Effect } from "effect"
import { isMatch } from "./internal/ItemFilter.js"
import { nearest, textsAt, type Vector } from "./internal/ItemVectors.js"
import * as StrictSerde from "./internal/StrictSerde.js"

export { CorruptItem }

/** What a store is on: a `FermataSaver`, or the `ledger` of a graph's plane. Closing the store leaves it open. */
export interface OnLedger {
  readonly run: <A, E>(use: (ledger: Ledger) => Effect.Effect<A, E>) => Promise<A>
}

/** Items read at once by a search. */
const pageSize = 200

/**
 * The store. Give it to `compile({ store })`, of a graph of LangGraph's or of `@fermata/adapters/langgraph`.
 *
 * Search and `listNamespaces` go in order of namespace and key; with a `query` and an `index` nearest first. Throws
 * `InvalidNamespaceError`, `ValueRefused` for a document that has no exact stored form, and the ledger's errors.
 *
 * @example
 * const checkpointer = FermataSaver.sqlite({ filename: "app.db" })
 * const store = new FermataStore(checkpointer)
 * const graph = builder.compile({ checkpointer, store })
 */
export class FermataStore extends BaseStore {
  constructor(
    private readonly on: OnLedger,
    private readonly options: {
      /** Searches with a `query` compare embeddings of these fields; the default is the whole document. */
      readonly index?: IndexConfig
    } = {}
  ) {
    super()
  }

  /** Reads see what was stored before the batch; its writes are one transaction, in which the last of a key counts. */
  override async batch<Op extends Array<Operation>>(operations: Op): Promise<OperationResults<Op>> {
    const puts = operations.filter(isPut)
    const writes = await this.writesOf(puts)
    const results: Array<unknown> = []
    const gets = operations.filter(isGet).map(addressOf)
    const found = gets.length === 0 ? [] : [...(await this.items((items) => items.get(gets)))]
    for (const operation of operations) {
      if (isPut(operation)) results.push(undefined)
      else if (isGet(operation)) results.push(await itemOf(found.shift()))
      else if (isSearch(operation)) results.push(await this.find(operation))
      else results.push(await this.list(operation))
    }
    if (writes.length > 0) await this.items((items) => items.put(writes))
    // Each result is of its operation's kind.
    return results as OperationResults<Op>
  }

  private items<A>(use: (items: ItemStore) => Effect.Effect<A, LedgerError | CorruptItem>): Promise<A> {
    return this.on.run(({ items }) => use(items))
  }

  private async writesOf(puts: ReadonlyArray<PutOperation>): Promise<ReadonlyArray<ItemWrite>> {
    const texts: Array<string> = []
    const places: Array<ReadonlyArray<number>> = []
    for (const { index, value } of puts) {
      const wanted = value === null || index === false ? [] : (index ?? this.options.index?.fields ?? ["$"])
      const of = this.options.index === undefined ? [] : wanted.flatMap((path) => textsAt(value, path, tokenizePath))
      places.push(of.map((text) => texts.push(text) - 1))
    }
    const vectors = texts.length === 0 ? [] : ((await this.options.index?.embeddings.embedDocuments(texts)) ?? [])
    return puts.map((put, i) => {
      const address = addressOf(put)
      if (put.value === null) return { ...address, value: null }
      const rows: ReadonlyArray<Vector> = (places[i] ?? []).flatMap((place) => {
        const vector = vectors[place]
        return vector === undefined ? [] : [vector]
      })
      return {
        ...address,
        value: StrictSerde.encode(put.value, `item ${put.key} of ${address.ns}`),
        vectors: rows.length === 0 ? null : JSON.stringify(rows)
      }
    })
  }

  private async find(operation: SearchOperation): Promise<ReadonlyArray<SearchItem>> {
    const { filter, limit = 10, offset = 0, query } = operation
    const under = namespaceOf(operation.namespacePrefix, true)
    const embeddings = query === undefined || query === "" ? undefined : this.options.index?.embeddings
    const wanted = embeddings === undefined ? offset + limit : Infinity
    const matching: Array<{ readonly item: Item; readonly vectors: string | null }> = []
    let after: ItemAddress | undefined
    while (matching.length < wanted) {
      const page = await this.items((items) =>
        items.find({ under, limit: pageSize, ...(after === undefined ? {} : { after }) })
      )
      for (const stored of page) {
        const item = await itemOf(stored)
        if (item !== null && isMatch(item.value, filter)) matching.push({ item, vectors: stored.vectors })
      }
      after = page.at(-1)
      if (page.length < pageSize) break
    }
    if (embeddings === undefined || query === undefined)
      return matching.slice(offset, offset + limit).map(({ item }) => item)
    return nearest(await embeddings.embedQuery(query), matching)
      .slice(offset, offset + limit)
      .map(({ item, score }) => ({ ...item, ...(score === undefined ? {} : { score }) }))
  }

  private async list({ limit, matchConditions, maxDepth, offset }: ListNamespacesOperation) {
    const all = (await this.items((items) => items.namespaces)).map((ns) => ns.split("."))
    const matching = all.filter((labels) => (matchConditions ?? []).every((condition) => has(labels, condition)))
    const cut = new Map(matching.map((labels) => labels.slice(0, maxDepth)).map((labels) => [labels.join("."), labels]))
    return [...cut.values()].slice(offset, offset + limit)
  }
}

const isPut = (operation: Operation): operation is PutOperation => "value" in operation
const isGet = (operation: Operation): operation is GetOperation => "key" in operation && !("value" in operation)
const isSearch = (operation: Operation): operation is SearchOperation => "namespacePrefix" in operation

/** The labels as the ledger has them. LangGraph checks them in its own methods, but not what comes by `batch`. */
const namespaceOf = (labels: ReadonlyArray<string>, mayBeEmpty = false): string => {
  if (labels.length === 0 && !mayBeEmpty) throw new InvalidNamespaceError("Namespace cannot be empty.")
  for (const label of labels)
    if (typeof label !== "string" || label === "" || /[.\0]/.test(label))
      throw new InvalidNamespaceError(
        `Invalid namespace label ${JSON.stringify(label)}: labels are texts that are not empty and have no dot and no NUL`
      )
  return labels.join(".")
}

const addressOf = ({ key, namespace }: { readonly key: string; readonly namespace: ReadonlyArray<string> }) => ({
  ns: namespaceOf(namespace),
  key
})

const itemOf = async (stored: StoredItem | undefined): Promise<Item | null> =>
  stored === undefined
    ? null
    : {
        namespace: stored.ns.split("."),
        key: stored.key,
        // A document is what was put.
        value: (await StrictSerde.decode(stored.value)) as Item["value"],
        createdAt: new Date(stored.createdAt),
        updatedAt: new Date(stored.updatedAt)
      }

const has = (labels: ReadonlyArray<string>, { matchType, path }: MatchCondition): boolean => {
  if (path.length > labels.length) return false
  const from = matchType === "prefix" ? 0 : labels.length - path.length
  return path.every((label, i) => label === "*" || label === labels[from + i])
}
