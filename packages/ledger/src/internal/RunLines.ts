/**
 * A run as lines of JSON: what an export writes and an import reads. Each line ends with a digest over its own text and the
 * line before it, so that a change, a gap or a missing end is found at its line, before anything is stored.
 */
import { BranchId, EntryKind, RunId } from "@fermata/contract"
import { Either, ParseResult, Schema } from "effect"
import { ImportInvalid } from "../LedgerError.js"
import { valueDigest } from "./Digest.js"

/** The format's version; what is newer is refused. */
export const formatVersion = 1

const Whole = Schema.NonNegativeInt
const Text = Schema.NullOr(Schema.String)

const RunLine = Schema.Struct({
  type: Schema.Literal("run"),
  run: RunId,
  workflow: Schema.String,
  version: Schema.String,
  input: Schema.String,
  inputDigest: Schema.String,
  createdAt: Whole,
  digest: Schema.String
})

/** An owner is no part of it: what was running goes on with whoever claims it. */
const BranchLine = Schema.Struct({
  type: Schema.Literal("branch"),
  branch: BranchId,
  parent: Schema.NullOr(BranchId),
  forkSeq: Schema.NullOr(Whole),
  forkDigest: Schema.String,
  anchor: Whole,
  status: Schema.Literal("ready", "waiting", "stuck", "completed", "failed", "cancelled"),
  head: Whole,
  headDigest: Schema.String,
  epoch: Whole,
  readyAt: Schema.NullOr(Whole),
  inboxHead: Whole,
  problem: Text,
  createdAt: Whole,
  accepts: Text,
  standing: Text,
  queue: Text,
  queueKey: Text,
  priority: Schema.NullOr(Schema.Int),
  queueRank: Schema.NullOr(Schema.Int)
})

const EntryLine = Schema.Struct({
  type: Schema.Literal("entry"),
  branch: BranchId,
  seq: Schema.Positive.pipe(Schema.int()),
  kind: EntryKind,
  key: Schema.String,
  payload: Schema.String,
  epoch: Whole,
  at: Whole,
  digest: Schema.String
})

const InboxLine = Schema.Struct({
  type: Schema.Literal("inbox"),
  branch: BranchId,
  pos: Schema.Positive.pipe(Schema.int()),
  kind: Schema.Literal("answer", "cancel", "settlement", "signal", "update"),
  key: Schema.String,
  delivery: Text,
  payload: Schema.String,
  at: Whole,
  digest: Schema.String
})

const InterruptLine = Schema.Struct({
  type: Schema.Literal("interrupt"),
  branch: BranchId,
  interrupt: Schema.String,
  name: Schema.String,
  payload: Schema.String,
  seq: Whole,
  openedAt: Whole,
  assignee: Text,
  deadline: Schema.NullOr(Schema.Number),
  task: Text
})

const TagLine = Schema.Struct({
  type: Schema.Literal("tag"),
  name: Schema.String,
  value: Schema.Union(Schema.String, Schema.JsonNumber)
})

const HeaderLine = Schema.Struct({
  type: Schema.Literal("header"),
  format: Schema.Literal("fermata-run"),
  formatVersion: Schema.Number,
  run: RunId
})

const EndLine = Schema.Struct({ type: Schema.Literal("end"), lines: Whole })

const Line = Schema.Union(RunLine, BranchLine, EntryLine, InboxLine, InterruptLine, TagLine, HeaderLine, EndLine)
type Line = typeof Line.Type

/** A run with all that belongs to it. */
export interface RunParts {
  readonly run: typeof RunLine.Type
  /** Parents before their forks. */
  readonly branches: ReadonlyArray<typeof BranchLine.Type>
  readonly entries: ReadonlyArray<typeof EntryLine.Type>
  readonly inbox: ReadonlyArray<typeof InboxLine.Type>
  readonly interrupts: ReadonlyArray<typeof InterruptLine.Type>
  readonly tags: ReadonlyArray<typeof TagLine.Type>
}

/** The lines of a run, each without its line end. */
export const write = (parts: RunParts): ReadonlyArray<string> => {
  const { branches, entries, inbox, interrupts, run, tags } = parts
  const body = [run, ...branches, ...entries, ...inbox, ...interrupts, ...tags]
  const header: Line = { type: "header", format: "fermata-run", formatVersion, run: run.run }
  const end: Line = { type: "end", lines: body.length + 2 }
  let sum = ""
  return [header, ...body, end].map((line) => {
    const text = JSON.stringify(line).slice(0, -1)
    sum = valueDigest(`${sum}\n${text}`)
    return `${text},"sum":"${sum}"}`
  })
}

/** A run that was read, and the number of the line that each part of it came from. */
export interface ReadRun {
  readonly parts: RunParts
  /** 1 for what has no line of its own. */
  readonly lineOf: (table: string, id: string, seq: number | null) => number
}

const summed = /^(.*),"sum":"([\w-]{43})"\}$/
const decode = Schema.decodeUnknownEither(Line)

/** The run that `write` made the lines of; or what is wrong with them, and where. Messages never repeat a value. */
export const read = (lines: ReadonlyArray<string>): Either.Either<ReadRun, ImportInvalid> =>
  Either.gen(function* () {
    const numbers = new Map<string, number>()
    const found = {
      branches: new Map<string, typeof BranchLine.Type>(),
      entries: [] as Array<typeof EntryLine.Type>,
      inbox: [] as Array<typeof InboxLine.Type>,
      interrupts: [] as Array<typeof InterruptLine.Type>,
      tags: [] as Array<typeof TagLine.Type>
    }
    let run: typeof RunLine.Type | undefined
    let ended = false
    let sum = ""
    yield* headerProblem(lines[0])
    for (const [index, text] of lines.entries()) {
      const number = index + 1
      const damaged = (detail: string) => Either.left(new ImportInvalid({ reason: "damaged", line: number, detail }))
      if (ended) yield* damaged("it follows the last line")
      const [, body = "", stated] = summed.exec(text) ?? []
      sum = valueDigest(`${sum}\n${body}`)
      if (stated !== sum) yield* damaged("its digest does not match its text and the lines before it")
      const line = yield* parsed(body, number)
      /** One line a row, of a branch that is there. */
      const place = (table: string, id: string, seq: number | string | null) => {
        const key = `${table} ${id} ${seq}`
        if (numbers.has(key)) return damaged("it is there twice")
        numbers.set(key, number)
        return table === "runs" || table === "branches" || found.branches.has(id)
          ? Either.right(undefined)
          : damaged("its branch is not there")
      }
      switch (line.type) {
        case "header":
          if (number !== 1) yield* damaged("it is a second header")
          break
        case "run":
          if (run !== undefined) yield* damaged("it is a second run")
          yield* place("runs", line.run, null)
          run = line
          break
        case "branch":
          if (run === undefined || line.branch.slice(0, line.branch.lastIndexOf("/")) !== run.run) {
            yield* damaged("its run is not there")
          }
          if ((line.parent === null) !== (line.forkSeq === null)) yield* damaged("it has half a fork point")
          if (line.parent !== null && !found.branches.has(line.parent)) yield* damaged("its parent is not there")
          if (line.parent === null && found.branches.size > 0) yield* damaged("it is a second root")
          yield* place("branches", line.branch, null)
          found.branches.set(line.branch, line)
          break
        case "entry":
          yield* place("journal", line.branch, line.seq)
          found.entries.push(line)
          break
        case "inbox":
          yield* place("inbox", line.branch, line.pos)
          found.inbox.push(line)
          break
        case "interrupt":
          yield* place("interrupts", line.branch, line.interrupt)
          found.interrupts.push(line)
          break
        case "tag":
          if (run === undefined) yield* damaged("its run is not there")
          numbers.set(`tags ${line.name}`, number)
          found.tags.push(line)
          break
        case "end":
          if (line.lines !== number) yield* damaged("it counts other lines")
          ended = true
      }
    }
    if (!ended || run === undefined || found.branches.size === 0) {
      const detail = "the lines end before the run does"
      return yield* Either.left(new ImportInvalid({ reason: "incomplete", line: lines.length, detail }))
    }
    return {
      parts: { ...found, run, branches: [...found.branches.values()] },
      lineOf: (table, id, seq) => numbers.get(`${table} ${id} ${seq}`) ?? numbers.get(`branches ${id} null`) ?? 1
    }
  })

/** Looked at first: a newer version may write its lines otherwise. */
const headerProblem = (text: string | undefined): Either.Either<void, ImportInvalid> => {
  const header = Schema.decodeUnknownOption(Schema.parseJson(HeaderLine))(text)
  if (header._tag === "None") {
    const detail = "it is not the header of an exported run"
    return Either.left(new ImportInvalid({ reason: "not an export", line: 1, detail }))
  }
  if (header.value.formatVersion > formatVersion) {
    const detail = `its format is of version ${header.value.formatVersion}, this code reads ${formatVersion}`
    return Either.left(new ImportInvalid({ reason: "newer version", line: 1, detail }))
  }
  return Either.right(undefined)
}

const parsed = (body: string, line: number): Either.Either<Line, ImportInvalid> => {
  let json: unknown
  try {
    json = JSON.parse(`${body}}`)
  } catch {
    return Either.left(new ImportInvalid({ reason: "damaged", line, detail: "it is not JSON" }))
  }
  return Either.mapLeft(decode(json), (error) => {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
    const path = issue?.path.join(".") ?? ""
    const detail = path === "" ? "it is no line of this format" : `its ${path} is not what this format has there`
    return new ImportInvalid({ reason: "damaged", line, detail })
  })
}
