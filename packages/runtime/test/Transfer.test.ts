/** A run leaves one database as lines and goes on in another, or nothing of it gets in. */
import { assert, describe, it } from "@effect/vitest"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { Ledger, valueDigest } from "@fermata/ledger"
import { Chunk, Context, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { join } from "node:path"
import { Client, Interrupt, Node, PayloadCodec, Plane, Signal, Worker, Workflow } from "../src/index.js"
import { refusedAs } from "./ClientFixture.js"

const Approval = Interrupt.make("approval", { payload: Schema.String, answer: Schema.String })
const Hurry = Signal.make("hurry", { payload: Schema.String })
const quote = Node.make("quote", { input: Schema.String, success: Schema.Number }, ({ length }) =>
  Effect.succeed(length)
)
const Order = Workflow.make(
  "order",
  {
    version: "1",
    input: Schema.String,
    success: Schema.Struct({ price: Schema.Number, answer: Schema.String, hurry: Schema.String }),
    tags: { tenant: Schema.String, price: Schema.Number },
    signals: [Hurry]
  },
  (what) =>
    Effect.gen(function* () {
      const price = yield* quote(what)
      yield* Workflow.tag({ price })
      const answer = yield* Approval(what)
      return { price, answer, hurry: yield* Signal.next(Hurry) }
    })
)

/** A client of a plane of its own, with a worker if it is to run anything. */
const client = (plane: Layer.Layer<Ledger | Client.Client, unknown>) =>
  Effect.map(
    Layer.build(Layer.fresh(Worker.layer({ workflows: [Order] }).pipe(Layer.provideMerge(plane)))),
    (context) => ({ client: Context.get(context, Client.Client), ledger: Context.get(context, Ledger) })
  )
const at = (database: (typeof PlaneAddress.databases)[number]) =>
  Effect.flatMap(PlaneAddress.fresh(database), (address) => client(PlaneAddress.layer(address)))

/** A run that waits, with a fork that is over and a signal that nobody took. */
const waiting = (source: Client.Client, run: string) =>
  Effect.gen(function* () {
    yield* source.start(Order, "a secret cake", { run, tags: { tenant: "acme" } })
    yield* source.awaitStatus(run, ({ status }) => status === "waiting")
    const answer = { branch: `${run}/main`, interrupt: "approval#1", value: "no", deliveryId: "f" }
    yield* source.resume(Approval, { ...answer, intent: "fork", forkId: "f" })
    yield* source.signal(`${run}/f`, Hurry, "fast")
    yield* source.awaitStatus(`${run}/f`, ({ status }) => status === "completed")
    yield* source.signal(run, Hurry, "now", { messageId: "m" })
    return yield* Effect.map(Stream.runCollect(source.export(run)), Chunk.toReadonlyArray)
  })

/** The lines with digests made anew, as somebody would who edits them on purpose. */
const resummed = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  let sum = ""
  return lines.map((line) => {
    const text = line.slice(0, line.lastIndexOf(',"sum":"'))
    sum = valueDigest(`${sum}\n${text}`)
    return `${text},"sum":"${sum}"}`
  })
}

describe.each([
  ["SQLite", "PostgreSQL"],
  ["PostgreSQL", "SQLite"]
] as const)("a run that is exported from %s", (from, to) => {
  it.scopedLive(
    `waits, is answered and ends on ${to}, once, and a purge keeps it out`,
    () =>
      Effect.gen(function* () {
        const source = yield* at(from)
        const target = yield* at(to)
        const lines = yield* waiting(source.client, "r")
        const received = yield* target.client.import(Stream.fromIterable(lines))
        assert.deepStrictEqual([String(received.run), received.branches], ["r", 2])
        assert.deepStrictEqual((yield* target.ledger.verify).problems, [])
        assert.deepStrictEqual(yield* target.client.tags("r"), { tenant: "acme", price: 13 })
        assert.strictEqual((yield* target.client.result(Order, "r/f")).hurry, "fast")
        const [asked] = yield* target.client.pendingInterrupts({ run: "r" })
        assert.strictEqual(asked?.payload, "a secret cake")
        yield* refusedAs("RunExists", target.client.import(Stream.fromIterable(lines)))

        const answer = { branch: "r/main", interrupt: "approval#1", value: "yes", deliveryId: "d" }
        yield* target.client.resume(Approval, { ...answer, intent: "retry" })
        const expected = { price: 13, answer: "yes", hurry: "now" }
        assert.deepStrictEqual(yield* target.client.result(Order, "r"), expected)
        // The fork that was over is over.
        yield* refusedAs("RunOver", target.client.signal("r/f", Hurry, "fast"))
        // The original is another run in another database: nothing happened to it.
        yield* source.client.awaitStatus("r", ({ status }) => status === "waiting")
        assert.strictEqual((yield* source.client.pendingInterrupts({ run: "r" })).length, 1)

        // A run that is over travels as well, and a purge is for ever.
        const over = yield* Stream.runCollect(target.client.export("r"))
        yield* target.client.purge("r")
        yield* refusedAs("RunPurged", target.client.import(Stream.fromIterable(over)))
        yield* refusedAs("RunPurged", Stream.runCollect(target.client.export("r")))
        yield* refusedAs("RunNotFound", Stream.runCollect(target.client.export("nobody")))
        assert.deepStrictEqual((yield* target.ledger.verify).problems, [])
      }),
    25_000
  )

  it.scopedLive(
    `is refused on ${to} when it is damaged, incomplete, forged or newer, with the line, and nothing of it is stored`,
    () =>
      Effect.gen(function* () {
        const source = yield* at(from)
        const target = yield* at(to)
        const lines = yield* waiting(source.client, "r")
        const refused = (given: ReadonlyArray<string>) =>
          Effect.map(refusedAs("ImportInvalid", target.client.import(Stream.fromIterable(given))), (error) => {
            assert.notInclude(error.message, "secret")
            return [error.reason, error.line] as const
          })
        for (const [index, line] of lines.entries()) {
          const middle = Math.floor(line.length / 2)
          const other = line[middle] === "x" ? "y" : "x"
          const changed = lines.with(index, line.slice(0, middle) + other + line.slice(middle + 1))
          const [reason, at] = yield* refused(changed)
          assert.deepStrictEqual(at, index + 1)
          assert.include(["damaged", ...(index === 0 ? ["not an export"] : [])], reason)
          const missing = lines.toSpliced(index, 1)
          assert.include(["damaged", "incomplete", "not an export"], (yield* refused(missing))[0])
        }
        assert.deepStrictEqual(yield* refused(lines.slice(0, -1)), ["incomplete", lines.length - 1])
        assert.deepStrictEqual(yield* refused([]), ["not an export", 1])
        const newer = lines.with(0, (lines[0] ?? "").replace('"formatVersion":1', '"formatVersion":2'))
        assert.deepStrictEqual(yield* refused(newer), ["newer version", 1])

        // Edited with all lines' digests made anew: what the rows themselves vouch for still says no.
        const forged = (find: (line: string) => boolean, edit: (line: string) => string) => {
          const index = lines.findIndex(find)
          assert.isAtLeast(index, 0)
          return Effect.map(refused(resummed(lines.with(index, edit(lines[index] ?? "")))), ([reason, at]) => {
            assert.strictEqual(reason, "damaged")
            return at === index + 1
          })
        }
        const of =
          (...parts: ReadonlyArray<string>) =>
          (line: string) =>
            parts.every((part) => line.includes(part))
        assert.isTrue(yield* forged(of('"type":"run"'), (line) => line.replace("secret", "public")))
        assert.isTrue(yield* forged(of("step.succeeded"), (line) => line.replace("13", "31")))
        assert.isTrue(yield* forged(of('"type":"inbox"', '"now\\"'), (line) => line.replace('now\\"', 'soon\\"')))
        // What is derived is named by its branch.
        yield* forged(of('"type":"branch"', "r/main"), (line) => line.replace(/"status":"\w+"/, '"status":"failed"'))
        yield* forged(of('"type":"interrupt"'), (line) => line.replace("approval#1", "approval#2"))
        yield* forged(of('"type":"tag"', "acme"), (line) => line.replace("acme", "evil"))
        assert.strictEqual(yield* target.client.count(), 0)
        for (const table of ["runs", "branches", "journal", "inbox", "interrupts", "tags"]) {
          assert.deepStrictEqual(yield* target.ledger.sql.unsafe(`SELECT * FROM fermata_${table}`), [])
        }
        // And as it was, it gets in.
        yield* target.client.import(Stream.fromIterable(lines))
      }),
    25_000
  )
})

describe("a run of a plane with a key", () => {
  it.scopedLive("leaves sealed, and is read where the key is", () =>
    Effect.gen(function* () {
      const folder = yield* PlaneAddress.freshFolder
      const codecs = [
        PayloadCodec.aes256gcm({
          current: "a",
          keys: { a: Redacted.make("k".repeat(32)) },
          digestKey: Redacted.make("d".repeat(32))
        })
      ]
      const plane = (name: string) => Plane.sqlite({ filename: join(folder, name), codecs })
      const source = yield* client(plane("source.db"))
      const lines = yield* waiting(source.client, "r")
      // Tags are plain; the docs say so.
      assert.notInclude(lines.join("\n"), "secret cake")
      assert.include(lines.join("\n"), "acme")
      const target = yield* client(plane("target.db"))
      yield* target.client.import(Stream.fromIterable(lines))
      const [asked] = yield* target.client.pendingInterrupts({ run: "r" })
      assert.strictEqual(asked?.payload, "a secret cake")
      const keyless = yield* client(Plane.sqlite({ filename: join(folder, "keyless.db") }))
      yield* keyless.client.import(Stream.fromIterable(lines))
      assert.strictEqual((yield* keyless.ledger.verify).problems.length, 0)
      const shown = yield* Effect.either(keyless.client.pendingInterrupts({ run: "r" }))
      assert.notInclude(JSON.stringify(shown), "secret cake")
    })
  )
})
