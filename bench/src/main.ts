/** `npm run bench`: measures every line on every database asked for and prints the table. */
import { Cause, Effect, Exit } from "effect"
import { fileURLToPath } from "node:url"
import type { Line } from "./Line.js"
import { longBranch } from "./lines/LongBranch.js"
import { manyBranches } from "./lines/ManyBranches.js"
import { keyed, repeatable } from "./lines/OneBranch.js"
import { replay } from "./lines/Replay.js"
import { restart } from "./lines/Restart.js"
import { startToResult } from "./lines/StartToResult.js"
import { waitingRuns } from "./lines/WaitingRuns.js"
import { BadUsage, type Options, parse, usage } from "./Options.js"
import * as PostgresTarget from "./PostgresTarget.js"
import { json, type Outcome, table } from "./Report.js"
import * as SqliteTarget from "./SqliteTarget.js"
import type { Target } from "./Target.js"

const lines: ReadonlyArray<Line> = [
  keyed,
  repeatable,
  manyBranches,
  startToResult,
  replay,
  restart,
  longBranch,
  waitingRuns
]

/** One line that fails takes none of the others with it. */
const outcome = (target: Target, line: Line, options: Options): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    if (process.stderr.isTTY) process.stderr.write(`${target.name}: ${line.name} …\n`)
    const exit = yield* Effect.exit(Effect.scoped(line.measure(target, options)))
    const named = { target: target.name, line: line.name }
    return Exit.isSuccess(exit)
      ? { ...named, figures: exit.value, failure: undefined }
      : { ...named, figures: [], failure: Cause.pretty(exit.cause, { renderErrorCause: true }) }
  })

const measured = (options: Options) =>
  Effect.forEach(options.targets, (name) =>
    Effect.scoped(
      Effect.gen(function* () {
        const target = yield* name === "sqlite" ? SqliteTarget.make(options.directory) : PostgresTarget.make
        const chosen = lines.filter((line) => options.only?.has(line.name) ?? true)
        const outcomes = yield* Effect.forEach(chosen, (line) => outcome(target, line, options))
        // Printed as soon as there is one: the other database takes minutes.
        if (!options.json) process.stdout.write(`${table(target.title, outcomes)}\n\n`)
        return outcomes
      })
    )
  )

const main = async (): Promise<number> => {
  const names = lines.map((line) => line.name)
  try {
    const options = parse(process.argv.slice(2), names, fileURLToPath(new URL("../.tmp", import.meta.url)))
    const outcomes = (await Effect.runPromise(measured(options))).flat()
    if (options.json) process.stdout.write(`${json(outcomes)}\n`)
    // A goal that is missed is a finding; a line that cannot be measured is a fault.
    return outcomes.some((outcome) => outcome.failure !== undefined) ? 1 : 0
  } catch (cause) {
    if (!(cause instanceof BadUsage)) throw cause
    process.stderr.write(`${cause.message}\n${usage(names)}\n`)
    return 2
  }
}

process.exitCode = await main()
