/**
 * A copy of what the mutants need of the workspace, in a temporary folder: the tree itself is never changed.
 *
 * In the copy the ledger calls the decisions of `src/decisions`, which are changed, and the model calls its own in
 * `src/shipped`, which are not: so the lockstep compares a ledger that decides wrongly with what it should do.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder with the sources and tests, and where its decisions are. */
export interface Copy {
  readonly root: string
  readonly decisions: string
  readonly remove: () => Promise<void>
}

const copied = [
  "packages/contract/package.json",
  "packages/contract/src",
  "packages/contract/test/decisions",
  "packages/contract/test/domains.ts",
  "packages/ledger/package.json",
  "packages/ledger/src",
  "packages/ledger/test/lockstep",
  "packages/ledger/test/outside/Owner.ts",
  "packages/ledger/test/outside/Place.ts",
  "test/package.json",
  "test/src"
]

/** The workspace's own configuration starts a PostgreSQL server, which nothing here needs. */
const config = `import { defaultServerConditions } from "vite"
const conditions = ["@fermata/source", ...defaultServerConditions]
export default {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.test.ts"],
    pool: "forks",
    poolOptions: { forks: { singleFork: true } },
    testTimeout: 120_000
  }
}
`

/** Copies the workspace at `root`. */
export const copyOf = async (root: string): Promise<Copy> => {
  const folder = await mkdtemp(join(tmpdir(), "fermata-mutants-"))
  for (const path of copied) await cp(join(root, path), join(folder, path), { recursive: true })
  const contract = join(folder, "packages/contract")
  // It reads the sources, and would notice every mutant by its text.
  await rm(join(contract, "test/decisions/Mutants.test.ts"))
  await cp(join(contract, "src/decisions"), join(contract, "src/shipped"), { recursive: true })
  const model = join(contract, "src/model")
  for (const file of await readdir(model)) {
    const source = await readFile(join(model, file), "utf8")
    await writeFile(join(model, file), source.replaceAll(`"../decisions/`, `"../shipped/`))
  }
  await linkModules(root, folder)
  await writeFile(join(folder, "package.json"), `{ "type": "module" }`)
  await writeFile(join(folder, "vitest.config.js"), config)
  return {
    root: folder,
    decisions: join(contract, "src/decisions"),
    remove: () => rm(folder, { recursive: true, force: true })
  }
}

/** What is installed is linked, except for this workspace's own packages: those are the copies. */
const linkModules = async (root: string, folder: string): Promise<void> => {
  await mkdir(join(folder, "node_modules/@fermata"), { recursive: true })
  for (const name of await readdir(join(root, "node_modules"))) {
    if (name === "@fermata" || name.startsWith(".")) continue
    await symlink(join(root, "node_modules", name), join(folder, "node_modules", name))
  }
  for (const [name, path] of [
    ["contract", "packages/contract"],
    ["ledger", "packages/ledger"],
    ["test", "test"]
  ] as const) {
    await symlink(join(folder, path), join(folder, "node_modules/@fermata", name))
  }
}
