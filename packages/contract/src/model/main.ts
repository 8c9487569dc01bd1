/**
 * The model's command line: prints the fault matrix, tells a fault's counterexamples, runs the scaled exploration.
 *
 *     main.js [--json | --markdown] [--write] [--story FAULT] [--scaled] [--threads N] [--max-gigabytes N]
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { story } from "./Explorer.js"
import { counterexamplesOf, makeMatrix, matrixMarkdown, matrixText } from "./Matrix.js"
import { explorePlane } from "./ParallelExplorer.js"
import { type FaultId, faultIds, faults } from "./PlaneFault.js"
import { scaledWorld } from "./PlaneWorld.js"

const usage = `usage: contract:matrix [-- options]
  --json            the matrix as JSON
  --markdown        the matrix as Markdown
  --write           also writes both into packages/contract/model, as what the tests expect
  --story FAULT     tells the shortest counterexample of each property that the fault breaks
  --scaled          explores the scaled world without a fault, on all cores
  --threads N       threads of the scaled exploration
  --max-gigabytes N memory of its states (4)
faults: ${faultIds.join(", ")}`

const refuse = (why: string): never => {
  console.error(`${why}\n${usage}`)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      options: {
        json: { type: "boolean", default: false },
        markdown: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        scaled: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
        story: { type: "string" },
        threads: { type: "string" },
        "max-gigabytes": { type: "string", default: "4" }
      }
    }).values
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const isFault = (name: string): name is FaultId => faultIds.some((id) => id === name)

const tell = (name: string): void => {
  if (!isFault(name)) return refuse(`There is no fault "${name}".`)
  const fault = faults.find(({ id }) => id === name)
  console.log(`${name}: ${fault?.what}. It breaks ${fault?.breaks.join(", ")}: ${fault?.why}.`)
  for (const found of counterexamplesOf(name)) console.log(`\nWorld "${found.world}":\n${story(found)}`)
}

const positive = (text: string, name: string): number => {
  const value = Number(text)
  return Number.isFinite(value) && value > 0 ? value : refuse(`--${name} takes a positive number, not "${text}".`)
}

const scaled = async (threads: string | undefined, gigabytes: string): Promise<void> => {
  const found = await explorePlane(scaledWorld, {
    ...(threads === undefined ? {} : { threads: positive(threads, "threads") }),
    maxBytes: positive(gigabytes, "max-gigabytes") * 1e9
  })
  const { states, generated, depth, seconds, searchSeconds } = found
  console.log(`world "${scaledWorld.name}", no fault, ${found.threads} threads`)
  console.log(`${states} distinct states, ${generated} generated, depth ${depth}`)
  console.log(found.exhaustive ? "exhaustive" : "NOT EXHAUSTIVE: the memory bound was reached")
  console.log(`${seconds.toFixed(1)} s (${searchSeconds.toFixed(1)} s to find the states, the rest to find no cycle)`)
  console.log(`${Math.round(states / searchSeconds)} distinct states/s, ${found.bytesPerState.toFixed(0)} bytes/state`)
  for (const one of found.broken) console.log(`\n${story(one)}`)
  const all = found.exhaustive
    ? "every property and well-formedness hold in all of them"
    : "nothing was found in those seen"
  console.log(found.broken.length === 0 ? all : `${found.broken.length} properties are broken`)
  if (found.broken.length > 0 || !found.exhaustive) process.exitCode = 1
}

const print = (options: { readonly json: boolean; readonly markdown: boolean; readonly write: boolean }): void => {
  const since = performance.now()
  let explored = 0
  const matrix = makeMatrix({
    onExplored: ({ exploration }) => {
      explored += exploration.states
      if (process.stderr.isTTY) process.stderr.write(`\r${exploration.model}: ${exploration.states} states\x1b[K`)
    }
  })
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K")
  if (options.write) {
    const folder = new URL("../../model/", import.meta.url)
    mkdirSync(folder, { recursive: true })
    writeFileSync(new URL("matrix.json", folder), `${JSON.stringify(matrix, undefined, 2)}\n`)
    writeFileSync(new URL("matrix.md", folder), matrixMarkdown(matrix))
  }
  if (options.json) return console.log(JSON.stringify(matrix, undefined, 2))
  if (options.markdown) return console.log(matrixMarkdown(matrix))
  console.log(matrixText(matrix))
  console.log(`\n${explored} states in ${((performance.now() - since) / 1000).toFixed(1)} s`)
}

const options = read()
if (options.help) console.log(usage)
else if (options.story !== undefined) tell(options.story)
else if (options.scaled) await scaled(options.threads, options["max-gigabytes"])
else print(options)
