/** The first workflow of the README: the same text, and true to what the README says of it. */
import { afterEach, beforeEach, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../../", import.meta.url))

const blockOfReadme = async () => {
  const readme = await readFile(join(root, "README.md"), "utf8")
  return /```ts\n(import[\s\S]*?)```/.exec(readme)?.[1]
}

let directory: string
beforeEach(async () => {
  // Inside the clone, so that what is pasted finds the packages as it does for a reader.
  await mkdir(join(root, ".tmp"), { recursive: true })
  directory = await mkdtemp(join(root, ".tmp", "first-workflow-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const start = (file: string) => {
  const child = spawn(process.execPath, [file], { cwd: directory, stdio: ["ignore", "pipe", "inherit"] })
  return { child, lines: createInterface({ input: child.stdout }), exit: once(child, "exit") }
}

it("is in the README, word for word", async () => {
  expect(await blockOfReadme()).toBe(await readFile(new URL("../src/main.ts", import.meta.url), "utf8"))
})

it("can be pasted, stopped and started: no line comes twice, and the sleep is not begun anew", async () => {
  const file = join(directory, "first.mjs")
  await writeFile(file, (await blockOfReadme()) ?? "")

  const began = Date.now()
  const first = start(file)
  const [greeting] = await once(first.lines, "line")
  expect(greeting).toBe("Hello Ada. Press Ctrl-C now, and start me again.")
  first.child.kill("SIGINT")
  await first.exit

  const second = start(file)
  const lines: Array<string> = []
  for await (const line of second.lines) lines.push(line)
  const [code] = await second.exit
  // A kill before the first line is recorded prints it again: printing is declared repeatable.
  expect(lines.filter((line) => line !== greeting)).toEqual([
    "Ten seconds after the first line, however often I was stopped.",
    "Goodbye Ada."
  ])
  expect(code).toBe(0)
  expect(Date.now() - began).toBeGreaterThan(9_000)

  const third = start(file)
  const again: Array<string> = []
  for await (const line of third.lines) again.push(line)
  expect(again).toEqual(["Goodbye Ada."])
}, 60_000)
