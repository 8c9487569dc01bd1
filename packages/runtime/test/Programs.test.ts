/**
 * Random programs: what ran live in a random order replays alike from every prefix, and goes on alike when it is
 * taken up again after any of them, by other workers, from memory or from the journal (RD, PC, FD).
 */
import { assert, describe, it } from "@effect/vitest"
import * as Testing from "@fermata/runtime/testing"
import { Effect, FastCheck as fc } from "effect"
import { type Op, program } from "./Programs.js"
import { dice, improvise, perform, theatre } from "./Rehearsal.js"

/** How many programs: all of them times FERMATA_PROGRAMS, for a longer search. */
const times = Number(process.env["FERMATA_PROGRAMS"] ?? 1)
/** Milliseconds: a busy machine may take long. */
const limit = 600_000
const seed = process.env["FERMATA_SEED"] === undefined ? {} : { seed: Number(process.env["FERMATA_SEED"]) }

const check = (count: number, property: (program: Op, seed: number) => Effect.Effect<void, unknown>) =>
  fc.assert(
    fc.asyncProperty(program(3), fc.integer(), (program, seed) => Effect.runPromise(property(program, seed))),
    { numRuns: count * times, endOnFailure: process.env["FERMATA_SHRINK"] === undefined, ...seed }
  )

/** An answer that came too late cannot be brought about again: its interrupt is seen to be closed. */
const unserved = (entries: ReadonlyArray<{ readonly kind: string }>): boolean =>
  entries.some(({ kind }) => kind === "inbox.unserved")

const firedOnce = (
  fired: ReadonlyArray<string>,
  entries: ReadonlyArray<{ readonly kind: string; readonly key: string; readonly payload: string }>
) => {
  const counts = new Map<string, number>()
  for (const key of fired) counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const { key, kind, payload } of entries) {
    if (!kind.startsWith("effect.")) continue
    const { delivery } = JSON.parse(payload) as { readonly delivery: string }
    if (delivery === "once" || delivery === "transactional")
      assert.isAtMost(counts.get(key) ?? 0, 1, `${delivery} ${key} fired more than once`)
  }
}

describe("random programs", () => {
  it(
    "replay from every prefix to the commands and the end that were recorded",
    () =>
      check(200, (program, seed) =>
        Effect.scoped(
          Effect.gen(function* () {
            const stage = yield* theatre(false)
            const { branch, entries } = yield* improvise(stage, program, "r", dice(seed), {
              bursts: true,
              cancel: seed % 4 === 0
            })
            firedOnce(stage.stage.fired, entries)
            yield* Effect.provide(Testing.replayCheck(stage.workflow, branch), stage.plane)
          })
        )
      ),
    limit
  )

  it(
    "write the same history again when the same things happen in the same order, whoever runs them",
    () =>
      check(120, (program, seed) =>
        Effect.scoped(
          Effect.gen(function* () {
            const roll = dice(seed)
            const first = yield* theatre(true)
            const { entries } = yield* improvise(first, program, "r", roll, { bursts: false, cancel: seed % 4 === 0 })
            if (unserved(entries)) return
            const second = yield* theatre(true)
            yield* second.hire(roll.chance(0.5) ? 0 : 100)
            const { branch } = yield* second.client.start(second.workflow, JSON.stringify(program), { run: "r" })
            yield* perform(second, branch, entries, 1, roll, 0.1)
            firedOnce(second.stage.fired, entries)
          })
        )
      ),
    limit
  )

  it(
    "go on alike when they are forked at any checkpoint",
    () =>
      check(80, (program, seed) =>
        Effect.scoped(
          Effect.gen(function* () {
            const roll = dice(seed)
            const stage = yield* theatre(true)
            const { branch, entries } = yield* improvise(stage, program, "r", roll, {
              bursts: false,
              cancel: seed % 4 === 0
            })
            if (unserved(entries)) return
            for (let forks = 0; forks < 3; forks++) {
              const seq = 1 + roll.below(entries.length - 1)
              stage.clock.set(entries[seq - 1]?.at ?? 0)
              const fork = yield* Effect.either(stage.client.fork({ from: { branch, seq }, forkId: `f${forks}` }))
              if (fork._tag === "Left") {
                assert.strictEqual(fork.left._tag, "EffectInFlight")
                continue
              }
              yield* perform(stage, fork.right.branch, entries, seq, roll, 0.05)
              yield* Effect.provide(Testing.replayCheck(stage.workflow, fork.right.branch), stage.plane)
            }
          })
        )
      ),
    limit
  )
})
