/**
 * Documents that outlive runs and are shared by them, by namespace and key: what LangGraph.js calls a store. Texts go in and
 * come out; what they mean is the adapter's business.
 */
import { Schema, type Effect } from "effect"
import type { LedgerError } from "./LedgerError.js"

/** Where an item is. A namespace is its labels joined by dots; a label has no dot. */
export interface ItemAddress {
  readonly ns: string
  readonly key: string
}

/** A stored item, its columns verified. Times in ledger milliseconds. */
export interface StoredItem extends ItemAddress {
  /** JSON text. */
  readonly value: string
  /** JSON text of what a search by meaning compares; `null` if the item is not indexed. */
  readonly vectors: string | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** Writes an item, or removes it. */
export type ItemWrite = ItemAddress &
  ({ readonly value: string; readonly vectors: string | null } | { readonly value: null })

/** Which items; in order of namespace and key. */
export interface ItemQuery {
  /** At this namespace and below it; empty: everywhere. */
  readonly under: string
  /** Goes on after this item of an earlier page. */
  readonly after?: ItemAddress
  readonly limit: number
}

/** A stored item does not verify. Nothing is guessed. */
export class CorruptItem extends Schema.TaggedError<CorruptItem>("fermata/CorruptItem")("CorruptItem", {
  ns: Schema.String,
  key: Schema.String
}) {
  override get message() {
    return `The stored item ${this.key} of ${this.ns} does not verify: its digest does not match its columns. Restore it from a backup, or write it anew.`
  }
}

/** The store of items; part of the ledger, on its database. */
export interface ItemStore {
  /** Does the writes in order, in one commit. An item that is written again keeps the time of its creation. */
  readonly put: (writes: ReadonlyArray<ItemWrite>) => Effect.Effect<void, LedgerError>
  /** The items at these addresses; `undefined` where there is none. */
  readonly get: (
    addresses: ReadonlyArray<ItemAddress>
  ) => Effect.Effect<ReadonlyArray<StoredItem | undefined>, LedgerError | CorruptItem>
  /** A page of items. */
  readonly find: (query: ItemQuery) => Effect.Effect<ReadonlyArray<StoredItem>, LedgerError | CorruptItem>
  /** All namespaces that have items, in order. */
  readonly namespaces: Effect.Effect<ReadonlyArray<string>, LedgerError>
}
