/**
 * `npm run bench:langgraph`: the adapter beside LangGraph.js 1.7.3 with its own savers, in turns, on one disk. SQLite: WAL
 * and `synchronous=FULL` for both. LangGraph.js runs with its default durability.
 */
import * as ours from "@fermata/adapters/langgraph"
import * as stock from "@langchain/langgraph"
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres"
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Figure, median } from "../Figure.js"
import { BadUsage, parse, usage } from "../Options.js"
import * as PostgresTarget from "../PostgresTarget.js"
import { json, type Outcome, table } from "../Report.js"
import * as SqliteTarget from "../SqliteTarget.js"
import type { Location } from "../Target.js"
import { type Checkpointer, type GraphApi, growth, type Workload, workloads } from "./Workloads.js"

interface Contestant {
  readonly api: GraphApi
  readonly checkpointer: Checkpointer
  readonly close: () => Promise<void>
}

const openOurs = async (location: Location): Promise<Contestant> => {
  const checkpointer =
    location._tag === "Sqlite"
      ? ours.Fermata.sqlite({ filename: location.filename })
      : ours.Fermata.postgres({ url: location.url })
  return { api: ours, checkpointer, close: () => checkpointer.close() }
}

const openStock = async (location: Location): Promise<Contestant> => {
  // It is the same interface: that is what is compared.
  const contestant = (checkpointer: unknown, close: () => Promise<void>): Contestant => ({
    api: stock as unknown as GraphApi,
    checkpointer: checkpointer as Checkpointer,
    close
  })
  if (location._tag === "Postgres") {
    const saver = PostgresSaver.fromConnString(location.url)
    await saver.setup()
    return contestant(saver, () => saver.end())
  }
  const database = new Database(location.filename)
  const saver = new SqliteSaver(database)
  database.pragma("journal_mode = WAL")
  database.pragma("synchronous = FULL")
  return contestant(saver, async () => {
    database.close()
  })
}

const timed = async ({ api, checkpointer }: Contestant, workload: Workload): Promise<number> => {
  const run = await workload.prepare(api, checkpointer)
  const started = performance.now()
  await run()
  return performance.now() - started
}

/** Our time beside stock's, in turns; how many times as fast is what is judged. */
const compared = async (us: Contestant, them: Contestant, workload: Workload, rounds: number): Promise<Figure> => {
  const pairs: Array<readonly [number, number]> = []
  // Round 0 compiles the code.
  for (let round = 0; round <= rounds; round++) {
    const pair = [await timed(us, workload), await timed(them, workload)] as const
    if (round > 0) pairs.push(pair)
  }
  return {
    what: workload.what,
    measured: { value: median(pairs.map(([our]) => our)), unit: "ms" },
    limit: { what: "LangGraph.js", value: median(pairs.map(([, their]) => their)), unit: "ms" },
    ratio: median(pairs.map(([our, their]) => their / our)),
    goal: { atLeast: 3 },
    raw: undefined
  }
}

const growing = async ({ api, checkpointer }: Contestant, rounds: number): Promise<Figure> => {
  const measured: Array<{ readonly early: number; readonly late: number }> = []
  for (let round = 0; round < rounds; round++) measured.push(await growth(api, checkpointer, 2000))
  return {
    what: "a superstep of the last 200 of 2,000 of a thread",
    measured: { value: median(measured.map(({ late }) => late)), unit: "ms" },
    limit: { what: "of the second 200", value: median(measured.map(({ early }) => early)), unit: "ms" },
    ratio: median(measured.map(({ early, late }) => late / early)),
    goal: { atMost: 1.1 },
    raw: undefined
  }
}

const names = [...workloads.map(({ name }) => name), "growth"]

const main = async (): Promise<number> => {
  const directory = fileURLToPath(new URL("../../.tmp", import.meta.url))
  const options = parse(process.argv.slice(2), names, directory)
  mkdirSync(options.directory, { recursive: true })
  const outcomes: Array<Outcome> = []
  for (const name of options.targets) {
    const measured = Effect.gen(function* () {
      const target = yield* name === "sqlite" ? SqliteTarget.make(options.directory) : PostgresTarget.make
      const contestant = (open: (location: Location) => Promise<Contestant>) =>
        Effect.acquireRelease(
          Effect.flatMap(target.database, (location) => Effect.promise(() => open(location))),
          ({ close }) => Effect.promise(close)
        )
      const us = yield* contestant(openOurs)
      const them = yield* contestant(openStock)
      const own: Array<Outcome> = []
      for (const line of names.filter((line) => options.only?.has(line) ?? true)) {
        if (process.stderr.isTTY) process.stderr.write(`${name}: ${line} …\n`)
        const workload = workloads.find((one) => one.name === line)
        const figure = yield* Effect.either(
          Effect.tryPromise(() =>
            workload === undefined ? growing(us, options.rounds) : compared(us, them, workload, options.rounds)
          )
        )
        own.push({
          target: name,
          line,
          figures: figure._tag === "Right" ? [figure.right] : [],
          failure: figure._tag === "Left" ? String(figure.left.error) : undefined
        })
      }
      if (!options.json) process.stdout.write(`${table(target.title, own)}\n\n`)
      outcomes.push(...own)
    })
    await Effect.runPromise(Effect.scoped(measured))
  }
  if (options.json) process.stdout.write(`${json(outcomes)}\n`)
  return outcomes.some(({ failure }) => failure !== undefined) ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (cause) {
  if (!(cause instanceof BadUsage)) throw cause
  process.stderr.write(`${cause.message}\n${usage(names)}\n`)
  process.exitCode = 2
}
