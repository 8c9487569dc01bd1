/** The command line. */
import { parseArgs } from "node:util"

export interface Options {
  readonly json: boolean
  readonly targets: ReadonlyArray<"sqlite" | "postgres">
  /** Lines to measure; all if `undefined`. */
  readonly only: ReadonlySet<string> | undefined
  readonly rounds: number
  readonly waiting: number
  /** Where the SQLite files are put: it decides the disk. */
  readonly directory: string
}

/** What is wrong with a command line, for the person who wrote it. */
export class BadUsage extends Error {}

export const usage = (
  lines: ReadonlyArray<string>
): string => `npm run bench -- [--sqlite] [--postgres] [--only ${lines.join(",")}]
  --json            prints JSON instead of the table
  --rounds N        takes the median of N rounds (5)
  --waiting N       lets N runs wait (100000)
  --directory PATH  puts SQLite's files there`

/** `lines` are the names that `--only` knows. Throws `BadUsage`. */
export const parse = (args: ReadonlyArray<string>, lines: ReadonlyArray<string>, directory: string): Options => {
  const { values } = read(args)
  const only = values.only?.split(",")
  const unknown = only?.filter((name) => !lines.includes(name)) ?? []
  if (unknown.length > 0) throw new BadUsage(`There is no line ${unknown.join(", ")}; there are ${lines.join(", ")}.`)
  const chosen = (["sqlite", "postgres"] as const).filter((target) => values[target])
  return {
    json: values.json,
    targets: chosen.length > 0 ? chosen : ["sqlite", "postgres"],
    only: only === undefined ? undefined : new Set(only),
    rounds: count("rounds", values.rounds),
    waiting: count("waiting", values.waiting),
    directory: values.directory ?? directory
  }
}

const read = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        json: { type: "boolean", default: false },
        sqlite: { type: "boolean", default: false },
        postgres: { type: "boolean", default: false },
        only: { type: "string" },
        rounds: { type: "string", default: "5" },
        waiting: { type: "string", default: "100000" },
        directory: { type: "string" }
      }
    })
  } catch (cause) {
    throw new BadUsage(cause instanceof Error ? cause.message : String(cause))
  }
}

const count = (name: string, text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1)
    throw new BadUsage(`--${name} wants a whole number from 1, not ${text}.`)
  return value
}
