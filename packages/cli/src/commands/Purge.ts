/** `fermata purge`: removes runs that are over, for good: one, or all that filters mean. */
import { Args, Command, Options } from "@effect/cli"
import { Client } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { UsageError } from "../CliError.js"
import { common, onPlane } from "../Flags.js"
import { print } from "../Output.js"
import { filterOf, runFilters } from "../RunFilters.js"

const pageSize = 500

export const purge = Command.make(
  "purge",
  {
    ...common,
    ...runFilters,
    dryRun: Options.boolean("dry-run").pipe(Options.withDescription("Say what would be purged, and purge nothing")),
    run: Args.text({ name: "run" }).pipe(Args.optional)
  },
  (options) =>
    Effect.gen(function* () {
      const filter = yield* filterOf(options)
      const filtered = Object.keys(filter).length > 0
      if (filtered === Option.isSome(options.run)) {
        // A purge of everything has to be asked for in so many words.
        yield* new UsageError({ what: "purge", detail: "takes a run, or filters: one of the two" })
      }
      yield* onPlane(
        options,
        Effect.gen(function* () {
          const client = yield* Client.Client
          const { run } = options
          if (Option.isSome(run)) {
            if (options.dryRun) {
              const over = (yield* client.branches(run.value)).every(({ status }) => isOver(status))
              return yield* print(options.json, { run: run.value, purged: false, over }, () => [
                `${over ? "Would purge" : "Would refuse to purge, since it is not over:"} ${run.value}`
              ])
            }
            yield* client.purge(run.value)
            return yield* print(options.json, { run: run.value, purged: true }, () => [`Purged ${run.value}`])
          }
          const purged: Array<string> = []
          const kept: Array<string> = []
          let page = yield* client.list({ ...filter, limit: pageSize })
          for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
            for (const one of page) {
              const over = (yield* Effect.orElseSucceed(client.branches(one.run), () => [])).every(({ status }) =>
                isOver(status)
              )
              const gone =
                over &&
                (options.dryRun ||
                  (yield* client.purge(one.run).pipe(
                    Effect.as(true),
                    // Others purge, or forked it just now.
                    Effect.catchTags({
                      RunNotFound: () => Effect.succeed(false),
                      RunPurged: () => Effect.succeed(false),
                      RunNotOver: () => Effect.succeed(false)
                    })
                  )))
              ;(gone ? purged : kept).push(one.run)
            }
            page = yield* client.list({ ...filter, limit: pageSize, after: last })
          }
          yield* print(options.json, { dryRun: options.dryRun, purged, kept }, () => [
            `${options.dryRun ? "Would purge" : "Purged"} ${purged.length} runs${purged.length === 0 ? "" : `: ${purged.join(", ")}`}`,
            ...(kept.length === 0 ? [] : [`Kept ${kept.length} that are not over, or were purged meanwhile`])
          ])
        })
      )
    })
).pipe(Command.withDescription("Remove runs whose branches are all over"))

const isOver = (status: Client.Description["status"]): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"
