/** Options that say which runs are meant, as `runs` and `purge` take them. */
import { Options } from "@effect/cli"
import type { Client } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { UsageError } from "./CliError.js"
import { timeOf } from "./Flags.js"

const statuses = ["ready", "running", "waiting", "stuck", "completed", "failed", "cancelled"] as const
const time = (name: string, what: string) =>
  Options.text(name).pipe(Options.withDescription(`${what} this time (ISO 8601)`), Options.optional)

export const runFilters = {
  workflow: Options.text("workflow").pipe(Options.withDescription("Runs of this workflow"), Options.optional),
  status: Options.choice("status", statuses).pipe(Options.withDescription("Runs of this status"), Options.optional),
  tag: Options.text("tag").pipe(
    Options.withDescription('Runs with this tag: NAME=VALUE, or NAME=MIN..MAX for numbers; "5" in quotes is a text'),
    Options.repeated
  ),
  startedAfter: time("started-after", "Started at or after"),
  startedBefore: time("started-before", "Started before"),
  endedAfter: time("ended-after", "Ended at or after"),
  endedBefore: time("ended-before", "Ended before")
}

/** The values of {@link runFilters}. */
export interface RunFilters {
  readonly workflow: Option.Option<string>
  readonly status: Option.Option<(typeof statuses)[number]>
  readonly tag: ReadonlyArray<string>
  readonly startedAfter: Option.Option<string>
  readonly startedBefore: Option.Option<string>
  readonly endedAfter: Option.Option<string>
  readonly endedBefore: Option.Option<string>
}

/** The filter that the options say. */
export const filterOf = (options: RunFilters): Effect.Effect<Client.RunFilter, UsageError> =>
  Effect.gen(function* () {
    const tags: Record<string, ReturnType<typeof conditionOf>> = {}
    for (const text of options.tag) {
      const equals = text.indexOf("=")
      if (equals < 1) return yield* new UsageError({ what: "--tag", detail: "is not NAME=VALUE or NAME=MIN..MAX" })
      tags[text.slice(0, equals)] = conditionOf(text.slice(equals + 1))
    }
    const times: { -readonly [K in "startedAfter" | "startedBefore" | "endedAfter" | "endedBefore"]?: Date } = {}
    for (const [name, flag] of [
      ["startedAfter", "--started-after"],
      ["startedBefore", "--started-before"],
      ["endedAfter", "--ended-after"],
      ["endedBefore", "--ended-before"]
    ] as const) {
      const given = options[name]
      if (Option.isSome(given)) times[name] = yield* timeOf(flag, given.value)
    }
    return {
      ...(Option.isSome(options.workflow) ? { workflow: options.workflow.value } : {}),
      ...(Option.isSome(options.status) ? { status: options.status.value } : {}),
      ...(options.tag.length === 0 ? {} : { tags }),
      ...times
    }
  })

const number = /^-?\d+(\.\d+)?$/

/** A number where it reads as one; a text in quotes, or anything else, is a text. */
const conditionOf = (text: string): string | number | { readonly min?: number; readonly max?: number } => {
  if (number.test(text)) return Number(text)
  if (text.length >= 2 && text.startsWith('"') && text.endsWith('"')) return text.slice(1, -1)
  const [, min = "", max = ""] = /^(-?\d+(?:\.\d+)?)?\.\.(-?\d+(?:\.\d+)?)?$/.exec(text) ?? []
  if (min === "" && max === "") return text
  return { ...(min === "" ? {} : { min: Number(min) }), ...(max === "" ? {} : { max: Number(max) }) }
}
