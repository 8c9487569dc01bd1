/** `fermata schedules`: lists schedules; pauses, resumes, triggers and backfills one. */
import { Args, Command, Options } from "@effect/cli"
import { Client, type RunSchedule } from "@fermata/runtime"
import { Effect, Option } from "effect"
import { common, onPlane, timeOf } from "../Flags.js"
import { oneLine, print, table, time } from "../Output.js"

const id = Args.text({ name: "schedule" })

const specText = (spec: RunSchedule.ScheduleSpec): string =>
  spec._tag === "Cron" ? `${spec.expression} (${spec.zone})` : `every ${spec.every} ms`

const list = Command.make("list", common, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      const all: Array<RunSchedule.State> = []
      for (;;) {
        const last = all.at(-1)
        const page = yield* client.schedules.list(last === undefined ? {} : { after: last.id })
        all.push(...page)
        if (page.length === 0) break
      }
      yield* print(options.json, all, () =>
        all.length === 0
          ? ["No schedules."]
          : table(
              ["SCHEDULE", "WORKFLOW", "NEXT", "FIRED", "MISSED", "WHEN"],
              all.map((one) => [
                one.id,
                `${one.workflow}@${one.version}`,
                one.paused ? "paused" : one.nextAt === null ? "never" : time(one.nextAt),
                String(one.fired),
                String(one.missed),
                oneLine(specText(one.spec), 60)
              ])
            )
      )
    })
  )
).pipe(Command.withDescription("List schedules"))

const pausing = (name: "pause" | "resume", said: string) =>
  Command.make(name, { ...common, id }, (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        yield* client.schedules[name](options.id)
        yield* print(options.json, { schedule: options.id, paused: name === "pause" }, () => [`${said} ${options.id}`])
      })
    )
  )

const trigger = Command.make("trigger", { ...common, id }, (options) =>
  onPlane(
    options,
    Effect.gen(function* () {
      const client = yield* Client.Client
      const started = yield* client.schedules.trigger(options.id)
      yield* print(options.json, started, () => [`Started ${started.branch}`])
    })
  )
).pipe(Command.withDescription("Start a run of the schedule now"))

const backfill = Command.make(
  "backfill",
  { ...common, id, from: Options.text("from"), to: Options.text("to").pipe(Options.optional) },
  (options) =>
    onPlane(
      options,
      Effect.gen(function* () {
        const client = yield* Client.Client
        const from = yield* timeOf("--from", options.from)
        const to = Option.isSome(options.to) ? yield* timeOf("--to", options.to.value) : new Date()
        const done = yield* client.schedules.backfill(options.id, { from, to })
        yield* print(options.json, done, () => [`Started ${done.started} runs; ${done.existing} were there`])
      })
    )
).pipe(Command.withDescription("Start the runs of a span of time that have none"))

export const schedules = Command.make("schedules").pipe(
  Command.withDescription("List, pause, resume, trigger and backfill schedules"),
  Command.withSubcommands([
    list,
    pausing("pause", "Paused").pipe(Command.withDescription("Let a schedule fire no more until it is resumed")),
    pausing("resume", "Resumed").pipe(Command.withDescription("Let a paused schedule fire again")),
    trigger,
    backfill
  ])
)
