/** Lockstep with ledgers that store on disk and on a server. */
import { describe, it } from "@effect/vitest"
import { postgres, sqliteFile } from "../outside/Place.js"
import { extent, patience, playRandom, withoutStacks } from "./Random.js"

withoutStacks()

describe("random sequences", () => {
  it(`agree on a file (${extent.stored} sequences)`, () => playRandom(sqliteFile, extent.stored), patience)
  it(`agree on PostgreSQL (${extent.stored} sequences)`, () => playRandom(postgres, extent.stored), patience)
})
