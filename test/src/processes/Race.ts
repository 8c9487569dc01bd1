/** A start line for racing processes: all are there, then all go at the same moment. */
import { Effect, type Scope } from "effect"
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Child, ChildEnded } from "./Child.js"

export interface Race {
  /** For the racers' option `race`; their script calls `Inside.race()`. */
  readonly file: string
  /** Waits until all racers are at the line, then lets them go. */
  readonly start: (racers: ReadonlyArray<Child>) => Effect.Effect<void, ChildEnded>
  /** Lets whoever is at the line go. */
  readonly go: Effect.Effect<void>
}

/** A start line. It can be used again and again: the nth start lets the nth `Inside.race()` of each racer go. */
export const make: Effect.Effect<Race, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "fermata-race-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const file = join(folder, "start")
  // One byte a start: racers look at the file until theirs is there.
  writeFileSync(file, "")
  const go = Effect.sync(() => appendFileSync(file, "1"))
  return {
    file,
    start: (racers) =>
      Effect.zipRight(
        Effect.forEach(racers, (racer) => racer.ready, { concurrency: "unbounded", discard: true }),
        go
      ),
    go
  }
})
