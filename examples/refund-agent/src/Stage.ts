/** Where the demonstration takes place: its data files, and a directory for its two databases. */
import { Data, Effect, type Scope } from "effect"
import { access, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Files } from "./Expectation.js"

/** Files and places. */
export interface Stage {
  readonly directory: string
  /** The resume plane's database: what Fermata keeps. */
  readonly plane: string
  /** The shop's database: the outside world. */
  readonly shop: string
  /** The texts of the data files. */
  readonly files: Files
}

/** The stage in an existing directory. */
export const at = (directory: string): Effect.Effect<Stage> =>
  Effect.map(
    Effect.all({ requests: data("requests.jsonl"), orders: data("orders.jsonl"), desk: data("desk.json") }),
    (files) => ({
      directory,
      plane: join(directory, "plane.db"),
      shop: join(directory, "shop.db"),
      files
    })
  )

/** A stage in a new directory, removed with the scope unless it is to be kept. */
export const temporary = (keep: boolean): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "refund-agent-"))),
      (directory) => (keep ? Effect.void : Effect.promise(() => rm(directory, { recursive: true, force: true })))
    ),
    at
  )

/** The stage that an earlier demonstration kept in this directory. */
export const kept = (directory: string): Effect.Effect<Stage, NothingKept> =>
  Effect.tap(at(directory), ({ shop }) =>
    Effect.tryPromise({ try: () => access(shop), catch: () => new NothingKept({ directory }) })
  )

/** The directory does not hold what a demonstration leaves with `--keep`. */
export class NothingKept extends Data.TaggedError("NothingKept")<{ readonly directory: string }> {
  override get message() {
    return `${this.directory} holds no shop.db: name the directory that --keep printed`
  }
}

const data = (name: string) =>
  Effect.promise(() => readFile(fileURLToPath(new URL(`../data/${name}`, import.meta.url)), "utf8"))
