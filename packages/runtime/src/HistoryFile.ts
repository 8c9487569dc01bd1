/**
 * A branch's history as a file: what `fermata history --json` writes, and what a replay of new code against old
 * histories reads. One JSON document; its digests are verified when it is read.
 *
 * @example
 * const text = HistoryFile.write(yield* ledger.history(branch))
 * const history = yield* HistoryFile.read(text)
 */
import { BranchId, EntryKind, RunId } from "@fermata/contract"
import { type History, historyProblem } from "@fermata/ledger"
import { Effect, ParseResult, Schema } from "effect"

/** The format's version; a reader refuses others. */
const formatVersion = 1

const Position = Schema.Struct({ branch: BranchId, seq: Schema.Number })

const Document = Schema.Struct({
  format: Schema.Literal("fermata-history"),
  formatVersion: Schema.Literal(formatVersion),
  run: Schema.Struct({
    run: RunId,
    workflow: Schema.String,
    version: Schema.String,
    input: Schema.String,
    inputDigest: Schema.String,
    createdAt: Schema.Number,
    digest: Schema.String
  }),
  branch: Schema.Struct({
    branch: BranchId,
    run: RunId,
    workflow: Schema.String,
    version: Schema.String,
    status: Schema.Literal("ready", "running", "waiting", "stuck", "completed", "failed", "cancelled"),
    parent: Schema.NullOr(Position),
    head: Schema.Number,
    headDigest: Schema.String,
    epoch: Schema.Number,
    owner: Schema.NullOr(Schema.String),
    inboxHead: Schema.Number,
    readyAt: Schema.NullOr(Schema.Number),
    problem: Schema.NullOr(Schema.String),
    createdAt: Schema.Number
  }),
  entries: Schema.Array(
    Schema.Struct({
      branch: BranchId,
      seq: Schema.Number,
      kind: EntryKind,
      key: Schema.String,
      payload: Schema.String,
      epoch: Schema.Number,
      at: Schema.Number,
      digest: Schema.String
    })
  )
})

/** A file is no history, is of another version, or was damaged or edited. */
export class HistoryFileInvalid extends Schema.TaggedError<HistoryFileInvalid>("fermata/HistoryFileInvalid")(
  "HistoryFileInvalid",
  { seq: Schema.NullOr(Schema.Number), detail: Schema.String }
) {
  override get message() {
    return `The history cannot be used${this.seq === null ? "" : ` (position ${this.seq})`}: ${this.detail}. Export it again with a version of fermata that is not newer than this one.`
  }
}

/** The history as text. It holds the run's inputs and outcomes as they are stored: treat it as you treat those. */
export const write = ({ branch, entries, run }: History): string =>
  JSON.stringify({ format: "fermata-history", formatVersion, run, branch, entries }, undefined, 1)

const decode = Schema.decodeUnknown(Schema.parseJson(Document))

/** The history that `write` made the text of. Fails with `HistoryFileInvalid` if it is none, or does not verify. */
export const read = (text: string): Effect.Effect<History, HistoryFileInvalid> =>
  Effect.gen(function* () {
    const { branch, entries, run } = yield* Effect.mapError(decode(text), (error) => {
      const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
      const path = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `
      // The message of a wrong value would repeat it; the path says where it is.
      return new HistoryFileInvalid({
        seq: null,
        detail: `${path}it is not a history file of version ${formatVersion}`
      })
    })
    const history: History = { run, branch: { ...branch, queue: null, accepts: null, standing: null }, entries }
    const problem = historyProblem(history)
    return problem === undefined ? history : yield* new HistoryFileInvalid(problem)
  })
