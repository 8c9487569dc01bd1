/** Who notices a mutant: the tests of its decision, those of all decisions, or the lockstep. */
import { spawn } from "node:child_process"
import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { Copy } from "./Copy.js"
import { type Mutant, mutated } from "./Mutant.js"

/** What a run of tests said. */
export type Run =
  | { readonly _tag: "Passed" }
  /** The first test that failed. */
  | { readonly _tag: "Failed"; readonly test: string }
  /** No test said anything: the sources do not load, or it did not end. */
  | { readonly _tag: "NoAnswer"; readonly why: string }

/** What became of a mutant: the first test of each kind that failed; `undefined` where none did or none was run. */
export interface Judgement {
  readonly mutant: Mutant
  readonly decisions: string | undefined
  readonly lockstep: string | undefined
  /** Set if the mutant could not be judged. */
  readonly problem: string | undefined
}

/** Milliseconds for one run of tests; a mutant may loop. */
const patience = 120_000

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly message: string
    readonly assertionResults: ReadonlyArray<{ readonly status: string; readonly title: string }>
  }>
}

const tests = "packages/contract/test/decisions"
const lockstepTests = ["packages/ledger/test/lockstep/Lockstep.test.ts", "-t", "in memory"]

/** Runs tests in the copy. */
const run = async (copy: Copy, args: ReadonlyArray<string>): Promise<Run> => {
  const report = join(copy.root, "report.json")
  await rm(report, { force: true })
  const vitest = join(copy.root, "node_modules/vitest/vitest.mjs")
  const child = spawn(
    process.execPath,
    [vitest, "run", "--bail=1", "--reporter=json", `--outputFile=${report}`, ...args],
    {
      cwd: copy.root,
      env: { ...process.env, FERMATA_SEED: "1", FERMATA_SEQUENCES: "400" },
      stdio: ["ignore", "ignore", "pipe"],
      // A group of its own: what vitest started ends with it.
      detached: true
    }
  )
  let said = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
  const ended = await new Promise<boolean>((resolve) => {
    const late = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
      resolve(false)
    }, patience)
    child.once("close", () => {
      clearTimeout(late)
      resolve(true)
    })
  })
  if (!ended) return { _tag: "NoAnswer", why: "the tests did not end" }
  // vitest's own report.
  const { testResults } = JSON.parse(await readFile(report, "utf8").catch(() => `{"testResults":[]}`)) as Report
  const results = testResults.flatMap(({ assertionResults }) => assertionResults)
  const failed = results.find(({ status }) => status === "failed")
  if (failed !== undefined) return { _tag: "Failed", test: failed.title }
  if (child.exitCode === 0 && results.some(({ status }) => status === "passed")) return { _tag: "Passed" }
  return { _tag: "NoAnswer", why: testResults.find(({ message }) => message !== "")?.message ?? said.slice(-500) }
}

/** Says why the copy's tests fail without any mutant; `undefined` if they pass. */
export const problemOf = async (copy: Copy): Promise<string | undefined> => {
  for (const args of [[tests], lockstepTests]) {
    const said = await run(copy, args)
    if (said._tag !== "Passed") return said._tag === "Failed" ? `"${said.test}" fails` : said.why
  }
  return undefined
}

/** The test file of a decision. */
const testOf = (decision: string): string => `${tests}/${decision === "admitCancel" ? "admitStart" : decision}.test.ts`

/** Puts the mutant into the copy and asks; the lockstep only if nobody else noticed, or if it is asked `always`. */
export const judge = async (copy: Copy, mutant: Mutant, always: boolean): Promise<Judgement> => {
  const path = join(copy.decisions, `${mutant.decision}.ts`)
  const source = await readFile(path, "utf8")
  await writeFile(path, mutated(source, mutant))
  try {
    let decisions: string | undefined
    for (const args of [testOf(mutant.decision), tests]) {
      if (decisions !== undefined) break
      const said = await run(copy, [args])
      if (said._tag === "NoAnswer") return { mutant, decisions, lockstep: undefined, problem: said.why }
      if (said._tag === "Failed") decisions = said.test
    }
    if (decisions !== undefined && !always) return { mutant, decisions, lockstep: undefined, problem: undefined }
    const said = await run(copy, lockstepTests)
    return {
      mutant,
      decisions,
      lockstep: said._tag === "Failed" ? said.test : undefined,
      problem: said._tag === "NoAnswer" ? said.why : undefined
    }
  } finally {
    await writeFile(path, source)
  }
}
