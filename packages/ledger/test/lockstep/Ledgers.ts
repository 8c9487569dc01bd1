/** Ledgers for many sequences: they share one, and take a fresh one before it grows so large that it is slow. */
import type { Ledger } from "@fermata/ledger"
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { openLedger, type Place } from "../outside/Place.js"

/** Sequences that share a database. */
const most = 200

/** Hands out a place's ledgers. */
export class Ledgers {
  private open: { readonly ledger: Ledger; readonly scope: Scope.CloseableScope } | undefined
  private used = 0

  constructor(private readonly place: Place) {}

  /** Runs a sequence; after one that fails the next has a fresh database. */
  async play(sequence: (ledger: Ledger) => Effect.Effect<void>): Promise<void> {
    if (this.used++ % most === 0) await this.close()
    const ledger = this.open?.ledger ?? (await this.fresh())
    const exit = await Effect.runPromiseExit(sequence(ledger))
    if (Exit.isSuccess(exit)) return
    await this.drop()
    await Effect.runPromise(exit)
  }

  /** Verifies everything that the sequences wrote, and closes. */
  async close(): Promise<void> {
    if (this.open === undefined) return
    const { problems } = await Effect.runPromise(this.open.ledger.verify)
    await this.drop()
    assert.deepStrictEqual(problems, [])
  }

  private async fresh(): Promise<Ledger> {
    const scope = Effect.runSync(Scope.make())
    const opened = Effect.flatMap(this.place.fresh, openLedger)
    const ledger = await Effect.runPromise(Scope.extend(opened, scope))
    this.open = { ledger, scope }
    return ledger
  }

  private async drop(): Promise<void> {
    const { open } = this
    this.open = undefined
    if (open !== undefined) await Effect.runPromise(Scope.close(open.scope, Exit.void))
  }
}
