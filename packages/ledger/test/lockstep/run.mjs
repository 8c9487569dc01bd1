/**
 * Longer runs of the lockstep:
 *
 *     npm run contract:lockstep -- [--full] [--sequences N] [--stored N] [--depth N] [--seed N]
 *
 * 20,000 random sequences on SQLite in memory; `--full`: as many on a file and on PostgreSQL, too, and all sequences of
 * one action more.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const usage = "usage: contract:lockstep [-- [--full] [--sequences N] [--stored N] [--depth N] [--seed N]]"

const refuse = (why) => {
  console.error(`${why}\n${usage}`)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      options: {
        full: { type: "boolean", default: false },
        sequences: { type: "string", default: "20000" },
        stored: { type: "string" },
        depth: { type: "string" },
        seed: { type: "string" }
      }
    }).values
  } catch (error) {
    return refuse(error.message)
  }
}

const { depth, full, seed, sequences, stored } = read()
const wanted = {
  FERMATA_SEQUENCES: sequences,
  FERMATA_SEQUENCES_STORED: stored ?? (full ? sequences : undefined),
  FERMATA_DEPTH: depth ?? (full ? "3" : undefined),
  FERMATA_SEED: seed
}
const env = { ...process.env }
for (const [name, value] of Object.entries(wanted)) {
  if (value === undefined) continue
  const whole = name === "FERMATA_SEED" ? /^-?\d+$/ : /^[1-9]\d*$/
  if (!whole.test(value)) refuse(`${value} is not a number of the kind that is wanted.`)
  env[name] = value
}

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const vitest = fileURLToPath(new URL("../../../../node_modules/vitest/vitest.mjs", import.meta.url))
const { status } = spawnSync(
  process.execPath,
  [vitest, "run", "--project", "packages", "packages/ledger/test/lockstep"],
  {
    cwd: root,
    env,
    stdio: "inherit"
  }
)
process.exitCode = status ?? 1
