/** `npm run soak -- [--seconds 600] [--seed N] [--workers 4] [--load 40]` */
import { Effect } from "effect"
import { parseArgs } from "node:util"
import { soak } from "./Soak.js"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    workers: { type: "string", default: "4" },
    load: { type: "string", default: "40" }
  }
})
const number = (name: keyof typeof values): number => {
  const text = values[name] ?? ""
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    console.error(`--${name} ${text} is not a number of 1 or more`)
    process.exit(2)
  }
  return Number(text)
}
const options = { seconds: number("seconds"), seed: number("seed"), workers: number("workers"), load: number("load") }

console.log(`seed ${options.seed}, ${options.workers} workers, ${options.seconds} seconds`)
const report = await Effect.runPromise(Effect.scoped(soak({ ...options, say: (line) => console.log(line) })))
console.log(JSON.stringify(report, null, 2))
process.exit(report.violations.length === 0 ? 0 : 1)
