import { assert, describe, it } from "@effect/vitest"
import * as PlaneAddress from "@fermata/test/PlaneAddress"
import { Ledger } from "@fermata/ledger"
import { Chunk, Effect, FastCheck, Layer, Redacted, Schema, Stream } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { randomBytes } from "node:crypto"
import {
  Client,
  Delivery,
  Interrupt,
  Node,
  OutputStream,
  PayloadCodec,
  Plane,
  SideEffect,
  Worker,
  Workflow
} from "../src/index.js"

const secret = "s3cret-marzipan"
const key = (letter: string) => Redacted.make(letter.repeat(32))
const digestKey = key("d")
const encrypted = (current: string, ...names: ReadonlyArray<string>) =>
  PayloadCodec.aes256gcm({
    keys: Object.fromEntries([current, ...names].map((name) => [name, key(name)])),
    current,
    digestKey
  })

const Text = Schema.String
const Pay = SideEffect.make("pay", { delivery: Delivery.keyed, input: Text, success: Text })
const Said = OutputStream.make("said", { chunk: Text })
const pay = Node.make("pay", { input: Text, success: Text, effects: [Pay] }, (text) =>
  Effect.zipRight(Said(`${text} chunk`), Pay(text))
)
const Ask = Interrupt.make("ask", { payload: Text, answer: Text })
const Secretive = Workflow.make("secretive", { version: "1", input: Text, success: Text }, (text) =>
  Effect.gen(function* () {
    const paid = yield* pay(text)
    const answer = yield* Ask(`${paid}?`)
    return `${paid} ${answer} ${yield* pay(answer)}`
  })
)
const PayLive = Pay.toLayer((text) => Effect.succeed(`paid ${text}`))

const planeOn = (address: PlaneAddress.PlaneAddress, codecs: ReadonlyArray<PayloadCodec.PayloadCodec>) =>
  address._tag === "Sqlite"
    ? Plane.sqlite({ filename: address.filename, codecs })
    : Plane.postgres({ url: address.url, codecs })

/** Runs with a client, and a worker if asked for, of a plane that has these codecs. */
const within = <A, E>(
  address: PlaneAddress.PlaneAddress,
  codecs: ReadonlyArray<PayloadCodec.PayloadCodec>,
  body: (client: Client.Client) => Effect.Effect<A, E, Ledger>
) =>
  Effect.flatMap(Client.Client, body).pipe(
    Effect.provide(
      Worker.layer({ workflows: [Secretive] }).pipe(
        Layer.provide(PayLive),
        Layer.provideMerge(planeOn(address, codecs))
      )
    ),
    Effect.scoped
  )

const answered = (
  client: Client.Client,
  value: string,
  intent: { readonly intent: "retry" } | { readonly intent: "fork"; readonly forkId: string }
) => client.resume(Ask, { branch: "r/main", interrupt: "ask#1", value, deliveryId: `d-${value.length}`, ...intent })
const waiting = ({ status }: Client.Description) => status === "waiting" || status === "stuck"

/** Everything that the database stores, as text. */
const stored = (address: PlaneAddress.PlaneAddress) =>
  address._tag === "Sqlite"
    ? Effect.sync(() => {
        const folder = dirname(address.filename)
        return readdirSync(folder)
          .map((file) => readFileSync(join(folder, file), "latin1"))
          .join("\n")
      })
    : Effect.flatMap(Ledger, ({ sql }) =>
        Effect.map(
          Effect.forEach(
            ["runs", "journal", "inbox", "interrupts", "chunks", "branches"],
            (table) => sql`SELECT * FROM ${sql(`fermata_${table}`)}`
          ),
          (rows) => JSON.stringify(rows)
        )
      ).pipe(Effect.provide(Plane.postgres({ url: address.url })), Effect.scoped)

describe.each(PlaneAddress.databases)("values with codecs on %s", (database) => {
  it.scopedLive("are not found in the database, and are what they were when they are read", () =>
    Effect.gen(function* () {
      const address = yield* PlaneAddress.fresh(database)
      const codecs = [PayloadCodec.gzip({ threshold: 8 }), encrypted("a")]
      yield* within(address, codecs, (client) =>
        Effect.gen(function* () {
          const run = yield* client.start(Secretive, secret, { run: "r" })
          yield* client.awaitStatus(run, waiting)
          const [pending] = yield* client.pendingInterrupts()
          assert.strictEqual(pending?.payload, `paid ${secret}?`)
          yield* answered(client, `yes ${secret}`, { intent: "retry" })
          assert.strictEqual(yield* client.result(Secretive, run), `paid ${secret} yes ${secret} paid yes ${secret}`)
          const chunks = yield* Stream.runCollect(client.listen(Said, run))
          assert.deepStrictEqual(
            Chunk.toReadonlyArray(chunks).map(({ value }) => value),
            [`${secret} chunk`, `yes ${secret} chunk`]
          )
          const fork = yield* answered(client, `no ${secret}`, { intent: "fork", forkId: "f" })
          assert.strictEqual(
            yield* client.result(Secretive, fork.branch),
            `paid ${secret} no ${secret} paid no ${secret}`
          )
          const { problems } = yield* Effect.flatMap(Ledger, ({ verify }) => verify)
          assert.deepStrictEqual(problems, [])
        })
      )
      const text = yield* stored(address)
      assert.include(text, "secretive")
      for (const hidden of [secret, "marzipan", Buffer.from(secret).toString("base64").slice(0, 12)]) {
        assert.notInclude(text, hidden)
      }
    })
  )

  it.scopedLive("go on under another key, are known again, and wait for a key that is missing", () =>
    Effect.gen(function* () {
      const address = yield* PlaneAddress.fresh(database)
      yield* within(address, [encrypted("a")], (client) =>
        Effect.gen(function* () {
          const run = yield* client.start(Secretive, secret, { run: "r" })
          yield* client.awaitStatus(run, waiting)
          yield* answered(client, "first", { intent: "fork", forkId: "f" })
        })
      )
      // Without the key: stuck, and said so, here and to whoever reads.
      yield* within(address, [encrypted("b")], (client) =>
        Effect.gen(function* () {
          yield* answered(client, "yes", { intent: "retry" })
          const { problems } = yield* client.awaitStatus("r", ({ status }) => status === "stuck")
          assert.deepStrictEqual(
            problems.map(({ _tag }) => _tag),
            ["Sealed"]
          )
          const error = yield* Effect.flip(client.history("r"))
          assert.include(error.message, "sealed by aes-256-gcm:a, which this plane does not have")
          assert.notInclude(error.message, secret)
        })
      )
      // With both: it goes on by itself, and what was written under the old key is recognised.
      yield* within(address, [encrypted("b", "a")], (client) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* client.result(Secretive, "r"), `paid ${secret} yes paid yes`)
          assert.isFalse((yield* client.start(Secretive, secret, { run: "r" })).created)
          assert.strictEqual((yield* Effect.flip(client.start(Secretive, "other", { run: "r" })))._tag, "RunConflict")
          const again = yield* answered(client, "yes", { intent: "retry" })
          assert.strictEqual(again._tag === "Answered" && again.verdict, "Duplicate")
          const fork = yield* answered(client, "first", { intent: "fork", forkId: "f" })
          assert.deepStrictEqual([fork.branch, fork._tag === "Forked" && fork.created], ["r/f", false])
          const other = yield* Effect.flip(answered(client, "second", { intent: "fork", forkId: "f" }))
          assert.strictEqual(other._tag, "ForkIdReused")
        })
      )
    })
  )

  it.scopedLive("that were written before there were codecs stay readable", () =>
    Effect.gen(function* () {
      const address = yield* PlaneAddress.fresh(database)
      yield* within(address, [], (client) =>
        Effect.flatMap(client.start(Secretive, secret, { run: "r" }), (run) => client.awaitStatus(run, waiting))
      )
      yield* within(address, [PayloadCodec.gzip(), encrypted("a")], (client) =>
        Effect.gen(function* () {
          assert.isFalse((yield* client.start(Secretive, secret, { run: "r" })).created)
          yield* answered(client, "yes", { intent: "retry" })
          assert.strictEqual(yield* client.result(Secretive, "r"), `paid ${secret} yes paid yes`)
        })
      )
    })
  )
})

describe("codecs", () => {
  const codec = encrypted("a", "b")
  it.prop(
    "give equal data for equal data, and back what they were given",
    [FastCheck.uint8Array({ maxLength: 300 })],
    ([data]) => {
      for (const each of [codec, PayloadCodec.gzip({ threshold: 0 })]) {
        const sealed = each.seal(data)
        if (sealed === undefined) continue
        assert.deepStrictEqual(each.seal(data), sealed)
        assert.deepStrictEqual(Buffer.from(each.open(sealed.id, sealed.data) ?? []), Buffer.from(data))
      }
    }
  )

  it("do not open what was changed, or under another key of that name", () => {
    const data = randomBytes(100)
    const sealed = codec.seal(data)
    assert.isDefined(sealed)
    const changed = Buffer.from(sealed?.data ?? [])
    changed[50] = (changed[50] ?? 0) ^ 1
    assert.throws(() => codec.open(sealed?.id ?? "", changed))
    const other = PayloadCodec.aes256gcm({ keys: { a: key("x") }, current: "a", digestKey })
    assert.throws(() => other.open(sealed?.id ?? "", sealed?.data ?? changed))
    assert.isUndefined(codec.open("aes-256-gcm:c", changed))
    assert.isUndefined(codec.open("gzip", changed))
  })

  it("say which key cannot be used, never what it is", () => {
    const short = Redacted.make("too short to be a key")
    for (const [make, message] of [
      [
        () => PayloadCodec.aes256gcm({ keys: { a: short }, current: "a", digestKey }),
        "key a has 21 bytes; it needs 32 at least"
      ],
      [
        () => PayloadCodec.aes256gcm({ keys: { a: key("a") }, current: "b", digestKey }),
        `The current key "b" is not among the keys`
      ],
      [
        () => PayloadCodec.aes256gcm({ keys: { "a:b": key("a") }, current: "a:b", digestKey }),
        `"a:b" cannot name a key`
      ],
      [
        () => PayloadCodec.aes256gcm({ keys: { a: key("a") }, current: "a", digestKey: short }),
        "digestKey has 21 bytes"
      ]
    ] as const) {
      assert.throws(make, message)
    }
  })
})
