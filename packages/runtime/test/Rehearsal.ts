/**
 * Runs random programs live on a plane in memory: first in whatever order a seed chooses, then in the recorded order,
 * step for step, on another plane or on a fork, with workers that come and go.
 */
import { type BranchId, type Entry, isTerminal, Recovery } from "@fermata/contract"
import { Ledger } from "@fermata/ledger"
import { Client } from "@fermata/runtime"
import * as Testing from "@fermata/runtime/testing"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HandClock } from "./HandClock.js"
import { Add, Approval, bodyLatch, handlerLatch, interpreter, Mail, type Op } from "./Programs.js"
import { Stage, turn } from "./Stage.js"

/** Numbers in [0, 1) from a seed (mulberry32). */
export const dice = (seed: number) => {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return { chance: (of: number) => next() < of, below: (n: number) => Math.floor(next() * n) }
}
export type Dice = ReturnType<typeof dice>

/** Turns of the event loop after which something that should happen by itself never will. */
const patience = 4000
const answers = [false, 0, "", null, "yes", { a: [1] }]

export const begin = 1_700_000_000_000

/** A plane, its clock, its stage, and a worker that may be replaced. */
export const theatre = (strict: boolean) =>
  Effect.gen(function* () {
    const clock = new HandClock(begin)
    const stage = new Stage()
    stage.strict = strict
    const { handlers, workflow } = interpreter(stage)
    const plane = yield* Effect.withClock(Layer.build(Testing.layer), clock)
    const client = Context.get(plane, Client.Client)
    const ledger = Context.get(plane, Ledger)
    let worker: Scope.CloseableScope | undefined

    const hire = (residentBranches: number) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const layer = Testing.worker({ workflows: [workflow], residentBranches }).pipe(Layer.provide(handlers))
        yield* Effect.provide(Layer.buildWithScope(layer, scope), plane)
        worker = scope
      }).pipe(Effect.withClock(clock))

    /** Lets the worker go; what may not be interrupted ends first. */
    const dismiss = Effect.gen(function* () {
      const scope = worker
      worker = undefined
      if (scope === undefined) return
      const closing = yield* Effect.forkDaemon(Scope.close(scope, Exit.void))
      for (let turns = 0; closing.unsafePoll() === null; turns++) {
        if (turns > patience) return yield* Effect.dieMessage("the worker does not stop")
        for (const name of stage.names) if (name.includes("|once#")) stage.release(name)
        yield* turn
      }
    })
    yield* Effect.addFinalizer(() => dismiss)

    /** Waits until nothing more happens by itself. */
    const settle = (branch: BranchId) =>
      Effect.gen(function* () {
        let last = ""
        for (let still = 0; still < 5;) {
          yield* turn
          const { head, inboxHead, status } = yield* ledger.branch(branch)
          const now = `${status} ${head} ${inboxHead} ${stage.names.join()}`
          still = now === last && status !== "ready" ? still + 1 : 0
          last = now
        }
      })

    const entries = (branch: BranchId) => Effect.map(ledger.history(branch), (history) => history.entries)

    return { client, clock, dismiss, entries, hire, ledger, settle, stage, workflow, plane }
  })
export type Theatre = Effect.Effect.Success<ReturnType<typeof theatre>>

const unfinishedOnce = (branch: BranchId, entries: ReadonlyArray<Entry>): boolean =>
  [...Recovery.of(branch, entries).effects.values()].some(
    ({ delivery, state }) => delivery === "once" && state === "intended"
  )

/** Plays a program to its end, in an order that the dice choose. Gives its history. */
export const improvise = (
  theatre: Theatre,
  program: Op,
  run: string,
  dice: Dice,
  options: { readonly bursts: boolean; readonly cancel: boolean }
) =>
  Effect.gen(function* () {
    const { client, clock, stage } = theatre
    yield* theatre.hire(dice.chance(0.5) ? 0 : 100)
    const { branch } = yield* client.start(theatre.workflow, JSON.stringify(program), { run })
    let idle = 0
    let sent = 0
    for (let moves = 0; moves < 2000; moves++) {
      if (!options.bursts || dice.chance(0.5)) yield* theatre.settle(branch)
      else yield* turn
      const described = yield* client.describe(branch)
      if (described.status === "stuck") return yield* Effect.dieMessage(`stuck: ${JSON.stringify(described.problems)}`)
      if (described.status === "completed" || described.status === "failed" || described.status === "cancelled") {
        return { branch, entries: yield* theatre.entries(branch) }
      }
      const recorded = yield* theatre.entries(branch)
      const now = clock.unsafeCurrentTimeMillis()
      const due = [...Recovery.of(branch, recorded).timers.values()].filter((at) => at > now)
      const asked = (yield* client.pendingInterrupts({ run })).filter((pending) => pending.branch === branch)
      const moves: Array<Effect.Effect<unknown, unknown, Scope.Scope>> = [
        ...stage.names.map((name) => Effect.sync(() => stage.release(name))),
        ...asked.map(({ interrupt }) =>
          client.resume(Approval, {
            branch,
            interrupt,
            value: answers[dice.below(answers.length)],
            deliveryId: `d-${interrupt}`,
            intent: "retry"
          })
        ),
        ...(due.length === 0 ? [] : [Effect.sync(() => clock.set(Math.min(...due)))])
      ]
      if (sent < 8 && dice.chance(0.3)) {
        const id = `m-${++sent}`
        moves.push(
          dice.chance(0.5)
            ? client.signal(branch, Mail, sent, { messageId: id })
            : Effect.forkScoped(Effect.exit(client.update(branch, Add, sent, { updateId: id })))
        )
      }
      if (options.cancel && recorded.length > 4 && dice.chance(0.2))
        moves.push(client.cancel(branch, { reason: "enough" }))
      const move = moves[dice.below(moves.length)]
      if (move === undefined) {
        if (++idle > patience) return yield* Effect.dieMessage(`nothing left to do, and yet ${described.status}`)
        continue
      }
      idle = 0
      // An answer may come too late in a burst: that is a typed refusal.
      yield* Effect.exit(move)
      if (dice.chance(0.05) && !unfinishedOnce(branch, recorded)) {
        yield* theatre.settle(branch)
        yield* theatre.dismiss
        yield* theatre.hire(dice.chance(0.5) ? 0 : 100)
      }
    }
    return yield* Effect.dieMessage("the program does not end")
  })

/** What of an entry must be the same whoever writes it: not the worker, its deadline, or the branch's own name. */
const comparable = (entry: Entry, branch: BranchId, origin: BranchId): string => {
  const { fireBefore: _, worker: __, inbox: ___, ...payload } = JSON.parse(entry.payload) as Record<string, unknown>
  if (entry.kind === "run.died") delete payload["defect"]
  if (entry.kind === "run.started") delete payload["run"]
  const key = entry.key.startsWith(`${branch}|`) ? `${origin}|${entry.key.slice(branch.length + 1)}` : entry.key
  return `${entry.kind} ${key} ${JSON.stringify(payload)}`
}

/**
 * A step that was interrupted while its effect fired ends by its body's own exit, or, if another worker ends it, as
 * interrupted: the workflow is told the same of both, and what follows shows it.
 */
const interruptedAlike = (written: Entry, expected: Entry): boolean =>
  written.kind === "step.interrupted" && expected.kind.startsWith("step.") && written.key === expected.key

/**
 * Plays what `recorded` has after its first `from` entries on `branch`, which has these already: brings about each entry in
 * turn, and checks that the branch writes exactly it.
 */
export const perform = (
  theatre: Theatre,
  branch: BranchId,
  recorded: ReadonlyArray<Entry>,
  from: number,
  dice: Dice,
  restarts: number
) =>
  Effect.gen(function* () {
    const { client, clock, stage } = theatre
    const origin = recorded[0]?.branch ?? branch
    const headReaches = (seq: number, latch?: string) =>
      Effect.gen(function* () {
        for (let turns = 0; turns < patience; turns++) {
          const info = yield* theatre.ledger.branch(branch)
          if (info.head >= seq) return true
          if (info.status === "stuck") return yield* Effect.dieMessage(`stuck: ${info.problem}`)
          if (latch !== undefined && stage.has(latch)) return false
          yield* turn
        }
        return yield* Effect.flatMap(theatre.entries(branch), (now) =>
          Effect.dieMessage(
            `position ${seq} is not reached${latch === undefined ? "" : `, nor ${latch}`}; there is ${now.map(({ key, kind }) => `${kind} ${key}`).join(", ")}; recorded was ${recorded.map(({ key, kind }) => `${kind} ${key}`).join(", ")}`
          )
        )
      })
    for (const expected of recorded.slice(from)) {
      // Time of the entry before, while it writes what follows by itself; then time moves on.
      if (expected.at > clock.unsafeCurrentTimeMillis()) {
        yield* theatre.settle(branch)
        clock.set(expected.at)
      }
      if (dice.chance(restarts)) {
        yield* theatre.settle(branch)
        if (!unfinishedOnce(branch, yield* theatre.entries(branch))) {
          yield* theatre.dismiss
          yield* theatre.hire(dice.chance(0.5) ? 0 : 100)
        }
      }
      // Payloads of these kinds carry what this file's workflow put there.
      const payload = JSON.parse(expected.payload) as {
        readonly value?: unknown
        readonly error?: unknown
        readonly delivery?: string
        readonly message?: string
      }
      const done = (payload.value ?? payload.error) as { readonly call?: number } | null | undefined
      switch (expected.kind) {
        case "step.succeeded":
        case "step.failed": {
          const latch = bodyLatch(done?.call ?? 0)
          if (!(yield* headReaches(expected.seq, latch))) stage.release(latch)
          break
        }
        case "effect.succeeded":
        case "effect.failed": {
          const own =
            expected.key.startsWith(`${origin}|`) && expected.seq > from
              ? `${branch}|${expected.key.slice(origin.length + 1)}`
              : expected.key
          const intendedBefore = recorded
            .slice(0, from)
            .some(({ key, kind }) => kind === "effect.intended" && key === expected.key)
          const latch = handlerLatch(intendedBefore ? expected.key : own)
          if (!(yield* headReaches(expected.seq, latch))) stage.release(latch)
          break
        }
        case "interrupt.answered":
          yield* headReaches(expected.seq - 1)
          yield* client.resume(Approval, {
            branch,
            interrupt: expected.key,
            value: payload.value,
            deliveryId: payload.delivery ?? "",
            intent: "retry"
          })
          break
        case "signal.received":
        case "update.received": {
          yield* headReaches(expected.seq - 1)
          const id = payload.message ?? ""
          // What a Schema let pass when it was sent first.
          const value = Number(payload.value)
          if (expected.kind === "signal.received") yield* client.signal(branch, Mail, value, { messageId: id })
          else yield* Effect.forkScoped(Effect.exit(client.update(branch, Add, value, { updateId: id })))
          break
        }
        case "cancel.requested":
          yield* headReaches(expected.seq - 1)
          yield* client.cancel(branch, { reason: "enough" })
          break
        default:
          break
      }
      yield* headReaches(expected.seq)
      const written = (yield* theatre.entries(branch))[expected.seq - 1]
      const [actual, wanted] = [
        written === undefined ? "nothing" : comparable(written, branch, origin),
        comparable(expected, origin, origin)
      ]
      if (actual !== wanted && !(written !== undefined && interruptedAlike(written, expected)))
        return yield* Effect.dieMessage(`position ${expected.seq}: recorded ${wanted}, this time ${actual}`)
    }
    const last = recorded.at(-1)
    if (last !== undefined && isTerminal(last.kind)) {
      const written = (yield* theatre.entries(branch)).length
      if (written !== recorded.length)
        return yield* Effect.dieMessage(`ended at ${written}, recorded was ${recorded.length}`)
    }
  })
