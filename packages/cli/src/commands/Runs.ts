/** `fermata runs`: lists runs, newest first, once or as they change. */
import { Command, Options } from "@effect/cli"
import { RunId } from "@fermata/contract"
import { Client, Ledger } from "@fermata/runtime"
import { Console, Effect, Option, Schema } from "effect"
import { stateOf } from "../BranchTree.js"
import { UsageError } from "../CliError.js"
import { common, onPlane } from "../Flags.js"
import { oneLine, print, table, time } from "../Output.js"
import { filterOf, runFilters } from "../RunFilters.js"

/** Looks again this often without having heard of a change (an announcement may be lost). */
const lookEvery = "2 seconds"

export const runs = Command.make(
  "runs",
  {
    ...common,
    ...runFilters,
    after: Options.text("after").pipe(Options.withDescription("The last run of the page before"), Options.optional),
    limit: Options.integer("limit").pipe(Options.withDescription("Runs of a page"), Options.withDefault(50)),
    count: Options.boolean("count").pipe(Options.withDescription("Say how many there are, instead of which")),
    watch: Options.boolean("watch").pipe(Options.withDescription("Print again whenever something changes"))
  },
  (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        const after = yield* Effect.transposeMapOption(options.after, (text) =>
          Effect.mapError(
            Schema.decodeUnknown(RunId)(text),
            () => new UsageError({ what: "--after", detail: "is no run id" })
          )
        )
        const filter = yield* filterOf(options)
        if (options.count) {
          const count = yield* client.count(filter)
          return yield* print(options.json, { count }, () => [String(count)])
        }
        const list = client.list({
          limit: options.limit,
          ...filter,
          ...(Option.isSome(after) ? { after: after.value } : {})
        })
        if (!options.watch) return yield* Effect.flatMap(list, (found) => print(options.json, found, () => rows(found)))
        yield* watch(list, options.json)
      })
    )
).pipe(Command.withDescription("List runs, newest first"))

const rows = (found: ReadonlyArray<Client.Description>): ReadonlyArray<string> =>
  found.length === 0
    ? ["No runs."]
    : table(
        ["RUN", "WORKFLOW", "STARTED", "STATE"],
        found.map((one) => [one.run, `${one.workflow}@${one.version}`, time(one.createdAt), oneLine(stateOf(one), 90)])
      )

/** Prints the list, and again after every change of it; each time as one JSON document a line, or over the screen. */
const watch = <E>(list: Effect.Effect<ReadonlyArray<Client.Description>, E>, json: boolean) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const heard = Effect.unsafeMakeLatch(false)
    yield* Effect.acquireRelease(
      Effect.sync(() => ledger.subscribe(() => heard.unsafeOpen())),
      (stop) => Effect.sync(stop)
    )
    let last: string | undefined
    for (;;) {
      // Closed before the look: what happens while it is under way asks for another one.
      heard.unsafeClose()
      const found = yield* list
      const text = JSON.stringify(found)
      if (text !== last) {
        if (!json && process.stdout.isTTY) yield* Console.log("\u001b[H\u001b[J")
        yield* print(json, found, () => rows(found))
      }
      last = text
      yield* Effect.timeoutOption(heard.await, lookEvery)
    }
  }).pipe(Effect.scoped)
