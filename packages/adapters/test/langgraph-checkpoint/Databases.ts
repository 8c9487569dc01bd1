/** Savers for tests, on each database, each with a database of its own. */
import { FermataSaver } from "@fermata/adapters/langgraph-checkpoint"
import { fresh, type PlaneAddress } from "@fermata/test/PlaneAddress"
import { Effect, Exit, Scope } from "effect"

export { databases } from "@fermata/test/PlaneAddress"

export const open = (address: PlaneAddress): FermataSaver =>
  address._tag === "Sqlite"
    ? FermataSaver.sqlite({ filename: address.filename, synchronous: "normal" })
    : FermataSaver.postgres({ url: address.url, maxConnections: 4 })

/** Runs a test with the address of an empty database and a saver on it, closed and removed afterwards. */
export const withSaver =
  (database: "SQLite" | "PostgreSQL", test: (saver: FermataSaver, address: PlaneAddress) => Promise<void>) =>
  async (): Promise<void> => {
    const scope = Effect.runSync(Scope.make())
    try {
      const address = await Effect.runPromise(Scope.extend(fresh(database), scope))
      const saver = open(address)
      try {
        await test(saver, address)
      } finally {
        await saver.close()
      }
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
