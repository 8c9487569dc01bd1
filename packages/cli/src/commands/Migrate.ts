/** `fermata migrate`: creates or updates the tables. */
import { Command } from "@effect/cli"
import { Ledger } from "@fermata/runtime"
import { Effect } from "effect"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"

export const migrate = Command.make("migrate", common, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const { database, schema } = yield* ledger.health
      yield* print(options.json, { database, schema: schema.stored }, () => [
        `The tables of ${database} are of version ${schema.stored}`
      ])
    }),
    { create: true }
  )
).pipe(Command.withDescription("Create or update the database's tables; safe to run at any time, and twice"))
