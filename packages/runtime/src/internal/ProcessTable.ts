/** What can be known of processes on this host: who we are, and whether another worker's process still runs. */
import { readFileSync, readlinkSync } from "node:fs"
import type { ProcessSight, WorkerPlace } from "@fermata/contract"
import { Effect } from "effect"

/**
 * The start time of a process in clock ticks since boot: field 22 of its stat, after the name in parentheses.
 * `undefined` for one that is dead and only waits for its parent to notice.
 */
const startTime = (pid: number): string | undefined => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19]
}

/** Where this process runs; `undefined` where the system does not say, and then only leases decide. */
export const self: Effect.Effect<WorkerPlace | undefined> = Effect.sync(() => {
  try {
    const start = startTime(process.pid)
    if (start === undefined) return undefined
    return {
      bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      pidNamespace: readlinkSync("/proc/self/ns/pid"),
      pid: process.pid,
      startTime: start
    }
  } catch {
    return undefined
  }
})

/** Looks for a process that `canSee` says is visible from here. A pid alone proves nothing: it is reused. */
export const sight = (place: WorkerPlace): ProcessSight => {
  try {
    return startTime(place.pid) === place.startTime ? "running" : "gone"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? "gone" : "cannot tell"
  }
}
