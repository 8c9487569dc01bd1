/**
 * What a driver in a process of its own speaks: JSON lines. The harness writes requests to its standard input, the
 * driver answers on its standard output, in any order. `docs/contract-driver.md` is the description for people.
 */
import { Schema } from "effect"
import { Place } from "./Plane.js"

/** `{"id":1,"op":"open","request":{…}}`. `op` is `hello`, `open`, `copy`, `drop` or an operation of a session. */
export const WireRequest = Schema.Struct({ id: Schema.Int, op: Schema.String, request: Schema.Unknown })
export type WireRequest = typeof WireRequest.Type

/** `{"id":1,"reply":{…}}`, or `{"id":1,"error":{"code":"unknown","message":"…"}}`. */
export const WireReply = Schema.Union(
  // First: a reply may be anything, and so matches what has none.
  Schema.Struct({
    id: Schema.Int,
    error: Schema.Struct({ code: Schema.Literal("unsupported", "unknown", "failed"), message: Schema.String })
  }),
  Schema.Struct({ id: Schema.Int, reply: Schema.Unknown })
)
export type WireReply = typeof WireReply.Type

/** Requests that belong to the process and not to a session. */
export const processRequests = {
  hello: Schema.Struct({ protocol: Schema.Int }),
  open: Place,
  copy: Schema.Struct({ store: Schema.String, to: Schema.String }),
  drop: Schema.Struct({ store: Schema.String })
} as const

/** Splits what comes in pieces into lines. */
export const lines = (onLine: (line: string) => void): ((piece: string) => void) => {
  let rest = ""
  return (piece) => {
    const parts = `${rest}${piece}`.split("\n")
    rest = parts.pop() ?? ""
    for (const line of parts) if (line.trim() !== "") onLine(line)
  }
}
