/** What a client must do to start runs and to read them, whatever database its plane is on. */
import { assert, describe, it } from "@effect/vitest"
import { RunId } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client, Workflow } from "@fermata/runtime"
import { Effect, Fiber, type Layer, Schema } from "effect"
import { make as makeClient } from "../src/internal/ClientLive.js"
import {
  Approval,
  definition,
  includes,
  noon,
  order,
  Other,
  parked,
  Pay,
  refusal,
  refusedAs,
  same,
  TooPoor
} from "./ClientFixture.js"
import { append, handWorker } from "./HandWorker.js"

export const clientReadingSuite = <E>(name: string, plane: Layer.Layer<Ledger | Client.Client, E>): void => {
  describe(`starting and reading on ${name}`, () => {
    describe("start", () => {
      it.scoped("creates a run once; the same again is the same run, another input or workflow a conflict", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const first = yield* client.start(Pay, { ...order, due: noon }, { run: "r" })
          same({ ...first }, { run: "r", branch: "r/main", created: true })
          // The order of keys is not part of an input.
          const again = yield* client.start(Pay, { due: noon, cents: 100, id: "o-1" }, { run: "r" })
          same({ ...again }, { run: "r", branch: "r/main", created: false })
          const input = yield* refusedAs("RunConflict", client.start(Pay, order, { run: "r" }))
          assert.strictEqual(input.differs, "input")
          const workflow = yield* refusedAs("RunConflict", client.start(Other, { ...order, due: noon }, { run: "r" }))
          assert.strictEqual(workflow.differs, "workflow")
          assert.strictEqual((yield* client.branches("r")).length, 1)
        }).pipe(Effect.provide(plane))
      )

      it.scoped("generates ids that differ", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const one = yield* client.start(Pay, order)
          const two = yield* client.start(Pay, order)
          assert.notStrictEqual(one.run, two.run)
          assert.isTrue(one.created && two.created)
        }).pipe(Effect.provide(plane))
      )

      it.scoped("refuses ids that are none, saying why, and takes those that merely look odd", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const bad: ReadonlyArray<readonly [string, string]> = [
            ["", "is empty"],
            ["x".repeat(256), "longer than 255"],
            [" r", "white space"],
            ["a\u0000b", "control character"],
            ["a\nb", "control character"],
            ["a\ud800b", "lone surrogate"]
          ]
          for (const [run, why] of bad) {
            const { message } = yield* refusedAs("InvalidId", client.start(Pay, order, { run }))
            assert.include(message, why)
            assert.isFalse(message.includes("\u0000"))
            assert.strictEqual((yield* refusal(client.describe(run)))._tag, "RunNotFound")
            assert.strictEqual((yield* refusal(client.purge(run)))._tag, "RunNotFound")
          }
          for (const run of ["x".repeat(255), "a/b", "a/main", "žluť 馬 🐎", "a|b#1~2%", "'; --"]) {
            const { branch } = yield* client.start(Pay, order, { run })
            assert.strictEqual(branch, `${run}/main`)
            assert.strictEqual((yield* client.describe(branch)).run, run)
          }
        }).pipe(Effect.provide(plane))
      )

      it.scoped("refuses an input that its Schema or JSON cannot take, with the path, and writes nothing", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const Loose = Workflow.make("loose", { version: "1", input: Schema.Unknown }, () => Effect.void)
          const cycle: { self?: unknown } = {}
          cycle.self = cycle
          const bad: ReadonlyArray<readonly [unknown, string]> = [
            [() => 1, "$"],
            [{ a: [Symbol("s")] }, "$.a[0]"],
            [cycle, "$.self"],
            [{ at: noon }, "$.at"],
            [JSON.parse(`{"a":{"__proto__":1}}`), "$.a"]
          ]
          for (const [input, path] of bad) {
            const { issues, message } = yield* refusedAs("InvalidValue", client.start(Loose, input, { run: "r" }))
            assert.isTrue(
              issues.some((issue) => issue.startsWith(path)),
              `${issues.join()} at ${path}`
            )
            assert.include(message, "workflow loose")
          }
          // The types were forced.
          const typed: ReadonlyArray<readonly [unknown, string]> = [
            [{ id: "o" }, "$.cents"],
            [{ id: undefined, cents: 1 }, "$.id"],
            [{ id: "o", cents: 1n }, "$.cents"],
            [null, "$"]
          ]
          for (const [input, path] of typed) {
            const { issues } = yield* refusedAs("InvalidValue", client.start(Pay, input as typeof order, { run: "r" }))
            assert.isTrue(
              issues.some((issue) => issue.startsWith(path)),
              `${issues.join()} at ${path}`
            )
          }
          assert.strictEqual((yield* refusal(client.describe("r")))._tag, "RunNotFound")
          const { maxPayload } = yield* Ledger
          const large = yield* refusedAs("InvalidValue", client.start(Loose, "x".repeat(maxPayload), { run: "r" }))
          assert.include(large.message, String(maxPayload))
        }).pipe(Effect.provide(plane))
      )
    })

    describe("result", () => {
      it.scoped("waits for the end, however many wait, and gives the decoded success ever after", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const run = yield* client.start(Pay, order)
          const waiting = yield* Effect.forkAll([
            client.result(Pay, run),
            client.result(Pay, run.run),
            client.result(Pay, run.branch)
          ])
          const journal = yield* worker.take(definition)
          yield* worker.end(journal, "run.completed", { value: noon.toISOString() })
          same(yield* Fiber.join(waiting), [noon, noon, noon])
          same(yield* client.result(Pay, run), noon)
        }).pipe(Effect.provide(plane))
      )

      it.scoped("fails with the workflow's own error, a defect with its cause, a cancellation with its reason", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          yield* client.start(Pay, order, { run: "failed" })
          yield* worker.end(yield* worker.take(definition), "run.failed", { error: { _tag: "TooPoor", cents: 7 } })
          const failed = yield* refusedAs("TooPoor", client.result(Pay, "failed"))
          assert.instanceOf(failed, TooPoor)
          assert.strictEqual(failed.cents, 7)

          yield* client.start(Pay, order, { run: "died" })
          const cause = { _tag: "Value", value: { $fermata: "undefined" } }
          const defect = { _tag: "Error", name: "TypeError", message: "no", fields: { code: "E1" }, cause }
          yield* worker.end(yield* worker.take(definition), "run.died", { defect })
          const died = yield* refusedAs("RunDied", client.result(Pay, "died"))
          assert.include(died.message, "TypeError: no")
          assert.instanceOf(died.defect, TypeError)
          includes(died.defect, { code: "E1", cause: undefined })

          yield* client.start(Pay, order, { run: "cancelled" })
          yield* worker.end(yield* worker.take(definition), "run.cancelled", { reason: "too late" })
          const cancelled = yield* refusedAs("RunCancelled", client.result(Pay, "cancelled"))
          assert.strictEqual(cancelled.reason, "too late")
          for (const [run, status] of [
            ["failed", "failed"],
            ["died", "failed"],
            ["cancelled", "cancelled"]
          ] as const) {
            const description = yield* client.describe(run)
            same([description.status, description.waitingFor], [status, []])
          }
        }).pipe(Effect.provide(plane))
      )

      it.scoped(
        "refuses another workflow's run, an unknown run, a purged one, and an outcome that is none any more",
        () =>
          Effect.gen(function* () {
            const client = yield* Client.Client
            const worker = yield* handWorker
            yield* client.start(Pay, order, { run: "r" })
            const wrong = yield* refusedAs("WrongWorkflow", client.result(Other, "r"))
            includes(wrong, { asked: "other", stored: "pay" })
            assert.strictEqual((yield* refusedAs("RunNotFound", client.result(Pay, "s"))).id, "s/main")
            yield* worker.end(yield* worker.take(definition), "run.completed", { value: "not a date" })
            const invalid = yield* refusedAs("InvalidValue", client.result(Pay, "r"))
            assert.include(invalid.message, "stored success of workflow pay@1")
            yield* client.purge("r")
            assert.strictEqual((yield* refusal(client.result(Pay, "r")))._tag, "RunPurged")
            assert.strictEqual((yield* refusal(client.start(Pay, order, { run: "r" })))._tag, "RunPurged")
          }).pipe(Effect.provide(plane))
      )
    })

    describe("how a branch stands", () => {
      it.scoped("names what a branch waits for: a worker, an answer, a time, an operator, nothing", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const ledger = yield* Ledger
          const run = yield* client.start(Pay, order, { run: "r" })
          const ready = yield* client.describe(run)
          includes(ready, { run: run.run, branch: run.branch, workflow: "pay", version: "1", parent: null, head: 1 })
          same(ready.waitingFor, [{ _tag: "Worker", definition: "pay@1" }])

          const journal = yield* worker.take(definition)
          includes(yield* client.describe(run), { status: "running", waitingFor: [] })
          yield* append(journal, "interrupt.opened", "approval#1", { name: "approval", payload: null })
          const due = (yield* ledger.now) + 3_600_000
          yield* worker.release(journal, { _tag: "Waiting", wakeAt: due })
          const waiting = yield* client.describe(run)
          assert.strictEqual(waiting.status, "waiting")
          same(waiting.waitingFor, [
            { _tag: "Answer", interrupt: "approval#1", name: "approval" },
            { _tag: "Time", at: due }
          ])

          yield* client.resume(Approval, {
            branch: run.branch,
            interrupt: "approval#1",
            value: 1,
            deliveryId: "d",
            intent: "retry"
          })
          assert.strictEqual((yield* client.describe(run)).status, "ready")
          const problem = { _tag: "UndeclaredAsync", seq: 2, message: "put it in a node" } as const
          const next = yield* worker.take(definition)
          yield* worker.release(next, { _tag: "Stuck", problem: JSON.stringify([problem]) }, 1)
          const stuck = yield* client.describe(run)
          includes(stuck, { status: "stuck", problems: [problem], waitingFor: [{ _tag: "Operator", problem }] })
          same(yield* client.list({ status: "stuck" }), [stuck])
        }).pipe(Effect.provide(plane))
      )

      it.scoped("tells a problem that it does not know as it is stored, and refuses what is none", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const stuck = (run: string, problem: string) =>
            Effect.gen(function* () {
              const { branch } = yield* client.start(Pay, order, { run })
              yield* worker.release(yield* worker.take(definition), { _tag: "Stuck", problem })
              return branch
            })
          const bored = { _tag: "Bored", message: "entertain it", since: [1] }
          const { problems } = yield* client.describe(yield* stuck("r", JSON.stringify([bored])))
          same(problems, [{ _tag: "OtherProblem", message: "entertain it", stored: bored }])
          for (const [n, problem] of [`[{"_tag":"Bored"}]`, "{}", "[", ""].entries()) {
            const { id, table } = yield* refusedAs("CorruptJournal", client.describe(yield* stuck(`s${n}`, problem)))
            same([table, id], ["branches", `s${n}/main`])
          }
        }).pipe(Effect.provide(plane))
      )

      it.scoped(
        "never says that a branch waits for nothing: what was answered while it looked is looked at again",
        () =>
          Effect.gen(function* () {
            const { branch, interrupt, run } = yield* parked("r")
            const ledger = yield* Ledger
            const real = yield* Client.Client
            let asked = 0
            const meanwhile = Effect.suspend(() =>
              asked++ === 0
                ? Effect.orDie(real.resume(Approval, { branch, interrupt, value: 1, deliveryId: "d", intent: "retry" }))
                : Effect.void
            )
            const late = makeClient({
              ...ledger,
              pendingInterrupts: (options) => Effect.zipRight(meanwhile, ledger.pendingInterrupts(options))
            })
            includes(yield* late.describe(run), {
              status: "ready",
              waitingFor: [{ _tag: "Worker", definition: "pay@1" }]
            })
            assert.strictEqual(asked, 1)
          }).pipe(Effect.provide(plane))
      )

      it.scoped("awaits a status that comes about later", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          const run = yield* client.start(Pay, order)
          const asked = yield* Effect.fork(
            client.awaitStatus(run, ({ waitingFor }) => waitingFor.some(({ _tag }) => _tag === "Answer"))
          )
          const journal = yield* worker.take(definition)
          yield* append(journal, "interrupt.opened", "approval#1", { name: "approval", payload: null })
          yield* worker.release(journal, { _tag: "Waiting", wakeAt: null })
          assert.strictEqual((yield* Fiber.join(asked)).status, "waiting")
          const ready = yield* Effect.fork(client.awaitStatus(run, ({ status }) => status === "ready"))
          yield* client.cancel(run)
          assert.strictEqual((yield* Fiber.join(ready)).status, "ready")
        }).pipe(Effect.provide(plane))
      )

      it.scoped("a text names the branch of that id if there is one, else the run", () =>
        Effect.gen(function* () {
          const { client, run, seq } = yield* parked("orders")
          yield* client.fork({ from: { branch: (yield* client.describe(run)).branch, seq }, forkId: "17" })
          const branchAt = (of: string) => Effect.map(client.describe(of), ({ branch }) => branch)
          assert.strictEqual(yield* branchAt("orders/17"), "orders/17")
          assert.strictEqual(yield* branchAt("orders/main"), "orders/main")
          yield* client.start(Pay, order, { run: "orders/18" })
          assert.strictEqual(yield* branchAt("orders/18"), "orders/18/main")
          assert.strictEqual(yield* branchAt("orders/18/main"), "orders/18/main")
          // Both a branch and a run: the branch; the run is reached by its root branch and by its handle.
          const both = yield* client.start(Pay, order, { run: "orders/17" })
          assert.strictEqual(yield* branchAt("orders/17"), "orders/17")
          assert.strictEqual(yield* branchAt("orders/17/main"), "orders/17/main")
          assert.strictEqual((yield* client.describe(both)).branch, "orders/17/main")
          assert.strictEqual((yield* refusedAs("RunNotFound", client.describe("orders/19"))).id, "orders/19")
          // A run whose prefix names a purged run is still itself.
          const worker = yield* handWorker
          yield* client.start(Pay, order, { run: "old" })
          yield* client.start(Pay, order, { run: "old/1" })
          for (let n = 0; n < 5; n++) {
            const journal = yield* worker.take(definition)
            yield* worker.end(journal, "run.completed", { value: noon.toISOString() })
          }
          yield* client.purge("old")
          assert.strictEqual(yield* branchAt("old/1"), "old/1/main")
          assert.strictEqual((yield* refusal(client.describe("old/2")))._tag, "RunPurged")
        }).pipe(Effect.provide(plane))
      )
    })

    describe("lists", () => {
      it.scoped("pages through runs and through open interrupts, each once", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const runs = ["a", "b", "c", "d", "e"]
          for (const run of runs) yield* parked(run)
          yield* client.start(Other, order, { run: "z" })

          const listed: Array<string> = []
          for (let after: RunId | undefined; ;) {
            const page = yield* client.list({ workflow: "pay", limit: 2, ...(after === undefined ? {} : { after }) })
            listed.push(...page.map(({ run }) => run))
            for (const { waitingFor } of page) {
              same(waitingFor, [{ _tag: "Answer", interrupt: "approval#1", name: "approval" }])
            }
            after = page.at(-1)?.run
            if (page.length < 2) break
          }
          same(listed.toSorted(), runs)
          same(
            (yield* client.list({ workflow: "other" })).map(({ run }) => run),
            ["z"]
          )
          same(yield* client.list({ workflow: "a\0" }), [])
          assert.strictEqual((yield* client.list({ status: "waiting" })).length, 5)
          assert.strictEqual((yield* client.list({ limit: 0 })).length, 1)

          const asked: Array<string> = []
          for (let after: Client.Pending | undefined; ;) {
            const page = yield* client.pendingInterrupts({ limit: 2, ...(after === undefined ? {} : { after }) })
            asked.push(...page.map(({ run }) => run))
            after = page.at(-1)
            if (page.length < 2) break
          }
          same(asked.toSorted(), runs)
          const [one] = yield* client.pendingInterrupts({ run: "c" })
          const { openedAt: _, ...pending } = one ?? { openedAt: 0 }
          same(pending, {
            task: null,
            run: RunId.make("c"),
            branch: "c/main",
            interrupt: "approval#1",
            name: "approval",
            payload: { cents: 100 },
            checkpoint: { branch: "c/main", seq: 2 }
          })
        }).pipe(Effect.provide(plane))
      )

      it.scoped("gives questions as they were encoded", () =>
        Effect.gen(function* () {
          const client = yield* Client.Client
          const worker = yield* handWorker
          yield* client.start(Pay, order, { run: "r" })
          const journal = yield* worker.take(definition)
          const payload = { a: { $fermata: "undefined" }, b: { $fermata: "-0" }, c: "\u0000\ud800" }
          yield* append(journal, "interrupt.opened", "approval#1", { name: "approval", payload })
          const [pending] = yield* client.pendingInterrupts({ run: "r" })
          same(pending?.payload, { a: undefined, b: -0, c: "\u0000\ud800" })
        }).pipe(Effect.provide(plane))
      )
    })
  })
}
