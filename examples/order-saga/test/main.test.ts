import { expect, it } from "@effect/vitest"
import { freshPostgres } from "@fermata/test/Postgres"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url))

it.scopedLive.each(["SQLite", "PostgreSQL"])(
  "does everything once, undoes it in reverse, and says what it could not undo, on %s",
  (database) =>
    Effect.gen(function* () {
      const url = database === "PostgreSQL" ? { FERMATA_DATABASE: yield* freshPostgres } : {}
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [main], { env: { ...process.env, ...url } })
      )
      expect(stdout.trimEnd().split("\n")).toEqual([
        "killed after deed 2",
        "killed after deed 4",
        "killed after deed 7",
        "o-1: book: done",
        "o-2: the hold of o-2 was refused",
        "o-3: the book of o-3 was refused",
        "o-4: The saga did not succeed (the book of o-4 was refused), and 1 of its compensations failed: refund: the refund of o-4 was refused",
        "the outside did for o-1: hold, charge, book",
        "the outside did for o-2: nothing",
        "the outside did for o-3: hold, charge, refund, release",
        "the outside did for o-4: hold, charge, release"
      ])
    }),
  60_000
)
