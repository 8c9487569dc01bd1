/**
 * What a test and its child process say to each other.
 *
 * Two file descriptors of the child carry it, so that stdout and stderr stay free for text:
 * 3: the child's lines of JSON, written synchronously (nothing is lost if it is killed on the next instruction), and
 * back one byte    for each release, which the child reads synchronously: its whole process stands still meanwhile;
 * 4: the test's lines of JSON to the child.
 */
import { Schema } from "effect"

export const reportsFd = 3
export const lettersFd = 4

/** What the child reports. */
export const Report = Schema.Union(
  /** It runs: `pid` is its own view, 1 in a PID namespace of its own. */
  Schema.TaggedStruct("Hello", { pid: Schema.Number }),
  /** It passed a point, for the `n`th time, and goes on. Only when it is traced. */
  Schema.TaggedStruct("Passed", { point: Schema.String, n: Schema.Number }),
  /** It stands still at a point until it is released: the whole process, or only the caller (`held`). */
  Schema.TaggedStruct("Stopped", { point: Schema.String, n: Schema.Number, held: Schema.Boolean }),
  /** It spins at the start line of a race. */
  Schema.TaggedStruct("Ready", {}),
  /** A message of the script. */
  Schema.TaggedStruct("Told", { message: Schema.Unknown })
)
export type Report = typeof Report.Type

/** What the test writes to the child. */
export const Letter = Schema.Union(
  Schema.TaggedStruct("Release", { point: Schema.String, n: Schema.Number }),
  Schema.TaggedStruct("Message", { message: Schema.Unknown })
)
export type Letter = typeof Letter.Type

/** How the child is told what to do: one environment variable of JSON. */
export const environmentVariable = "FERMATA_CHILD"
export const Orders = Schema.Struct({
  /** `point` stops at each passing, `point#n` at the nth only. */
  stopAt: Schema.Array(Schema.String),
  trace: Schema.Boolean,
  /** The file of the race's start line. */
  race: Schema.NullOr(Schema.String),
  input: Schema.Unknown
})
export type Orders = typeof Orders.Type

/** Calls back for each whole line. */
export const lines = (onLine: (line: string) => void): ((chunk: Buffer) => void) => {
  // Bytes, not text: a chunk may end inside a character.
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = rest.subarray(0, end).toString()
      rest = rest.subarray(end + 1)
      onLine(line)
    }
  }
}
