/** What a loop's snapshot replaces: its own iterations' entries before it, and nothing else. */
import { assert, describe, it } from "@effect/vitest"
import { admitSnapshot, type EntryKind, isEvent, iterationScope, loopReplay, loopsAround } from "@fermata/contract"
import { FastCheck as fc } from "effect"

const state = `{"iteration":1,"at":0,"state":0}`

interface Line {
  readonly seq: number
  readonly kind: EntryKind
  readonly key: string
  readonly payload: string
}

const replayOf = (lines: ReadonlyArray<Line>) => loopReplay(lines, ({ kind }) => isEvent(kind))

/** Histories of two loops, one with a loop inside, and of steps beside them. */
const histories = fc
  .array(
    fc.record({
      kind: fc.constantFrom<EntryKind>("step.succeeded", "timer.started", "loop.snapshot", "effect.intended"),
      scope: fc.constantFrom("", "a#1/1/", "a#1/2/", "b#1/1/", "a#1/1/in#1/1/", "a#1/2/in#1/3/"),
      loop: fc.constantFrom("a#1", "b#1", "a#1/1/in#1", "a#1/2/in#1")
    }),
    { maxLength: 40 }
  )
  .map((lines) =>
    lines.map(({ kind, loop, scope }, index): Line => ({
      seq: index + 1,
      kind,
      key: kind === "loop.snapshot" ? loop : kind === "effect.intended" ? `r/main|${scope}s#1|0` : `${scope}s#1`,
      payload: state
    }))
  )

describe("what a loop's snapshot replaces", () => {
  it("keys name the loops that they are inside of, outermost first, and names with slashes none", () => {
    assert.deepStrictEqual(loopsAround("a/b/1/c#1"), [])
    assert.deepStrictEqual(loopsAround("a#1/2/b#3/4/c#1"), ["a#1", "a#1/2/b#3"])
    assert.deepStrictEqual(loopsAround(`${iterationScope("a/b#1", 7)}1/2/c#1`), ["a/b#1"])
  })

  it("keeps everything in order, or replaces it by a later snapshot of a loop that it is inside of", () => {
    fc.assert(
      fc.property(histories, (lines) => {
        const { kept, replaced, resumptions } = replayOf(lines)
        assert.deepStrictEqual(
          [...kept, ...replaced].sort((a, b) => a.seq - b.seq),
          lines
        )
        for (const { key, kind, seq } of replaced) {
          const step = kind === "effect.intended" ? (key.split("|")[1] ?? "") : key
          const own = kind === "loop.snapshot" ? [...loopsAround(step), key] : loopsAround(step)
          const by = lines.some((line) => line.kind === "loop.snapshot" && own.includes(line.key) && line.seq > seq)
          assert.isTrue(by, `${kind} ${key} at ${seq} was replaced by nothing`)
        }
        const snapshots = kept.filter(({ kind }) => kind === "loop.snapshot")
        // At most where a loop was entered, and where it goes on.
        for (const { key, seq } of snapshots) {
          assert.strictEqual(
            resumptions.has(seq),
            snapshots.some((other) => other.key === key && other.seq < seq)
          )
        }
        assert.isAtMost(snapshots.length, 2 * new Set(snapshots.map(({ key }) => key)).size)
      }),
      { numRuns: 500 }
    )
  })

  it("what is kept of a loop does not grow with its iterations", () => {
    const lines: Array<Line> = [{ seq: 1, kind: "run.started", key: "", payload: "{}" }]
    for (let i = 1; i <= 1000; i++) {
      lines.push({ seq: lines.length + 1, kind: "loop.snapshot", key: "a#1", payload: state })
      lines.push({ seq: lines.length + 1, kind: "step.succeeded", key: `a#1/${i}/s#1`, payload: "{}" })
    }
    assert.deepStrictEqual(
      replayOf(lines).kept.map(({ seq }) => seq),
      [1, 2, 2000, 2001]
    )
    assert.deepStrictEqual(replayOf(lines).resumptions.get(2000), { alone: true, own: [] })
  })

  it("is not taken while anything of the iteration goes on", () => {
    assert.deepStrictEqual(admitSnapshot("a#1", 2, { waiting: ["b#1", "a#1/3/x#1", "a#1/22/x#1"], fibers: 0 }), {
      _tag: "Take"
    })
    assert.deepStrictEqual(admitSnapshot("a#1", 2, { waiting: ["a#1/2/x#1"], fibers: 1 }), {
      _tag: "Outlived",
      by: ["a#1/2/x#1"]
    })
    assert.deepStrictEqual(admitSnapshot("a#1", 2, { waiting: [], fibers: 2 }), { _tag: "Outlived", by: ["2 fibers"] })
  })

  it("replaces what an iteration took and published, which names no step, and nothing of that kind besides", () => {
    const line = (seq: number, kind: EntryKind, key: string, payload = "{}"): Line => ({ seq, kind, key, payload })
    const snapshot = (seq: number, own: ReadonlyArray<number>) =>
      line(seq, "loop.snapshot", "a#1", JSON.stringify({ iteration: seq, at: 0, own, state: 0 }))
    const { kept, replaced } = replayOf([
      line(1, "run.started", ""),
      snapshot(2, []),
      line(3, "signal.received", "signal:m1"),
      line(4, "view.published", "count"),
      line(5, "signal.received", "signal:m2"),
      snapshot(6, [3, 4]),
      line(7, "view.published", "count")
    ])
    assert.deepStrictEqual(
      replaced.map(({ seq }) => seq),
      [3, 4]
    )
    assert.deepStrictEqual(
      kept.map(({ seq }) => seq),
      [1, 2, 5, 6, 7]
    )
  })
})
