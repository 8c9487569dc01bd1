/** The harness's side of the barriers: see `Outside.ts` for the processes' side. */
import { Effect } from "effect"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { DriverFault } from "./Driver.js"
import { waitUntil } from "./Outside.js"

/** A barrier that is up. */
export interface Hold {
  readonly point: string
  /** Waits until so many (one, if not said) have come. */
  readonly arrived: (count?: number) => Effect.Effect<void, DriverFault>
  readonly release: Effect.Effect<void>
}

/** Puts a barrier up. `arrival` bounds the waiting. */
export const hold = (
  folder: string,
  point: string,
  options: {
    readonly arrival: (arrived: Effect.Effect<void>, what: string) => Effect.Effect<void, DriverFault>
  }
): Hold => {
  const file = join(folder, `${point}.hold`)
  writeFileSync(file, "")
  const here = () => readdirSync(folder).filter((name) => name.startsWith(`${point}.here.`))
  return {
    point,
    arrived: (count = 1) =>
      options.arrival(
        waitUntil(() => here().length >= count),
        `${count === 1 ? "a process" : `${count} processes`} at ${point}`
      ),
    release: Effect.sync(() => {
      for (const name of here()) rmSync(join(folder, name), { force: true })
      rmSync(file, { force: true })
    })
  }
}

const traceFile = (folder: string): string => join(folder, "trace")

/** Has every point recorded that is passed from now on; gives those passed so far. */
export const trace = (folder: string): (() => ReadonlyArray<string>) => {
  writeFileSync(traceFile(folder), "")
  return () => readFileSync(traceFile(folder), "utf8").split("\n").slice(0, -1)
}

export const stopTracing = (folder: string): void => rmSync(traceFile(folder), { force: true })
