/**
 * Children that see other process ids than the test does, as in another container on the same host. Linux, by
 * `unshare`.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

/** `true`, or why there are none here: a reason to skip a test with. */
export const available = (): true | string => (answer ??= look())

let answer: true | string | undefined

const look = (): true | string => {
  if (process.platform !== "linux") return `no PID namespaces on ${process.platform}`
  const [program = "", ...args] = inOwn(["true"])
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" })
  if (error !== undefined) return `unshare cannot be run: ${error.message}`
  return status === 0 ? true : `no PID namespace can be made here: ${stderr.trim()}`
}

/** The command line that runs a command as the first process of a new namespace, which dies with `unshare`. */
export const inOwn = (command: ReadonlyArray<string>): ReadonlyArray<string> => [
  "unshare",
  // Without being root, the namespace's maker must be root of a user namespace.
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
  "--pid",
  "--fork",
  "--mount-proc",
  "--kill-child=SIGKILL",
  "--",
  ...command
]

/** The id, in this process's namespace, of what `unshare` runs; `undefined` if it has not started or is gone. */
export const childOf = (unshare: number | undefined): number | undefined => {
  if (unshare === undefined) return undefined
  try {
    const children = readFileSync(`/proc/${unshare}/task/${unshare}/children`, "utf8").trim()
    return children === "" ? undefined : Number(children.split(" ")[0])
  } catch {
    return undefined
  }
}
