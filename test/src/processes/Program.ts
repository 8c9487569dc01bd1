/** Where the programs are that tests start: made by the global setup of the test run, or as `npm run build` left them. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The environment variable that names the folder of the programs that the global setup made. */
export const folderVariable = "FERMATA_TEST_PROGRAMS"

/** The file to start for a path in `test/src` without extension: "crash/course", say. */
export const programFile = (script: string): string => {
  const folder = process.env[folderVariable]
  const made = folder === undefined ? undefined : join(folder, `${script}.mjs`)
  if (made !== undefined && existsSync(made)) return made
  const built = fileURLToPath(new URL(`../../dist/${script}.js`, import.meta.url))
  if (existsSync(built)) return built
  throw new Error(`${script} is no program: neither ${made ?? "the test run's folder"} nor ${built} exists`)
}
