/** Queues: limits hold over all ledgers, the order is by priority and by turns of the keys, and nothing is left behind. */
import { expect, it } from "@effect/vitest"
import { type QueueLimits, rootBranch, RunId } from "@fermata/contract"
import { type Claim, jsonDigest, type Ledger, type StartRequest } from "@fermata/ledger"
import { Effect, Either, type Scope } from "effect"
import { completed, forkId, type Owner } from "./Owner.js"
import { benchOf, type Place } from "./Place.js"

const unlimited: QueueLimits = { concurrency: undefined, keyConcurrency: undefined, rate: undefined, hold: "running" }

let count = 0

/** A queue of its own for each test, and a workflow that no other test claims. */
const fresh = (ledger: Ledger) => {
  const name = `queue-${++count}`
  const definition = `${name}@1`
  return {
    name,
    definition,
    start: (
      run: string,
      options: Partial<StartRequest> & { readonly key?: string; readonly priority?: number } = {}
    ) => {
      const { key = "", priority = 0, ...rest } = options
      return ledger.start({
        run: RunId.make(`${name}-${run}`),
        workflow: name,
        version: "1",
        input: "1",
        inputDigest: jsonDigest("1"),
        queue: { name, key, priority },
        ...rest
      })
    },
    set: (limits: Partial<QueueLimits>) => ledger.setQueue({ name, ...unlimited, ...limits })
  }
}

const register = (ledger: Ledger) =>
  Effect.map(
    Effect.orDie(ledger.register({ lease: 600_000, place: undefined, look: () => "cannot tell" })),
    ({ worker }) => worker
  )

const claim = (
  ledger: Ledger,
  worker: string,
  { definition, name }: { readonly definition: string; readonly name: string },
  limit = 100
) => ledger.claim({ worker, definitions: [definition], queues: [name], only: true, limit })

const runs = (name: string, claims: ReadonlyArray<Claim>) => claims.map(({ run }) => run.run.slice(name.length + 1))

const end = (ledger: Ledger, claimed: Claim) => {
  const journal = ledger.open(claimed)
  return Effect.async<void>((resume) => {
    journal.append(completed)
    journal.onDurable(journal.head, (lost) => resume(lost === undefined ? Effect.void : Effect.die(lost)))
  })
}

const parkAt = (ledger: Ledger, claimed: Claim, wakeAt: number | null) =>
  ledger.open(claimed).release({ _tag: "Waiting", wakeAt }, { inboxSeen: 0 })

export const queueSuite = (place: Place): void => {
  const onBench = benchOf(place)
  const test = (
    name: string,
    body: (bench: {
      readonly ledgers: readonly [Ledger, ...ReadonlyArray<Ledger>]
      readonly owner: Owner
    }) => Effect.Effect<void, unknown, Scope.Scope>
  ) =>
    it.live(
      name,
      onBench((bench) => body(bench))
    )

  test("a queue's runs go to workers that serve it, and to no others", ({ ledgers: [ledger] }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const worker = yield* register(ledger)
      yield* queue.start("a")
      expect(yield* ledger.claim({ worker, definitions: [queue.definition], limit: 10 })).toEqual([])
      expect(yield* ledger.nextWake([queue.definition])).toBeUndefined()
      expect(yield* ledger.nextWake([queue.definition], [queue.name])).toBeLessThanOrEqual(yield* ledger.now)
      const claims = yield* claim(ledger, worker, queue)
      expect(runs(queue.name, claims)).toEqual(["a"])
      expect(claims[0]?.branch.queue).toBe(queue.name)
      expect((yield* ledger.verify).problems).toEqual([])
    }))

  test("higher priorities go first, and among equals the keys take turns", ({ ledgers: [ledger] }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const worker = yield* register(ledger)
      for (const n of [1, 2, 3, 4]) yield* queue.start(`noisy${n}`, { key: "noisy" })
      yield* queue.start("quiet1", { key: "quiet" })
      yield* queue.start("quiet2", { key: "quiet" })
      yield* queue.start("urgent", { key: "noisy", priority: 1 })
      const order: Array<string> = []
      for (let n = 0; n < 7; n++) order.push(...runs(queue.name, yield* claim(ledger, worker, queue, 1)))
      expect(order).toEqual(["urgent", "noisy1", "quiet1", "noisy2", "quiet2", "noisy3", "noisy4"])
    }))

  test("slots hold over all ledgers that claim at once, in all and for each key; an end announces the free one", ({
    ledgers
  }) =>
    Effect.gen(function* () {
      const [ledger] = ledgers
      const queue = fresh(ledger)
      yield* queue.set({ concurrency: 3, keyConcurrency: 2 })
      for (let n = 0; n < 6; n++) yield* queue.start(`a${n}`, { key: "a" })
      for (let n = 0; n < 2; n++) yield* queue.start(`b${n}`, { key: "b" })
      const workers = yield* Effect.forEach(ledgers, register)
      const all = Effect.map(
        Effect.forEach(ledgers, (one, n) => claim(one, workers[n] ?? "", queue), { concurrency: "unbounded" }),
        (claims) => claims.flat()
      )
      const claims = yield* all
      expect(runs(queue.name, claims).sort()).toEqual(["a0", "a1", "b0"])
      expect(yield* all).toEqual([])
      // Nobody is woken for what the queue holds back.
      expect(yield* ledger.nextWake([queue.definition], [queue.name], true)).toBeUndefined()
      let ready = 0
      const stop = ledger.subscribe(({ _tag }) => {
        if (_tag === "Ready") ready++
      })
      const b = claims.find(({ run }) => run.run.endsWith("b0"))
      if (b === undefined) return yield* Effect.die("b0 was claimed")
      const at = ledgers.findIndex((_, n) => workers[n] === b.branch.owner)
      yield* end(ledgers[at] ?? ledger, b)
      stop()
      if (at === 0) expect(ready).toBe(1)
      // Key a is full: the slot is for b, though a's have waited longer.
      expect(runs(queue.name, yield* all)).toEqual(["b1"])
      const state = (yield* ledger.queues).find(({ name }) => name === queue.name)
      expect(state).toMatchObject({ ready: 4, running: 3, waiting: 0, concurrency: 3 })
    }))

  test("a branch that waits holds no slot, or keeps it if the queue holds slots for the whole run", ({
    ledgers: [ledger]
  }) =>
    Effect.gen(function* () {
      const worker = yield* register(ledger)
      for (const hold of ["running", "run"] as const) {
        const queue = fresh(ledger)
        yield* queue.set({ concurrency: 1, hold })
        yield* queue.start("first")
        yield* queue.start("second")
        const [first] = yield* claim(ledger, worker, queue)
        if (first === undefined) return yield* Effect.die("first was claimed")
        yield* parkAt(ledger, first, null)
        const next = yield* claim(ledger, worker, queue)
        expect(runs(queue.name, next)).toEqual(hold === "running" ? ["second"] : [])
        yield* ledger.cancel(first.branch.branch, null)
        // Awake: it has its slot still, or waits for one.
        expect(runs(queue.name, yield* claim(ledger, worker, queue))).toEqual(hold === "running" ? [] : ["first"])
        if (next[0] !== undefined) {
          yield* end(ledger, next[0])
          expect(runs(queue.name, yield* claim(ledger, worker, queue))).toEqual(["first"])
        }
      }
    }))

  test("a rate lets a burst begin and says when the next may; going on is not counted", ({ ledgers: [ledger] }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const worker = yield* register(ledger)
      yield* queue.set({ rate: { limit: 2, per: 7_200_000 } })
      for (const run of ["a", "b", "c"]) yield* queue.start(run)
      const claims = yield* claim(ledger, worker, queue)
      expect(runs(queue.name, claims)).toEqual(["a", "b"])
      expect(yield* claim(ledger, worker, queue)).toEqual([])
      const now = yield* ledger.now
      const next = yield* ledger.nextWake([queue.definition], [queue.name], true)
      expect(next).toBeGreaterThan(now + 3_590_000)
      expect(next).toBeLessThanOrEqual(now + 3_600_001)
      const [a] = claims
      if (a === undefined) return yield* Effect.die("a was claimed")
      yield* parkAt(ledger, a, now - 1)
      expect(runs(queue.name, yield* claim(ledger, worker, queue))).toEqual(["a"])
    }))

  test("a paused queue is left alone until it goes on; setting it up again does not wake it", ({ ledgers: [ledger] }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const worker = yield* register(ledger)
      yield* queue.start("a")
      yield* ledger.pauseQueue(queue.name, true)
      yield* queue.set({ concurrency: 5 })
      expect(yield* claim(ledger, worker, queue)).toEqual([])
      yield* ledger.pauseQueue(queue.name, false)
      expect(runs(queue.name, yield* claim(ledger, worker, queue))).toEqual(["a"])
      expect((yield* ledger.queues).find(({ name }) => name === queue.name)?.concurrency).toBe(5)
    }))

  test("slots of a worker that is lost are free again, and a fork stands in its parent's queue", ({
    ledgers: [ledger]
  }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      yield* queue.set({ concurrency: 1 })
      const { branch } = yield* queue.start("a")
      yield* queue.start("b")
      yield* Effect.scoped(Effect.flatMap(register(ledger), (worker) => claim(ledger, worker, queue)))
      const worker = yield* register(ledger)
      const [again] = yield* claim(ledger, worker, queue)
      expect(again?.branch.branch).toBe(branch)
      if (again === undefined) return
      const fork = yield* ledger.fork({
        run: again.run.run,
        fork: forkId("f"),
        parent: branch,
        at: { _tag: "Checkpoint", seq: 1 }
      })
      expect((yield* ledger.branch(fork.branch)).queue).toBe(queue.name)
      expect(yield* claim(ledger, worker, queue)).toEqual([])
      yield* end(ledger, again)
      expect(yield* claim(ledger, worker, queue)).toHaveLength(1)
      expect((yield* ledger.verify).problems).toEqual([])
    }))

  test("a delayed start is not claimed before its time, with a queue and without", ({ ledgers: [ledger] }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const worker = yield* register(ledger)
      const startAt = (yield* ledger.now) + 3_600_000
      yield* queue.start("later", { startAt })
      const { branch } = yield* ledger.start({
        run: RunId.make(`${queue.name}-plain`),
        workflow: queue.name,
        version: "1",
        input: "1",
        inputDigest: jsonDigest("1"),
        startAt
      })
      expect(yield* ledger.branch(branch)).toMatchObject({ status: "waiting", readyAt: startAt, queue: null })
      expect(yield* ledger.claim({ worker, definitions: [queue.definition], queues: [queue.name], limit: 9 })).toEqual(
        []
      )
      expect(yield* ledger.nextWake([queue.definition], [queue.name], true)).toBe(startAt)
      expect(yield* ledger.nextWake([queue.definition])).toBe(startAt)
      yield* queue.start("past", { startAt: 1 })
      expect(runs(queue.name, yield* claim(ledger, worker, queue))).toEqual(["past"])
    }))

  test("of starts of one dedupe key at once one creates a run, and all are answered with it until it is over", ({
    ledgers
  }) =>
    Effect.gen(function* () {
      const [ledger] = ledgers
      const worker = yield* register(ledger)
      const queue = fresh(ledger)
      const request = (n: number): StartRequest => ({
        run: RunId.make(`${queue.name}-${n}`),
        workflow: queue.name,
        version: "1",
        input: "1",
        inputDigest: jsonDigest("1"),
        dedupe: { key: "k" }
      })
      const receipts = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, n) => n),
        (n) => (ledgers[n % ledgers.length] ?? ledger).start(request(n)),
        { concurrency: "unbounded" }
      )
      expect(receipts.filter(({ created }) => created)).toHaveLength(1)
      expect(new Set(receipts.map(({ branch }) => branch)).size).toBe(1)
      const [claimed] = yield* ledger.claim({ worker, definitions: [queue.definition], limit: 10 })
      if (claimed === undefined) return yield* Effect.die("the run was claimed")
      expect((yield* ledger.start(request(20))).branch).toBe(claimed.branch.branch)
      yield* end(ledger, claimed)
      const next = yield* ledger.start(request(21))
      expect(next).toEqual({ branch: rootBranch(request(21).run), created: true })
      // The same run id again is the same start, whatever has the key.
      expect(yield* ledger.start(request(21))).toEqual({ ...next, created: false })
      yield* ledger.purge(claimed.run.run)
      expect(Either.isLeft(yield* Effect.either(ledger.start({ ...request(0), run: claimed.run.run })))).toBe(true)
    }))

  test("of a debounced burst the newest runs; the others end as cancelled, and their histories verify", ({
    ledgers: [ledger]
  }) =>
    Effect.gen(function* () {
      const queue = fresh(ledger)
      const burst = (run: string) =>
        queue.start(run, { dedupe: { key: "k", debounce: { period: 3_600_000, maxWait: 5_000_000 } } })
      const a = yield* burst("a")
      const since = (yield* ledger.branch(a.branch)).readyAt ?? 0
      const b = yield* burst("b")
      expect(yield* ledger.branch(a.branch)).toMatchObject({ status: "cancelled", readyAt: null })
      expect(yield* ledger.branch(b.branch)).toMatchObject({ status: "waiting" })
      const { entry } = yield* ledger.ending(a.branch)
      expect(JSON.parse(entry?.payload ?? "")).toEqual({ reason: `superseded by run ${queue.name}-b` })
      expect((yield* ledger.branch(b.branch)).readyAt).toBeGreaterThanOrEqual(since)
      expect((yield* ledger.history(a.branch)).entries).toHaveLength(2)
      expect((yield* ledger.verify).problems).toEqual([])
    }))
}
