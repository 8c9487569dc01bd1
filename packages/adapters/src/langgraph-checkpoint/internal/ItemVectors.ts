/** Search by meaning: which texts of a document are embedded, and which documents are nearest to a query. */
import type { Item } from "@langchain/langgraph-checkpoint"

export type Vector = ReadonlyArray<number>

/** The texts at a path of a document: `$` is all of it, `chapters[*].content` one text for each chapter. */
export const textsAt = (value: unknown, path: string, tokenize: (path: string) => Array<string>): Array<string> => {
  if (path === "$") return [JSON.stringify(value)]
  let found: Array<unknown> = [value]
  for (const token of tokenize(path)) {
    const [, name = "", index] = /^([^[]*)(?:\[(.*)\])?$/.exec(token) ?? []
    if (name !== "") found = found.flatMap((part) => [member(part, name)])
    if (index === "*") found = found.flatMap((part) => (Array.isArray(part) ? (part as Array<unknown>) : []))
    else if (index !== undefined)
      found = found.map((part): unknown => (Array.isArray(part) ? part.at(Number(index)) : undefined))
  }
  return found.flatMap((part) =>
    part === undefined || part === null ? [] : [typeof part === "string" ? part : JSON.stringify(part)]
  )
}

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined

const cosine = (a: Vector, b: Vector): number => {
  let [dot, ofA, ofB] = [0, 0, 0]
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? 0
    dot += x * y
    ofA += x * x
    ofB += y * y
  }
  return ofA === 0 || ofB === 0 ? 0 : dot / Math.sqrt(ofA * ofB)
}

/** By the best of each document's vectors, nearest first; those that are not indexed come last, without a score. */
export const nearest = (
  query: Vector,
  candidates: ReadonlyArray<{ readonly item: Item; readonly vectors: string | null }>
): ReadonlyArray<{ readonly item: Item; readonly score: number | undefined }> =>
  candidates
    .map(({ item, vectors }) => ({
      item,
      // What is stored here is what the store wrote; its digest was verified.
      score:
        vectors === null
          ? undefined
          : Math.max(...(JSON.parse(vectors) as ReadonlyArray<Vector>).map((vector) => cosine(query, vector)))
    }))
    .sort((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity))
