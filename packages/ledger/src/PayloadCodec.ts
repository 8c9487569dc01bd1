/**
 * Payload codecs: what becomes of values on their way into the database, and back. They are applied to the values that a
 * workflow reads and writes (inputs, outcomes, questions, answers, chunks, defects), never to what the ledger itself decides
 * by. Everything else is stored as it is: ids, names, times, reasons.
 *
 * A codec gives equal data for equal data, always: replay and repeated requests are compared by what is stored.
 */
import { Redacted } from "effect"
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto"
import { gunzipSync, gzipSync } from "node:zlib"

/** One transformation of the bytes of a value's JSON text. */
export interface PayloadCodec {
  /** Seals data; the id goes with it. `undefined` leaves it as it is. */
  readonly seal: (data: Uint8Array) => { readonly id: string; readonly data: Uint8Array } | undefined
  /** Opens what was sealed under the id. `undefined` if the id is not this codec's. Throws if it does not open. */
  readonly open: (id: string, data: Uint8Array) => Uint8Array | undefined
  /** Bytes that sealing may add, for values of any length. */
  readonly overhead: number
  /** For codecs that hide: what stands for a digest of a value where it is stored in the clear. Never changes. */
  readonly mac?: (digest: string) => string
}

/** Compresses values whose JSON text has `threshold` bytes or more (1,024 by default), if that makes them smaller. */
export const gzip = (options: { readonly threshold?: number } = {}): PayloadCodec => {
  const { threshold = 1024 } = options
  return {
    overhead: 0,
    seal: (data) => {
      if (data.length < threshold) return undefined
      const smaller = gzipSync(data)
      return smaller.length < data.length ? { id: "gzip", data: smaller } : undefined
    },
    open: (id, data) => (id === "gzip" ? gunzipSync(data) : undefined)
  }
}

const nonceLength = 12
const tagLength = 16
const prefix = "aes-256-gcm:"

/** A key's name: it is stored beside each value. */
const keyName = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Encrypts values with AES-256-GCM under the `current` key. Values that were written under another of the `keys` can still be
 * read: a key is rotated by adding one and making it current, and removed when nothing is left that was written under it.
 *
 * Each key is 32 bytes or more of secret text or bytes. `digestKey` is one of its own and must never change: under it stand the
 * digests by which repeated starts and answers are recognised.
 *
 * The nonce is derived from the key and the value, so that equal values are equal where they are stored: who reads the database
 * sees that two values are the same, and how long they are, and nothing else of them. It does not keep from damage whoever may
 * write to the database.
 */
export const aes256gcm = (options: {
  readonly keys: Readonly<Record<string, Redacted.Redacted<string | Uint8Array>>>
  readonly current: string
  readonly digestKey: Redacted.Redacted<string | Uint8Array>
}): PayloadCodec => {
  const keys = new Map(
    Object.entries(options.keys).map(([name, secret]) => {
      if (!keyName.test(name))
        throw new TypeError(`${JSON.stringify(name)} cannot name a key: letters, digits, _ and -`)
      return [name, keyOf(`key ${name}`, secret)] as const
    })
  )
  const current = keys.get(options.current)
  if (current === undefined)
    throw new TypeError(`The current key ${JSON.stringify(options.current)} is not among the keys`)
  const digestKey = derived(secretOf("digestKey", options.digestKey), "digest")
  return {
    overhead: nonceLength + tagLength,
    seal: (data) => {
      const nonce = createHmac("sha256", current.nonce).update(data).digest().subarray(0, nonceLength)
      const cipher = createCipheriv("aes-256-gcm", current.encryption, nonce)
      const body = Buffer.concat([cipher.update(data), cipher.final()])
      return { id: `${prefix}${options.current}`, data: Buffer.concat([nonce, cipher.getAuthTag(), body]) }
    },
    open: (id, data) => {
      if (!id.startsWith(prefix)) return undefined
      const key = keys.get(id.slice(prefix.length))
      if (key === undefined) return undefined
      const decipher = createDecipheriv("aes-256-gcm", key.encryption, data.subarray(0, nonceLength))
      decipher.setAuthTag(data.subarray(nonceLength, nonceLength + tagLength))
      return Buffer.concat([decipher.update(data.subarray(nonceLength + tagLength)), decipher.final()])
    },
    mac: (digest) => createHmac("sha256", digestKey).update(digest).digest("base64url")
  }
}

const secretOf = (what: string, secret: Redacted.Redacted<string | Uint8Array>): Uint8Array => {
  const value = Redacted.value(secret)
  const bytes = typeof value === "string" ? Buffer.from(value, "utf8") : value
  if (bytes.length < 32) throw new TypeError(`${what} has ${bytes.length} bytes; it needs 32 at least`)
  return bytes
}

const derived = (secret: Uint8Array, purpose: string): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, "", `fermata ${purpose}`, 32))

const keyOf = (what: string, secret: Redacted.Redacted<string | Uint8Array>) => {
  const bytes = secretOf(what, secret)
  return { encryption: derived(bytes, "encryption"), nonce: derived(bytes, "nonce") }
}
