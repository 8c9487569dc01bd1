/** Where ids of new messages come from: out of the superstep while the engine applies writes, so that replay gives the same. */
import { createHash, randomUUID } from "node:crypto"

let source: { readonly scope: string; count: number } | undefined

/** Runs `body`, synchronous, with ids that follow from `scope`. */
export const withIds = <A>(scope: string, body: () => A): A => {
  const outer = source
  source = { scope, count: 0 }
  try {
    return body()
  } finally {
    source = outer
  }
}

/** An id for a message that has none. */
export const newMessageId = (): string => {
  if (source === undefined) return randomUUID()
  const hex = createHash("sha256").update(`${source.scope}|${source.count++}`).digest("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
