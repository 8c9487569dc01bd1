/** `fermata export`: a run as JSON lines, which `fermata import` reads. */
import { Args, Command } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Console, Effect, Stream } from "effect"
import { common, onPlane } from "../Flags.js"

export const exporting = Command.make("export", { ...common, run: Args.text({ name: "run" }) }, (options) =>
  onPlane(
    options,
    Effect.flatMap(Client.Client, (client) =>
      Stream.runForEach(client.export(options.run), (line) => Console.log(line))
    )
  )
).pipe(Command.withDescription("Print a run with all its branches as JSON lines, for `fermata import`"))
