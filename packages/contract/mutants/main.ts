/**
 * Runs the mutants of the decisions and prints who noticed each:
 *
 *     main.js [--only TEXT] [--lockstep] [--jobs N]
 *
 * Exit code 1 if one survives or cannot be judged, 2 for a mistake in the call.
 */
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { type Copy, copyOf } from "./Copy.js"
import { judge, type Judgement, problemOf } from "./Judge.js"
import { mutants } from "./Mutants.js"

const usage = `usage: contract:mutants [-- options]
  --only TEXT   only mutants whose decision or description has the text
  --lockstep    asks the lockstep about every mutant, not only about those that the decisions' tests miss
  --jobs N      copies of the sources that are tested at once (${availableParallelism()})`

const refuse = (why: string): never => {
  console.error(`${why}\n${usage}`)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      options: {
        only: { type: "string", default: "" },
        lockstep: { type: "boolean", default: false },
        jobs: { type: "string", default: String(availableParallelism()) }
      }
    }).values
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const { jobs, lockstep, only } = read()
const chosen = mutants.filter(({ breaks, decision }) => decision.includes(only) || breaks.includes(only))
const names = [...new Set(mutants.map(({ decision }) => decision))].join(", ")
if (chosen.length === 0) refuse(`No mutant is of, or speaks of, "${only}". There are mutants of ${names}.`)
const workers = Number(jobs)
if (!Number.isSafeInteger(workers) || workers < 1) refuse(`--jobs takes a positive number, not "${jobs}".`)

const verdictOf = ({ decisions, lockstep, problem }: Judgement): string => {
  if (problem !== undefined) return `CANNOT BE JUDGED: ${problem}`
  if (decisions === undefined && lockstep === undefined) return "SURVIVED"
  return [decisions === undefined ? [] : [`test: ${decisions}`], lockstep === undefined ? [] : [`lockstep`]]
    .flat()
    .join("; ")
}

const print = (judgement: Judgement): void => {
  const { breaks, decision } = judgement.mutant
  console.log(`${decision.padEnd(16)} ${breaks}\n${" ".repeat(16)}   ${verdictOf(judgement)}`)
}

/** Every mutant, each by whichever copy is free; printed as they come. */
const run = async (copies: ReadonlyArray<Copy>): Promise<ReadonlyArray<Judgement>> => {
  const waiting = [...chosen]
  const judgements: Array<Judgement> = []
  await Promise.all(
    copies.map(async (copy) => {
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
        const judgement = await judge(copy, mutant, lockstep)
        judgements.push(judgement)
        print(judgement)
      }
    })
  )
  return judgements
}

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const began = performance.now()
const copies = await Promise.all(Array.from({ length: Math.min(workers, chosen.length) }, () => copyOf(root)))
try {
  const [first] = copies
  const problem = first && (await problemOf(first))
  if (problem !== undefined) {
    console.error(`Without any mutant the tests do not pass: ${problem}`)
    process.exitCode = 1
  } else {
    const judgements = await run(copies)
    const survived = judgements.filter(
      ({ decisions, lockstep, problem }) => problem !== undefined || (decisions === undefined && lockstep === undefined)
    )
    const count = (of: (judgement: Judgement) => boolean) => judgements.filter(of).length
    console.log(
      `\n${judgements.length} mutants of ${new Set(chosen.map(({ decision }) => decision)).size} decisions: ` +
        `${count(({ decisions }) => decisions !== undefined)} caught by the decisions' tests, ` +
        `${count((one) => one.lockstep !== undefined)} by the lockstep` +
        `${lockstep ? "" : " (asked about the others only)"}, ${survived.length} survived or could not be judged; ` +
        `${((performance.now() - began) / 1000).toFixed(0)} s`
    )
    if (survived.length > 0) {
      process.exitCode = 1
      survived.forEach(print)
    }
  }
} finally {
  await Promise.all(copies.map(({ remove }) => remove()))
}
