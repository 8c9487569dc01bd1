/** `fermata verify`: walks a whole database, digest by digest. */
import { Command } from "@effect/cli"
import { Ledger } from "@fermata/runtime"
import { Effect } from "effect"
import { Unwell } from "../CliError.js"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

export const verify = Command.make("verify", common, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { problems, ...counts } = yield* ledger.verify
      const found = problems.map(({ detail, id, message, seq, table }) => ({ table, id, seq, detail, message }))
      yield* print(options.json, { ...counts, problems: found }, () => [
        ...found.map(({ message }) => message),
        `${counts.runs} runs, ${counts.branches} branches, ${counts.entries} entries: ${found.length === 0 ? "all verify" : `${found.length} do not verify`}`
      ])
      if (found.length > 0) yield* new Unwell({ detail: `${found.length} problems were found.` })
    })
  )
).pipe(Command.withDescription("Verify every digest of the database"))
