/** Items in SQL. Every row carries a digest of what it holds, so that damage is refused when it is read (CV). */
import { Effect } from "effect"
import { CorruptItem, type ItemAddress, type ItemStore, type StoredItem } from "../ItemStore.js"
import type { Database } from "./Database.js"
import { rowDigest } from "./Digest.js"
import type { Int } from "./Rows.js"

interface RawItem {
  readonly ns: string
  readonly item_key: string
  readonly value: string
  readonly vectors: string | null
  readonly created_at: Int
  readonly updated_at: Int
  readonly digest: string
}

/** Not of the times: an item that two write at once keeps the first one's time of creation. */
const itemDigest = (ns: string, key: string, value: string, vectors: string | null): string =>
  rowDigest(ns, key, value, vectors)

const itemOf = (row: RawItem): Effect.Effect<StoredItem, CorruptItem> =>
  itemDigest(row.ns, row.item_key, row.value, row.vectors) === row.digest
    ? Effect.succeed({
        ns: row.ns,
        key: row.item_key,
        value: row.value,
        vectors: row.vectors,
        createdAt: Number(row.created_at),
        updatedAt: Number(row.updated_at)
      })
    : Effect.fail(new CorruptItem({ ns: row.ns, key: row.item_key }))

/** Addresses in an order that everyone locks in, so that two writers never wait for each other. */
const inOrder = (a: ItemAddress, b: ItemAddress): number =>
  a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : a.key < b.key ? -1 : a.key > b.key ? 1 : 0

export const makeItems = (db: Database): ItemStore => {
  const { sql } = db

  const read = ({ key, ns }: ItemAddress) =>
    Effect.flatMap(sql<RawItem>`SELECT * FROM fermata_items WHERE ns = ${ns} AND item_key = ${key}`, ([row]) =>
      row === undefined ? Effect.succeed(undefined) : itemOf(row)
    )

  return {
    put: Effect.fn("ItemStore.put")((writes) =>
      db.transaction("store items", () =>
        Effect.gen(function* () {
          const at = db.unsafeNow()
          // The last write of an address counts.
          const last = new Map(writes.map((write) => [`${write.ns}\n${write.key}`, write]))
          for (const write of [...last.values()].sort(inOrder)) {
            const { key, ns } = write
            if (write.value === null) yield* sql`DELETE FROM fermata_items WHERE ns = ${ns} AND item_key = ${key}`
            else {
              const digest = itemDigest(ns, key, write.value, write.vectors)
              yield* sql`INSERT INTO fermata_items (ns, item_key, value, vectors, created_at, updated_at, digest)
                VALUES (${ns}, ${key}, ${write.value}, ${write.vectors}, ${at}, ${at}, ${digest})
                ON CONFLICT (ns, item_key) DO UPDATE SET value = excluded.value, vectors = excluded.vectors,
                  updated_at = excluded.updated_at, digest = excluded.digest`
            }
          }
        })
      )
    ),
    get: (addresses) => db.query("read items", Effect.forEach(addresses, read)),
    find: ({ after, limit, under }) =>
      db.query(
        "read items",
        Effect.gen(function* () {
          const conditions = [
            // A slash is what follows a dot: all that begins with the namespace and a dot lies between.
            ...(under === "" ? [] : [sql`(ns = ${under} OR (ns > ${`${under}.`} AND ns < ${`${under}/`}))`]),
            ...(after === undefined ? [] : [sql`(ns, item_key) > (${after.ns}, ${after.key})`])
          ]
          const where = conditions.length === 0 ? sql`` : sql`WHERE ${sql.and(conditions)}`
          const rows = yield* sql<RawItem>`SELECT * FROM fermata_items ${where} ORDER BY ns, item_key LIMIT ${limit}`
          return yield* Effect.forEach(rows, itemOf)
        })
      ),
    namespaces: db.query(
      "read the namespaces of items",
      Effect.map(sql<{ readonly ns: string }>`SELECT DISTINCT ns FROM fermata_items ORDER BY ns`, (rows) =>
        rows.map(({ ns }) => ns)
      )
    )
  }
}
