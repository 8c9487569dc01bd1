/**
 * Vitest's global setup: makes one file of each program that tests start as a child process, out of the sources.
 *
 * A process that a test kills is a process that starts: importing the packages file by file takes a second of the
 * machine's time, one file a third of it. Native code stays outside. Programs as npm runs them are the examples' tests.
 */
import { build } from "esbuild"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { folderVariable } from "../src/processes/Program.js"

const sources = fileURLToPath(new URL("../src/", import.meta.url))

export default async (): Promise<() => void> => {
  // Beside the packages, so that what stays outside is found.
  const outdir = mkdtempSync(fileURLToPath(new URL("../.programs-", import.meta.url)))
  const remove = () => rmSync(outdir, { recursive: true, force: true })
  process.once("exit", remove)
  await build({
    entryPoints: programs().map((name) => join(sources, `${name}.ts`)),
    outbase: sources,
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["@fermata/source"],
    external: ["better-sqlite3", "pg-native"],
    outExtension: { ".js": ".mjs" },
    // What is CommonJS among the libraries asks for this.
    banner: {
      js: `import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);`
    },
    logLevel: "warning"
  })
  process.env[folderVariable] = outdir
  return remove
}

/** The modules that do something when they are loaded: they read what they were given, or serve a plane. */
const programs = (): ReadonlyArray<string> =>
  readdirSync(sources, { recursive: true, encoding: "utf8" })
    .filter((file) => /^\w+\/[a-z]\w*\.ts$/.test(file))
    .filter((file) => /\binput\(|^serve\(/m.test(readFileSync(join(sources, file), "utf8")))
    .map((file) => file.slice(0, -".ts".length))
