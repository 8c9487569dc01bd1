/**
 * Values of channels as stored texts named by their digest. A long array is a tree of chunks, so that a list that grows
 * by one element at each step stores that element and a path of the tree, not the list again; and values that two
 * checkpoints or branches share are stored once.
 */
import { valueDigest } from "@fermata/ledger"
import { CorruptCheckpoint } from "../SaverError.js"
import * as StrictSerde from "./StrictSerde.js"

/** Elements per chunk; shorter arrays are one text. */
const chunkLength = 8
/** Chunks per node of the tree. */
const fanOut = 64

// A text begins with its kind: a value, a chunk of an array's elements, or a node of digests.
const valueKind = "v"
const chunkKind = "c"
const nodeKind = "n"

/** Adds the texts of a value to `texts`; the digest that names it. Throws `ValueRefused`. */
export const store = (value: unknown, where: string, texts: Map<string, string>): string => {
  const add = (text: string): string => {
    const digest = valueDigest(text)
    texts.set(digest, text)
    return digest
  }
  // A sparse array, or one with names, must be seen whole to be refused.
  if (!Array.isArray(value) || value.length <= chunkLength || Object.keys(value).length !== value.length) {
    return add(valueKind + StrictSerde.encode(value, where))
  }
  let level: Array<string> = []
  for (let from = 0; from < value.length; from += chunkLength) {
    level.push(add(chunkKind + StrictSerde.encode(value.slice(from, from + chunkLength), `${where}, from [${from}]`)))
  }
  do {
    const above: Array<string> = []
    for (let from = 0; from < level.length; from += fanOut) {
      above.push(add(nodeKind + JSON.stringify(level.slice(from, from + fanOut))))
    }
    level = above
  } while (level.length > 1)
  return level[0] ?? add(`${valueKind}[]`)
}

/** The texts of these digests. */
export type Fetch = (digests: ReadonlyArray<string>) => Promise<ReadonlyMap<string, string>>

/** The values that digests name, in order. Reads level by level, each text once. */
export const load = async (
  digests: ReadonlyArray<string>,
  fetch: Fetch,
  thread: string
): Promise<ReadonlyArray<unknown>> => {
  const texts = new Map<string, string>()
  for (let wanted = [...new Set(digests)]; wanted.length > 0;) {
    const below = new Set<string>()
    for (const [digest, text] of await fetch(wanted)) {
      texts.set(digest, text)
      if (text.startsWith(nodeKind)) for (const child of childrenOf(text)) if (!texts.has(child)) below.add(child)
    }
    wanted = [...below]
  }
  const elements = async (digest: string): Promise<ReadonlyArray<unknown>> => {
    const text = texts.get(digest) ?? ""
    if (text.startsWith(chunkKind)) return (await StrictSerde.decode(text.slice(1))) as ReadonlyArray<unknown>
    const found: Array<unknown> = []
    for (const child of childrenOf(text)) for (const element of await elements(child)) found.push(element)
    return found
  }
  const values: Array<unknown> = []
  for (const digest of digests) {
    const text = texts.get(digest) ?? ""
    if (text.startsWith(valueKind)) values.push(await StrictSerde.decode(text.slice(1)))
    else if (text.startsWith(nodeKind)) values.push(await elements(digest))
    else throw new CorruptCheckpoint({ table: "values", thread, id: digest, detail: "the text is of no known kind" })
  }
  return values
}

/** The digest vouches for the text, which `store` wrote. */
const childrenOf = (text: string): ReadonlyArray<string> => JSON.parse(text.slice(1)) as ReadonlyArray<string>
