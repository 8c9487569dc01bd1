/** What the pages show is true: complete programs type-check, and the quick start does what it says. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { ModuleKind, ScriptTarget, transpileModule } from "typescript"

const root = fileURLToPath(new URL("../../", import.meta.url))
const run = promisify(execFile)

/** The programs of a page: its blocks of TypeScript that begin with an import. */
const programsOf = async (page: string): Promise<ReadonlyArray<string>> =>
  [...(await readFile(join(root, page), "utf8")).matchAll(/```ts\n(import[\s\S]*?)```/g)].map(([, text = ""]) => text)

let folder: string
beforeAll(async () => {
  // Inside the clone, so that what is pasted finds the packages as it does for a reader.
  await mkdir(join(root, ".tmp"), { recursive: true })
  folder = await mkdtemp(join(root, ".tmp", "docs-"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe("the pages", () => {
  it("show programs that type-check", async () => {
    const pages = [
      "README.md",
      ...(await readdir(join(root, "docs"))).filter((file) => file.endsWith(".md")).map((file) => `docs/${file}`)
    ]
    let count = 0
    for (const page of pages) {
      for (const program of await programsOf(page)) {
        await writeFile(join(folder, `${page.replaceAll(/[/.]/g, "-")}-${++count}.ts`), program)
      }
    }
    expect(count).toBeGreaterThan(2)
    const options = {
      noEmit: true,
      composite: false,
      incremental: false,
      declaration: false,
      declarationMap: false,
      noUnusedLocals: false
    }
    await writeFile(
      join(folder, "tsconfig.json"),
      JSON.stringify({ extends: "../../tsconfig.base.json", compilerOptions: options, include: ["*.ts"] })
    )
    await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder]).catch(
      (error: { readonly stdout: string }) => {
        throw new Error(error.stdout)
      }
    )
  }, 120_000)

  it("have a quick start that waits for its answer in no process, and goes on after it", async () => {
    const [program = ""] = await programsOf("docs/quick-start.md")
    await writeFile(join(folder, "hello.mjs"), program)
    const hello = async (...args: ReadonlyArray<string>) =>
      (await run(process.execPath, ["hello.mjs", ...args], { cwd: folder })).stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.replace(/ under the key .{43}$/, " under a key"))
    expect(await hello()).toEqual(["waits for an answer: start me again with yes"])
    expect(await hello("yes")).toEqual([
      `mailing "We are moving" under a key`,
      `mailing "reminder: We are moving" under a key`,
      "sent twice"
    ])
    expect(await hello()).toEqual(["sent twice"])
  }, 60_000)

  it("have a LangGraph.js graph that asks once, and is answered", async () => {
    const [program = ""] = await programsOf("docs/langgraph-checkpoint.md")
    const options = { module: ModuleKind.ESNext, target: ScriptTarget.ES2022 }
    await writeFile(join(folder, "refunds.mjs"), transpileModule(program, { compilerOptions: options }).outputText)
    const { stdout } = await run(process.execPath, ["refunds.mjs"], { cwd: folder })
    expect(stdout.trimEnd().split("\n")).toEqual([
      "mailing the manager",
      "Refund 40 EUR?",
      "refunding 40 EUR",
      "receipt 1"
    ])
  }, 60_000)
})
