/** `fermata fork`: a new branch from a checkpoint. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect } from "effect"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

export const fork = Command.make(
  "fork",
  {
    ...common,
    of: Args.text({ name: "run-or-branch" }),
    at: Options.integer("at").pipe(
      Options.withDescription("The position to go on from, as `fermata show` numbers them")
    ),
    name: Options.text("name").pipe(Options.withDescription("The fork's id: the same again is the same fork"))
  },
  (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        const { branch } = yield* client.describe(options.of)
        const receipt = yield* client.fork({ from: { branch, seq: options.at }, forkId: options.name })
        yield* print(options.json, receipt, () => [
          `${receipt.created ? "Forked" : "Was forked before:"} ${receipt.branch} from seq ${receipt.seq}`
        ])
      })
    )
).pipe(Command.withDescription("Make a new branch from a checkpoint; its effects are real"))
