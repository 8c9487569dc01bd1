/**
 * Sealing the values in payloads with a plane's codecs, and opening them. A sealed value is an object under the tag that no
 * value of a user's has (`StrictJson` escapes it), so it is never mistaken for one, and a plane whose codecs change still
 * reads what it has.
 */
import type { PayloadCodec } from "../PayloadCodec.js"

/** The fields of payloads that hold values of the workflow's, or digests of them. */
const fields = ["value", "error", "payload", "defect", "input", "state"] as const

interface Sealed {
  readonly $fermata: { readonly sealed: string; readonly by: ReadonlyArray<string> }
}

const mark = '{"$fermata":{"sealed":'

const isSealed = (value: unknown): value is Sealed =>
  typeof value === "object" &&
  value !== null &&
  "$fermata" in value &&
  typeof value.$fermata === "object" &&
  value.$fermata !== null

/** Why a stored value does not open. */
export class Unopened extends Error {
  constructor(
    readonly why: string,
    readonly advice: string
  ) {
    super(why)
  }
}

export class Sealing {
  /** What stands for a digest of a value. */
  readonly mac: (digest: string) => string
  private readonly overhead: number

  constructor(private readonly codecs: ReadonlyArray<PayloadCodec>) {
    const macs = codecs.flatMap(({ mac }) => (mac === undefined ? [] : [mac]))
    this.mac = (digest) => macs.reduce((text, mac) => mac(text), digest)
    this.overhead = codecs.reduce((sum, codec) => sum + codec.overhead, 0)
  }

  /** The longest payload that still fits into `limit` when it is sealed. */
  longest(limit: number): number {
    return this.overhead === 0 ? limit : Math.max(0, Math.floor((limit - 1024) * 0.75) - this.overhead)
  }

  /** A value's JSON text as it is stored. */
  seal(json: string): string {
    let data: Uint8Array = Buffer.from(json, "utf8")
    const by: Array<string> = []
    for (const codec of this.codecs) {
      const sealed = codec.seal(data)
      if (sealed === undefined) continue
      data = sealed.data
      by.push(sealed.id)
    }
    return by.length === 0 ? json : JSON.stringify({ $fermata: { sealed: Buffer.from(data).toString("base64"), by } })
  }

  /** A stored value's JSON text; throws `Unopened`. */
  open(json: string): string {
    if (!json.startsWith(mark)) return json
    const stored: unknown = JSON.parse(json)
    return isSealed(stored) ? this.textOf(stored) : json
  }

  /** A payload with its values sealed. */
  sealPayload(payload: string): string {
    const parsed = JSON.parse(payload) as Record<string, unknown>
    for (const field of fields) {
      if (Object.hasOwn(parsed, field)) parsed[field] = JSON.parse(this.seal(JSON.stringify(parsed[field])))
    }
    return JSON.stringify(parsed)
  }

  /** A payload with its values opened; throws `Unopened`. */
  openPayload(payload: string): string {
    if (!payload.includes(mark)) return payload
    const parsed = JSON.parse(payload) as Record<string, unknown>
    for (const field of fields) {
      const value = parsed[field]
      if (isSealed(value)) parsed[field] = JSON.parse(this.textOf(value))
    }
    return JSON.stringify(parsed)
  }

  private textOf({ $fermata: { by, sealed } }: Sealed): string {
    let data: Uint8Array = Buffer.from(sealed, "base64")
    for (const id of by.toReversed()) {
      let opened: Uint8Array | undefined
      try {
        for (const codec of this.codecs) opened ??= codec.open(id, data)
      } catch {
        throw new Unopened(
          `a value that was sealed by ${id} does not open`,
          "The key of that name is another one than it was written with, or the value is damaged"
        )
      }
      if (opened === undefined) {
        throw new Unopened(
          `a value was sealed by ${id}, which this plane does not have`,
          "Add that codec, or that key, to the plane's codecs"
        )
      }
      data = opened
    }
    return Buffer.from(data).toString("utf8")
  }
}
