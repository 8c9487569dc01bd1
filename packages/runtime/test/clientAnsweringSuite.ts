/** What a client must do to answer, fork, settle, cancel and purge, whatever database its plane is on. */
import { assert, describe, it } from "@effect/vitest"
import { payloadOf } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client } from "@fermata/runtime"
import { Effect, type Layer } from "effect"
import {
  Amount,
  Approval,
  assess,
  Charge,
  definition,
  includes,
  noon,
  order,
  parked,
  Pay,
  refusal,
  refusedAs,
  same,
  TooPoor
} from "./ClientFixture.js"
import { append, handWorker } from "./HandWorker.js"

export const clientAnsweringSuite = <E>(name: string, plane: Layer.Layer<Ledger | Client.Client, E>): void => {
  describe(`answering and forking on ${name}`, () => {
    describe("resume", () => {
      it.scoped("accepts one answer, tells it again to the same delivery, and refuses every other", () =>
        Effect.gen(function* () {
          const { branch, client, interrupt } = yield* parked("r")
          const answer = (deliveryId: string, value: unknown) =>
            client.resume(Approval, { branch, interrupt, value, deliveryId, intent: "retry" })
          const accepted = yield* answer("d1", { ok: true, by: "žena" })
          includes(accepted, { _tag: "Answered", verdict: "Accepted", delivery: "d1", unserved: null })
          const again = yield* answer("d1", { by: "žena", ok: true })
          same({ ...again }, { ...accepted, verdict: "Duplicate" })
          assert.strictEqual((yield* refusal(answer("d1", { ok: false })))._tag, "DeliveryIdReused")
          const taken = yield* refusedAs("AlreadyConsumed", answer("d2", { ok: true, by: "žena" }))
          assert.strictEqual(taken.by, "d1")
          same(yield* client.pendingInterrupts({ run: "r" }), [])
        }).pipe(Effect.provide(plane))
      )

      it.scoped("takes false, 0, empty, null and undefined for answers", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const ledger = yield* Ledger
          const falsy = [false, 0, -0, NaN, "", null, undefined, [], {}]
          for (const [n, value] of falsy.entries()) {
            const { branch, interrupt } = yield* parked(`r${n}`)
            yield* client.resume(Approval, { branch, interrupt, value, deliveryId: "d", intent: "retry" })
            const [row] = yield* ledger.inbox(branch, 0)
            const stored: unknown = JSON.parse(row?.payload ?? "{}")
            const { value: served } = stored as { readonly value: unknown }
            same(Approval.codecs.answer.revive(served), Approval.codecs.answer.decode(JSON.stringify(served)))
            const revived = Approval.codecs.answer.revive(served)
            assert.isTrue(revived._tag === "Right" && (typeof value === "object" || Object.is(revived.right, value)))
            // So that the next run is the only one that wants a worker.
            yield* Effect.flatMap(handWorker, (worker) => worker.take(definition))
          }
        }).pipe(Effect.provide(plane))
      )

      it.scoped("refuses an invalid value only where nothing else is wrong, and consumes nothing", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const { branch } = yield* client.start(Pay, order, { run: "r" })
          const journal = yield* worker.take(definition)
          yield* append(journal, "interrupt.opened", "amount#1", { name: "amount", payload: null })
          const answer = (cents: number, deliveryId: string, interrupt = "amount#1") =>
            client.resume(Amount, { branch, interrupt, value: { cents }, deliveryId, intent: "retry" })
          const invalid = yield* refusedAs("ResumeValueInvalid", answer(-1, "d"))
          assert.include(invalid.message, "$.cents")
          assert.strictEqual((yield* client.pendingInterrupts()).length, 1)
          assert.strictEqual((yield* refusal(answer(-1, "d", "amount#2")))._tag, "UnknownInterrupt")
          includes(yield* answer(5, "d"), { verdict: "Accepted" })
          assert.strictEqual((yield* refusal(answer(-1, "e")))._tag, "AlreadyConsumed")
        }).pipe(Effect.provide(plane))
      )

      it.scoped("refuses an answer to what it is not meant for", () =>
        Effect.gen(function* () {
          const { branch, client, interrupt } = yield* parked("r")
          const to = { branch, interrupt, value: 1, deliveryId: "d", intent: "retry" } as const
          const other = yield* refusedAs("UnknownInterrupt", client.resume(Amount, { ...to, value: { cents: 1 } }))
          same(other.open, ["approval#1"])
          assert.strictEqual(
            (yield* refusal(client.resume(Approval, { ...to, branch: "s/main" })))._tag,
            "UnknownInterrupt"
          )
          for (const wrong of [{ branch: "r" }, { interrupt: "" }, { deliveryId: "a\u0000" }]) {
            assert.strictEqual((yield* refusal(client.resume(Approval, { ...to, ...wrong })))._tag, "InvalidId")
          }
          const fork = { ...to, intent: "fork" } as const
          for (const forkId of ["", "a/b", "main"]) {
            assert.strictEqual((yield* refusal(client.resume(Approval, { ...fork, forkId })))._tag, "InvalidId")
          }
          assert.strictEqual((yield* client.pendingInterrupts()).length, 1)
        }).pipe(Effect.provide(plane))
      )

      it.scoped("forks with a value from the interrupt, before and after it was answered", () =>
        Effect.gen(function* () {
          const { branch, client, interrupt, seq } = yield* parked("r")
          const fork = (forkId: string, value: unknown) =>
            client.resume(Approval, { branch, interrupt, value, deliveryId: `d-${forkId}`, intent: "fork", forkId })
          same({ ...(yield* fork("yes", true)) }, { _tag: "Forked", branch: "r/yes", seq, created: true })
          yield* client.resume(Approval, { branch, interrupt, value: false, deliveryId: "d", intent: "retry" })
          includes(yield* fork("no", undefined), { branch: "r/no", created: true })
          includes(yield* fork("no", undefined), { branch: "r/no", created: false })
          assert.strictEqual((yield* refusal(fork("no", null)))._tag, "ForkIdReused")
          const [answered] = (yield* client.history("r/no")).slice(-1)
          assert.strictEqual(answered?.kind, "interrupt.answered")
          same(
            new Map((yield* client.branches("r")).map((description) => [description.branch, description.parent])),
            new Map<string, Client.Description["parent"]>([
              ["r/main", null],
              ["r/yes", { branch, seq }],
              ["r/no", { branch, seq }]
            ])
          )
        }).pipe(Effect.provide(plane))
      )
    })

    describe("fork", () => {
      it.scoped("starts at a durable position, and at no other", () =>
        Effect.gen(function* () {
          const { branch, client, seq } = yield* parked("r")
          const fork = (at: number, forkId = "f") => client.fork({ from: { branch, seq: at }, forkId })
          for (const at of [0, -1, seq + 1, 1.5, NaN, Infinity]) {
            const refused = yield* refusedAs("UnknownCheckpoint", fork(at))
            assert.strictEqual(refused.branch, branch)
          }
          includes(yield* fork(1), { branch: "r/f", seq: 1, created: true })
          includes(yield* fork(1), { branch: "r/f", created: false })
          assert.strictEqual((yield* refusal(fork(seq)))._tag, "ForkIdReused")
          same(
            (yield* client.history("r/f")).map(({ kind }) => kind),
            ["run.started"]
          )
        }).pipe(Effect.provide(plane))
      )

      it.scoped("waits for its own interrupts, not for those of its run's other branches", () =>
        Effect.gen(function* () {
          const { branch, client, worker } = yield* parked("r")
          const ledger = yield* Ledger
          const child = yield* client.fork({ from: { branch, seq: 1 }, forkId: "f" })
          const due = (yield* ledger.now) + 3_600_000
          yield* worker.release(yield* worker.take(definition), { _tag: "Waiting", wakeAt: due })
          same((yield* client.describe(child.branch)).waitingFor, [{ _tag: "Time", at: due }])
          same(
            (yield* client.branches("r")).map(({ waitingFor }) => waitingFor.map(({ _tag }) => _tag)),
            [["Answer"], ["Time"]]
          )
        }).pipe(Effect.provide(plane))
      )

      it.scoped("replaces a step's outcome by one that its node may have", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const { branch } = yield* client.start(Pay, order, { run: "r" })
          const journal = yield* worker.take(definition)
          const seq = yield* append(journal, "step.succeeded", "assess#1", {
            node: "assess",
            input: "digest",
            value: 1
          })
          const edit = (forkId: string, value: number, step = "assess#1") =>
            client.forkWithOutcome(assess, { branch, step, forkId, outcome: { _tag: "Success", value } })
          assert.strictEqual((yield* refusal(edit("f", "1" as never)))._tag, "InvalidValue")
          assert.include((yield* refusedAs("InvalidId", edit("f", 2, "charge#1"))).message, "assess#1")
          assert.strictEqual((yield* refusal(edit("f", 2, "assess#0")))._tag, "InvalidId")
          includes(yield* edit("f", 2), { branch: "r/f", seq: seq - 1, created: true })
          const failure = { _tag: "Failure", error: new TooPoor({ cents: 3 }) } as const
          yield* client.forkWithOutcome(assess, { branch, step: "assess#1", forkId: "g", outcome: failure })
          const [edited] = (yield* client.history("r/f")).slice(-1)
          const [failed] = (yield* client.history("r/g")).slice(-1)
          assert.isTrue(edited?.kind === "step.succeeded" && failed?.kind === "step.failed")
          includes(payloadOf({ kind: "step.succeeded", payload: edited?.payload ?? "" }), { value: 2, edited: true })
          includes(payloadOf({ kind: "step.failed", payload: failed?.payload ?? "" }), {
            error: { _tag: "TooPoor", cents: 3 },
            edited: true
          })
        }).pipe(Effect.provide(plane))
      )
    })

    describe("settle", () => {
      it.scoped("records one outcome of an effect in doubt, checked by the effect's Schema", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const { branch } = yield* client.start(Pay, order, { run: "r" })
          const journal = yield* worker.take(definition)
          const key = "r/main|pay#1|1"
          const identity = {
            step: "pay#1",
            position: "1",
            try: 0,
            attempt: 1,
            effect: "charge",
            delivery: "once",
            input: "digest"
          } as const
          yield* append(journal, "effect.intended", key, {
            ...identity,
            value: order,
            worker: "w",
            fireBefore: 0,
            timeLimit: 1
          })
          yield* worker.release(journal, { _tag: "Stuck", problem: "[]" })
          const settle = (settlement: Client.Settlement<Date, TooPoor>, at = key, of: string = branch) =>
            client.settle(Charge, { branch: of, key: at, settlement })
          const invalid = yield* refusedAs("InvalidValue", settle({ _tag: "Happened", value: new Date(NaN) }))
          assert.include(invalid.message, "success of side effect charge")
          for (const [at, of] of [
            ["r/main|pay#1|2", branch],
            ["\0", branch],
            [key, "s/main"],
            [key, "r"]
          ] as const) {
            assert.strictEqual((yield* refusal(settle({ _tag: "DidNotHappen" }, at, of)))._tag, "UnknownEffect")
          }
          assert.strictEqual(yield* settle({ _tag: "Happened", value: noon }), "Accepted")
          assert.strictEqual(yield* settle({ _tag: "Happened", value: noon }), "Duplicate")
          assert.strictEqual((yield* refusal(settle({ _tag: "DidNotHappen" })))._tag, "AlreadySettled")
          const declined = settle({ _tag: "Declined", error: new TooPoor({ cents: 1 }) })
          assert.strictEqual((yield* refusal(declined))._tag, "AlreadySettled")
        }).pipe(Effect.provide(plane))
      )
    })

    describe("cancel, unstick, purge", () => {
      it.scoped("cancels once, with a reason that any text may be, and not when it is over", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const ledger = yield* Ledger
          const run = yield* client.start(Pay, order, { run: "r" })
          assert.strictEqual(yield* client.cancel(run, { reason: 'no\u0000 \ud800 "longer"' }), "Accepted")
          assert.strictEqual(yield* client.cancel("r"), "Duplicate")
          const [row] = yield* ledger.inbox(run.branch, 0)
          // A reason is for people to read: half a character is replaced.
          same(JSON.parse(row?.payload ?? ""), { reason: 'no\u0000 \ufffd "longer"' })
          yield* worker.end(yield* worker.take(definition), "run.cancelled", { reason: null }, 1)
          assert.strictEqual(yield* client.cancel(yield* client.start(Pay, order, { run: "r" })), "Duplicate")
          yield* client.start(Pay, order, { run: "s" })
          yield* worker.end(yield* worker.take(definition), "run.completed", { value: noon.toISOString() })
          assert.strictEqual(yield* client.cancel("s"), "TooLate")
          assert.strictEqual((yield* refusal(client.cancel("t")))._tag, "RunNotFound")
        }).pipe(Effect.provide(plane))
      )

      it.scoped("lets a stuck branch try again, and purges what is over", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const { branch } = yield* client.start(Pay, order, { run: "r" })
          assert.isFalse(yield* client.unstick(branch))
          assert.isFalse(yield* client.unstick("\0"))
          yield* worker.release(yield* worker.take(definition), { _tag: "Stuck", problem: "[]" })
          assert.isTrue(yield* client.unstick(branch))
          assert.strictEqual((yield* client.describe(branch)).status, "ready")
          const early = yield* refusedAs("RunNotOver", client.purge("r"))
          same(early.branches, ["r/main"])
          yield* worker.end(yield* worker.take(definition), "run.completed", { value: noon.toISOString() })
          yield* client.purge("r")
          assert.strictEqual((yield* refusal(client.history("r")))._tag, "RunPurged")
          assert.strictEqual((yield* refusal(client.purge("r")))._tag, "RunPurged")
        }).pipe(Effect.provide(plane))
      )
    })
  })
}
