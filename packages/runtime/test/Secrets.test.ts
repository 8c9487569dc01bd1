/** What a value or a password says never shows in an error, in a problem, in a log line or in what inspection tells. */
import { assert, describe, it } from "@effect/vitest"
import { BranchId } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client, Delivery, Interrupt, Node, Plane, SideEffect, Worker, Workflow } from "@fermata/runtime"
import { freshPostgres } from "@fermata/test/Postgres"
import { startPostgres } from "@fermata/test/PostgresServer"
import { Context, Effect, Either, Layer, Logger, Redacted, Schema } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"

const canary = "CANARY-59c1"

/** Every way in which an error could be shown. */
const shown = (error: unknown): string =>
  [String(error), JSON.stringify(error), inspect(error, { depth: 20, showHidden: true })].join("\n")

/** Keeps what is logged, instead of printing it. */
const capture = () => {
  const lines: Array<string> = []
  const logger = Logger.make((entry) => {
    lines.push(Logger.logfmtLogger.log(entry), Logger.jsonLogger.log(entry), inspect(entry.message, { depth: 20 }))
  })
  return { lines, layer: Logger.replace(Logger.defaultLogger, logger) }
}

const isSilent = (where: string, text: string): void => {
  const at = text.indexOf(canary)
  assert.isTrue(at < 0, `${where} says: ${text.slice(Math.max(0, at - 200), at + 40)}`)
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-secrets-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

// ── Values ──────────────────────────────────────────────────────────────────────────────────────────────────

const Card = Schema.Struct({ number: Schema.String, cents: Schema.Number })
const card = { number: canary, cents: 1 }
const broken = { number: canary, cents: canary as unknown as number }

const Ask = Interrupt.make("ask", { payload: Card, answer: Card })
const Pay = SideEffect.make("pay", { delivery: Delivery.once(), input: Card, success: Card, error: Card })
const pay = Node.make("pay", { input: Card, success: Card, error: Card, effects: [Pay] }, (given) => Pay(given))
const Badly = SideEffect.make("badly", { delivery: Delivery.keyed, input: Card, success: Card })
const badly = Node.make("badly", { input: Card, success: Card, effects: [Badly] }, (given) => Badly(given))
const look = Node.make("look", { input: Card, success: Card }, (given) => Effect.succeed(given))
const Buys = Workflow.make("buys", { version: "1", input: Card, success: Card, error: Card }, (given) =>
  Effect.gen(function* () {
    const seen = yield* look(given)
    yield* Effect.all([Effect.ignore(badly(seen)), Effect.ignore(pay(seen))], { concurrency: 2 })
    return yield* Ask(seen)
  })
)
/** As a careless deployment changes it: another input for the step, another field in the Schema. */
const changed = (readonly: "input" | "schema") => {
  const Stricter = Schema.Struct({ number: Schema.String.pipe(Schema.maxLength(3)), cents: Schema.Number })
  const other = Node.make("look", { input: Card, success: readonly === "schema" ? Stricter : Card }, (given) =>
    Effect.succeed(given)
  )
  return Workflow.make("buys", { version: "1", input: Card, success: Card, error: Card }, (given) =>
    Effect.gen(function* () {
      yield* other(readonly === "input" ? { ...given, cents: 2 } : given)
      return yield* Ask(given)
    })
  )
}

const Handlers = Layer.merge(
  Pay.toLayer(() => Effect.die(new Error("the line is dead"))),
  Badly.toLayer(() => Effect.succeed(broken))
)

const secretSuite = <E>(place: string, plane: Layer.Layer<Plane.Plane, E>): void => {
  describe(`values on ${place}`, () => {
    it.scopedLive("are not repeated by refusals, problems, damage or the log", () => {
      const { layer, lines } = capture()
      return Effect.gen(function* () {
        const client = yield* Client.Client
        const ledger = yield* Ledger
        const errors: Array<unknown> = []
        /** What fails, and must; its error is kept. */
        const fails = <A, E2, R>(effect: Effect.Effect<A, E2, R>) =>
          Effect.map(Effect.flip(Effect.asVoid(effect)), (error) => void errors.push(error))
        const working = <A, E2, R>(workflow: typeof Buys, body: Effect.Effect<A, E2, R>) =>
          Effect.scoped(
            Effect.zipRight(Layer.build(Worker.layer({ workflows: [workflow] }).pipe(Layer.provide(Handlers))), body)
          )

        const { branch } = yield* client.start(Buys, card, { run: "r" })
        yield* fails(client.start(Buys, broken))
        yield* fails(client.start(Buys, { ...card, cents: 2 }, { run: "r" }))
        yield* working(
          Buys,
          Effect.gen(function* () {
            const stuck = yield* client.awaitStatus("r", ({ status }) => status === "stuck")
            assert.deepStrictEqual(stuck.problems.map(({ _tag }) => _tag).toSorted(), ["EffectValueRefused", "InDoubt"])
            errors.push(stuck)
            for (const problem of stuck.problems) {
              if (!("key" in problem)) continue
              const settle = (settlement: Client.Settlement<typeof card, typeof card>) =>
                client.settle(problem.effect === "pay" ? Pay : (Badly as unknown as typeof Pay), {
                  branch,
                  key: problem.key,
                  settlement
                })
              yield* fails(settle({ _tag: "Happened", value: broken }))
              yield* settle({ _tag: "Happened", value: card })
              yield* client.awaitStatus(
                "r",
                ({ problems, status }) =>
                  status === "waiting" ||
                  (status === "stuck" && !problems.some((left) => "key" in left && left.key === problem.key))
              )
              yield* fails(settle({ _tag: "Happened", value: { ...card, cents: 3 } }))
            }
            yield* client.awaitStatus("r", ({ status }) => status === "waiting")
            const answer = { branch, interrupt: "ask#1", deliveryId: "d", intent: "retry" } as const
            yield* fails(client.resume(Ask, { ...answer, value: broken }))
            const forked = { ...answer, intent: "fork", forkId: "f" } as const
            yield* client.resume(Ask, { ...forked, value: card })
            yield* fails(client.resume(Ask, { ...forked, value: { ...card, cents: 4 } }))
            yield* fails(
              client.forkWithOutcome(look, {
                branch,
                step: "look#1",
                forkId: "g",
                outcome: { _tag: "Success", value: broken }
              })
            )
          })
        )

        // Code that does not fit the history, or does not read it.
        for (const kind of ["input", "schema"] as const) {
          yield* client.fork({ from: { branch, seq: 2 }, forkId: kind })
          const child = BranchId.make(`r/${kind}`)
          yield* working(
            changed(kind) as unknown as typeof Buys,
            Effect.gen(function* () {
              const stuck = yield* client.awaitStatus(child, ({ status }) => status === "stuck")
              assert.strictEqual(stuck.problems[0]?._tag, kind === "input" ? "NonDeterminism" : "ValueUnreadable")
              errors.push(stuck)
            })
          )
        }

        // Rows that are no JSON any more: what a parser says of them must not come out either.
        yield* client.start(Buys, card, { run: "torn" })
        if (ledger.dialect === "pg") yield* ledger.sql`ALTER TABLE fermata_runs DISABLE TRIGGER ALL`
        else yield* ledger.sql`DROP TRIGGER fermata_runs_no_update`
        yield* ledger.sql`UPDATE fermata_runs SET input = ${`${canary}{`} WHERE run_id = ${"torn"}`
        yield* ledger.sql`UPDATE fermata_interrupts SET payload = ${`${canary}{`} WHERE run_id = ${"r"}`
        yield* fails(client.history("torn"))
        yield* fails(client.pendingInterrupts({ run: "r" }))
        errors.push((yield* ledger.verify).problems)
        yield* working(
          Buys,
          Effect.gen(function* () {
            errors.push(yield* client.awaitStatus("torn", ({ status }) => status === "stuck"))
          })
        )

        assert.isAbove(errors.length, 12)
        for (const [index, error] of errors.entries()) isSilent(`error ${index}`, shown(error))
        for (const line of lines) isSilent("the log", line)
      }).pipe(Effect.scoped, Effect.provide(plane.pipe(Layer.provideMerge(layer))))
    })
  })
}

secretSuite(
  "a SQLite file",
  Layer.unwrapScoped(
    Effect.map(folder, (path) => Plane.sqlite({ filename: join(path, "plane.db"), synchronous: "normal" }))
  )
)
secretSuite("PostgreSQL", Layer.unwrapScoped(Effect.map(freshPostgres, (url) => Plane.postgres({ url }))))

// ── Passwords ───────────────────────────────────────────────────────────────────────────────────────────────

describe("the password of a PostgreSQL URL", () => {
  /** The user `app`, whose password is the canary, on the server that `url` names. */
  const withUser = (url: string) =>
    Effect.gen(function* () {
      const { sql } = Context.get(yield* Layer.build(Plane.postgres({ url })), Ledger)
      const name = `app_${new URL(url).pathname.slice(-8)}`
      yield* sql.unsafe(`CREATE ROLE ${name} SUPERUSER LOGIN PASSWORD '${canary}'`)
      yield* Effect.addFinalizer(() => Effect.ignore(sql.unsafe(`DROP ROLE ${name}`)))
      const its = new URL(url)
      its.username = name
      its.password = canary
      return its
    })

  it.scopedLive("is in no error of a plane that cannot be opened, whatever the URL looks like", () => {
    const { layer, lines } = capture()
    return Effect.gen(function* () {
      const sound = yield* Effect.orDie(withUser(yield* freshPostgres))
      const host = sound.host
      const wrongDatabase = new URL(sound)
      wrongDatabase.pathname = "/none"
      const wrongUser = new URL(sound)
      wrongUser.username = "nobody_here"
      const urls = [
        wrongDatabase.href,
        wrongUser.href,
        `postgres://app:${canary}@127.0.0.1:1/orders`,
        `postgres://app:${canary}@no-such-host.invalid/orders`,
        // Not escaped as they should be: parts of the password look like a host or a path.
        `postgres://app:1/${canary}@${host}/orders`,
        `postgres://app:${canary}/x@${host}/orders`,
        `postgres://app:1#${canary}@${host}/orders`,
        `postgres://app:%${canary}@${host}/orders`,
        `app:${canary}@${host}`,
        `//app:${canary}@`,
        `postgres://${host}/orders?user=app&password=${canary}`,
        `postgres://app@127.0.0.1:1/orders?password=${canary}`
      ]
      for (const [index, url] of urls.entries()) {
        for (const given of [url, Redacted.make(url)]) {
          const exit = yield* Effect.exit(Effect.scoped(Layer.build(Plane.postgres({ url: given }))))
          assert.strictEqual(exit._tag, "Failure", `URL ${index}`)
          isSilent(`URL ${index}`, shown(exit))
          if (exit._tag === "Failure") assert.strictEqual(exit.cause._tag, "Fail", `URL ${index} is a typed error`)
        }
      }
      for (const line of lines) isSilent("the log", line)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.scopedLive("is in no error or log line when the server is lost under a worker and comes back", () => {
    const { layer, lines } = capture()
    return Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (server) => Effect.promise(server.stop)
      )
      const url = yield* Effect.orDie(Effect.scoped(Effect.map(withUserKept(server.url), (one) => one.href)))
      yield* Effect.gen(function* () {
        const client = yield* Client.Client
        yield* Layer.build(Worker.layer({ workflows: [Buys], poll: "100 millis" }).pipe(Layer.provide(Handlers)))
        yield* client.start(Buys, card, { run: "r" })
        yield* client.awaitStatus("r", ({ status }) => status === "stuck")
        yield* Effect.promise(server.crash)
        const asked = yield* Effect.fork(Effect.either(client.describe("r")))
        yield* Effect.promise(server.start)
        const answer = yield* asked
        if (Either.isLeft(answer)) isSilent("an error", shown(answer.left))
        const { status } = yield* Effect.retry(client.describe("r"), { times: 20 })
        assert.strictEqual(status, "stuck")
        for (const line of lines) isSilent("the log", line)
      }).pipe(Effect.scoped, Effect.provide(Plane.postgres({ url })))
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  /** As `withUser`, for a server that is thrown away with its users. */
  const withUserKept = (url: string) =>
    Effect.gen(function* () {
      const { sql } = Context.get(yield* Layer.build(Plane.postgres({ url })), Ledger)
      yield* sql.unsafe(`CREATE ROLE app SUPERUSER LOGIN PASSWORD '${canary}'`)
      const its = new URL(url)
      its.username = "app"
      its.password = canary
      return its
    })
})
