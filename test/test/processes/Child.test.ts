import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { readFileSync } from "node:fs"
import * as Child from "@fermata/test/processes/Child"
import * as PidNamespace from "@fermata/test/processes/PidNamespace"
import * as Race from "@fermata/test/processes/Race"

const script = "processes/script"
const course = { _tag: "Course", points: ["a", "b", "b", "c"] }

describe("a child process", () => {
  it.scoped("stops at the named passing of a point, and goes on when released", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: course, stopAt: ["b#2"] })
      const stop = yield* child.stopped()
      expect(stop).toMatchObject({ point: "b", n: 2 })
      const before = yield* Effect.replicateEffect(child.receive(Schema.String), 2)
      expect(before).toEqual(["after a", "after b"])
      yield* child.release(stop)
      const after = yield* Effect.replicateEffect(child.receive(Schema.String), 2)
      expect(after).toEqual(["after b", "after c"])
      yield* child.success
    })
  )

  it.scoped("lists the points it passes, for a sweep over them", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: course, trace: true })
      yield* child.success
      expect(yield* child.passed).toEqual(["a#1", "b#1", "b#2", "c#1"])
    })
  )

  it.scoped("does nothing after the point at which it is killed", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: course, stopAt: ["b"] })
      yield* child.stopped("b")
      const ending = yield* child.kill
      expect(ending.signal).toBe("SIGKILL")
      expect(yield* child.receive(Schema.String)).toBe("after a")
      const next = yield* Effect.either(child.receive(Schema.String))
      expect(next).toMatchObject({ _tag: "Left", left: { _tag: "ChildEnded", signal: "SIGKILL" } })
    })
  )

  it.scoped("holds one caller while the rest of the process goes on", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: { _tag: "Hold" }, stopAt: ["gate"] })
      const stop = yield* child.stopped("gate")
      yield* child.send("meanwhile")
      expect(yield* child.receive(Schema.String)).toBe("meanwhile")
      yield* child.release(stop)
      expect(yield* child.receive(Schema.String)).toBe("gate open")
      yield* child.success
    })
  )

  it.scoped("carries any JSON both ways, in order", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: { _tag: "Echo" } })
      const sent = [null, "línea\nüber", { deep: [{ a: 1 }, "𝄐".repeat(100_000)] }, false, 0, ""]
      yield* Effect.forEach(sent, child.send)
      const back = yield* Effect.replicateEffect(child.receive(Schema.Unknown), sent.length)
      expect(back).toEqual(sent)
    })
  )

  it.scoped("tells why it ended before it did what was waited for", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: { _tag: "Fail", message: "no such luck" } })
      const failure = yield* Effect.flip(child.stopped("anywhere"))
      expect(failure.code).toBe(1)
      expect(failure.message).toContain("no such luck")
      expect(yield* Effect.flip(child.success)).toMatchObject({ _tag: "ChildEnded", code: 1 })
    })
  )

  it.scoped("stands still while frozen, and goes on when thawed", () =>
    Effect.gen(function* () {
      const child = yield* Child.spawn(script, { input: { _tag: "Count" } })
      expect(yield* child.receive(Schema.Number)).toBe(0)
      yield* child.freeze
      yield* child.send("next")
      expect(stateOf(child.pid)).toBe("T")
      yield* child.thaw
      expect(yield* child.receive(Schema.Number)).toBe(1)
    })
  )

  it.effect("is gone when its scope has closed, also from standing still", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const [running, stopped, frozen] = yield* Scope.extend(
        Effect.all([
          Child.spawn(script, { input: { _tag: "Echo" } }),
          Child.spawn(script, { input: course, stopAt: ["a"] }),
          Child.spawn(script, { input: { _tag: "Echo" } })
        ]),
        scope
      )
      yield* stopped.stopped("a")
      yield* frozen.freeze
      const pids = [running.pid, stopped.pid, frozen.pid]
      expect(pids.filter(exists)).toEqual(pids)
      yield* Scope.close(scope, Exit.void)
      expect(pids.filter(exists)).toEqual([])
    })
  )
})

describe("a race", () => {
  it.scoped("starts when all racers are at the line, not before", () =>
    Effect.gen(function* () {
      const race = yield* Race.make
      const racers = yield* Effect.replicateEffect(
        Child.spawn(script, { input: { _tag: "Race" }, race: race.file }),
        8,
        { concurrency: "unbounded" }
      )
      // Twice, with the same processes.
      for (let lap = 0; lap < 2; lap++) {
        yield* Effect.forEach(racers, (racer) => racer.ready)
        const line = process.hrtime.bigint()
        yield* race.go
        const starts = yield* Effect.forEach(racers, (racer) => racer.receive(Schema.BigInt))
        expect(starts.filter((start) => start < line)).toEqual([])
      }
    })
  )
})

describe("a PID namespace", () => {
  const available = PidNamespace.available()
  it.scoped.skipIf(available !== true)(
    `hides the child's process id from it${available === true ? "" : ` (skipped: ${available})`}`,
    () =>
      Effect.gen(function* () {
        const child = yield* Child.spawn(script, { input: { _tag: "Pid" }, ownPidNamespace: true })
        expect(yield* child.receive(Schema.Number)).toBe(1)
        expect(child.pid).toBeGreaterThan(1)
        yield* child.freeze
        expect(stateOf(child.pid)).toBe("T")
        yield* child.thaw
        yield* child.kill
        expect(exists(child.pid)).toBe(false)
      })
  )
})

const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const stateOf = (pid: number): string | undefined => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]
