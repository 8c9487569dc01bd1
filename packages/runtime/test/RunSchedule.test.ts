import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Layer, Schema, TestClock } from "effect"
import { Client, RunSchedule, Workflow } from "../src/index.js"
import * as Testing from "../src/testing.js"

const Report = Workflow.make("report", { version: "1", input: Schema.String, success: Schema.String }, (name) =>
  Effect.succeed(name)
)
const Long = Workflow.make("long", { version: "1", input: Schema.String }, () => Effect.sleep("61 minutes"))

const Live = Testing.worker({ workflows: [Report, Long] }).pipe(Layer.provideMerge(Testing.layer))

const runs = (client: Client.Client, status?: "cancelled" | "completed") =>
  Effect.map(client.list(status === undefined ? {} : { status }), (all) => all.map(({ run }) => run as string).sort())
const at = (schedule: string, ...times: ReadonlyArray<string>) =>
  times.map((time) => `${schedule}/1970-01-${time}:00.000Z`)

describe("a schedule", () => {
  it.effect("starts a run at each of its times, by itself, under the time's own id", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const spec = RunSchedule.cron("0 9 * * *", { zone: "Europe/Berlin" })
      assert.isTrue(yield* client.schedules.create("digest", { workflow: Report, input: "all", spec }))
      yield* TestClock.adjust("8 hours")
      const [first] = at("digest", "01T08:00")
      assert.strictEqual(yield* client.result(Report, first ?? ""), "all")
      yield* TestClock.adjust("1 days")
      yield* client.result(Report, "digest/1970-01-02T08:00:00.000Z")
      assert.deepStrictEqual(yield* runs(client), at("digest", "01T08:00", "02T08:00"))
      const state = yield* client.schedules.describe("digest")
      assert.deepStrictEqual([state.fired, state.missed, state.lastRun], [2, 0, "digest/1970-01-02T08:00:00.000Z"])
    }).pipe(Effect.provide(Live))
  )

  it.effect("leaves out what overlaps, and with buffer starts it within a second of the end of the one before", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const spec = RunSchedule.every("1 hour")
      yield* client.schedules.create("skip", { workflow: Long, input: "", spec })
      yield* client.schedules.create("buffer", { workflow: Long, input: "", spec, overlap: "buffer" })
      yield* client.schedules.create("cancel", { workflow: Long, input: "", spec, overlap: "cancel-previous" })
      const begun = (run: string) =>
        client.awaitStatus(run, ({ status }) => status === "waiting" || status === "completed")
      yield* TestClock.adjust("1 hours")
      yield* Effect.forEach(["skip", "buffer", "cancel"], (id) => begun(`${id}/1970-01-01T01:00:00.000Z`))
      yield* TestClock.adjust("1 hours")
      assert.isTrue(Either.isLeft(yield* Effect.either(client.result(Long, "cancel/1970-01-01T01:00:00.000Z"))))
      yield* TestClock.adjust("1 minutes")
      yield* client.result(Long, "buffer/1970-01-01T01:00:00.000Z")
      yield* TestClock.adjust("1 seconds")
      yield* begun("buffer/1970-01-01T02:00:00.000Z")
      const all = yield* runs(client)
      assert.deepStrictEqual(all, [
        ...at("buffer", "01T01:00", "01T02:00"),
        ...at("cancel", "01T01:00", "01T02:00"),
        ...at("skip", "01T01:00")
      ])
      assert.strictEqual((yield* client.schedules.describe("skip")).overlapped, 1)
    }).pipe(Effect.provide(Live))
  )

  it.effect("makes up for what no worker was there for, as far as the window goes", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.schedules.create("s", {
        workflow: Report,
        input: "x",
        spec: RunSchedule.every("1 hour"),
        overlap: "allow",
        catchUp: "90 minutes"
      })
      yield* TestClock.adjust("5 hours")
      yield* Effect.gen(function* () {
        for (const run of at("s", "01T04:00", "01T05:00")) {
          // The worker fires it by itself: it is there soon.
          const turn = Effect.promise(() => new Promise((resume) => setImmediate(resume)))
          const result = Effect.tapErrorTag(client.result(Report, run), "RunNotFound", () => turn)
          yield* Effect.retry(result, { while: ({ _tag }) => _tag === "RunNotFound" })
        }
      }).pipe(Effect.provide(Testing.worker({ workflows: [Report] })))
      assert.deepStrictEqual(yield* runs(client), at("s", "01T04:00", "01T05:00"))
      assert.strictEqual((yield* client.schedules.describe("s")).missed, 3)
      const range = { from: new Date("1970-01-01T01:00Z"), to: new Date("1970-01-01T05:00Z") }
      assert.deepStrictEqual(yield* client.schedules.backfill("s", range), { started: 3, existing: 2 })
      assert.deepStrictEqual(yield* client.schedules.backfill("s", range), { started: 0, existing: 5 })
      assert.isTrue((yield* client.schedules.trigger("s")).created === false)
      assert.isTrue((yield* client.schedules.trigger("s", new Date(1))).created)
    }).pipe(Effect.provide(Testing.layer))
  )

  it.effect("that is paused makes up for nothing; one that is deleted fires no more", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      yield* client.schedules.create("s", { workflow: Report, input: "x", spec: RunSchedule.every("1 hour") })
      yield* client.schedules.pause("s")
      yield* TestClock.adjust("150 minutes")
      yield* client.schedules.resume("s")
      yield* TestClock.adjust("30 minutes")
      yield* client.result(Report, "s/1970-01-01T03:00:00.000Z")
      yield* client.schedules.delete("s")
      yield* TestClock.adjust("3 hours")
      assert.deepStrictEqual(yield* runs(client), at("s", "01T03:00"))
      const gone = yield* Effect.either(client.schedules.describe("s"))
      assert.isTrue(Either.isLeft(gone) && gone.left._tag === "ScheduleNotFound")
    }).pipe(Effect.provide(Live))
  )

  it.effect("that cannot be is refused with what is wrong, and nothing is written", () =>
    Effect.gen(function* () {
      const client = yield* Client.Client
      const refused = (options: Partial<Client.ScheduleOptions<"report", string, string, never, never>>, id = "s") =>
        Effect.map(
          Effect.flip(
            client.schedules.create(id, { workflow: Report, input: "x", spec: RunSchedule.every("1 hour"), ...options })
          ),
          ({ _tag, message }) => [_tag, message] as const
        )
      for (const [spec, says] of [
        [RunSchedule.cron("0 0 30 2 *"), "never fires"],
        [RunSchedule.cron("0 0 * * *", { zone: "Mars/Base" }), "no time zone"],
        [RunSchedule.cron("x"), "not a cron expression"],
        [RunSchedule.every(0), "at least 1"]
      ] as const) {
        const [tag, message] = yield* refused({ spec })
        assert.strictEqual(tag, "ScheduleInvalid")
        assert.include(message, says)
      }
      assert.strictEqual((yield* refused({ catchUp: Infinity }))[0], "ScheduleInvalid")
      assert.strictEqual((yield* refused({ key: "k" }))[0], "InvalidValue")
      assert.strictEqual((yield* refused({}, "a|b"))[0], "InvalidId")
      assert.deepStrictEqual(yield* client.schedules.list(), [])
      yield* client.schedules.create("s", { workflow: Report, input: "x", spec: RunSchedule.every("1 hour") })
      assert.strictEqual((yield* refused({ input: "y" }))[0], "ScheduleConflict")
      const future = { from: new Date(0), to: new Date("2999-01-01") }
      assert.strictEqual((yield* Effect.flip(client.schedules.backfill("s", future)))._tag, "InvalidValue")
    }).pipe(Effect.provide(Testing.layer))
  )
})
