/** Every command on SQLite in this process; the ones that cross processes as real ones, on both databases. */
import { NodeContext } from "@effect/platform-node"
import { Client, RunSchedule, Signal, Worker, Workflow } from "@fermata/runtime"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { describe, expect, it } from "@effect/vitest"
import { Console, Effect, Layer, Schema } from "effect"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Cli from "../src/Cli.js"
import { conclude, masked } from "../src/Conclusion.js"

const module = fileURLToPath(new URL("../../../examples/first-workflow/dist/workflows.js", import.meta.url))
const program = fileURLToPath(new URL("../bin/fermata.js", import.meta.url))

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a command line in this process. */
const fermata = (...parameters: ReadonlyArray<string>): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const out: Array<string> = []
    const err: Array<string> = []
    const inner = yield* Console.consoleWith(Effect.succeed)
    const console = masked({
      ...inner,
      log: (...parts: ReadonlyArray<unknown>) => Effect.sync(() => void out.push(parts.join(" "))),
      error: (...parts: ReadonlyArray<unknown>) => Effect.sync(() => void err.push(parts.join(" ")))
    })
    const code = yield* Cli.run(["node", "fermata", ...parameters]).pipe(
      Effect.as(0),
      Effect.catchAllCause((cause) => conclude(cause, parameters.includes("--json"))),
      Effect.withConsole(console),
      Effect.provide(NodeContext.layer)
    )
    return { code, out: out.join("\n"), err: err.join("\n") }
  })

const json = ({ out }: Outcome): unknown => JSON.parse(out)

/** Runs it as a process of its own; `until` ends the wait when it has printed so much, and leaves it running. */
const process_ = (parameters: ReadonlyArray<string>, environment: Record<string, string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [program, ...parameters], { env: { ...process.env, ...environment } })),
    (child) =>
      Effect.async<void>((resume) => {
        if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )

/** A module of workflows in a file of its own. */
const expense = '{"who":"Ada","cents":12000}'

describe("the command line", () => {
  it.scopedLive("says what is wrong with a command, with an exit code for each kind, and changes nothing", () =>
    Effect.gen(function* () {
      const folder = yield* PlaneAddress.freshFolder
      const db = join(folder, "plane.db")
      // Looking does not create a database.
      expect(yield* fermata("runs", "--db", db)).toMatchObject({ code: 64, out: "" })
      expect((yield* fermata("migrate", "--db", db, "--json")).code).toBe(0)
      expect(json(yield* fermata("runs", "--db", db, "--json"))).toEqual([])
      expect(yield* fermata("show", "nobody", "--db", db)).toMatchObject({ code: 3 })
      expect(yield* fermata("cancel", "nobody", "--db", db, "--json")).toMatchObject({ code: 3, out: "" })
      expect(yield* fermata("runs", "--db", db, "--url", db)).toMatchObject({ code: 64 })
      expect(yield* fermata("runs", "--url", "mysql://u:secret@h/d")).toMatchObject({ code: 64 })
      expect(yield* fermata("runs", "--stauts", "stuck", "--db", db)).toMatchObject({ code: 64 })
      const start = (input: string) =>
        fermata("start", "reimburse", "--module", module, "--db", db, "--input", input, "--json")
      const refused = yield* start('{"who":"Ada","cents":"many secrets"}')
      expect(refused.code).toBe(64)
      // Where, and not what: the value may be a secret.
      expect(refused.err).toContain("$.cents")
      expect(refused.err).not.toContain("many secrets")
      expect(yield* start("{")).toMatchObject({ code: 64 })
      expect(json(yield* fermata("runs", "--db", db, "--json"))).toEqual([])
    })
  )

  it.scopedLive("never prints the password of a URL, wherever it stands in the command", () =>
    Effect.gen(function* () {
      const url = "postgres://ada:hunter2@127.0.0.1:1/plane"
      const away = yield* fermata("doctor", "--url", url, "--json")
      expect(away.code).toBe(4)
      const misplaced = yield* fermata("doctor", url)
      expect(misplaced.code).toBe(64)
      const ambiguous = yield* fermata("doctor", "--url", "postgres://ada:hun@ter2@127.0.0.1:1/plane@x")
      for (const { err, out } of [away, misplaced, ambiguous]) expect(err + out).not.toMatch(/hunter2|ter2/)
      expect(away.err).toContain("127.0.0.1:1/plane")
    })
  )

  it.scopedLive("refuses a module that is none, naming every export that is wrong", () =>
    Effect.gen(function* () {
      const folder = yield* PlaneAddress.freshFolder
      const file = join(folder, "wrong.mjs")
      writeFileSync(file, "export const workflows = [{ name: 'a' }]; export const layer = 1")
      const { code, err } = yield* fermata("worker", "--module", file, "--db", join(folder, "plane.db"))
      expect(code).toBe(64)
      expect(err).toContain("workflows.0")
      expect(err).toContain("layer")
      writeFileSync(join(folder, "broken.mjs"), "export const = 1")
      expect((yield* fermata("worker", "--module", join(folder, "broken.mjs"), "--db", "x")).code).toBe(64)
      expect((yield* fermata("worker", "--module", join(folder, "none.mjs"), "--db", "x")).code).toBe(64)
    })
  )

  it.scopedLive(
    "doctor and show name a run that no worker serves; cancel, purge and verify say what became of it",
    () =>
      Effect.gen(function* () {
        const folder = yield* PlaneAddress.freshFolder
        const db = join(folder, "plane.db")
        const at = ["--db", db, "--json"]
        yield* fermata("start", "reimburse", "--module", module, "--input", expense, "--run", "r", ...at)
        const doctor = yield* fermata("doctor", ...at)
        expect(doctor.code).toBe(1)
        expect(json(doctor)).toMatchObject({ findings: [{ kind: "unserved", subject: "reimburse@1" }] })
        expect(json(yield* fermata("show", "r", ...at))).toMatchObject({
          branch: { status: "ready", waitingFor: [{ _tag: "Worker", definition: "reimburse@1" }] },
          timeline: [{ seq: 1, kind: "run.started" }]
        })
        expect(json(yield* fermata("runs", "--status", "ready", ...at))).toMatchObject([{ run: "r" }])
        expect(json(yield* fermata("runs", "--status", "stuck", ...at))).toEqual([])
        // It goes on, or would: it may not be purged.
        expect((yield* fermata("purge", "r", ...at)).code).toBe(2)
        expect(json(yield* fermata("cancel", "r", ...at))).toEqual({ of: "r", verdict: "Accepted" })
        expect(json(yield* fermata("cancel", "r", ...at))).toEqual({ of: "r", verdict: "Duplicate" })
        expect(json(yield* fermata("verify", ...at))).toEqual({ runs: 1, branches: 1, entries: 1, problems: [] })
      })
  )

  it.scopedLive("replays an exported history with a module's code, and names where changed code departs from it", () =>
    Effect.gen(function* () {
      const folder = yield* PlaneAddress.freshFolder
      const db = join(folder, "plane.db")
      yield* fermata("start", "reimburse", "--module", module, "--input", expense, "--run", "r", "--db", db)
      const file = join(folder, "history.json")
      const { out } = yield* fermata("history", "r", "--db", db, "--json")
      writeFileSync(file, out)
      expect(json(yield* fermata("replay", file, "--module", module, "--json"))).toMatchObject({ entries: 1 })
      // Edited by hand: refused, not replayed.
      writeFileSync(file, out.replace("12000", "12001"))
      expect(yield* fermata("replay", file, "--module", module)).toMatchObject({ code: 64 })
    })
  )
})

describe.each(PlaneAddress.databases)("finding and keeping by the command line on %s", (database) => {
  it.scopedLive(
    "runs are counted by tag, signalled, exported, imported and purged; schedules and queues are listed and paused",
    () =>
      Effect.gen(function* () {
        const folder = yield* PlaneAddress.freshFolder
        const address = yield* PlaneAddress.fresh(database)
        const at = ["--url", address._tag === "Sqlite" ? address.filename : address.url, "--json"]
        const other = ["--db", join(folder, "other.db"), "--json"]
        const file = join(folder, "module.mjs")
        const runtime = fileURLToPath(new URL("../../runtime/dist/index.js", import.meta.url))
        writeFileSync(
          file,
          `import { Signal, Workflow } from ${JSON.stringify(runtime)}
           const Hurry = Signal.make("hurry")
           export const workflows = [Workflow.make("order", { version: "1", signals: [Hurry] }, () => Signal.next(Hurry))]`
        )
        const Order = Workflow.make(
          "order",
          { version: "1", signals: [Signal.make("hurry")], tags: { tenant: Schema.String, cents: Schema.Number } },
          () => Effect.void
        )
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          for (const [run, cents] of [
            ["a", 100],
            ["b", 200]
          ] as const) {
            yield* client.start(Order, undefined, { run, tags: { tenant: "acme", cents }, queue: "mail" })
          }
          const spec = RunSchedule.every("1 hour")
          yield* client.schedules.create("hourly", { workflow: Order, input: undefined, spec })
        }).pipe(Effect.provide(PlaneAddress.layer(address)))

        expect(json(yield* fermata("runs", "--tag", "tenant=acme", "--tag", "cents=150..", ...at))).toMatchObject([
          { run: "b" }
        ])
        expect(json(yield* fermata("runs", "--count", "--tag", "tenant=acme", ...at))).toEqual({ count: 2 })
        expect(yield* fermata("runs", "--tag", "tenant", ...at)).toMatchObject({ code: 64 })
        expect(yield* fermata("runs", "--started-after", "soon", ...at)).toMatchObject({ code: 64 })

        const signal = ["signal", "a", "hurry", "--module", file, "--message", "m"]
        expect(json(yield* fermata(...signal, ...at))).toMatchObject({ verdict: "Accepted", message: "m" })
        expect(json(yield* fermata(...signal, ...at))).toMatchObject({ verdict: "Duplicate" })
        expect(yield* fermata("signal", "a", "slow", "--module", file, ...at)).toMatchObject({ code: 64 })

        expect(json(yield* fermata("queues", "list", ...at))).toMatchObject([
          { name: "mail", ready: 2, paused: false, workers: [] }
        ])
        expect(json(yield* fermata("queues", "pause", "mail", ...at))).toEqual({ queue: "mail", paused: true })
        // No worker serves the queue: doctor says so.
        expect(json(yield* fermata("doctor", ...at))).toMatchObject({
          findings: [{ kind: "unserved", subject: "order@1|mail" }]
        })

        expect(json(yield* fermata("schedules", "pause", "hourly", ...at))).toMatchObject({ paused: true })
        expect(json(yield* fermata("schedules", "list", ...at))).toMatchObject([{ id: "hourly", paused: true }])
        expect(json(yield* fermata("schedules", "trigger", "hourly", ...at))).toMatchObject({ created: true })
        expect(yield* fermata("schedules", "resume", "daily", ...at)).toMatchObject({ code: 3 })

        const { out } = yield* fermata("export", "a", ...at)
        const lines = join(folder, "a.jsonl")
        writeFileSync(lines, `${out}\n`)
        expect(json(yield* fermata("import", lines, ...other))).toMatchObject({ run: "a", branches: 1 })
        expect(yield* fermata("import", lines, ...other)).toMatchObject({ code: 2 })
        writeFileSync(lines, out.replace("acme", "evil"))
        expect(yield* fermata("import", lines, ...at)).toMatchObject({ code: 64 })

        expect(yield* fermata("purge", ...at)).toMatchObject({ code: 64 })
        expect(json(yield* fermata("purge", "--tag", "tenant=acme", "--dry-run", ...at))).toEqual({
          dryRun: true,
          purged: [],
          kept: ["b", "a"]
        })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          yield* client.queues.resume("mail")
          for (const run of ["a", "b"]) yield* client.awaitStatus(run, ({ status }) => status === "completed")
        }).pipe(
          Effect.provide(
            Worker.layer({ workflows: [Order], queues: ["mail"] }).pipe(Layer.provideMerge(PlaneAddress.layer(address)))
          )
        )
        const over = ["purge", "--status", "completed", "--tag", "tenant=acme", "--ended-after", "2020-01-01"]
        expect(json(yield* fermata(...over, "--dry-run", ...at))).toMatchObject({ purged: ["b", "a"] })
        expect(json(yield* fermata(...over, ...at))).toMatchObject({ dryRun: false, purged: ["b", "a"] })
        expect(yield* fermata("export", "a", ...at)).toMatchObject({ code: 3 })
      }),
    60_000
  )
})

describe.each(PlaneAddress.databases)("processes of the command line on %s", (database) => {
  it.scopedLive(
    "a worker serves what another process starts, answers once, and lets go on SIGTERM",
    () =>
      Effect.gen(function* () {
        const address = yield* PlaneAddress.fresh(database)
        const named = address._tag === "Sqlite" ? address.filename : address.url
        const environment = { FERMATA_DATABASE: named }
        const worker = yield* process_(["worker", "--module", module, "--json"], environment)
        const [announced] = yield* Effect.async<ReadonlyArray<string>>((resume) => {
          let text = ""
          worker.stdout.on("data", (data: Buffer) => {
            text += data.toString()
            if (text.includes("\n")) resume(Effect.succeed(text.split("\n")))
          })
        })
        expect(JSON.parse(announced ?? "")).toMatchObject({ definitions: ["reimburse@1"], pid: worker.pid })
        yield* Effect.gen(function* () {
          const client = yield* Client.Client
          const at = ["--url", named, "--json"]
          yield* fermata("start", "reimburse", "--module", module, "--input", expense, "--run", "r", ...at)
          yield* client.awaitStatus("r", ({ status }) => status === "waiting")
          const shown = json(yield* fermata("show", "r", ...at))
          expect(shown).toMatchObject({ pending: [{ interrupt: "approval#1", checkpoint: { seq: 2 } }] })
          const answer = (value: string, ...more: ReadonlyArray<string>) =>
            fermata("answer", "r", "approval#1", "--module", module, "--value", value, ...more, ...at)
          expect(yield* answer('"yes"')).toMatchObject({ code: 64 })
          expect(json(yield* answer("true"))).toMatchObject({ _tag: "Answered", verdict: "Accepted" })
          // CO: said again it is inert; another one is refused; a fork is another branch.
          expect(json(yield* answer("true"))).toMatchObject({ verdict: "Duplicate" })
          expect((yield* answer("false")).code).toBe(2)
          expect(json(yield* answer("false", "--fork", "no"))).toMatchObject({ _tag: "Forked", branch: "r/no" })
          yield* client.awaitStatus("r/no", ({ status }) => status === "completed")
          const result = yield* fermata(
            "start",
            "reimburse",
            "-m",
            module,
            "--input",
            expense,
            "--run",
            "r",
            "--wait",
            ...at
          )
          expect(json(result)).toMatchObject({ created: false, value: expect.stringContaining("receipt") as unknown })
          expect(json(yield* fermata("doctor", ...at))).toMatchObject({
            findings: [],
            facts: { branches: { completed: 2 }, workers: [{ state: "alive", definitions: ["reimburse@1"] }] }
          })
          worker.kill("SIGTERM")
          const code = yield* Effect.async<number | null>((resume) => {
            worker.once("exit", (code) => resume(Effect.succeed(code)))
          })
          expect(code).toBe(130)
          expect(json(yield* fermata("doctor", ...at))).toMatchObject({ facts: { workers: [{ state: "left" }] } })
        }).pipe(Effect.provide(PlaneAddress.layer(address)))
      }),
    120_000
  )
})
