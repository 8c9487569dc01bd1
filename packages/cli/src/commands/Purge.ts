/** `fermata purge`: removes a run that is over, for good. */
import { Args, Command } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

export const purge = Command.make("purge", { ...common, run: Args.text({ name: "run" }) }, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.purge(options.run)
      yield* print(options.json, { run: options.run, purged: true }, () => [`Purged ${options.run}`])
    })
  )
).pipe(Command.withDescription("Remove a run whose branches are all over"))
