/** What a script of a measurement is told through its environment. */
import { Schema } from "effect"
import { Location } from "../Target.js"

const text = Schema.encodeSync(Schema.parseJson(Location))
const parse = Schema.decodeUnknownSync(Schema.parseJson(Location))

export const names = {
  location: "FERMATA_BENCH_LOCATION",
  mode: "FERMATA_BENCH_MODE",
  run: "FERMATA_BENCH_RUN"
} as const

export const encodeLocation = (location: Location): string => text(location)

export const location = (): Location => parse(process.env[names.location])

export const parameter = (name: keyof typeof names): string => process.env[names[name]] ?? ""

/** Writes a line to the parent. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`)
