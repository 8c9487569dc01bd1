/** RD: recovery depends on what is durable, and on nothing else. */
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { canonical } from "../CanonicalWorkflow.js"
import type { LogLine } from "../Outside.js"
import { of, type Probe } from "../Probe.js"
import { finishes } from "../Scenario.js"
import { Inapplicable } from "../Needs.js"
import { byName, type Stand } from "../Stand.js"
import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"

const probe = of("RD")

/** One lane is recorded first, then the other; killed before what joins them starts. Both orders are legal. */
const bothRecorded =
  (first: "left" | "right"): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable", "history")
      const workflow = canonical.parallel(stand.strictest)
      const last = first === "left" ? "right" : "left"
      const late = stand.hold(`body.run-1.${last}`)
      const join = stand.hold("body.run-1.join")
      const process = yield* stand.open()
      const at = yield* stand.start(process, workflow)
      if ((yield* stand.until(late, at)) !== undefined) return
      yield* stand.untilRecorded(at, first)
      yield* late.release
      if ((yield* stand.until(join, at)) !== undefined) return
      yield* stand.kill(process)
      yield* join.release
      const after = { ...at, process: yield* stand.open() }
      yield* finishes(stand, { answers: byName, at: after, run: "run-1", state: yield* stand.rest(after), workflow })
    })

/** One lane is recorded, the other has fired and is not: the other legal state of the pair. */
const oneRecorded =
  (first: "left" | "right"): Probe["run"] =>
  (stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable", "history")
      const workflow = canonical.parallel(stand.strictest)
      const last = first === "left" ? "right" : "left"
      const late = stand.hold(`after.run-1.${last}.${last}-fx`)
      const process = yield* stand.open()
      const at = yield* stand.start(process, workflow)
      if ((yield* stand.until(late, at)) !== undefined) return
      yield* stand.untilRecorded(at, first)
      yield* stand.kill(process)
      yield* late.release
      const after = { ...at, process: yield* stand.open() }
      yield* finishes(stand, { answers: byName, at: after, run: "run-1", state: yield* stand.rest(after), workflow })
      const { length } = stand.lines().filter((line) => line.kind === "body" && line.step === first)
      stand.check(length === 1, `${first} was recorded and ran ${length} times`)
    })

/** What recovery did outside, as far as it may be compared: in the order of the steps, not of the lanes' timing. */
const deeds = (lines: ReadonlyArray<LogLine>): ReadonlyArray<string> =>
  lines
    .map((line) =>
      line.kind === "fire"
        ? `fire ${line.step} ${line.effect} ${line.key} ${JSON.stringify(line.input)}`
        : line.kind === "body"
          ? `body ${line.step}`
          : `ruled ${line.key}`
    )
    .toSorted()

/** One durable state, recovered twice, each time with the outside as it was. */
const recoveredTwice =
  (point: string): Probe["run"] =>
  (stand: Stand) =>
    Effect.gen(function* () {
      yield* stand.need("durable", "copy")
      const delivery = stand.strictest
      if (delivery === "repeatable")
        return yield* new Inapplicable({
          verdict: "not applicable",
          reason: "what is read anew differs from look to look"
        })
      const workflow = canonical.parallel(delivery)
      const hold = stand.hold(point)
      const first = yield* stand.open()
      const at = yield* stand.start(first, workflow)
      if ((yield* stand.until(hold, at)) !== undefined) return
      yield* stand.kill(first)
      yield* hold.release
      const results = yield* Effect.forEach(["copy-1", "copy-2"], (name) =>
        Effect.gen(function* () {
          const store = yield* stand.copy(name)
          const log = join(stand.folder, `${name}.jsonl`)
          if (existsSync(stand.log)) copyFileSync(stand.log, log)
          const seen = stand.lines(log).length
          const process = yield* stand.open({ store, log })
          const state = yield* stand.rest({ ...at, process })
          yield* stand.kill(process)
          return { value: state.value, status: state.status, deeds: deeds(stand.lines(log).slice(seen)) }
        })
      )
      const [one, two] = results
      stand.note(`the first recovery did: ${one?.deeds.join("; ") ?? ""}`)
      stand.check(isDeepStrictEqual(one, two), "two recoveries of one durable state did different things")
      stand.check(one?.status === "completed", `the recovered run is ${one?.status}`)
    })

export const recoveryDeterminism: ReadonlyArray<Probe> = [
  probe(
    "racy-pair/left-first",
    "with the left lane recorded first, recovery gives what the workflow says",
    bothRecorded("left")
  ),
  probe(
    "racy-pair/right-first",
    "with the right lane recorded first, recovery gives what the workflow says",
    bothRecorded("right")
  ),
  probe(
    "racy-pair/left-only",
    "with the left lane recorded alone, recovery runs the right one and no other",
    oneRecorded("left")
  ),
  probe(
    "racy-pair/right-only",
    "with the right lane recorded alone, recovery runs the left one and no other",
    oneRecorded("right")
  ),
  probe(
    "twice/in-doubt",
    "one durable state with an effect in doubt is recovered alike twice",
    recoveredTwice("after.run-1.left.left-fx")
  ),
  probe(
    "twice/before-join",
    "one durable state before a join is recovered alike twice",
    recoveredTwice("body.run-1.join")
  )
]
