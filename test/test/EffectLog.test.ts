import { describe, expect, it } from "@effect/vitest"
import * as EffectLog from "@fermata/test/EffectLog"
import * as Child from "@fermata/test/processes/Child"
import * as Race from "@fermata/test/processes/Race"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const freshFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-effect-log-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "effects.db")
)

const openLog = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => EffectLog.open(file)),
    (log) => Effect.sync(log.close)
  )

const firing = { at: "charge#1", effect: "payments/charge", idempotencyKey: "k", inputDigest: "d" }

describe("the effect log", () => {
  it.scoped("keeps every firing in order, repeated keys too", () =>
    Effect.gen(function* () {
      const log = yield* openLog(yield* freshFile)
      expect(log.write(firing)).toBe("recorded")
      expect(log.write({ ...firing, inputDigest: "other" })).toBe("recorded")
      expect(log.rows()).toEqual([
        { ...firing, n: 1, pid: process.pid },
        { ...firing, inputDigest: "other", n: 2, pid: process.pid }
      ])
    })
  )

  it.scoped("refuses a key that was ruled never to happen, and rules nothing out that has", () =>
    Effect.gen(function* () {
      const log = yield* openLog(yield* freshFile)
      expect(log.rule("k")).toBe("neverWill")
      expect(log.write(firing)).toBe("refused")
      expect(log.write({ ...firing, idempotencyKey: "other" })).toBe("recorded")
      expect(log.rule("other")).toBe("happened")
      expect(log.of("k")).toEqual([])
    })
  )

  it.scoped("takes what 8 processes open and write at once, whole", () =>
    Effect.gen(function* () {
      const file = yield* freshFile
      const race = yield* Race.make
      const writers = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, n) => `writer-${n}`),
        (key) =>
          Child.spawn("processes/script", { input: { _tag: "Write", log: file, rows: 25, key }, race: race.file }),
        { concurrency: "unbounded" }
      )
      yield* race.start(writers)
      yield* Effect.forEach(writers, (writer) => writer.success)
      const rows = (yield* openLog(file)).rows()
      expect(rows.map((row) => row.n)).toEqual(Array.from({ length: 200 }, (_, n) => n + 1))
      for (let n = 0; n < 8; n++)
        expect(rows.filter((row) => row.idempotencyKey === `writer-${n}`).map((row) => row.at)).toEqual(
          Array.from({ length: 25 }, (_, n) => `row#${n}`)
        )
    })
  )
})
