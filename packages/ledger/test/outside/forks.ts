/** FD, FI: forks of checkpoints, of interrupts with values, and of recorded outcomes. */
import { expect, it } from "@effect/vitest"
import { type BranchId, type Entry, payloadOf, type RunId } from "@fermata/contract"
import type { ForkRequest, Ledger } from "@fermata/ledger"
import { Effect } from "effect"
import {
  answer,
  answered,
  anyRun,
  branchId,
  cancelled,
  closed,
  completed,
  delivery,
  failed,
  forkId,
  happened,
  intended,
  interruptId,
  opened,
  type Owned,
  type Owner,
  stepDone,
  unserved,
  valid
} from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

const atCheckpoint = (seq: number): ForkRequest["at"] => ({ _tag: "Checkpoint", seq })
const atInterrupt = (key: string, value: unknown, by = "fork-1", name = "approve"): ForkRequest["at"] => ({
  _tag: "Interrupt",
  interrupt: interruptId(key),
  name,
  delivery: delivery(by),
  value: valid(value)
})
const withOutcome = (step: string, value: unknown, tag: "Succeeded" | "Failed" = "Succeeded"): ForkRequest["at"] => ({
  _tag: "Outcome",
  step,
  outcome: { _tag: tag, json: JSON.stringify(value) }
})

const request = (parent: BranchId, fork: string, at: ForkRequest["at"]): ForkRequest => ({
  // Branch ids of these tests are made of run ids.
  run: parent.slice(0, parent.lastIndexOf("/")) as RunId,
  fork: forkId(fork),
  parent,
  at
})

const entriesOf = (ledger: Ledger, branch: BranchId) => Effect.map(ledger.history(branch), ({ entries }) => entries)
const kindsOf = (entries: ReadonlyArray<Entry>) => entries.map(({ kind, key }) => `${kind} ${key}`.trim())
const openOn = (ledger: Ledger, branch: BranchId) =>
  Effect.map(ledger.pendingInterrupts(), (all) =>
    all.filter((one) => one.branch === branch).map(({ interrupt }) => interrupt)
  )
const sound = (ledger: Ledger) => Effect.map(ledger.verify, ({ problems }) => expect(problems).toEqual([]))

/** `step#1`, an open `approve#1` (seq 3), `step#2` (seq 4); still owned. */
const asking = (owner: Owner): Effect.Effect<Owned> =>
  Effect.tap(owner.started(), ({ write }) => write(stepDone("step#1"), opened("approve#1"), stepDone("step#2")))

export const forkSuite = (place: Place): void => {
  const onBench = benchOf(place)

  it.live(
    "a fork of a checkpoint has the history up to it, costs one row, and can be owned",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { journal } = yield* asking(owner)
        const receipt = yield* ledger.fork(request(journal.branch, "plain", atCheckpoint(2)))
        expect(receipt).toMatchObject({ seq: 2, created: true })
        expect(yield* ledger.branch(receipt.branch)).toMatchObject({
          status: "ready",
          parent: { branch: journal.branch, seq: 2 },
          head: 2,
          epoch: 0,
          inboxHead: 0
        })
        const parent = yield* entriesOf(ledger, journal.branch)
        expect(yield* entriesOf(ledger, receipt.branch)).toEqual(parent.slice(0, 2))
        expect(yield* openOn(ledger, receipt.branch)).toEqual([])
        const child = yield* owner.own(receipt.branch)
        yield* child.write(stepDone("step#2", "another"), completed)
        expect(kindsOf(yield* entriesOf(ledger, receipt.branch))).toEqual([
          "run.started",
          "step.succeeded step#1",
          "step.succeeded step#2",
          "run.completed"
        ])
        // The parent is untouched.
        expect(yield* entriesOf(ledger, journal.branch)).toEqual(parent)
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "the same fork again is the same branch; another checkpoint or value under its id is refused",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { journal } = yield* asking(owner)
        const at = (fork: string, place: ForkRequest["at"]) => ledger.fork(request(journal.branch, fork, place))
        const first = yield* at("a", atInterrupt("approve#1", { b: 1, a: [0] }))
        expect(yield* at("a", atInterrupt("approve#1", { a: [0], b: 1 }, "another delivery"))).toEqual({
          ...first,
          created: false
        })
        for (const other of [
          atInterrupt("approve#1", null),
          atCheckpoint(3),
          atCheckpoint(2),
          withOutcome("step#2", 1)
        ]) {
          expect(yield* Effect.flip(at("a", other))).toMatchObject({ _tag: "ForkIdReused", fork: "a" })
        }
        const plain = yield* at("b", atCheckpoint(3))
        expect(yield* at("b", atCheckpoint(3))).toEqual({ ...plain, created: false })
        expect(yield* Effect.flip(at("b", atInterrupt("approve#1", 1)))).toMatchObject({ _tag: "ForkIdReused" })
        // What is invalid never passes for a fork with another value.
        const nothing = yield* at("c", atInterrupt("approve#1", null))
        expect(nothing.created).toBe(true)
        const invalid = {
          ...atInterrupt("approve#1", null),
          value: { _tag: "Invalid", issues: ["is null"] }
        } as ForkRequest["at"]
        expect(yield* Effect.flip(at("c", invalid))).toMatchObject({ _tag: "ForkIdReused" })
        expect(yield* Effect.flip(at("d", invalid))).toMatchObject({ _tag: "ResumeValueInvalid", issues: ["is null"] })
        expect((yield* ledger.branches(first.branch.slice(0, first.branch.lastIndexOf("/")) as RunId)).length).toBe(4)
      })
    )
  )

  it.live(
    "two forks of one interrupt each get their own value, whatever became of the run since",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* asking(owner)
        const { branch } = owned.journal
        const values: Record<string, unknown> = { before: false, accepted: 0, journaled: "", over: null }
        const fork = (name: string) =>
          ledger.fork(request(branch, name, atInterrupt("approve#1", values[name], `by-${name}`)))
        yield* fork("before")
        yield* ledger.deliver(answer(branch, "approve#1", "d1", true))
        yield* fork("accepted")
        yield* owned.write(answered("approve#1", true, "d1", 1), stepDone("step#3"))
        yield* fork("journaled")
        yield* owned.write(completed)
        yield* fork("over")
        for (const [name, value] of Object.entries(values)) {
          const child = branchId(`${owned.claim.run.run}/${name}`)
          const entries = yield* entriesOf(ledger, child)
          expect(kindsOf(entries)).toEqual([
            "run.started",
            "step.succeeded step#1",
            "interrupt.opened approve#1",
            "interrupt.answered approve#1"
          ])
          const first = entries[3]
          if (first === undefined) throw new Error("there is no first event")
          expect(first).toMatchObject({ branch: child, seq: 4, epoch: 0 })
          const payload = payloadOf({ kind: "interrupt.answered", payload: first.payload })
          expect(payload.value).toEqual(value)
          expect(payload.delivery).toBe(`by-${name}`)
          expect("inbox" in payload).toBe(false)
          expect(yield* ledger.branch(child)).toMatchObject({ status: "ready", head: 4, headDigest: first.digest })
          // CO: it is consumed on the child, by the fork.
          expect(yield* Effect.flip(ledger.deliver(answer(child, "approve#1", "late", true)))).toMatchObject({
            _tag: "AlreadyConsumed",
            by: `by-${name}`,
            at: first.at
          })
          expect(yield* ledger.deliver(answer(child, "approve#1", `by-${name}`, value))).toMatchObject({
            verdict: "Duplicate",
            at: first.at
          })
        }
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "an interrupt consumed in the inherited history is consumed; one open at the fork point is open on the child",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"), opened("approve#2", { q: 2 }), opened("approve#3"))
        const one = yield* ledger.deliver(answer(branch, "approve#1", "d1", 1))
        yield* owned.write(answered("approve#1", 1, "d1", 1), stepDone("step#1"))
        // Accepted by the parent, and not journaled: not inherited.
        yield* ledger.deliver(answer(branch, "approve#2", "d2", 2))
        const { branch: child } = yield* ledger.fork(request(branch, "f", atCheckpoint(6)))
        expect(yield* openOn(ledger, child)).toEqual(["approve#2", "approve#3"])
        expect(yield* openOn(ledger, branch)).toEqual(["approve#3"])
        expect(yield* Effect.flip(ledger.deliver(answer(child, "approve#1", "x", 1)))).toMatchObject({
          _tag: "AlreadyConsumed",
          by: "d1",
          at: one.at
        })
        expect(yield* ledger.deliver(answer(child, "approve#1", "d1", 1))).toMatchObject({
          verdict: "Duplicate",
          at: one.at
        })
        // A delivery id is used once per history: the inherited use counts, the parent's later one does not.
        expect(yield* Effect.flip(ledger.deliver(answer(child, "approve#2", "d1", 1)))).toMatchObject({
          _tag: "DeliveryIdReused"
        })
        expect(yield* ledger.deliver(answer(child, "approve#2", "d2", "other"))).toMatchObject({ verdict: "Accepted" })
        // Addressed apart: the parent's is answered by its own.
        expect(yield* ledger.deliver(answer(child, "approve#3", "d3", "child"))).toMatchObject({ verdict: "Accepted" })
        expect(yield* ledger.deliver(answer(branch, "approve#3", "d3", "parent"))).toMatchObject({
          verdict: "Accepted"
        })
        const pending = yield* ledger.pendingInterrupts()
        expect(pending.filter(({ branch: on }) => on === child || on === branch)).toEqual([])
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "a question that its own activation withdrew, or that the run ended with, cannot be forked; one withdrawn later can",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(
          opened("approve#1"),
          opened("approve#2"),
          closed("approve#1"),
          stepDone("step#3"),
          closed("approve#2"),
          opened("approve#4")
        )
        const refusal = yield* Effect.flip(ledger.fork(request(branch, "f", atInterrupt("approve#1", 1))))
        expect(refusal).toMatchObject({ _tag: "InterruptClosed", interrupt: "approve#1" })
        expect(yield* ledger.fork(request(branch, "g", atInterrupt("approve#2", 1)))).toMatchObject({ created: true })
        expect(yield* ledger.fork(request(branch, "h", atInterrupt("approve#4", 1)))).toMatchObject({ created: true })
        yield* owned.write(completed)
        expect(yield* Effect.flip(ledger.fork(request(branch, "i", atInterrupt("approve#4", 1))))).toMatchObject({
          _tag: "InterruptClosed"
        })
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "an answer that the parent could not serve before the fork point is consumed on the child, with its reason",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(opened("approve#1"))
        yield* ledger.deliver(answer(branch, "approve#1", "d1", 1))
        yield* owned.write(
          { kind: "interrupt.closed", key: "approve#1", payload: `{"reason":"withdrawn"}` },
          unserved("answer:approve#1", 1, "withdrawn")
        )
        const { branch: child } = yield* ledger.fork(request(branch, "f", atCheckpoint(4)))
        expect(yield* ledger.deliver(answer(child, "approve#1", "d1", 1))).toMatchObject({
          verdict: "Duplicate",
          unserved: "withdrawn"
        })
        const { branch: before } = yield* ledger.fork(request(branch, "g", atCheckpoint(2)))
        expect(yield* ledger.deliver(answer(before, "approve#1", "d1", 2))).toMatchObject({ verdict: "Accepted" })
      })
    )
  )

  it.live(
    "a fork of a fork, also inside what it inherited, reads the right entries of each ancestor",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const root = yield* asking(owner)
        const { branch } = root.journal
        yield* root.write(opened("approve#2"), stepDone("step#3"))
        const b1 = yield* ledger.fork(request(branch, "one", atInterrupt("approve#2", 1)))
        const one = yield* owner.own(b1.branch)
        yield* one.write(stepDone("step#3", "of one"), opened("approve#3"), stepDone("step#4"))
        // On its own part.
        const b2 = yield* ledger.fork(request(b1.branch, "two", atInterrupt("approve#3", 2)))
        // Inside what it inherited: neither the root's later entries nor its own may show.
        const b3 = yield* ledger.fork(request(b1.branch, "three", atInterrupt("approve#1", 3)))
        const b4 = yield* ledger.fork(request(b3.branch, "four", atCheckpoint(2)))
        expect(kindsOf(yield* entriesOf(ledger, b2.branch)).slice(4)).toEqual([
          "interrupt.opened approve#2",
          "interrupt.answered approve#2",
          "step.succeeded step#3",
          "interrupt.opened approve#3",
          "interrupt.answered approve#3"
        ])
        const two = yield* entriesOf(ledger, b2.branch)
        expect(payloadOf({ kind: "step.succeeded", payload: two[6]?.payload ?? "" }).value).toBe("of one")
        expect(kindsOf(yield* entriesOf(ledger, b3.branch))).toEqual([
          "run.started",
          "step.succeeded step#1",
          "interrupt.opened approve#1",
          "interrupt.answered approve#1"
        ])
        expect(kindsOf(yield* entriesOf(ledger, b4.branch))).toEqual(["run.started", "step.succeeded step#1"])
        expect(yield* openOn(ledger, b2.branch)).toEqual(["approve#1"])
        expect(yield* openOn(ledger, b4.branch)).toEqual([])
        expect(yield* Effect.flip(ledger.deliver(answer(b2.branch, "approve#2", "x", 1)))).toMatchObject({
          _tag: "AlreadyConsumed"
        })
        expect(yield* Effect.flip(ledger.deliver(answer(b3.branch, "approve#2", "x", 1)))).toMatchObject({
          _tag: "UnknownInterrupt"
        })
        expect(yield* ledger.deliver(answer(b2.branch, "approve#1", "x", 1))).toMatchObject({ verdict: "Accepted" })
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "a fork with an edited outcome replaces it, keeping its node and input",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const { journal } = yield* asking(owner)
        const edited = yield* ledger.fork(request(journal.branch, "edit", withOutcome("step#1", 0)))
        const died = yield* ledger.fork(request(journal.branch, "fail", withOutcome("step#2", { code: 7 }, "Failed")))
        expect(edited.seq).toBe(1)
        expect(died.seq).toBe(3)
        const first = (yield* entriesOf(ledger, edited.branch))[1]
        expect(first).toMatchObject({ kind: "step.succeeded", key: "step#1", seq: 2 })
        expect(JSON.parse(first?.payload ?? "")).toEqual({ node: "step", input: "in-step#1", value: 0, edited: true })
        const second = (yield* entriesOf(ledger, died.branch))[3]
        expect(second).toMatchObject({ kind: "step.failed", key: "step#2", seq: 4 })
        expect(JSON.parse(second?.payload ?? "")).toEqual({
          node: "step",
          input: "in-step#2",
          error: { code: 7 },
          edited: true
        })
        expect(yield* openOn(ledger, edited.branch)).toEqual([])
        expect(yield* openOn(ledger, died.branch)).toEqual(["approve#1"])
        expect(
          yield* Effect.flip(ledger.fork(request(journal.branch, "none", withOutcome("step#9", 0))))
        ).toMatchObject({
          _tag: "UnknownCheckpoint",
          step: "step#9"
        })
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "a position with an unfinished once effect is refused with its nearest forkable neighbours",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        const key = `${branch}|pay#1|0`
        // 2 keyed intent, 3 asked, 4 once intent, 5 step#1, 6 asked, 7 once outcome, 8 pay#1 done
        yield* owned.write(
          intended(`${branch}|mail#1|0`, "mail#1", "keyed"),
          opened("approve#1"),
          intended(key, "pay#1"),
          stepDone("step#1"),
          opened("approve#2")
        )
        const at = (fork: string, place: ForkRequest["at"]) => ledger.fork(request(branch, fork, place))
        for (const [fork, place, seq] of [
          ["a", atCheckpoint(4), 4],
          ["b", atCheckpoint(6), 6],
          ["c", atInterrupt("approve#2", 1), 6],
          ["d", withOutcome("step#1", 1), 4]
        ] as const) {
          expect(yield* Effect.flip(at(fork, place))).toMatchObject({
            _tag: "EffectInFlight",
            seq,
            effects: [key],
            below: 3,
            above: null
          })
        }
        // A keyed intent is inherited with its key.
        expect(yield* at("e", atCheckpoint(3))).toMatchObject({ created: true })
        yield* owned.write(happened(key, "pay#1"), stepDone("pay#1"))
        expect(yield* Effect.flip(at("a", atCheckpoint(5)))).toMatchObject({ below: 3, above: 7 })
        // The outcome is known there, and the step's own is what the fork edits.
        expect(yield* at("f", atCheckpoint(7))).toMatchObject({ created: true })
        expect(yield* at("g", withOutcome("pay#1", "edited"))).toMatchObject({ seq: 7, created: true })
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "an edited outcome of the step whose effect is in flight settles it",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* owner.started()
        const { branch } = owned.journal
        yield* owned.write(intended(`${branch}|pay#1|0`, "pay#1"), {
          kind: "step.died",
          key: "pay#1",
          payload: JSON.stringify({ node: "pay", input: "in", defect: "gone" })
        })
        const { branch: child } = yield* ledger.fork(request(branch, "f", withOutcome("pay#1", 1)))
        // Nothing is in flight on it any more: it may be forked again.
        expect(yield* ledger.fork(request(child, "g", atCheckpoint(3)))).toMatchObject({ created: true })
        expect(
          yield* Effect.flip(
            ledger.settle({ branch: child, effect: `${branch}|pay#1|0`, settlement: { _tag: "DidNotHappen" } })
          )
        ).toMatchObject({ _tag: "AlreadySettled" })
      })
    )
  )

  it.live(
    "what is no durable position of a known branch is refused",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* asking(owner)
        const { branch } = owned.journal
        for (const seq of [0, 5, 1.5, Number.NaN, -1]) {
          expect(yield* Effect.flip(ledger.fork(request(branch, "f", atCheckpoint(seq))))).toMatchObject({
            _tag: "UnknownCheckpoint",
            head: 4
          })
        }
        const nobody = branchId(`${anyRun()}/main`)
        expect(yield* Effect.flip(ledger.fork(request(nobody, "f", atCheckpoint(1))))).toMatchObject({
          _tag: "RunNotFound"
        })
        const sibling = branchId(`${owned.claim.run.run}/none`)
        expect(yield* Effect.flip(ledger.fork(request(sibling, "f", atCheckpoint(1))))).toMatchObject({
          _tag: "RunNotFound",
          id: sibling
        })
        const foreign = { ...request(branch, "f", atCheckpoint(1)), run: anyRun() }
        expect(yield* Effect.flip(ledger.fork(foreign))).toMatchObject({ _tag: "RunNotFound" })
        for (const at of [atInterrupt("approve#9", 1), atInterrupt("approve#1", 1, "d", "reject")]) {
          expect(yield* Effect.flip(ledger.fork(request(branch, "f", at)))).toMatchObject({
            _tag: "UnknownInterrupt",
            open: ["approve#1"]
          })
        }
        // Nothing can go on from an end.
        yield* owned.write(failed)
        expect(yield* Effect.flip(ledger.fork(request(branch, "f", atCheckpoint(5))))).toMatchObject({
          _tag: "UnknownCheckpoint",
          head: 4
        })
        expect(yield* ledger.fork(request(branch, "f", atCheckpoint(4)))).toMatchObject({ created: true })
      })
    )
  )

  it.live(
    "an inherited cancellation was asked for; a later one of the parent was not",
    onBench(({ owner }) =>
      Effect.gen(function* () {
        const { ledger } = owner
        const owned = yield* asking(owner)
        const { branch } = owned.journal
        expect(yield* ledger.cancel(branch, null)).toBe("Accepted")
        yield* owned.write(cancelled(1))
        const { branch: after } = yield* ledger.fork(request(branch, "after", atCheckpoint(5)))
        const { branch: before } = yield* ledger.fork(request(branch, "before", atCheckpoint(4)))
        expect(yield* ledger.cancel(after, null)).toBe("Duplicate")
        expect(yield* ledger.cancel(before, null)).toBe("Accepted")
        yield* sound(ledger)
      })
    )
  )

  it.live(
    "20 forks under one id at once make one branch; with different values one of them",
    onBench(({ owner, ledgers }) =>
      Effect.gen(function* () {
        const { journal } = yield* asking(owner)
        const at = (index: number) => ledgers[index % ledgers.length] ?? ledgers[0]
        const indices = Array.from({ length: 20 }, (_, index) => index)
        const same = yield* Effect.forEach(
          indices,
          (index) => at(index).fork(request(journal.branch, "same", atInterrupt("approve#1", "x", `d${index}`))),
          { concurrency: "unbounded" }
        )
        expect(same.filter(({ created }) => created)).toHaveLength(1)
        const results = yield* Effect.forEach(
          indices,
          (index) => Effect.either(at(index).fork(request(journal.branch, "race", atInterrupt("approve#1", index)))),
          { concurrency: "unbounded" }
        )
        expect(results.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
        for (const result of results)
          if (result._tag === "Left") expect(result.left).toMatchObject({ _tag: "ForkIdReused" })
        yield* sound(ledgers[0])
      })
    )
  )
}
