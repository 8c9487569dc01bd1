/** Random sequences: how many, how long, and how they are played. */
import { FastCheck as fc } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Place } from "../outside/Place.js"
import { Ledgers } from "./Ledgers.js"
import { byNumbers, choices, play, type SequenceOptions } from "./Sequence.js"

const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)

/** How much is played; `run.mjs` sets it for longer runs. */
export const extent = {
  /** Random sequences on SQLite in memory. */
  sequences: numberOf("FERMATA_SEQUENCES", 2000),
  /** Random sequences on a file, and on PostgreSQL. */
  stored: numberOf("FERMATA_SEQUENCES_STORED", 300),
  /** How many actions the exhaustive sequences go on after their beginnings. */
  depth: numberOf("FERMATA_DEPTH", 2)
}

const seed = process.env["FERMATA_SEED"] === undefined ? {} : { seed: numberOf("FERMATA_SEED", 0) }
const longest = 48

/** Milliseconds that a test of sequences may take: the longest run has 20,000 of them on PostgreSQL. */
export const patience = 6 * 3_600_000

/** Numbers that choose the actions of a sequence. */
export const numbers = fc.array(fc.nat(choices), { minLength: 1, maxLength: longest, size: "max" })

/** Plays random sequences; a failure names the shortest one found, and the seed that repeats it. */
export const playRandom = async (place: Place, count: number, options: SequenceOptions = {}): Promise<void> => {
  const ledgers = new Ledgers(place)
  await fc.assert(
    fc.asyncProperty(numbers, (chosen) => ledgers.play((ledger) => play(ledger, byNumbers(chosen), options))),
    { numRuns: count, ...seed }
  )
  await ledgers.close()
}

/**
 * For a file of tests: a refusal is an error, and thousands of them a second are made only to be compared. Their stacks
 * would cost a fifth of it all.
 */
export const withoutStacks = (): void => {
  const { stackTraceLimit } = Error
  beforeAll(() => void (Error.stackTraceLimit = 0))
  afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))
}
