/** What the outside sends to a branch: accepted once, by whichever of several ledgers it comes through. */
import { describe, expect, it } from "@effect/vitest"
import { type BranchId, MessageId, RunId } from "@fermata/contract"
import type { SendRequest } from "@fermata/ledger"
import { jsonDigest } from "@fermata/ledger"
import { Effect } from "effect"
import { benchOf, type Place } from "./Place.js"

const accepts = JSON.stringify({ signals: ["s"], updates: ["u"] })

const start = (run: string) => ({
  run: RunId.make(run),
  workflow: "messages",
  version: "1",
  input: "null",
  inputDigest: jsonDigest("null"),
  accepts
})

const message = (branch: BranchId, id: string, json: string, name = "s"): SendRequest => ({
  branch,
  kind: name === "u" ? "update" : "signal",
  message: MessageId.make(id),
  name,
  json,
  digest: jsonDigest(json)
})

export const messageSuite = (place: Place): void => {
  const bench = benchOf(place)

  describe("sending", () => {
    it.effect(
      "by many at once under one id is accepted once, and every other is told that it is the same",
      bench(({ ledgers: [first, ...others] }) =>
        Effect.gen(function* () {
          const all = [first, ...others]
          const { branch } = yield* first.start(start("once"))
          const receipts = yield* Effect.all(
            Array.from({ length: 12 }, (_, n) => (all[n % all.length] ?? first).send(message(branch, "m", "1"))),
            { concurrency: "unbounded" }
          )
          expect(receipts.filter(({ verdict }) => verdict === "Accepted").length).toBe(1)
          expect(new Set(receipts.map(({ at }) => at)).size).toBe(1)
          const rows = yield* first.inbox(branch, 0)
          expect(rows.map(({ key, pos }) => [pos, key])).toEqual([[1, "signal:m"]])
          const reused = yield* Effect.flip((all.at(-1) ?? first).send(message(branch, "m", "2")))
          expect(reused._tag).toBe("MessageIdReused")
          // A signal and an update of one id are two messages.
          expect((yield* first.send(message(branch, "m", "1", "u"))).verdict).toBe("Accepted")
        })
      )
    )

    it.effect(
      "under many ids at once gives each a position of its own, without gaps",
      bench(({ ledgers: [first, ...others] }) =>
        Effect.gen(function* () {
          const all = [first, ...others]
          const { branch } = yield* first.start(start("many"))
          yield* Effect.all(
            Array.from({ length: 20 }, (_, n) => (all[n % all.length] ?? first).send(message(branch, `m${n}`, "1"))),
            { concurrency: "unbounded" }
          )
          const rows = yield* first.inbox(branch, 0)
          expect(rows.map(({ pos }) => pos)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
          expect(new Set(rows.map(({ key }) => key)).size).toBe(20)
        })
      )
    )

    it.effect(
      "with the start is all or nothing, also when many start at once",
      bench(({ ledgers: [first, ...others] }) =>
        Effect.gen(function* () {
          const all = [first, ...others]
          const { branch: _, ...along } = message("" as BranchId, "m", "1")
          const receipts = yield* Effect.all(
            Array.from({ length: 8 }, (_, n) => (all[n % all.length] ?? first).startAndSend(start("both"), along)),
            { concurrency: "unbounded" }
          )
          expect(receipts.filter(({ started }) => started.created).length).toBe(1)
          expect(receipts.filter(({ sent }) => sent.verdict === "Accepted").length).toBe(1)
          const refused = yield* Effect.flip(first.startAndSend(start("none"), { ...along, name: "unknown" }))
          expect(refused._tag).toBe("UnknownMessage")
          expect((yield* Effect.flip(first.run(RunId.make("none"))))._tag).toBe("RunNotFound")
        })
      )
    )
  })
}
