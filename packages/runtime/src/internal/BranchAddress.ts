/**
 * What a caller means by a handle, a run id or a branch id, and ids checked where they enter.
 *
 * Branch ids are unique over all runs (a fork id has no slash), so a text that names an existing branch always means that
 * branch; any other text is a run id, and means the run's root branch. Only where a run id itself contains a slash can one
 * text be both; `<run>/main` and a handle always say the root branch.
 */
import { BranchId, RunId } from "@fermata/contract"
import { type Ledger, type LedgerError, RunNotFound, type RunPurged } from "@fermata/ledger"
import { Effect, Either, Option, ParseResult, Schema } from "effect"
import { InvalidId } from "../RunError.js"

/** A run's root branch or a branch, as callers name it. */
export type Address = string | { readonly branch: BranchId }

const runId = Schema.decodeUnknownOption(RunId)
const branchId = Schema.decodeUnknownOption(BranchId)

/**
 * The addressed branch, which need not exist if the address is a handle or a run id without a slash: whoever reads it
 * finds out. Costs a query only where the text has a slash.
 */
export const branchOf = (
  ledger: Ledger,
  address: Address
): Effect.Effect<BranchId, RunNotFound | RunPurged | LedgerError> => {
  if (typeof address !== "string") return Effect.succeed(address.branch)
  const run = runId(address)
  const root = Option.flatMap(run, (run) => branchId(`${run}/main`))
  const branch = branchId(address)
  if (Option.isNone(branch)) {
    return Option.isSome(root) ? Effect.succeed(root.value) : Effect.fail(new RunNotFound({ id: address }))
  }
  const asBranch = ledger.branch(branch.value)
  const found = Effect.as(asBranch, branch.value)
  if (Option.isNone(root)) return found
  const asRoot = Effect.as(ledger.branch(root.value), root.value)
  return Effect.catchTags(found, {
    RunNotFound: () =>
      Effect.mapError(asRoot, (error) => (error._tag === "RunNotFound" ? new RunNotFound({ id: address }) : error)),
    // The run that the text would name a branch of is gone; that it is a run id itself is still possible.
    RunPurged: (purged) => Effect.catchTag(asRoot, "RunNotFound", () => Effect.fail(purged))
  })
}

/** The run of that id, if the text can be one. */
export const runNamed = (run: string): Effect.Effect<RunId, RunNotFound> =>
  Option.match(runId(run), {
    onNone: () => Effect.fail(new RunNotFound({ id: run })),
    onSome: Effect.succeed
  })

/** The checked id, or what is wrong with it. */
export const checkedId = <A>(what: string, schema: Schema.Schema<A, string>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (text: unknown): Effect.Effect<A, InvalidId> =>
    Either.match(decode(text), {
      onLeft: (error) => {
        const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
        return Effect.fail(new InvalidId({ what, problem: issue?.message ?? error.message }))
      },
      onRight: Effect.succeed
    })
}
