/** `fermata history`: a branch's entries; with `--json` a history file, which `fermata replay` reads. */
import { Args, Command } from "@effect/cli"
import { Client, HistoryFile, Ledger } from "@fermata/runtime"
import { Console, Effect } from "effect"
import { common, onPlane } from "../Flags.js"
import { oneLine, table, time } from "../Output.js"

export const history = Command.make("history", { ...common, of: Args.text({ name: "run-or-branch" }) }, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      const ledger = yield* Ledger
      const { branch } = yield* client.describe(options.of)
      const found = yield* ledger.history(branch)
      if (options.json) return yield* Console.log(HistoryFile.write(found))
      const rows = found.entries.map(({ at, branch, key, kind, payload, seq }) => [
        String(seq),
        time(at),
        branch,
        oneLine(`${kind} ${key}`.trim(), 70),
        oneLine(payload, 100)
      ])
      yield* Effect.forEach(table(["SEQ", "AT", "BRANCH", "ENTRY", "PAYLOAD"], rows), (line) => Console.log(line))
    })
  )
).pipe(Command.withDescription("Print a branch's journal; with --json a file for `fermata replay`"))
