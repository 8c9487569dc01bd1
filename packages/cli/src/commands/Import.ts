/** `fermata import`: takes in a run that `fermata export` printed, all of it or nothing. */
import { Args, Command } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Stream } from "effect"
import { readFileSync } from "node:fs"
import { UsageError } from "../CliError.js"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

export const importing = Command.make(
  "import",
  { ...common, file: Args.text({ name: "file" }).pipe(Args.withDescription("A file, or - for standard input")) },
  (options) =>
    Effect.gen(function* () {
      const text = yield* Effect.try({
        try: () => readFileSync(options.file === "-" ? 0 : options.file, "utf8"),
        catch: (error) =>
          new UsageError({
            what: "the file",
            detail: `cannot be read: ${error instanceof Error ? error.message : String(error)}`
          })
      })
      // A text file ends with a line end, and editors may write it as Windows does.
      const lines = text.replace(/\r?\n$/, "").split(/\r?\n/)
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const receipt = yield* client.import(Stream.fromIterable(lines))
          yield* print(options.json, receipt, () => [
            `Imported ${receipt.run}: ${receipt.branches} branches, ${receipt.entries} entries`
          ])
        }),
        { create: true }
      )
    })
).pipe(Command.withDescription("Take in an exported run: all of it, verified, or nothing"))
